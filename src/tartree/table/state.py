"""Fitted columns as plain data, and back: a dict that JSON can hold, and numpy arrays beside it.

What is read back may come from anywhere, so every field is checked by type and by range, and nothing unknown is let
through.
"""

import math
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tartree.table import units
from tartree.table.columns import Boolean, Category, Column, Constant, Fitting, Level, Numeric
from tartree.table.scaling import CLIP, KNOT_GAP, LARGEST, SHRINK, SMALLEST, Scaling

FORMAT = 2  # 1 had no `extrapolation`: numbers beyond the range seen had no limit

Arrays = dict[str, NDArray[Any]]


def refuse(what: str, found: object) -> NoReturn:
    text = repr(found)
    text = text if len(text) <= 80 else text[:77] + "..."
    raise ValueError(f"the state of a TableEncoder must have {what}, however: {text}; save it again")


def knots_key(index: int) -> str:
    return f"column.{index}.knots"


def write_column(column: Column, index: int, arrays: Arrays) -> dict[str, Any]:
    """One column as a JSON dict; its knots go to `arrays`."""
    if isinstance(column, Constant):
        return {"kind": column.kind, "value": column.value}
    if isinstance(column, Boolean):
        return {"kind": column.kind, "fill": column.fill, "gaps": column.gaps}
    if isinstance(column, Category):
        return {"kind": column.kind, "levels": list(column.levels), "other": column.other, "gaps": column.gaps}
    scaling = column.scaling
    if scaling.knots:
        arrays[knots_key(index)] = np.array([scaling.knots, scaling.heights])  # (2, knots)
    return {
        "kind": column.kind,
        "unit": column.unit,
        "center": scaling.center,
        "scale": scaling.scale,
        "knots": len(scaling.knots),
        "fill": column.fill,
        "low": column.low,
        "high": column.high,
        "whole": column.whole,
        "gaps": column.gaps,
    }


def read_column(state: Any, index: int, arrays: Mapping[str, Any], fitting: Fitting) -> Column:
    """One column from what `write_column` made, or ValueError."""
    kind = state.get("kind") if isinstance(state, Mapping) else None
    if kind == "constant":
        fields = Fields(state, {"kind", "value"})
        return Constant(None if state["value"] is None else fields.level("value", state["value"]))
    if kind == "boolean":
        fields = Fields(state, {"kind", "fill", "gaps"})
        return Boolean(fields.flag("fill"), fields.flag("gaps"))
    if kind == "category":
        fields = Fields(state, {"kind", "levels", "other", "gaps"})
        return _read_category(fields)
    if kind == "numeric":
        names = {"kind", "unit", "center", "scale", "knots", "fill", "low", "high", "whole", "gaps"}
        return _read_numeric(Fields(state, names), index, arrays, fitting)
    return refuse("a kind in every column", state)


def _read_category(fields: "Fields") -> Category:
    found = fields.state["levels"]
    if not isinstance(found, list):
        refuse("a list of levels", found)
    levels = tuple(fields.level("levels", level) for level in found)
    if any(isinstance(level, bool) for level in levels) or len({isinstance(level, str) for level in levels}) > 1:
        refuse("levels of one type, text or numbers", found)
    if len(set(levels)) < len(levels):
        refuse("different levels", found)
    return Category(levels, fields.flag("other"), fields.flag("gaps"))


def _read_numeric(fields: "Fields", index: int, arrays: Mapping[str, Any], fitting: Fitting) -> Numeric:
    state = fields.state
    if state["unit"] not in units.UNITS:
        refuse(f"a unit of {', '.join(units.UNITS)}", state["unit"])
    low, high, fill = fields.number("low"), fields.number("high"), fields.number("fill")
    if not low <= fill <= high:
        refuse("low <= fill <= high", (low, fill, high))
    count = state["knots"]
    if type(count) is not int or count < 0 or count == 1:
        refuse("a number of knots, 0 or at least 2", count)
    knots, heights = _read_knots(arrays.get(knots_key(index)), count) if count else ((), ())
    center, scale = fields.number("center"), fields.number("scale")
    if scale < max(SMALLEST, abs(center) * 1e-30):  # far below what rounding lets fit find, and it would divide by zero
        refuse("a positive scale that is not lost beside the center", (center, scale))
    numeric = Numeric(
        state["unit"],
        Scaling(center, scale, knots, heights).limited(low, high, fitting.limit_of(state["unit"])),
        fill,
        low,
        high,
        fields.flag("whole"),
        fields.flag("gaps"),
    )
    if not numeric.varies and not numeric.gaps:
        refuse("a numeric column that varies or has gaps", dict(state))
    return numeric


def _read_knots(array: Any, count: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    if not isinstance(array, np.ndarray) or array.dtype != np.float64 or array.shape != (2, count):
        came = (array.dtype, array.shape) if isinstance(array, np.ndarray) else type(array).__name__
        refuse(f"knots in a float64 array of shape (2, {count})", came)
    knots, heights = array * SHRINK  # (knots,), (knots,)
    rising = (np.diff(knots) >= KNOT_GAP * SHRINK).all() and (np.diff(heights) > 0).all()
    if not rising or not np.isfinite(array).all() or np.abs(array[1]).max() > CLIP:
        refuse("finite knots in rising order", array)
    return tuple(array[0].tolist()), tuple(array[1].tolist())


class Fields:
    """Typed reading of one JSON dict that must have exactly these keys."""

    def __init__(self, state: Any, names: set[str]) -> None:
        if not isinstance(state, Mapping) or set(state) != names:
            refuse(
                f"exactly the fields {', '.join(sorted(names))}",
                sorted(map(str, state)) if isinstance(state, Mapping) else state,
            )
        self.state = state

    def flag(self, name: str) -> bool:
        value = self.state[name]
        return value if isinstance(value, bool) else refuse(f"true or false for {name}", value)

    def number(self, name: str) -> float:
        value = self.state[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
            refuse(f"a finite number for {name}", value)
        return float(value)

    def level(self, name: str, value: Any) -> Level:
        if isinstance(value, float) and not math.isfinite(value):
            refuse(f"a finite number for {name}", value)
        return (
            value
            if isinstance(value, str | bool | int | float)
            else refuse(f"text, a number or a bool for {name}", value)
        )
