"""TableSummary: what each column of a table was taken for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tartree.table.column_kinds import LearntColumn
from tartree.table.columns.category import Category
from tartree.table.columns.constant import Constant

#: Characters of a cell that are printed.
WIDTH = 40
#: Levels that are printed.
FEW_LEVELS = 3


@dataclass(frozen=True)
class ColumnDescription:
    """What one column was taken for.

    Parameters
    ----------
    name : str
    kind : str
        "number", "date", "datetime", "duration", "time", "boolean", "category", or "left out".
    form : str
        How its texts are read: "in $", "in %, decimal comma", "day first"; "" if they need no rule.
    low, high : float, str or None
        The range of numbers and dates, dates as ISO text.
    levels : tuple
        The levels that have features, the most frequent first.
    has_other : bool
        Whether rare levels share a feature.
    missing : float or None
        Share of missing values; None if it is not known, in models saved by earlier versions.
    note : str
        What else a reader should know, or "".
    """

    name: str
    kind: str
    form: str
    low: Any
    high: Any
    levels: tuple[Any, ...]
    has_other: bool
    missing: float | None
    note: str

    @property
    def values(self) -> str:
        """Range or levels as text."""
        if self.low is not None:
            low, high = (f"{end:,.6g}" if isinstance(end, float) else str(end) for end in (self.low, self.high))
            return f"{low} to {high}"
        shown = ", ".join(map(str, self.levels[:FEW_LEVELS]))
        more = len(self.levels) - FEW_LEVELS
        return shown + (f" and {more} more" if more > 0 else "") + (", others" if self.has_other and shown else "")


class TableSummary(tuple[ColumnDescription, ...]):
    """The descriptions of all columns; as text, a table with a line for each.

    Parameters
    ----------
    iterable : iterable of ColumnDescription

    Examples
    --------
    >>> import pandas as pd
    >>> from tartree.table import TableEncoder
    >>> frame = pd.DataFrame({"price": ["$5", "$1,200.50", None], "colour": ["red", "blue", "red"]})
    >>> print(TableEncoder(min_count=1).fit(frame).summary())
    column  kind          values        missing  note
    price   number, in $  5 to 1,200.5  33.3 %
    colour  category      red, blue
    """

    __slots__ = ()

    def __str__(self) -> str:
        rows = [("column", "kind", "values", "missing", "note"), *(_cells(column) for column in self)]
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
        return "\n".join(line.rstrip() for line in lines)


def _cells(column: ColumnDescription) -> tuple[str, ...]:
    kind = f"{column.kind}, {column.form}" if column.form else column.kind
    missing = "" if not column.missing else f"{100 * column.missing:.3g} %"
    *cells, note = column.name, kind, column.values, missing, column.note
    return *(cell if len(cell) <= WIDTH else cell[: WIDTH - 3] + "..." for cell in cells), note


def describe_column(name: str, learnt: LearntColumn, *, is_used: bool) -> ColumnDescription:
    """Describe a column; `is_used` tells whether it has features."""
    column = learnt.column
    summary = column.summary
    low, high = None, None
    if column.is_measured:
        ends = column.quantity.originals(np.array([summary.low, summary.high], dtype=np.float64), fine=column.is_fine)
        low, high = ends.tolist()
    kind = "left out" if not is_used else column.quantity.name if column.is_measured else column.kind
    form = "" if summary.form is None else summary.form.description
    levels = summary.levels if isinstance(column, Category) else ()
    note = learnt.note or ("" if is_used else _reason(learnt))
    return ColumnDescription(name, kind, form, low, high, levels, summary.other, learnt.missing, note)


def _reason(learnt: LearntColumn) -> str:
    """Return why a column has no features."""
    if not isinstance(learnt.column, Constant):
        return "every text is rare"
    value = learnt.column.value
    return "no values" if value is None else f"one value, {value}"
