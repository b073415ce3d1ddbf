"""How the numbers of a column are spread: all of them at hand, or what is kept of its chunks."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tartree.table.moments import Moments
from tartree.table.quantities import QUANTITIES, joined_kind
from tartree.table.quantities.times import DAY
from tartree.table.raw_column import RawColumn
from tartree.table.row_error import RowError
from tartree.table.scales import Scaling, has_far_codes, quantile_edges, standardise, through_quantiles
from tartree.table.sketch import QuantileSketch


class Values(Protocol):
    """How the numbers of a column are spread."""

    def middle(self) -> float:
        """Return the lower median, each number counted once."""

    def standardise(self) -> tuple[float, Scaling]:
        """Return the lower median by weight, and the scaling by mean and standard deviation."""

    def through_quantiles(self, n_quantiles: int, standard: Scaling) -> Scaling:
        """Return the map to a standard normal."""

    def has_far_codes(self) -> bool:
        """Return whether a few of them lie so far out that they look like codes."""

    def quantile_edges(self, n_bins: int) -> NDArray[np.float64]:
        """Return the edges of bins with equally many of them, rising, at most ``n_bins + 1``."""


@dataclass(frozen=True)
class WeightedValues:
    """All numbers of a column, without missing values, and their weights."""

    values: NDArray[np.float64]  # (rows,)
    weights: NDArray[np.float64] | None  # (rows,)

    def middle(self) -> float:
        return float(np.sort(self.values)[(len(self.values) - 1) // 2])

    def standardise(self) -> tuple[float, Scaling]:
        return standardise(self.values, self.weights)

    def through_quantiles(self, n_quantiles: int, standard: Scaling) -> Scaling:
        return through_quantiles(self.values, n_quantiles, standard, self.weights)

    def has_far_codes(self) -> bool:
        return has_far_codes(self.values, self.weights)

    def quantile_edges(self, n_bins: int) -> NDArray[np.float64]:
        return quantile_edges(self.values, n_bins, self.weights)


@dataclass
class NumberTally:
    """Range, moments and quantiles of the numbers in chunks of a column."""

    kind: str | None = None
    low: float = math.inf
    high: float = -math.inf
    whole: bool = True
    days: bool = True  # whether a datetime never had a time of day
    moments: Moments = field(default_factory=Moments)
    sketch: QuantileSketch = field(default_factory=QuantileSketch)

    def update(self, raw: RawColumn, weights: NDArray[np.float64] | None) -> int:
        missing = missing_of(raw.values, raw.label)
        present = raw.values if missing is None else raw.values[~missing]
        if len(present):
            self._add(raw.kind, present, weights if weights is None or missing is None else weights[~missing])
        return 0 if missing is None else int(missing.sum())

    def _add(self, kind: str, present: NDArray[np.float64], weights: NDArray[np.float64] | None) -> None:
        self._join(kind)
        self.low, self.high = min(self.low, float(present.min())), max(self.high, float(present.max()))
        # A look at a few rows settles it for most columns.
        self.whole = self.whole and are_whole(present[:100]) and are_whole(present)
        self.days = self.days and bool(QUANTITIES[kind].days) and are_days(present)
        self.moments.merge(Moments.of(present, weights))
        with np.errstate(over="ignore"):
            single = present.astype(np.float32)
        # Numbers that come from single precision are sorted in half the time there.
        self.sketch.update(single if np.array_equal(single, present) else present, weights)

    def merge(self, other: NumberTally) -> None:
        if other.kind is None:
            return
        self._join(other.kind)
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.whole, self.days = self.whole and other.whole, self.days and other.days
        self.moments.merge(other.moments)
        self.sketch.merge(other.sketch)

    def _join(self, kind: str) -> None:
        self.kind = kind if self.kind is None else joined_kind(self.kind, kind)

    def middle(self) -> float:
        return min(max(self.sketch.quantile(0.5), self.low), self.high)

    def standardise(self) -> tuple[float, Scaling]:
        return self.middle(), Scaling(self.moments.center, self.moments.scale)

    def through_quantiles(self, n_quantiles: int, standard: Scaling) -> Scaling:
        values, weights = self._items()
        return through_quantiles(values, n_quantiles, standard, weights)

    def has_far_codes(self) -> bool:
        return has_far_codes(*self._items())

    def quantile_edges(self, n_bins: int) -> NDArray[np.float64]:
        values, weights = self._items()
        return quantile_edges(values, n_bins, weights)

    def _items(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        values, weights = self.sketch.items()
        values = values.copy()
        values[0], values[-1] = self.low, self.high  # which a sketch may have passed over
        return values, weights


def are_whole(present: NDArray[np.float64]) -> bool:
    """Return whether all numbers are whole."""
    return bool(np.all(np.rint(present) == present))


def are_days(present: NDArray[np.float64]) -> bool:
    """Return whether seconds are whole days."""
    return not np.any(present % DAY)


def missing_of(values: NDArray[np.float64], label: str) -> NDArray[np.bool_] | None:
    """Return where values are missing, (rows,), None if none is; an infinity is an error."""
    finite = np.isfinite(values)
    if finite.all():
        return None
    missing = np.isnan(values)
    infinite = ~(finite | missing)
    if infinite.any():
        raise RowError(
            f"{label} must hold finite numbers or missing values, but ",
            int(infinite.argmax()),
            " contains infinity or a value too large for float64; replace it with a number or leave it out",
        )
    return missing
