"""Expansion: from the values of columns to features, of which a curve has several for one value."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tartree.table.feature import BIN_HEIGHT, Bin, Feature


def bins_of(edges: tuple[float, ...]) -> list[Bin]:
    """Return the bins between edges, each centred for a column whose values are equally frequent in all of them.

    Examples
    --------
    >>> bins_of((-1.0, 0.0, 2.0))
    [Bin(start=-1.0, end=0.0, offset=1.5), Bin(start=0.0, end=2.0, offset=0.5)]
    """
    count = len(edges) - 1
    return [Bin(edges[k], edges[k + 1], BIN_HEIGHT * (1 - (k + 0.5) / count)) for k in range(count)]


class Expansion:
    """Makes features from values: most are a value, a bin is a clipped linear function of one.

    Parameters
    ----------
    features : sequence of Feature
        Features in order; the bins of a column follow its value.

    Attributes
    ----------
    source : ndarray of shape (features,)
        The value that each feature is made from.
    start, rise, top, offset : ndarray of shape (features,)
        A feature is ``min(max((value - start) * rise, bottom), top) - offset``; bottom and top of a feature that is a
        value are infinite.
    n_values : int

    Examples
    --------
    >>> from tartree.table import TableEncoder
    >>> encoder = TableEncoder(numeric="curve", n_bins=2).fit([[0.0], [1.0], [2.0], [4.0]])
    >>> encoder.expansion_.n_values, len(encoder.features_)
    (1, 3)
    """

    def __init__(self, features: list[Feature]) -> None:
        is_value = np.array([feature.bin is None for feature in features], dtype=bool)
        self.n_values = int(is_value.sum())
        self.is_trivial = bool(is_value.all())
        bins = [feature.bin for feature in features]
        # A bin comes after the value of its column.
        self.source = np.cumsum(is_value) - 1
        self.value_features = np.flatnonzero(is_value)
        self.start = np.array([0.0 if b is None else b.start for b in bins])
        self.rise = np.array([1.0 if b is None else BIN_HEIGHT / (b.end - b.start) for b in bins])
        self.bottom = np.where(is_value, -np.inf, 0.0)
        self.top = np.where(is_value, np.inf, BIN_HEIGHT)
        self.offset = np.array([0.0 if b is None else b.offset for b in bins])

    def __call__(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the features, (rows, features), of values, (rows, values)."""
        if self.is_trivial:
            return values
        rows = values[:, self.source].astype(np.float64)
        rows -= self.start
        rows *= self.rise
        np.clip(rows, self.bottom, self.top, out=rows)
        rows -= self.offset
        return rows.astype(np.float32)
