"""What a column is taken for: what its values show, unless the user says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tartree.table.columns import column_class
from tartree.table.columns.category import Category, LevelTally
from tartree.table.columns.column import Column, Fitting
from tartree.table.columns.constant import Constant
from tartree.table.columns.numeric import Numeric
from tartree.table.identifiers import identifier_note, is_nearly_unique
from tartree.table.quantities import QUANTITIES
from tartree.table.raw_column import RawColumn
from tartree.table.statistics import ColumnStatistics, TableStatistics
from tartree.table.texts.date_form import DateForm
from tartree.table.texts.number_form import NumberForm
from tartree.table.texts.text_forms import TextReading, describe_doubt

#: Kinds that a user may give a column, with the form of its texts where the kind says it.
KINDS: dict[str, NumberForm | DateForm | None] = {
    "number": None,
    "number-decimal-point": NumberForm("."),
    "number-decimal-comma": NumberForm(","),
    "date": None,
    "date-day-first": DateForm("dmy"),
    "date-month-first": DateForm("mdy"),
    "category": None,
    "ignore": None,
}


#: A column without features whose values are not read.
IDENTIFIER = Category((), other=True, gaps=False)


@dataclass(frozen=True)
class LearntColumn:
    """A column with what its fit found beside the encoding.

    Parameters
    ----------
    column : Column
    missing : float or None
        Share of missing values; None in files of earlier versions.
    note : str or None
        What a reader should know about how the column was taken.
    is_doubtful : bool
        Whether the note is about a choice that was made by a rule, and a warning is due.
    """

    column: Column
    missing: float | None = None
    note: str | None = None
    is_doubtful: bool = False


def check_kinds(columns: Any) -> None:
    """Raise unless a parameter maps columns to kinds."""
    if columns is None:
        return
    if not isinstance(columns, Mapping):
        raise ValueError(f"columns must map columns to kinds, such as {{'price': 'number'}}, got {columns!r}")
    for name, kind in columns.items():
        if not isinstance(kind, str) or kind not in KINDS:
            raise ValueError(f"columns must give column {name!r} one of the kinds {', '.join(KINDS)}, got {kind!r}")


def kinds_in_order(columns: Mapping[Any, str] | None, names: Sequence[str] | None, n_columns: int) -> list[str | None]:
    """Return the kind that the user gives each column, None for the others."""
    keys: list[Any] = list(range(n_columns)) if names is None else list(names)
    unknown = [key for key in columns or {} if key not in keys]
    if unknown:
        raise ValueError(f"columns must name columns of the table, {_listed(keys)}, got {unknown[0]!r}")
    return [(columns or {}).get(key) for key in keys]


def learn_column(
    raw: RawColumn, name: str, kind: str | None, fitting: Fitting, weights: NDArray[np.float64] | None
) -> LearntColumn:
    """Learn a column from all of its values.

    Parameters
    ----------
    raw : RawColumn
    name : str
        Of the column, or "".
    kind : str or None
        What the user says it is.
    fitting : Fitting
    weights : ndarray of shape (rows,) or None

    Returns
    -------
    LearntColumn
    """
    if kind == "ignore":
        return LearntColumn(Constant(None), raw.missing_share, "left out as asked")
    if kind == "category" and raw.kind != "empty":
        raw = RawColumn(raw.label, "category", raw.objects(), is_declared=True)
    reading = _asked_reading(raw, kind) if kind is not None else raw.reading()
    if reading is None:
        note = identifier_note(raw, name) if kind is None else None
        if note is not None:
            return LearntColumn(IDENTIFIER, raw.missing_share, note, is_doubtful=True)
        doubt = describe_doubt(raw.texts()) if kind is None and raw.kind == "category" else None
        return LearntColumn(column_class(raw.kind).fit(raw, fitting, weights), raw.missing_share, doubt)
    raw = raw.read_as(reading)
    column = column_class(raw.kind).fit(raw, fitting, weights)
    if isinstance(column, Numeric):
        column = replace(column, form=reading.form)
    return LearntColumn(column, raw.missing_share, reading.note, reading.note is not None)


def learn_statistics(statistics: TableStatistics, kinds: Sequence[str | None], fitting: Fitting) -> list[LearntColumn]:
    """Learn the columns of a table that was read in chunks.

    Parameters
    ----------
    statistics : TableStatistics
    kinds : sequence of str or None
        What the user says each column is.
    fitting : Fitting

    Returns
    -------
    list of LearntColumn
    """
    columns = zip(statistics.columns, kinds, strict=True)
    return [_learn_streamed(column, kind, statistics.n_rows, fitting) for column, kind in columns]


def _learn_streamed(column: ColumnStatistics, kind: str | None, n_rows: int, fitting: Fitting) -> LearntColumn:
    missing = column.gaps / n_rows
    if kind == "ignore":
        return LearntColumn(Constant(None), missing, "left out as asked")
    tally = column.tally
    if not isinstance(tally, LevelTally):
        if kind == "category" and tally is not None and tally.kind != "boolean":
            raise ValueError(
                f"{column.label} holds a {tally.kind}, whose values a stream cannot take as levels; convert it"
            )
        if kind is not None and tally is not None:
            _check_kind(column.label, str(tally.kind), kind)
        return LearntColumn(column.fit(fitting), missing)
    texts = tally.texts
    note = is_nearly_unique(len(tally.counts), sum(tally.counts.values())) if kind is None else None
    if note is not None and (texts is None or RawColumn(column.label, "category", texts).reading() is None):
        return LearntColumn(IDENTIFIER, missing, note, is_doubtful=True)
    if texts is None or kind == "category" or tally.forgotten:
        return LearntColumn(column.fit(fitting), missing)
    raw = RawColumn(column.label, "category", texts)
    reading = _asked_reading(raw, kind) if kind is not None else raw.reading()
    if reading is None:
        return LearntColumn(column.fit(fitting), missing, describe_doubt(texts))
    numbers = raw.read_as(reading)
    counts = np.array([tally.counts[text] for text in texts], dtype=np.float64)
    statistics = ColumnStatistics(column.label, column.gaps)
    statistics.update(numbers, len(texts), counts)
    n_missing = float(counts[np.isnan(numbers.values)].sum())
    learnt = statistics.fit(fitting)
    if isinstance(learnt, Numeric):
        learnt = replace(learnt, form=reading.form)
    return LearntColumn(learnt, missing + n_missing / n_rows, reading.note, reading.note is not None)


def _asked_reading(raw: RawColumn, kind: str) -> TextReading | None:
    """Return how texts are read as the kind that the user asked for, None where they need no reading."""
    if kind == "category" or raw.kind == "empty":
        return None
    if raw.kind != "category":
        _check_kind(raw.label, raw.kind, kind)
        return None
    reading = reading_as(kind, replace(raw, is_declared=False).reading(digits=True))
    if reading is None:
        example = plain_reading(kind)
        raw.numbers(example.kind, example.form)  # names the first text that is none
        raise ValueError(f"{raw.label} must hold a {kind} in every row, but its texts are of several kinds; clean them")
    return reading


def reading_as(kind: str, reading: TextReading | None) -> TextReading | None:
    """Return how texts are read as the kind that the user asked for; None if they are not of that kind.

    Parameters
    ----------
    kind : str
        A number or a date.
    reading : TextReading or None
        How the texts are read if nobody asks.

    Returns
    -------
    TextReading or None
    """
    form, plain = KINDS[kind], plain_reading(kind)
    if reading is not None and reading.form.name != plain.form.name:
        reading = None
    if form is None:
        return reading
    if isinstance(form, NumberForm) and reading is not None and isinstance(reading.form, NumberForm):
        form = replace(form, affix=reading.form.affix)
    return TextReading(plain.kind if reading is None else reading.kind, form)


def plain_reading(kind: str) -> TextReading:
    """Return how numbers or dates in their plainest form are read.

    Examples
    --------
    >>> plain_reading("number-decimal-comma").kind, plain_reading("date").kind
    ('number', 'datetime')
    """
    if kind.startswith("number"):
        return TextReading("number", NumberForm())
    return TextReading("datetime", DateForm("dmy"))


def _check_kind(label: str, raw_kind: str, kind: str) -> None:
    """Raise unless the values of a typed column are of the kind that the user asked for."""
    wanted = kind.partition("-")[0]
    accepted = QUANTITIES["number" if wanted == "number" else "datetime"].accepts
    if raw_kind not in accepted:
        raise ValueError(f"{label} holds a {raw_kind}, which cannot be read as a {wanted}; convert it before")


def _listed(keys: Sequence[Any]) -> str:
    shown = ", ".join(map(repr, keys[:8]))
    return shown if len(keys) <= 8 else f"{shown}, ..."
