"""Columns of booleans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tartree.table.columns.column import Column, ColumnSummary, Fitting, HasLevels
from tartree.table.columns.constant import Constant
from tartree.table.columns.level_values import as_texts
from tartree.table.feature import Feature
from tartree.table.raw_column import RawColumn
from tartree.table.saved_fields import Fields

#: Texts of truth values, in lower case.
TRUTHS = {"true": True, "false": False, "1": True, "0": False}


@dataclass(frozen=True)
class Boolean(Column):
    """A column of booleans: 1 where true.

    Parameters
    ----------
    fill : bool
        The more frequent value, which missing values become if fit saw none.
    gaps : bool
        Whether fit saw missing values, which then have a feature.

    Examples
    --------
    >>> from tartree.table import Boolean, TableEncoder
    >>> TableEncoder().fit([[True], [False], [True]]).columns_
    [Boolean(fill=True, gaps=False)]
    """

    kind = "boolean"

    fill: bool
    gaps: bool

    @classmethod
    def fit(cls, raw: RawColumn, fitting: Fitting, weights: NDArray[np.float64] | None) -> Boolean | Constant:
        tally = cls.tally()
        return tally.fit(tally.update(raw, weights) > 0, fitting)

    @staticmethod
    def tally() -> BooleanTally:
        return BooleanTally()

    def features(self, index: int, name: str) -> list[Feature]:
        truth = [Feature(index, name, "level", level=True)]
        return [*truth, Feature(index, name, "missing")] if self.gaps else truth

    def encode(self, raw: RawColumn, out: NDArray[np.float32]) -> None:
        values = raw.values if raw.kind in ("boolean", "number", "empty") else _truths(raw.objects(), np.nan)
        values = np.asarray(values, dtype=np.float64)
        missing = (values != 0) & (values != 1)  # also anything that is neither true nor false
        out[:, 0] = values == 1
        out[missing, -1] = 1.0 if self.gaps else float(self.fill)

    def decode(self, encoded: NDArray[np.float64]) -> NDArray[Any]:
        values = (encoded[:, 0] > 0.5).astype(object)
        if self.gaps:
            values[encoded[:, -1] > 0.5] = None
        return values

    @classmethod
    def read_fields(cls, saved: Fields) -> Self:
        return cls(saved.flag("fill"), saved.flag("gaps"))

    @property
    def summary(self) -> ColumnSummary:
        return ColumnSummary(levels=(True, False), gaps=self.gaps, typical=self.fill)

    def reference(self, feature: Feature, *, is_first: bool) -> float:
        return float(self.fill and is_first)

    def cell(self, encoded: NDArray[np.float64]) -> bool:
        return bool(encoded[0] > 0.5)

    def alternatives(self, high: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        return [np.zeros(len(high)), np.eye(len(high))[0]]

    @staticmethod
    def plain_values(raw: RawColumn, column: HasLevels) -> list[Any]:
        return _truths(raw.objects(), None)


@dataclass
class BooleanTally:
    """How many values are true, and how many false."""

    kind = "boolean"

    trues: int = 0
    falses: int = 0

    def update(self, raw: RawColumn, weights: NDArray[np.float64] | None) -> int:
        self.trues += int((raw.values == 1).sum())
        self.falses += int((raw.values == 0).sum())
        return int(np.isnan(raw.values).sum())

    def merge(self, other: BooleanTally) -> None:
        self.trues += other.trues
        self.falses += other.falses

    def fit(self, gaps: bool, fitting: Fitting) -> Boolean | Constant:
        if not gaps and (self.trues == 0 or self.falses == 0):
            return Constant(self.trues > 0)
        return Boolean(fill=self.trues >= self.falses, gaps=gaps)


def _truths(objects: list[Any], otherwise: Any) -> list[Any]:
    """Return truth values, `otherwise` for missing values and everything else."""
    return [TRUTHS.get(str(text).strip().lower(), otherwise) for text in as_texts(objects)]
