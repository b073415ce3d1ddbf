"""Columns of numbers, and of dates, durations and times as seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tartree.table.columns.column import Column, ColumnSummary, Fitting, HasLevels
from tartree.table.columns.constant import Constant
from tartree.table.columns.number_tally import NumberTally, Values, WeightedValues, are_days, are_whole, missing_of
from tartree.table.expansion import bins_of
from tartree.table.feature import Feature
from tartree.table.quantities import QUANTITIES
from tartree.table.quantities.quantity import Quantity
from tartree.table.raw_column import RawColumn
from tartree.table.saved_fields import Arrays, Fields, refuse
from tartree.table.scales import CLIP, IDENTITY, KNOT_GAP, SHRINK, SMALLEST, Scaling
from tartree.table.texts.text_forms import TextForm, form_from_state

#: Edges of bins that are closer, in standard deviations, are one: single precision would hardly tell them apart.
EDGE_GAP = 1e-4


@dataclass(frozen=True)
class Numeric(Column):
    """A column of numbers, or of dates, durations or times as seconds.

    Parameters
    ----------
    unit : str
        Name of the quantity.
    scaling : Scaling
    fill : float
        The median, which missing values become.
    low, high : float
        Range of the values seen.
    whole : bool
        Whether fit saw whole numbers only.
    gaps : bool
        Whether fit saw missing values, which then have a feature.
    edges : tuple of float
        Encoded values between which a curve is linear; empty without a curve.
    form : NumberForm, DateForm or None
        How texts are read, where fit read the column from text.

    Examples
    --------
    >>> from tartree.table import Numeric, TableEncoder
    >>> (column,) = TableEncoder().fit([[1], [2], [6]]).columns_
    >>> column.fill, column.low, column.high, column.whole
    (2.0, 1.0, 6.0, True)
    """

    kind = "numeric"

    unit: str
    scaling: Scaling
    fill: float
    low: float
    high: float
    whole: bool
    gaps: bool
    edges: tuple[float, ...] = ()
    form: TextForm | None = None

    @classmethod
    def fit(cls, raw: RawColumn, fitting: Fitting, weights: NDArray[np.float64] | None) -> Numeric | Constant:
        values = raw.values  # (rows,)
        missing = missing_of(values, raw.label)
        present = values if missing is None else values[~missing]
        weights = weights if missing is None or weights is None else weights[~missing]
        if not len(present):
            return Constant(None)
        quantity = QUANTITIES[raw.kind]
        if quantity.days and are_days(present):
            quantity = QUANTITIES[quantity.days]
        low, high = float(present.min()), float(present.max())
        whole = quantity.is_bare and are_whole(present)
        return fit_values(quantity, low, high, whole, missing is not None, WeightedValues(present, weights), fitting)

    @staticmethod
    def tally() -> NumericTally:
        return NumericTally()

    @property
    def noun(self) -> str:
        return self.quantity.group

    @property
    def is_measured(self) -> bool:
        return True

    @property
    def quantity(self) -> Quantity:
        return QUANTITIES[self.unit]

    @property
    def is_fine(self) -> bool:
        return self.scaling.is_fine

    @property
    def varies(self) -> bool:
        """False where fit saw one value and missing ones, and only the feature of missing values says something."""
        return self.low < self.high

    @property
    def is_linear(self) -> bool:
        """Whether values are encoded by a center, a scale and ends alone."""
        return self.quantity.is_bare and not self.scaling.knots and self.scaling.shrink == 1.0

    @property
    def encoded_fill(self) -> float:
        """The encoded value of a missing value."""
        return float(self.scaling.encode(np.asarray([self.fill]))[0])

    def features(self, index: int, name: str) -> list[Feature]:
        features = []
        if self.varies:
            value = Feature(index, name, "value", unit=self.unit, whole=self.whole, scaling=self.scaling)
            features += [value, *(replace(value, kind="bin", bin=part) for part in bins_of(self.edges))]
        if self.gaps:
            features.append(Feature(index, name, "missing"))
        return features

    def encode(self, raw: RawColumn, out: NDArray[np.float32]) -> None:
        values = raw.numbers(self.unit, self.form)  # (rows,)
        missing = missing_of(values, raw.label)
        if self.varies:
            encoded = self.scaling.encode(values)
            if missing is not None:
                encoded[missing] = self.encoded_fill
            out[:, 0] = encoded
        if self.gaps and missing is not None:
            out[:, -1] = missing

    def decode(self, encoded: NDArray[np.float64]) -> NDArray[Any]:
        values = self.scaling.decode(encoded[:, 0]) if self.varies else np.full(len(encoded), self.low)
        if self.whole:
            values = np.rint(values)
        if self.gaps:
            values[encoded[:, -1] > 0.5] = np.nan
        return self.quantity.originals(values, fine=self.is_fine)

    # Files

    def to_state(self, index: int, arrays: Arrays) -> dict[str, Any]:
        scaling = self.scaling
        if scaling.knots:
            arrays[_knots_key(index)] = np.array([scaling.knots, scaling.heights])  # (2, knots)
        state = super().to_state(index, arrays)
        del state["scaling"]
        if not self.edges:  # as in files of format 2
            del state["edges"]
        del state["form"]
        if self.form is not None:
            state["text"] = self.form.to_state()
        return state | {"center": scaling.center, "scale": scaling.scale, "knots": len(scaling.knots)}

    @classmethod
    def from_state(cls, state: Any, index: int, arrays: Mapping[str, Any], fitting: Fitting) -> Self:
        names = {"kind", "unit", "center", "scale", "knots", "fill", "low", "high", "whole", "gaps"}
        if isinstance(state, Mapping) and "edges" in state:
            names.add("edges")
        if isinstance(state, Mapping) and "text" in state:
            names.add("text")
        saved = Fields(state, names)
        if state["unit"] not in tuple(QUANTITIES):  # it may be unhashable
            refuse(f"a unit of {', '.join(QUANTITIES)}", state["unit"])
        low, high, fill = saved.number("low"), saved.number("high"), saved.number("fill")
        if not low <= fill <= high:
            refuse("low <= fill <= high", (low, fill, high))
        count = state["knots"]
        if type(count) is not int or count < 0 or count == 1:
            refuse("a number of knots, 0 or at least 2", count)
        knots, heights = _read_knots(arrays.get(_knots_key(index)), count) if count else ((), ())
        center, scale = saved.number("center"), saved.number("scale")
        if scale < max(SMALLEST, abs(center) * 1e-30):  # below what rounding lets fit find; it would divide by zero
            refuse("a positive scale that is not lost beside the center", (center, scale))
        limit = fitting.limit_of(QUANTITIES[state["unit"]])
        scaling = Scaling(center, scale, knots, heights).limited(low, high, limit)
        edges = _read_edges(state["edges"], fitting) if "edges" in state else ()
        form = _read_form(state["text"], state["unit"]) if "text" in state else None
        column = cls(state["unit"], scaling, fill, low, high, saved.flag("whole"), saved.flag("gaps"), edges, form)
        if not column.varies and not column.gaps:
            refuse("a numeric column that varies or has gaps", dict(state))
        return column

    # Explanations

    @property
    def summary(self) -> ColumnSummary:
        return ColumnSummary(
            self.unit, self.whole, self.low, self.high, gaps=self.gaps, typical=self.fill, form=self.form
        )

    def reference(self, feature: Feature, *, is_first: bool) -> float:
        if feature.bin is not None:
            return float(feature.bin.at(0.0))
        is_unscaled = feature.kind == "value" and self.scaling == IDENTITY  # where 0 is nothing special
        return self.fill if is_unscaled else 0.0

    def usual_spread(self, feature: Feature) -> float:
        if feature.kind == "missing":
            return super().usual_spread(feature)
        return 1.0 if self.scaling != IDENTITY else (self.high - self.low) / 4

    def cell(self, encoded: NDArray[np.float64]) -> Any:
        value = float(self.scaling.decode(encoded[:1])[0])
        if self.whole and self.quantity.is_bare and abs(value) < 2**53:
            return int(np.rint(value))
        return self.quantity.cell(value, fine=self.is_fine)

    @staticmethod
    def plain_values(raw: RawColumn, column: HasLevels) -> list[Any]:
        values = raw.numbers(column.unit, column.form).tolist()
        return [None if math.isnan(value) else _short(value) for value in values]


class NumericTally(NumberTally):
    """Numbers in chunks of a column, of one quantity."""

    def fit(self, gaps: bool, fitting: Fitting) -> Numeric | Constant:
        quantity = QUANTITIES[str(self.kind)]
        if self.days and quantity.days:
            quantity = QUANTITIES[quantity.days]
        return fit_values(quantity, self.low, self.high, quantity.is_bare and self.whole, gaps, self, fitting)


def fit_values(
    quantity: Quantity, low: float, high: float, whole: bool, gaps: bool, values: Values, fitting: Fitting
) -> Numeric | Constant:
    """Learn a column with at least one value."""
    unit = quantity.name
    if fitting.numeric == "plain" and quantity.is_bare:
        above = max(high, float(np.nextafter(low, np.inf)))  # a range, so that a column of one value has its feature
        return Numeric(unit, IDENTITY, values.middle(), low, above, whole, gaps)
    if low == high:
        if not gaps:
            return Constant(quantity.originals(np.asarray([low]), fine=True).tolist()[0])
        return Numeric(unit, IDENTITY, low, low, low, whole, gaps=True)
    median, scaling = values.standardise()
    if fitting.numeric == "quantile" or (quantity.is_bare and values.has_far_codes()):
        scaling = values.through_quantiles(fitting.n_quantiles, scaling)
    scaling = scaling.limited(low, high, fitting.limit_of(quantity))
    edges: tuple[float, ...] = ()
    if fitting.numeric == "curve":
        edges = _distinct(scaling.encode(values.quantile_edges(fitting.n_bins)))
    return Numeric(unit, scaling, median, low, high, whole, gaps, edges)


def _distinct(edges: NDArray[np.float64]) -> tuple[float, ...]:
    """Return encoded edges that are far enough apart; none where a straight line says as much."""
    kept = [edges[0]]
    for edge in edges[1:]:
        if edge - kept[-1] >= EDGE_GAP:
            kept.append(edge)
    return tuple(float(edge) for edge in kept) if len(kept) > 2 else ()


def _read_edges(saved: Any, fitting: Fitting) -> tuple[float, ...]:
    is_list = isinstance(saved, list) and all(type(edge) in (int, float) and abs(edge) <= CLIP for edge in saved)
    if not is_list or not 2 < len(saved) <= fitting.n_bins + 1 or (np.diff(saved) < EDGE_GAP).any():
        refuse(f"at most {fitting.n_bins + 1} rising edges of bins", saved)
    return tuple(map(float, saved))


def _read_form(saved: Any, unit: str) -> TextForm:
    try:
        form = form_from_state(saved)
    except (KeyError, TypeError, ValueError):
        refuse("a form of text", saved)
    if (form.name == "number") != QUANTITIES[unit].is_bare:
        refuse(f"a form of text for the unit {unit}", saved)
    return form


def _knots_key(index: int) -> str:
    return f"column.{index}.knots"


def _read_knots(array: Any, count: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    if not isinstance(array, np.ndarray) or array.dtype != np.float64 or array.shape != (2, count):
        form = (array.dtype, array.shape) if isinstance(array, np.ndarray) else type(array).__name__
        refuse(f"knots in a float64 array of shape (2, {count})", form)
    knots, heights = array * SHRINK  # (knots,), (knots,)
    rising = (np.diff(knots) >= KNOT_GAP * SHRINK).all() and (np.diff(heights) > 0).all()
    if not rising or not np.isfinite(array).all() or np.abs(array[1]).max() > CLIP:
        refuse("finite knots in rising order", array)
    return tuple(array[0].tolist()), tuple(array[1].tolist())


def _short(value: float) -> float | int:
    """Return a whole number without its decimal point, to write it shorter."""
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
