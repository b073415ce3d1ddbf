"""The map between numbers in original units and encoded values near a standard normal, and how it is learnt."""

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST = float(np.finfo(np.float64).max)
SMALLEST = float(np.finfo(np.float64).tiny)

# In n rows no value is further than sqrt(n - 1) standard deviations from the mean, so only unseen values are ever
# clipped here; beyond it float32 sums in a model would overflow.
CLIP = 1e6

# Differences and slopes of values near the largest float overflow. Such values are made smaller first, by a power of
# two so that no digit is lost.
HUGE = 1e300
SHRINK = 2.0**-40

KNOT_GAP = 1e-280  # closer knots would make a slope that overflows

CODE_SHARE = 0.1  # the most rows that have far codes
CODE_DISTANCE = 10.0  # how far these are from all others, in widths of those

#: Rows of a bin, at least: of fewer, a curve would follow their noise.
ROWS_PER_BIN = 20
FLAT_PROBABILITY = 1e-4  # the lowest and highest values of a quantile map go to at most +-3.7


@dataclass(frozen=True)
class Scaling:
    """The map between a number in original units and its encoded value.

    Without knots: `original = center + scale * encoded`. With knots: piecewise linear through `(knots[i],
    heights[i])`, both strictly increasing, constant beyond the two ends; center and scale are then only the mean and
    the standard deviation.

    With `ends`, the lowest and highest encoded values seen, values further out are limited: `d` beyond an end becomes
    `d / (1 + d / reach)`, which leaves the end with slope 1 and stays below `reach`.

    Parameters
    ----------
    center, scale : float
    knots, heights : tuple of float
    ends : tuple of float and float, or None
    reach : float

    Examples
    --------
    >>> from tartree.table import Scaling
    >>> Scaling(center=10.0, scale=2.0).encode(np.array([12.0, 8.0]))
    array([ 1., -1.])
    """

    center: float = 0.0
    scale: float = 1.0
    knots: tuple[float, ...] = ()
    heights: tuple[float, ...] = ()
    ends: tuple[float, float] | None = None
    reach: float = 0.0

    def limited(self, low: float, high: float, extrapolation: float | None) -> "Scaling":
        """Return the map limited beyond the values seen; a map with knots has its own limit.

        Parameters
        ----------
        low, high : float
            Range of the values seen.
        extrapolation : float or None
            How far values may go beyond, as a share of the range; None sets no limit.

        Returns
        -------
        Scaling
        """
        if extrapolation is None or self.knots or low == high:
            return self
        bottom, top = self.encode(np.array([low, high])).tolist()
        # A reach of 0 would divide by zero; so small a one cuts off.
        return replace(self, ends=(bottom, top), reach=max(extrapolation * (top - bottom), SMALLEST))

    @property
    def is_fine(self) -> bool:
        """Whether fractions of a second matter, where values are seconds."""
        return self.scale < 1000.0

    @property
    def shrink(self) -> float:
        """What values are multiplied with, so that their differences do not overflow."""
        ends = (self.knots[0], self.knots[-1]) if self.knots else (self.center, self.scale)
        return SHRINK if max(map(abs, ends)) > HUGE else 1.0

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Encode finite numbers; a NaN stays NaN.

        Parameters
        ----------
        values : ndarray of shape (rows,)

        Returns
        -------
        ndarray of shape (rows,)
        """
        shrink = self.shrink
        if shrink != 1.0:
            values = values * shrink
        if self.knots:
            return _interpolate(values, np.asarray(self.knots) * shrink, np.asarray(self.heights))
        with np.errstate(over="ignore"):  # an overflow is far beyond the clip
            encoded = values - self.center * shrink
            encoded /= self.scale * shrink
        np.clip(encoded, -CLIP, CLIP, out=encoded)
        return encoded if self.ends is None else limit(encoded, *self.ends, self.reach)

    def decode(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the original numbers of encoded values.

        Parameters
        ----------
        encoded : ndarray of shape (rows,)

        Returns
        -------
        ndarray of shape (rows,)
        """
        shrink = self.shrink
        if self.knots:
            return _interpolate(encoded, np.asarray(self.heights), np.asarray(self.knots) * shrink) / shrink
        if self.ends is not None:
            encoded = _unlimit(np.asarray(encoded, dtype=np.float64), *self.ends, self.reach)
        with np.errstate(over="ignore"):
            values = (self.center * shrink + encoded * (self.scale * shrink)) / shrink
        return np.clip(values, -LARGEST, LARGEST)


