"""Statistics of a table, gathered chunk by chunk and merged in any order, to learn an encoding from.

Counts, ranges and levels are exact, means and variances to rounding, quantiles within the error of `QuantileSketch`.
All of it is plain data that can be pickled and sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tartree.table.columns import column_class
from tartree.table.columns.column import Column, Fitting, Tally
from tartree.table.columns.constant import Constant
from tartree.table.quantities import joined_kind
from tartree.table.raw_column import RawColumn
from tartree.table.raw_table import read_table, string_names
from tartree.table.row_error import among


class TableStatistics:
    """Statistics of the columns of a table that is read in chunks, for `TableEncoder.fit_statistics`.

    Attributes
    ----------
    n_rows : int
        Rows seen, without those of weight 0.
    names : list of str or None
        Names of the columns, if they have any.
    columns : list of ColumnStatistics
        One a column; empty before the first chunk.

    Examples
    --------
    >>> from tartree.table import TableStatistics
    >>> first, second = TableStatistics.of([[1.0], [2.0]]), TableStatistics.of([[6.0]])
    >>> first.merge(second).columns[0].tally.moments.center
    3.0
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self.names: list[str] | None = None
        self.columns: list[ColumnStatistics] = []

    @classmethod
    def of(cls, X: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Return the statistics of one chunk.

        Parameters
        ----------
        X : table of shape (rows, columns)
        sample_weight : array-like of shape (rows,), optional
            As in `update`.

        Returns
        -------
        TableStatistics
        """
        statistics = cls()
        statistics.update(X, sample_weight)
        return statistics

    def update(self, X: Any, sample_weight: ArrayLike | None = None, executor: Executor | None = None) -> None:
        """Add a chunk.

        Parameters
        ----------
        X : table of shape (rows, columns)
            With the same columns in every chunk; it may be without rows.
        sample_weight : array-like of shape (rows,), optional
            Rows without weight are not read.
        executor : concurrent.futures.Executor, optional
            Reads columns side by side.

        Raises
        ------
        ValueError
            If the columns are others, or of other kinds, than those of the chunks before.
        """
        table = read_table(X)
        labels = [table.label(index) for index in range(table.n_columns)]
        self._expect(string_names(table), labels)
        weights, rows = None, None
        if sample_weight is not None:
            weights = np.asarray(sample_weight, dtype=np.float64)
            if weights.shape != (table.n_rows,) or not np.isfinite(weights).all() or (weights < 0).any():
                raise ValueError(f"sample_weight must be {table.n_rows} finite numbers of at least 0, got {weights}")
            rows = np.flatnonzero(weights > 0)
            weights, rows = weights[rows], None if len(rows) == table.n_rows else rows
        n_rows = table.n_rows if weights is None else len(weights)
        self.n_rows += n_rows
        if not n_rows:
            return

        def read(index: int) -> None:
            raw = table.read(index)
            with among(rows):
                self.columns[index].update(raw if rows is None else raw.take(rows), n_rows, weights)

        each: Iterable[None] = (map if executor is None else executor.map)(read, range(table.n_columns))
        for _ in each:
            pass

    def merge(self, other: TableStatistics) -> Self:
        """Add all that another one has seen.

        Parameters
        ----------
        other : TableStatistics
            It stays as it is.

        Returns
        -------
        TableStatistics
            Itself.
        """
        if other.columns:
            self._expect(other.names, [column.label for column in other.columns])
            for column, added in zip(self.columns, other.columns, strict=True):
                column.merge(added)
            self.n_rows += other.n_rows
        return self

    def _expect(self, names: list[str] | None, labels: list[str]) -> None:
        """Begin with these columns, or raise if others were seen before."""
        if not self.columns:
            self.names, self.columns = names, [ColumnStatistics(label) for label in labels]
        elif names != self.names or len(labels) != len(self.columns):
            before, now = self.names or len(self.columns), names or len(labels)
            raise ValueError(
                f"all chunks of a table must have the same columns in the same order, got {before} and {now}"
            )


@dataclass
class ColumnStatistics:
    """One column: how many values are missing, and what the others are, of one kind in all chunks."""

    label: str
    gaps: int = 0
    tally: Tally | None = None

    def update(self, raw: RawColumn, n_rows: int, weights: NDArray[np.float64] | None) -> None:
        """Add rows; weights are positive."""
        if raw.kind == "empty":
            self.gaps += n_rows
        elif self.tally is not None and joined_kind(str(self.tally.kind), raw.kind):
            self.gaps += self.tally.update(raw, weights)  # in place: to merge sketches would be slow
        else:
            tally = column_class(raw.kind).tally()
            self.gaps += tally.update(raw, weights)
            if tally.kind is not None:
                self._check_kind(tally.kind)
                self.tally = tally

    def merge(self, other: ColumnStatistics) -> None:
        """Add what other chunks of the column have, which stays as it is."""
        self.gaps += other.gaps
        if other.tally is None or other.tally.kind is None:
            return
        self._check_kind(other.tally.kind)
        self.tally = self.tally or column_class(other.tally.kind).tally()
        self.tally.merge(other.tally)

    def _check_kind(self, kind: str) -> None:
        if self.tally is not None and joined_kind(str(self.tally.kind), kind) is None:
            kinds = " and ".join(sorted((str(self.tally.kind), kind)))
            raise ValueError(
                f"{self.label} must hold values of one kind in all chunks, got {kinds}; convert the column before"
            )

    def fit(self, fitting: Fitting) -> Column:
        """Return what the column learns."""
        return Constant(None) if self.tally is None else self.tally.fit(self.gaps > 0, fitting)
