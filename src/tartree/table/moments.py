"""Moments: mean and variance of numbers in chunks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tartree.table.scales import LARGEST, SMALLEST

#: Squares of numbers between these neither overflow nor vanish; others are divided by a power of two first.
LOW, HIGH = 1e-100, 1e100


@dataclass
class Moments:
    """Weight, mean and sum of squared deviations from it; merged by the formula of Chan, Golub and LeVeque.

    The mean is `near + rest`, where `near` is that of the first chunk: a large offset with a small spread keeps its
    digits. All but the weight are of the numbers divided by `2**exponent`.

    Examples
    --------
    >>> moments = Moments.of(np.array([1.0, 2.0]))
    >>> moments.merge(Moments.of(np.array([6.0])))
    >>> moments.center, moments.weight
    (3.0, 3.0)
    """

    weight: float = 0.0
    near: float = 0.0
    rest: float = 0.0
    square: float = 0.0
    exponent: int = 0

    @classmethod
    def of(cls, values: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> Moments:
        """Return the moments of finite values, (rows,), with positive weights."""
        if not len(values):
            return cls()
        largest = max(-float(values.min()), float(values.max()))
        exponent = 0 if LOW < largest < HIGH or not largest else math.frexp(largest)[1]
        if exponent:
            values = np.ldexp(values, -exponent)
        total = float(len(values)) if weights is None else float(weights.sum())
        near = float(np.average(values, weights=weights))
        deviations = values - near
        rest = float(np.average(deviations, weights=weights))  # what rounding has left
        squares = np.square(deviations, out=deviations)  # not a product of vectors, whose threads wait for each other
        if weights is not None:
            squares *= weights
        return cls(total, near, rest, max(0.0, float(squares.sum()) - total * rest * rest), exponent)

    def merge(self, other: Moments) -> None:
        """Add the moments of other values."""
        if not other.weight:
            return
        if not self.weight:
            self.__dict__.update(vars(other))
            return
        exponent = max(self.exponent, other.exponent)
        near, rest, square = self._divided(exponent)
        other_near, other_rest, other_square = other._divided(exponent)
        total = self.weight + other.weight
        share = other.weight / total
        difference = (other_near - near) + (other_rest - rest)
        self.near, self.rest = near, rest + difference * share
        self.square = square + other_square + difference * difference * share * self.weight
        self.weight, self.exponent = total, exponent

    @property
    def center(self) -> float:
        """The mean."""
        return min(max(_times(self.near + self.rest, self.exponent), -LARGEST), LARGEST)

    @property
    def spread(self) -> float:
        """The standard deviation."""
        return min(_times(math.sqrt(self.square / self.weight), self.exponent), LARGEST) if self.weight else 0.0

    @property
    def scale(self) -> float:
        """The standard deviation, large enough to divide by."""
        return max(self.spread, SMALLEST)

    def _divided(self, exponent: int) -> tuple[float, float, float]:
        """Return parts of the mean and square for another exponent, which is no smaller."""
        step = self.exponent - exponent
        return math.ldexp(self.near, step), math.ldexp(self.rest, step), math.ldexp(self.square, 2 * step)


def _times(value: float, exponent: int) -> float:
    try:
        return math.ldexp(value, exponent)
    except OverflowError:
        return math.copysign(math.inf, value)