IDENTITY = Scaling()


def limit(encoded: NDArray[np.float64], bottom: Any, top: Any, reach: Any) -> NDArray[np.float64]:
    """Return encoded values limited beyond the ends; ends and reach are numbers, or arrays of one a column."""
    with np.errstate(invalid="ignore"):
        outside = (encoded < bottom) | (encoded > top)
    if not outside.any():
        return encoded
    low, high, most = (np.broadcast_to(part, encoded.shape)[outside] for part in (bottom, top, reach))
    values = encoded[outside]
    inside = np.clip(values, low, high)
    beyond = np.abs(values - inside)
    limited = np.array(encoded, dtype=np.float64)
    with np.errstate(over="ignore"):  # by a reach of almost nothing
        limited[outside] = inside + np.sign(values - inside) * (beyond / (1 + beyond / most))
    return limited


def _unlimit(encoded: NDArray[np.float64], bottom: float, top: float, reach: float) -> NDArray[np.float64]:
    """Invert `limit`; what it never reaches is as far out as encoded values go."""
    inside = np.clip(encoded, bottom, top)
    beyond = np.abs(encoded - inside)
    with np.errstate(divide="ignore"):
        unlimited = np.where(beyond < reach, beyond / np.maximum(1 - beyond / reach, 0.0), CLIP)
    return np.asarray(np.clip(inside + np.sign(encoded - inside) * unlimited, -CLIP, CLIP))


