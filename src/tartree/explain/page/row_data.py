"""Rows of a table as a page holds them: plain values in original units, by column."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tartree.explain.tree_view.views import ColumnView
from tartree.table.columns import as_numbers, as_texts
from tartree.table.reading import RawColumn, read_table

IntArray = NDArray[np.intp]


def choose_rows(n_rows: int, most: int) -> IntArray:
    """Return the indices of the rows that a page holds: all, or a sample that is the same every time."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, size=most, replace=False))


def plain_columns(X: Any, columns: tuple[ColumnView, ...], rows: IntArray) -> list[list[Any]]:
    """Return values of some rows, by column: numbers (dates and times in seconds), booleans, levels; None if missing.

    A column that the model does not read is an empty list.
    """
    table = read_table(X)
    return [
        plain_values(table.read(index).take(rows), column) if column.features else []
        for index, column in enumerate(columns)
    ]


def plain_values(raw: RawColumn, column: ColumnView) -> list[Any]:
    if column.kind == "numeric":
        return [None if math.isnan(value) else _short(value) for value in raw.numbers(column.unit).tolist()]
    if column.kind == "boolean":
        truths = {"true": True, "false": False, "1": True, "0": False}
        return [truths.get(str(text).strip().lower()) for text in as_texts(raw.objects())]
    numeric = bool(column.levels) and not isinstance(column.levels[0], str)
    levels = as_numbers(raw.objects()) if numeric else as_texts(raw.objects())
    return [str(level) if isinstance(level, float) and not math.isfinite(level) else level for level in levels]


def _short(value: float) -> float | int:
    """Return a whole number as int, which is shorter in JSON."""
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
