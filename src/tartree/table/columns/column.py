"""Column: what one column has learnt in fit, and what other rooms ask about its kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tartree.table.feature import Feature, Level
from tartree.table.quantities import QUANTITIES
from tartree.table.quantities.quantity import Quantity
from tartree.table.raw_column import RawColumn
from tartree.table.saved_fields import Arrays, Fields
from tartree.table.texts.text_forms import TextForm


@dataclass(frozen=True)
class Fitting:
    """Parameters of the encoder that all columns share."""

    numeric: str
    n_quantiles: int
    max_levels: int
    min_count: int
    extrapolation: float | None
    n_bins: int = 8

    def limit_of(self, quantity: Quantity) -> float | None:
        """Return `extrapolation` for a quantity; numbers that are taken as they are have no limit."""
        return None if self.numeric == "plain" and quantity.is_bare else self.extrapolation


@dataclass(frozen=True)
class ColumnSummary:
    """What people are told about a column: range, levels and a typical value."""

    unit: str = "number"
    whole: bool = False
    low: float | None = None
    high: float | None = None
    levels: tuple[Level, ...] = ()
    other: bool = False
    gaps: bool = False
    typical: Level | None = None  # the median, or the most frequent level
    form: TextForm | None = None  # of numbers and dates that were text

    @property
    def range(self) -> tuple[float, float] | None:
        """Lowest and highest value; None where values are levels."""
        return None if self.low is None or self.high is None else (self.low, self.high)


class HasLevels(Protocol):
    """What tells how values of a column are shown: a `ColumnSummary`, or a view made from one."""

    @property
    def unit(self) -> str: ...

    @property
    def levels(self) -> tuple[Level, ...]: ...

    @property
    def form(self) -> TextForm | None: ...


class Column(ABC):
    """What one column has learnt: it encodes values, reads them back, and describes itself.

    A new kind is a subclass (a frozen dataclass), with a `Tally` for chunks of a table, and an entry of `COLUMNS`.

    Examples
    --------
    >>> from tartree.table import TableEncoder
    >>> [column.kind for column in TableEncoder().fit([[1, "x"], [2, "y"], [3, "x"]]).columns_]
    ['numeric', 'category']
    """

    #: In files, views and on the page.
    kind: ClassVar[str]

    # Learning

    @classmethod
    @abstractmethod
    def fit(cls, raw: RawColumn, fitting: Fitting, weights: NDArray[np.float64] | None) -> Column:
        """Learn from all values of a column.

        Parameters
        ----------
        raw : RawColumn
        fitting : Fitting
        weights : ndarray of shape (rows,) or None
            Positive weights of rows.
        """

    @staticmethod
    @abstractmethod
    def tally() -> Tally:
        """Return what learns from chunks of a column.

        Returns
        -------
        Tally
        """

    # Encoding

    @abstractmethod
    def features(self, index: int, name: str) -> list[Feature]:
        """Return the output features.

        Parameters
        ----------
        index : int
            Of the column.
        name : str

        Returns
        -------
        list of Feature
        """

    @abstractmethod
    def encode(self, raw: RawColumn, out: NDArray[np.float32]) -> None:
        """Fill the features.

        Parameters
        ----------
        raw : RawColumn
        out : ndarray of shape (rows, features)
            Zeros.
        """

    @abstractmethod
    def decode(self, encoded: NDArray[np.float64]) -> NDArray[Any]:
        """Return original values of features.

        Parameters
        ----------
        encoded : ndarray of shape (rows, features)

        Returns
        -------
        ndarray of shape (rows,)
        """

    # Files

    def to_state(self, index: int, arrays: Arrays) -> dict[str, Any]:
        """Return what a file holds.

        Parameters
        ----------
        index : int
            Of the column.
        arrays : dict of ndarray
            Arrays of the column are added.

        Returns
        -------
        dict
            JSON can hold it.
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {"kind": self.kind} | {n: list(v) if isinstance(v, tuple) else v for n, v in values.items()}

    @classmethod
    def from_state(cls, state: Any, index: int, arrays: Mapping[str, Any], fitting: Fitting) -> Self:
        """Read what `to_state` returned.

        Parameters
        ----------
        state : object
        index : int
            Of the column.
        arrays : mapping of str to ndarray
        fitting : Fitting

        Returns
        -------
        Column

        Raises
        ------
        ValueError
            If it is not such a state.
        """
        return cls.read_fields(Fields(state, {"kind", *(field.name for field in fields(cls))}))  # type: ignore[arg-type]

    @classmethod
    def read_fields(cls, saved: Fields) -> Self:
        """Make a column from the fields of the default state.

        Parameters
        ----------
        saved : Fields

        Returns
        -------
        Column
        """
        raise NotImplementedError

    # Explanations

    @property
    @abstractmethod
    def summary(self) -> ColumnSummary:
        """What people are told."""

    @property
    def noun(self) -> str:
        """What the columns of this kind are counted as."""
        return self.kind

    @property
    def is_measured(self) -> bool:
        """Whether values are numbers of a quantity, rather than levels."""
        return False

    @property
    def quantity(self) -> Quantity:
        """What the values measure; numbers where they are levels."""
        return QUANTITIES[self.summary.unit]

    @property
    def is_fine(self) -> bool:
        """Whether fractions of a second matter to times."""
        return False

    def reference(self, feature: Feature, *, is_first: bool) -> float:
        """Return a feature of the typical value that rows are compared with.

        Parameters
        ----------
        feature : Feature
        is_first : bool
            Whether it is the first feature of the column.

        Returns
        -------
        float
        """
        return 0.0

    def usual_spread(self, feature: Feature) -> float:
        """Return about how far a feature spreads where no rows are at hand.

        Parameters
        ----------
        feature : Feature

        Returns
        -------
        float
        """
        return 0.5

    def cell(self, encoded: NDArray[np.float64]) -> Any:
        """Return the value that features stand for, as a table may hold it.

        Parameters
        ----------
        encoded : ndarray of shape (features,)

        Returns
        -------
        object
        """
        return self.decode(encoded[None])[0]

    def alternatives(self, high: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Return features of the levels that a counterfactual may try.

        Parameters
        ----------
        high : ndarray of shape (features,)
            The largest encoded values seen.

        Returns
        -------
        list of ndarray of shape (features,)
        """
        return []

    @staticmethod
    @abstractmethod
    def plain_values(raw: RawColumn, column: HasLevels) -> list[Any]:
        """Return values as the page holds them.

        Parameters
        ----------
        raw : RawColumn
        column : HasLevels
            Tells unit and levels.

        Returns
        -------
        list
            Numbers, booleans or levels, None for missing values.
        """


class Tally(Protocol):
    """What chunks of a column have shown so far."""

    @property
    def kind(self) -> str | None:
        """Kind of the raw columns; None before the first value."""

    def update(self, raw: RawColumn, weights: NDArray[np.float64] | None) -> int:
        """Add rows, whose weights are positive; return how many values are missing."""

    def merge(self, other: Any) -> None:
        """Add what another one of the same class has seen, which stays as it is."""

    def fit(self, gaps: bool, fitting: Fitting) -> Column:
        """Learn the column."""