def has_far_codes(present: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> bool:
    """Return whether a few numbers lie so far from all others that they look like codes, such as 999999 for "unknown".

    A scale that covers both would squeeze all others into one point.

    >>> has_far_codes(np.array([0.0, 1.0, 666.0]), np.array([300.0, 100.0, 4.0]))
    True
    """
    values, index = np.unique(present, return_inverse=True)
    counts = np.bincount(index, weights=weights)  # (different values,)
    shares = np.cumsum(counts) / counts.sum()
    gaps = np.diff(values * SHRINK)
    widths_below, widths_above = values[:-1] * SHRINK - values[0] * SHRINK, values[-1] * SHRINK - values[1:] * SHRINK
    above = (shares[:-1] >= 1 - CODE_SHARE) & (widths_below > 0) & (gaps > CODE_DISTANCE * widths_below)
    below = (shares[:-1] <= CODE_SHARE) & (widths_above > 0) & (gaps > CODE_DISTANCE * widths_above)
    return bool((above | below).any())


def _interpolate(
    values: NDArray[np.float64], knots: NDArray[np.float64], heights: NDArray[np.float64]
) -> NDArray[np.float64]:
    return np.asarray(np.interp(values, knots, heights), dtype=np.float64)


def standardise(present: NDArray[np.float64], weights: NDArray[np.float64] | None = None) -> tuple[float, Scaling]:
    """Return the lower median, and the scaling by mean and standard deviation; a weight counts like equal rows.

    Deviations are taken from the median and divided by the largest of them, so that neither a large offset with a
    small spread, nor squares of very large or very small numbers lose the result.
    """
    # The median is one of the values, so that no mean of two can overflow.
    if weights is None:
        middle = (len(present) - 1) // 2
        median = float(np.partition(present, middle)[middle])
    else:
        order = np.argsort(present, kind="stable")
        cumulative = np.cumsum(weights[order])
        # Just below a half: where rounding decides, the lower value is taken, as `QuantileSketch` does.
        median = float(present[order[np.searchsorted(cumulative, cumulative[-1] * 0.5 * (1 - 1e-12))]])
    shrink = SHRINK if max(-float(present.min()), float(present.max())) > HUGE else 1.0
    deviations = present * shrink - median * shrink
    largest = float(np.abs(deviations).max())
    if largest < SMALLEST:  # the quotient of two subnormal numbers has hardly a digit left
        return median, Scaling(median, SMALLEST)
    deviations /= largest
    mean = float(np.average(deviations, weights=weights))
    deviations -= mean
    spread = math.sqrt(float(np.average(deviations * deviations, weights=weights)))
    center = (median * shrink + mean * largest) / shrink
    scale = min(max(spread * largest / shrink, SMALLEST), LARGEST)
    return median, Scaling(min(max(center, -LARGEST), LARGEST), scale)


def through_quantiles(
    present: NDArray[np.float64], n_quantiles: int, standard: Scaling, weights: NDArray[np.float64] | None = None
) -> Scaling:
    """Return a monotone map to a standard normal through at most `n_quantiles` of the values.

    A value goes to the normal quantile of its middle rank. Outside the seen range the map goes on linearly, with the
    mean slope of the whole map, for as far as the range is wide, and is constant from there: a threshold just outside
    still has a value in original units, and an outlier stays small.
    """
    values, index = np.unique(present, return_inverse=True)
    counts = np.bincount(index, weights=weights)  # (different values,)
    ends = np.cumsum(counts)
    total = float(ends[-1])
    chosen = np.arange(len(values))
    if len(values) > n_quantiles:
        chosen = np.unique(np.searchsorted(ends, np.linspace(0, total * (1 - 1e-12), n_quantiles), side="right"))
    candidates = values[chosen]
    if np.diff(candidates * SHRINK).min() < KNOT_GAP * SHRINK:
        return standard  # numbers too close to zero to build slopes from
    shares = (ends - counts / 2)[chosen] / total
    floor = min(max(0.5 / total, FLAT_PROBABILITY), 0.25)
    normal = NormalDist()
    heights = [normal.inv_cdf(min(max(share, floor), 1 - floor)) for share in shares.tolist()]
    knots = candidates.tolist()
    width, rise = (knots[-1] * 0.5 - knots[0] * 0.5) * 2, heights[-1] - heights[0]
    if knots[0] - width > -LARGEST and knots[-1] + width < LARGEST:
        knots = [knots[0] - width, *knots, knots[-1] + width]
        heights = [heights[0] - rise, *heights, heights[-1] + rise]
    keep = [0, *(k for k in range(1, len(knots)) if heights[k] > heights[k - 1])]
    return Scaling(standard.center, standard.scale, tuple(knots[k] for k in keep), tuple(heights[k] for k in keep))


def quantile_edges(
    present: NDArray[np.float64], n_bins: int, weights: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return the edges of bins with equally many values each, rising, at most ``n_bins + 1``.

    A bin has about `ROWS_PER_BIN` rows at least, but two bins are always allowed. Few different values are edges
    themselves, so that each has a point of its own. A value that more rows have than belong into a bin is an edge once;
    the bins that this saves divide the values between the others.

    >>> quantile_edges(np.array([1.0, 1.0, 2.0, 5.0]), 4)
    array([1., 2., 5.])
    >>> quantile_edges(np.arange(9.0), 4)
    array([0., 4., 8.])
    >>> quantile_edges(np.arange(81.0), 4)
    array([ 0., 20., 40., 60., 80.])
    """
    n_rows = len(present) if weights is None else float(weights.sum())
    n_bins = max(2, min(n_bins, round(n_rows / ROWS_PER_BIN)))
    values, index = np.unique(present, return_inverse=True)
    if len(values) <= n_bins + 1:
        return values
    counts = np.bincount(index, weights=weights)  # (different values,)
    middles = np.cumsum(counts) - counts / 2
    edges = [0]  # indices of values
    for bins_left in range(n_bins, 1, -1):
        start = middles[edges[-1]]
        aim = start + (middles[-1] - start) / bins_left
        following = max(edges[-1] + 1, int(np.searchsorted(middles, aim * (1 - 1e-12))))
        if following >= len(values) - 1:
            break
        edges.append(following)
    return np.asarray(values[[*edges, len(values) - 1]])
