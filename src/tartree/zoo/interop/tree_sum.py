"""TreeSum: how the values of trees become a prediction, by the links of other libraries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, softmax

from tartree.zoo.interop.split_tree import Floats, Integers


def _both_classes(p: Floats) -> Floats:
    """Return the probabilities of both classes from that of the second."""
    return np.concatenate([1 - p, p], axis=1)


def _exp(raw: Floats) -> Floats:
    """Return the exponential rounded once, as in C: that of NumPy in single precision may be off by more."""
    power: Floats = np.exp(raw.astype(np.float64)).astype(raw.dtype)
    return power


def _expit(raw: Floats) -> Floats:
    """Return the logistic function; in single precision by the formula of XGBoost, so that ties are the same."""
    if raw.dtype != np.float32:
        linked: Floats = expit(raw)
        return linked
    unit = np.float32(1)
    single: Floats = (unit / (_exp(np.minimum(-raw, np.float32(88.7))) + unit)).astype(raw.dtype)
    return single


def _softmax(raw: Floats) -> Floats:
    """Return the softmax over the outputs; in single precision as XGBoost, with a sum in double precision."""
    if raw.dtype != np.float32:
        linked: Floats = softmax(raw, axis=1)
        return linked
    power = _exp(raw - raw.max(axis=1, keepdims=True))
    single: Floats = power / power.sum(axis=1, keepdims=True, dtype=np.float64).astype(raw.dtype)
    return single


#: From summed raw values, (rows, outputs), to values, or to probabilities of classes.
LINKS: dict[str, Callable[[Floats], Floats]] = {
    "identity": lambda raw: raw,
    "exp": _exp,
    "expit": _expit,
    "signed square": lambda raw: np.sign(raw) * np.square(raw),
    "log1p exp": lambda raw: np.log1p(np.exp(raw)),
    "two classes": lambda raw: _both_classes(_expit(raw)),
    "two classes by rate": lambda raw: _both_classes(np.log1p(np.exp(raw))),
    "softmax": _softmax,
    "one against all": _expit,  # which do not sum to 1
}


@dataclass(frozen=True)
class TreeSum:
    """A prediction from the values of trees: ``link(base + sum of weight * value, over average)``.

    Parameters
    ----------
    base : array of shape (outputs,)
    weights : array of shape (trees,)
    columns : array of int of shape (trees,), optional
        The output that each tree adds to; by default each tree has all of them.
    average : float
        Divisor of the sum; 1 for a sum.
    link : str
        A name of `LINKS`.
    scale : float
        Factor before the link.
    single : bool
        Whether the source adds and links in single precision.
    decides : {"raw", "probabilities"}
        Values whose largest is the class; rounding makes ties of probabilities that are none of raw values.
    tie_first : bool
        Whether the first of two classes with equal probability is predicted.
    """

    base: Floats
    weights: Floats
    columns: Integers | None = None
    average: float = 1
    link: str = "identity"
    scale: float = 1.0
    single: bool = False
    decides: str = "raw"
    tie_first: bool = True

    def start(self, n_rows: int) -> Floats:
        """Return the sum before the first tree, (rows, outputs)."""
        return np.tile(self.base, (n_rows, 1)).astype(np.float32 if self.single else np.float64)

    def add(self, raw: Floats, index: int, values: Floats) -> None:
        """Add the leaf values of a tree, (rows, its outputs), in place and in the precision of the source."""
        weight = self.weights.astype(raw.dtype)[index]
        values = values.astype(raw.dtype, copy=False)
        if self.columns is None:
            raw += weight * values
        else:
            raw[:, self.columns[index]] += weight * values[:, 0]

    def linked(self, raw: Floats) -> Floats:
        """Return values or probabilities from raw values, both (rows, outputs)."""
        if self.single:
            raw = raw.astype(np.float32)
        return LINKS[self.link](raw * self.scale if self.scale != 1 else raw).astype(np.float64, copy=False)

    def class_index(self, raw: Floats) -> Integers:
        """Return the index of the predicted class from raw values, (rows,)."""
        by_probability = self.decides == "probabilities"
        if not by_probability and self.link.startswith("two classes"):  # one margin; a sole class has one column too
            return (raw[:, 0] > 0 if self.tie_first else raw[:, 0] >= 0).astype(np.int64)
        index: Integers = (self.linked(raw) if by_probability else raw).argmax(axis=1)
        return index

    @property
    def is_plain(self) -> bool:
        """Whether the prediction is the output of the trees, without a base or a link."""
        return self.link == "identity" and not self.base.any()
