"""Columns of levels."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from itertools import repeat
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tartree.table.columns.column import Column, ColumnSummary, Fitting, HasLevels
from tartree.table.columns.constant import Constant
from tartree.table.columns.level_values import as_numbers, as_texts
from tartree.table.feature import OTHER, Feature, Level
from tartree.table.raw_column import RawColumn
from tartree.table.saved_fields import Fields, refuse

#: The most levels of a streamed column that are counted exactly. In a column with more, which is rather an identifier,
#: a count may be too low by one for each so many rows.
MOST_LEVELS = 2**17


@dataclass(frozen=True)
class Category(Column):
    """A column of levels, one feature each.

    A level that fit did not see, and a missing value where fit saw none, count as a rare level. Where there was none,
    all features are 0: it is none of the levels seen, and nothing that was never trained is switched on.

    Parameters
    ----------
    levels : tuple of str or numbers
        The most frequent first.
    other, gaps : bool
        Whether fit saw rare levels and missing values, which then have features, too.

    Examples
    --------
    >>> from tartree.table import Category, TableEncoder
    >>> TableEncoder(min_count=1).fit([["x"], ["y"], ["x"]]).columns_
    [Category(levels=('x', 'y'), other=False, gaps=False)]
    """

    kind = "category"

    levels: tuple[Level, ...]
    other: bool
    gaps: bool

    @classmethod
    def fit(cls, raw: RawColumn, fitting: Fitting, weights: NDArray[np.float64] | None) -> Category | Constant:
        counts = count_levels(raw)
        gaps = counts.pop(None, 0) > 0
        return LevelTally(counts).fit(gaps, fitting)

    @staticmethod
    def tally() -> LevelTally:
        return LevelTally()

    def features(self, index: int, name: str) -> list[Feature]:
        features = [Feature(index, name, "level", level=level) for level in self.levels]
        if self.other and (self.levels or self.gaps):  # otherwise every row would have it, and it would say nothing
            features.append(Feature(index, name, "other"))
        if self.gaps:
            features.append(Feature(index, name, "missing"))
        return features

    def encode(self, raw: RawColumn, out: NDArray[np.float32]) -> None:
        if not out.shape[1]:
            return
        positions: dict[Level | None, int] = {level: position for position, level in enumerate(self.levels)}
        unseen = len(self.levels) if self.other else -1
        positions[None] = out.shape[1] - 1 if self.gaps else unseen
        # Of a column with codes, each different value is looked up once, and a missing one beside them.
        objects = raw.objects() if raw.codes is None else [*raw.values, None]
        keys = _as_levels(objects, self.levels)
        columns = np.fromiter(map(positions.get, keys, repeat(unseen)), dtype=np.intp, count=len(keys))
        columns = columns if raw.codes is None else columns[raw.codes]  # (rows,)
        rows = np.flatnonzero(columns >= 0)
        out[rows, columns[rows]] = 1.0

    def decode(self, encoded: NDArray[np.float64]) -> NDArray[Any]:
        values = np.full(len(encoded), OTHER, dtype=object)
        if encoded.shape[1]:
            choices = np.full(encoded.shape[1], OTHER, dtype=object)
            choices[: len(self.levels)] = self.levels
            if self.gaps:
                choices[-1] = None
            best = encoded.argmax(axis=1)  # (rows,)
            is_set = encoded[np.arange(len(encoded)), best] > 0.5
            values[is_set] = choices[best[is_set]]
        return values

    @classmethod
    def read_fields(cls, saved: Fields) -> Self:
        values = saved.state["levels"]
        if not isinstance(values, list):
            refuse("a list of levels", values)
        levels = tuple(saved.level("levels", level) for level in values)
        if any(isinstance(level, bool) for level in levels) or len({isinstance(level, str) for level in levels}) > 1:
            refuse("levels of one type, text or numbers", values)
        if len(set(levels)) < len(levels):
            refuse("different levels", values)
        return cls(levels, saved.flag("other"), saved.flag("gaps"))

    @property
    def noun(self) -> str:
        return "categorical"

    @property
    def summary(self) -> ColumnSummary:
        typical = self.levels[0] if self.levels else None
        return ColumnSummary(levels=self.levels, other=self.other, gaps=self.gaps, typical=typical)

    def reference(self, feature: Feature, *, is_first: bool) -> float:
        return float(is_first)  # levels are in order of frequency

    def cell(self, encoded: NDArray[np.float64]) -> Level:
        return self.levels[int(encoded.argmax())]

    def alternatives(self, high: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        return [row for row in np.eye(len(high))[: len(self.levels)] if high[row > 0] > 0.5]

    @staticmethod
    def plain_values(raw: RawColumn, column: HasLevels) -> list[Any]:
        levels = _as_levels(raw.objects(), column.levels)
        return [str(level) if isinstance(level, float) and not math.isfinite(level) else level for level in levels]


@dataclass
class LevelTally:
    """Levels and their rows; of very many levels the rarest are forgotten, as Misra and Gries do."""

    kind = "category"

    counts: Counter[Any] = field(default_factory=Counter)
    forgotten: int = 0  # rows, at most, that may be missing in a count
    is_text: bool = True  # whether all values were text, and no chunk was declared categorical

    @property
    def texts(self) -> list[str] | None:
        """The different texts; None if other values were levels too."""
        return list(self.counts) if self.is_text else None

    def update(self, raw: RawColumn, weights: NDArray[np.float64] | None) -> int:
        counts = count_levels(raw)
        gaps = counts.pop(None, 0)
        is_text = not raw.is_declared and set(map(type, raw.values)) <= {str, type(None)}
        self.merge(LevelTally(counts, is_text=is_text))
        return gaps

    def merge(self, other: LevelTally) -> None:
        added = other.counts
        if self.counts and added and _are_texts(self.counts) != _are_texts(added):
            self.counts, added = _with_texts(self.counts), _with_texts(added)
        self.counts.update(added)
        self.forgotten += other.forgotten
        self.is_text = self.is_text and other.is_text
        if len(self.counts) > MOST_LEVELS:
            cut = sorted(self.counts.values(), reverse=True)[MOST_LEVELS]
            self.counts = Counter({level: count - cut for level, count in self.counts.items() if count > cut})
            self.forgotten += cut

    def fit(self, gaps: bool, fitting: Fitting) -> Category | Constant:
        counts = self.counts
        if len(counts) == 1 and not gaps and not self.forgotten:
            return Constant(next(iter(counts)))
        frequent = sorted(
            (level for level, count in counts.items() if count >= fitting.min_count),
            key=lambda level: (-counts[level], level),
        )
        levels = tuple(frequent[: fitting.max_levels])
        return Category(levels, other=self.forgotten > 0 or len(levels) < len(counts), gaps=gaps)


def count_levels(raw: RawColumn) -> Counter[Any]:
    """Count the rows of each level: numbers if all are, otherwise text; None for missing values."""
    objects = raw.objects() if raw.codes is None else raw.values
    types = set(map(type, objects)) - {type(None)}
    are_numbers = all(issubclass(python_type, Real) for python_type in types)
    keys = as_numbers(objects) if are_numbers else as_texts(objects)
    if are_numbers and any(isinstance(key, float) and math.isinf(key) for key in keys):
        keys = as_texts(objects)  # infinity as a level, which plain data cannot hold as a number
    if raw.codes is None:
        return Counter(keys)
    n_rows = np.bincount(raw.codes + 1, minlength=len(keys) + 1).tolist()
    counts: Counter[Any] = Counter()
    for key, count in zip([None, *keys], n_rows, strict=True):
        if count:
            counts[key] += count
    return counts


def _as_levels(objects: list[Any], levels: tuple[Level, ...]) -> list[Any]:
    """Return objects as numbers or text, as the levels are."""
    return as_numbers(objects) if levels and not isinstance(levels[0], str) else as_texts(objects)


def _are_texts(counts: Counter[Any]) -> bool:
    return isinstance(next(iter(counts)), str)


def _with_texts(counts: Counter[Any]) -> Counter[Any]:
    texts: Counter[Any] = Counter()
    for text, count in zip(as_texts(list(counts)), counts.values(), strict=True):
        texts[text] += count
    return texts
