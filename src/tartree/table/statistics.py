"""What has to be known of a table to encode it, gathered piece by piece and merged in any order.

Counts, ranges and levels are exact, means and variances to rounding, quantiles within the error of `QuantileSketch`.
All of it is plain data that can be pickled and sent.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tartree.table.columns import (
    Column,
    Constant,
    Fitting,
    are_days,
    are_whole,
    as_texts,
    boolean_of,
    category_of,
    count_levels,
    gaps_of,
    numeric_of,
)
from tartree.table.moments import Moments
from tartree.table.places import among
from tartree.table.reading import RawColumn, read_table, string_names
from tartree.table.scaling import Scaling, has_far_codes, through_quantiles
from tartree.table.sketch import QuantileSketch

#: The most levels of a column that are counted exactly. In a column with more, which is rather an identifier, a count
#: may be too low by one for each so many rows.
MOST_LEVELS = 2**17


class TableStatistics:
    """Statistics of the columns of a table that comes in pieces, for `TableEncoder.fit_statistics`.

    Attributes
    ----------
    n_rows : int
        Rows seen, without those of weight 0.
    names : list of str or None
        Names of the columns, if they have any.
    columns : list of ColumnStatistics
        One a column; empty before the first piece.

    Examples
    --------
    >>> first, second = TableStatistics.of([[1.0], [2.0]]), TableStatistics.of([[6.0]])
    >>> first.merge(second).columns[0].numbers.moments.center
    3.0
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self.names: list[str] | None = None
        self.columns: list[ColumnStatistics] = []

    @classmethod
    def of(cls, X: Any, sample_weight: ArrayLike | None = None) -> Self:
        """The statistics of one piece."""
        statistics = cls()
        statistics.update(X, sample_weight)
        return statistics

    def update(self, X: Any, sample_weight: ArrayLike | None = None, executor: Executor | None = None) -> None:
        """Add a piece: any table with the same columns, which may be without rows.

        Rows without weight are not looked at. With an `executor`, columns are looked at side by side.
        """
        table = read_table(X)
        labels = [table.label(index) for index in range(table.n_columns)]
        self._expect(string_names(table), labels)
        weights, rows = None, None
        if sample_weight is not None:
            weights = np.asarray(sample_weight, dtype=np.float64)
            if weights.shape != (table.n_rows,) or not np.isfinite(weights).all() or (weights < 0).any():
                raise ValueError(
                    f"sample_weight must be {table.n_rows} finite numbers of at least 0, however: {weights}"
                )
            rows = np.flatnonzero(weights > 0)
            weights, rows = weights[rows], None if len(rows) == table.n_rows else rows
        n_rows = table.n_rows if weights is None else len(weights)
        self.n_rows += n_rows
        if not n_rows:
            return

        def look(index: int) -> None:
            raw = table.read(index)
            with among(rows):
                self.columns[index].update(raw if rows is None else raw.take(rows), n_rows, weights)

        each: Iterable[None] = (map if executor is None else executor.map)(look, range(table.n_columns))
        for _ in each:
            pass

    def merge(self, other: TableStatistics) -> Self:
        """Add all that another one has seen, which stays as it is; itself."""
        if other.columns:
            self._expect(other.names, [column.label for column in other.columns])
            for own, theirs in zip(self.columns, other.columns, strict=True):
                own.merge(theirs)
            self.n_rows += other.n_rows
        return self

    def fit_columns(self, fitting: Fitting) -> list[Column]:
        """What each column learns."""
        return [column.fit(fitting) for column in self.columns]

    def _expect(self, names: list[str] | None, labels: list[str]) -> None:
        """Begin with these columns, or raise if others were seen before."""
        if not self.columns:
            self.names, self.columns = names, [ColumnStatistics(label) for label in labels]
        elif names != self.names or len(labels) != len(self.columns):
            before, now = self.names or len(self.columns), names or len(labels)
            raise ValueError(
                f"all pieces of a table must have the same columns in the same order, however: {before} and {now}"
            )


