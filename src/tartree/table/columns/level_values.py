"""Levels as text or as numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def as_texts(objects: list[Any]) -> list[Any]:
    """Return levels as text, None for missing values."""
    if set(map(type, objects)) <= {str, type(None)}:
        return objects
    return [None if value is None else _as_text(value) for value in objects]


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="backslashreplace")
    if isinstance(value, float | np.floating):
        number = float(value)
        # A column of whole numbers with missing values comes as floats; its levels are the same.
        return str(int(number)) if abs(number) < 1e15 and number.is_integer() else str(number)
    isoformat = getattr(value, "isoformat", None)
    return str(isoformat()) if callable(isoformat) else str(value)


def as_numbers(objects: list[Any]) -> list[Any]:
    """Return levels as numbers, whole ones as int; None for missing values and NaN for what is no number."""
    return [None if value is None else _as_number(value) for value in objects]


def _as_number(value: Any) -> int | float:
    if isinstance(value, int | np.integer):
        return int(value)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return int(number) if number.is_integer() else number
