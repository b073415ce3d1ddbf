"""ArrowFamily: Arrow types whose values go together in one column, one record each, and the list of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class ArrowFamily:
    """Arrow types whose values are read as one kind of column.

    Attributes
    ----------
    name : str
    matches : callable
        Says of an Arrow type, with the module `pyarrow`, whether it belongs here.
    is_number : bool
        Whether values are numbers, as targets and weights must be.
    is_label : bool
        Whether values may be classes.
    has_levels : bool
        Whether a column may become many features, one a level.
    widest : str
        Name of an Arrow type that holds all values of the family, where Arrow may find none.
    """

    name: str
    matches: Callable[[Any, Any], bool]
    is_number: bool = False
    is_label: bool = False
    has_levels: bool = False
    widest: str = ""


def _is_number(pa: Any, arrow_type: Any) -> bool:
    types = pa.types
    return bool(types.is_integer(arrow_type) or types.is_floating(arrow_type) or types.is_decimal(arrow_type))


def _is_text(pa: Any, arrow_type: Any) -> bool:
    types = pa.types
    return bool(types.is_string(arrow_type) or types.is_large_string(arrow_type) or types.is_string_view(arrow_type))


TEXT = ArrowFamily("text", _is_text, is_label=True, has_levels=True)

FAMILIES = (
    ArrowFamily("boolean", lambda pa, t: pa.types.is_boolean(t), is_number=True, is_label=True),
    ArrowFamily("number", _is_number, is_number=True, is_label=True, widest="float64"),
    TEXT,
    ArrowFamily("datetime", lambda pa, t: pa.types.is_timestamp(t) and t.tz is None),
    ArrowFamily("datetime with time zone", lambda pa, t: pa.types.is_timestamp(t)),
    ArrowFamily("date", lambda pa, t: pa.types.is_date(t)),
    ArrowFamily("duration", lambda pa, t: pa.types.is_duration(t)),
    ArrowFamily("time of day", lambda pa, t: pa.types.is_time(t)),
)


def family(arrow_type: Any) -> ArrowFamily | None:
    """Return the family of an Arrow type; None for a column that has only missing values."""
    import pyarrow as pa

    if pa.types.is_null(arrow_type):
        return None
    if pa.types.is_dictionary(arrow_type):
        values = family(arrow_type.value_type)
        if values is None or values is TEXT:
            return values
        return replace(values, name=f"categories of {values.name}", is_number=False, is_label=False, has_levels=True)
    other = ArrowFamily(str(arrow_type), lambda pa, t: t == arrow_type, has_levels=True)
    return next((listed for listed in FAMILIES if listed.matches(pa, arrow_type)), other)


def are_alike(arrow_type: Any, other: Any) -> bool:
    """Return whether values of both types may be in one column."""
    families = [family(arrow_type), family(other)]
    return None in families or len({of_type.name for of_type in families if of_type}) == 1


def common_type(arrow_types: Sequence[Any]) -> Any:
    """Return a type that holds the values of all these types of one family."""
    import pyarrow as pa

    different = list(dict.fromkeys(arrow_type for arrow_type in arrow_types if not pa.types.is_null(arrow_type)))
    if len(different) < 2:
        return different[0] if different else pa.null()
    shared = family(different[0])
    if shared is TEXT:
        return pa.large_string()
    schemas = [pa.schema([("value", arrow_type)]) for arrow_type in different]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowException:  # decimals that no wider decimal holds
        return getattr(pa, shared.widest)() if shared and shared.widest else different[0]
