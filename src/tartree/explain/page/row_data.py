"""Rows of a table as a page holds them: plain values in original units, by column."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tartree.explain.tree_view.views import ColumnView
from tartree.table.columns import COLUMNS
from tartree.table.raw_table import read_table

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
        COLUMNS[column.kind].plain_values(table.read(index).take(rows), column) if column.features else []
        for index, column in enumerate(columns)
    ]
