"""Columns with one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from tartree.table.columns.column import Column, ColumnSummary, Fitting, HasLevels
from tartree.table.feature import Feature, Level
from tartree.table.raw_column import RawColumn
from tartree.table.saved_fields import Fields


@dataclass(frozen=True)
class Constant(Column):
    """A column with one value, or with missing values only: no feature, and what it holds later is not read.

    Parameters
    ----------
    value : str, bool, int, float or None

    Examples
    --------
    >>> from tartree.table import Constant, TableEncoder
    >>> TableEncoder().fit([["x"], ["x"]]).columns_
    [Constant(value='x')]
    """

    kind = "constant"

    value: Level | None

    @classmethod
    def fit(cls, raw: RawColumn, fitting: Fitting, weights: NDArray[np.float64] | None) -> Constant:
        return cls(None)

    @staticmethod
    def tally() -> NoReturn:
        raise NotImplementedError("missing values have no tally")

    def features(self, index: int, name: str) -> list[Feature]:
        return []

    def encode(self, raw: RawColumn, out: NDArray[np.float32]) -> None:
        return

    def decode(self, encoded: NDArray[np.float64]) -> NDArray[Any]:
        is_number = isinstance(self.value, float)
        return np.full(len(encoded), self.value, dtype=np.float64 if is_number else object)

    @classmethod
    def read_fields(cls, saved: Fields) -> Self:
        value = saved.state["value"]
        return cls(None if value is None else saved.level("value", value))

    @property
    def summary(self) -> ColumnSummary:
        return ColumnSummary(typical=self.value)

    @staticmethod
    def plain_values(raw: RawColumn, column: HasLevels) -> list[Any]:
        return []
