"""Curves: what the value and the bins of a column add to a linear function, as points in original units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tartree.table import Feature

FloatArray = NDArray[np.float64]
#: How far a curve is followed beyond its ends where values have no limit, in lengths of its range.
FAR = 1e3


@dataclass(frozen=True)
class Curve:
    """A piecewise linear function of one column, as a part of a linear function of features.

    Attributes
    ----------
    feature : Feature
        The value of the column.
    values, parts : ndarray of shape (points,)
        Encoded values, rising, and what they add; linear in between.
    slope : float
        Of the straight part, which goes on beyond the ends.
    """

    feature: Feature
    values: FloatArray
    parts: FloatArray
    slope: float

    @property
    def originals(self) -> FloatArray:
        """Values in original units; times in seconds."""
        return self.feature.scaling.decode(self.values)

    @property
    def strength(self) -> float:
        """Standard deviation of the parts, for values that are equally frequent in all bins."""
        middles = (self.parts[1:] + self.parts[:-1]) / 2
        steps = np.diff(self.parts)
        variance = np.mean(np.square(middles) + np.square(steps) / 12) - np.mean(middles) ** 2
        return math.sqrt(max(float(variance), 0.0))

    @property
    def direction(self) -> float:
        """Slope of the straight line nearest to the points."""
        centered = self.values - self.values.mean()
        return float(centered @ self.parts / (centered @ centered))

    def crossings(self, bias: float) -> list[tuple[float, bool]]:
        """Return the encoded values where the curve and a constant change sign, and whether they rise there."""
        reach = self.feature.scaling.reach if self.feature.scaling.ends else FAR * float(np.ptp(self.values))
        values = np.concatenate([self.values[:1] - reach, self.values, self.values[-1:] + reach])
        beyond = self.slope * reach
        sums = np.concatenate([self.parts[:1] - beyond, self.parts, self.parts[-1:] + beyond]) + bias
        is_above = sums > 0
        return [
            (float(values[k] - sums[k] * (values[k + 1] - values[k]) / (sums[k + 1] - sums[k])), bool(is_above[k + 1]))
            for k in np.flatnonzero(is_above[1:] != is_above[:-1])
        ]


def term_owners(features: Sequence[Feature]) -> NDArray[np.intp]:
    """Return the feature that each feature is part of the term of: bins are part of the curve of their value.

    >>> from tartree.table import TableEncoder
    >>> encoder = TableEncoder(numeric="curve", n_bins=2).fit([[0.0, "a"], [1.0, "b"], [2.0, "a"], [4.0, "b"]])
    >>> term_owners(encoder.features_).tolist()
    [0, 0, 0, 3, 4]
    """
    owners = np.arange(len(features))
    for k, feature in enumerate(features):
        if feature.bin is not None:
            owners[k] = owners[k - 1]
    return owners


def merged(effects: FloatArray, owners: NDArray[np.intp]) -> FloatArray:
    """Return effects, (..., features), with those of bins added to that of their value."""
    total = np.zeros_like(effects)
    for k, owner in enumerate(owners.tolist()):
        total[..., owner] += effects[..., k]
    return total


def curve_of(features: Sequence[Feature], bins: Sequence[int], weights: FloatArray) -> Curve | None:
    """Return the curve of a value and its bins; None if the weights of the bins are all 0."""
    if not bins or not weights[list(bins)].any():
        return None
    k = bins[0] - 1
    parts = [features[b].bin for b in bins]
    first = parts[0]
    assert first is not None
    values = np.array([first.start, *(part.end for part in parts if part is not None)])
    sums = weights[k] * values
    for b, part in zip(bins, parts, strict=True):
        assert part is not None
        sums = sums + weights[b] * part.at(values)
    return Curve(features[k], values, sums, float(weights[k]))