@dataclass
class ColumnStatistics:
    """One column: how many gaps, and what its values are, of one kind for all pieces."""

    label: str
    gaps: int = 0
    numbers: Numbers | None = None
    truths: Truths | None = None
    levels: Levels | None = None

    def update(self, raw: RawColumn, n_rows: int, weights: NDArray[np.float64] | None) -> None:
        """Add rows; weights are positive."""
        here = ColumnStatistics(self.label)
        if raw.kind == "empty":
            here.gaps = n_rows
        elif raw.kind == "category":
            here.levels = Levels(count_levels(raw))
            here.gaps = here.levels.counts.pop(None, 0)
        elif raw.kind == "boolean":
            here.truths = Truths(int((raw.values == 1).sum()), int((raw.values == 0).sum()))
            here.gaps = int(np.isnan(raw.values).sum())
        else:
            missing = gaps_of(raw.values, raw.label)
            present = raw.values if missing is None else raw.values[~missing]
            own = weights if weights is None or missing is None else weights[~missing]
            here.gaps = 0 if missing is None else int(missing.sum())
            if len(present):
                self._check_kind(raw.kind)
                if self.numbers is None:
                    self.numbers = Numbers(raw.kind)
                self.numbers.update(present, raw.kind, own)  # in place: a sketch a piece would be slow
        self.merge(here)

    def merge(self, other: ColumnStatistics) -> None:
        """Add what another piece of the column has."""
        self._check_kind(other.kind)
        self.gaps += other.gaps
        if other.numbers is not None:
            self.numbers = self.numbers or Numbers(other.numbers.unit)
            self.numbers.merge(other.numbers)
        if other.truths is not None:
            self.truths = self.truths or Truths()
            self.truths.merge(other.truths)
        if other.levels is not None:
            self.levels = self.levels or Levels()
            self.levels.merge(other.levels)

    def fit(self, fitting: Fitting) -> Column:
        """What the column learns."""
        if self.numbers is not None:
            found = self.numbers
            whole = found.unit == "number" and found.whole
            unit = "date" if found.unit == "datetime" and found.days else found.unit
            return numeric_of(unit, found.low, found.high, whole, self.gaps > 0, found, fitting)
        if self.truths is not None:
            return boolean_of(self.truths.trues, self.truths.falses, self.gaps > 0)
        if self.levels is not None:
            return category_of(self.levels.counts, self.gaps > 0, fitting, more=self.levels.forgotten > 0)
        return Constant(None)

    @property
    def kind(self) -> str | None:
        """The kind of its values, None while there are only gaps."""
        if self.numbers is not None:
            return self.numbers.unit
        return "boolean" if self.truths is not None else "category" if self.levels is not None else None

    def _check_kind(self, kind: str | None) -> None:
        kinds = {"date" if found == "datetime" else found for found in (self.kind, kind)} - {None}
        if len(kinds) > 1:
            found = " and ".join(sorted(map(str, kinds)))
            raise ValueError(
                f"{self.label} must hold values of one kind in all pieces, however: {found}; convert the column before"
            )


@dataclass
class Numbers:
    """Numbers, or dates, durations or times as seconds, without gaps."""

    unit: str
    low: float = math.inf
    high: float = -math.inf
    whole: bool = True
    days: bool = True  # whether a datetime never had a time of day
    moments: Moments = field(default_factory=Moments)
    sketch: QuantileSketch = field(default_factory=QuantileSketch)

    def update(self, present: NDArray[np.float64], unit: str, weights: NDArray[np.float64] | None) -> None:
        """Add at least one value."""
        self.unit = _common(self.unit, unit)
        self.low, self.high = min(self.low, float(present.min())), max(self.high, float(present.max()))
        # A look at a few rows settles it for most columns.
        self.whole = self.whole and are_whole(present[:100]) and are_whole(present)
        self.days = self.days and unit in ("date", "datetime") and are_days(present)
        self.moments.merge(Moments.of(present, weights))
        with np.errstate(over="ignore"):
            single = present.astype(np.float32)
        # Numbers that come from single precision are sorted in half the time there.
        self.sketch.update(single if np.array_equal(single, present) else present, weights)

    def merge(self, other: Numbers) -> None:
        self.unit = _common(self.unit, other.unit)
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.whole, self.days = self.whole and other.whole, self.days and other.days
        self.moments.merge(other.moments)
        self.sketch.merge(other.sketch)

    def middle(self) -> float:
        return min(max(self.sketch.quantile(0.5), self.low), self.high)

    def standardise(self) -> tuple[float, Scaling]:
        return self.middle(), Scaling(self.moments.center, self.moments.scale)

    def through_quantiles(self, n_quantiles: int, standard: Scaling) -> Scaling:
        values, weights = self._items()
        return through_quantiles(values, n_quantiles, standard, weights)

    def has_far_codes(self) -> bool:
        return has_far_codes(*self._items())

    def _items(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        values, weights = self.sketch.items()
        values = values.copy()
        values[0], values[-1] = self.low, self.high  # which a sketch may have passed over
        return values, weights


@dataclass
class Truths:
    """Booleans."""

    trues: int = 0
    falses: int = 0

    def merge(self, other: Truths) -> None:
        self.trues += other.trues
        self.falses += other.falses


@dataclass
class Levels:
    """Levels of a category and their rows; of very many levels the rarest are forgotten, as Misra and Gries do."""

    counts: Counter[Any] = field(default_factory=Counter)
    forgotten: int = 0  # rows, at most, that may be missing in a count

    def merge(self, other: Levels) -> None:
        theirs = other.counts
        if self.counts and theirs and _are_texts(self.counts) != _are_texts(theirs):
            self.counts, theirs = _texts(self.counts), _texts(theirs)
        self.counts.update(theirs)
        self.forgotten += other.forgotten
        if len(self.counts) > MOST_LEVELS:
            cut = sorted(self.counts.values(), reverse=True)[MOST_LEVELS]
            self.counts = Counter({level: count - cut for level, count in self.counts.items() if count > cut})
            self.forgotten += cut


def _common(unit: str, other: str) -> str:
    return "datetime" if {unit, other} == {"date", "datetime"} else other


def _are_texts(counts: Counter[Any]) -> bool:
    return isinstance(next(iter(counts)), str)


def _texts(counts: Counter[Any]) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for text, count in zip(as_texts(list(counts)), counts.values(), strict=True):
        found[text] += count
    return found
