"""What Python objects in a column are: families of types, and missing values."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np

from tartree.table.quantities import QUANTITIES
from tartree.table.quantities.quantity import Quantity


def family_of(python_type: type) -> str:
    """Return the name of a quantity, "boolean", "text", "complex", or "illegal" for containers and bare objects."""
    if issubclass(python_type, bool | np.bool_):
        return "boolean"
    for quantity in QUANTITIES.values():
        if quantity.is_type(python_type):
            return quantity.name
    if issubclass(python_type, numbers.Complex | np.complexfloating):
        return "complex"
    if issubclass(python_type, str | bytes):
        return "text"
    # Identifiers, addresses, intervals and the like have a text of their own; containers and bare objects have none.
    has_text = python_type.__str__ is not object.__str__ or python_type.__repr__ is not object.__repr__
    is_plain = has_text and not issubclass(python_type, Iterable) and python_type.__hash__ is not None
    return "text" if is_plain else "illegal"


def quantity_of(families: set[str], values: list[Any]) -> Quantity | None:
    """Return the quantity of objects of these families, None if they are levels."""
    if families == {"text"}:
        texts = [quantity for quantity in QUANTITIES.values() if quantity.is_from_text]
        return next((quantity for quantity in texts if quantity.matches(values)), None)
    fitting = [quantity for quantity in QUANTITIES.values() if families <= quantity.families]
    if not fitting:
        return None
    return QUANTITIES[min(fitting, key=lambda quantity: len(quantity.families)).refined(values)]


def may_be_missing(python_type: type) -> bool:
    """Return whether values of a type may be missing values other than None."""
    missing = float | np.floating | Decimal | np.datetime64 | np.timedelta64
    return issubclass(python_type, missing) or _is_pandas_missing(python_type)


def is_missing(value: Any) -> bool:
    """Return whether an object is None, NaN, NaT or pandas' NA."""
    if value is None or _is_pandas_missing(type(value)):
        return True
    if isinstance(value, float | np.floating):
        return bool(value != value)
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return False


def _is_pandas_missing(python_type: type) -> bool:
    return python_type.__name__ in ("NAType", "NaTType")
