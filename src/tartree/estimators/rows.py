"""Rows on their way from a table to training: counted, put in order, split."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples
from torch import Tensor

from tartree.table.reading import read_table

#: A memory-mapped array above this many bytes is read batch by batch.
IN_MEMORY_BYTES = 2**30


def number_of_rows(X: Any) -> int:
    """Rows of any table; what is no table is left to the encoder, which says so."""
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape):
        return int(shape[0])
    try:
        return int(_num_samples(X))
    except TypeError:
        return read_table(X).n_rows  # or its error, which knows more tables


def number_with_weight(n_rows: int, weight: NDArray[Any] | None) -> int:
    """Rows that count, of so many: all of them, or those whose weight is not 0."""
    return n_rows if weight is None else int((weight > 0).sum())


def check_equal_rows(n_rows: int, n_targets: int) -> None:
    if n_rows != n_targets:
        raise ValueError(
            f"X and y must have one row each for every example, however: inconsistent numbers of samples "
            f"[{n_rows}, {n_targets}]"
        )


def split_rows(
    n_rows: int, strata: NDArray[Any] | None, share: float, rng: np.random.RandomState
) -> tuple[Tensor, Tensor]:
    """Rows to train on and rows to hold out, with the same shares of classes."""
    if n_rows < 2:
        raise ValueError("early stopping needs at least two rows, however: there is one; use early_stopping=False")
    order = rng.permutation(n_rows)
    if strata is not None:  # rows sorted by class, of which every k-th is held out
        order = order[np.argsort(strata[order], kind="stable")]
    n_held = min(max(1, round(share * n_rows)), n_rows - 1)
    picks = np.floor((np.arange(n_held) + rng.uniform()) * n_rows / n_held).astype(np.intp)
    held_out = np.zeros(n_rows, dtype=bool)
    held_out[order[picks]] = True
    if strata is not None:  # a class that is held out whole would never be learnt
        learnt = np.unique(strata[~held_out])
        held_out &= np.isin(strata, learnt)
    return torch.from_numpy(np.flatnonzero(~held_out)), torch.from_numpy(np.flatnonzero(held_out))


def join_equal_rows(x: Tensor, target: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """Rows in one order, equal ones joined into one of their common weight; so neither order nor repetition matters."""
    own = torch.ones(len(x)) if weights is None else weights
    x, target, own = x[own > 0], target[own > 0], own[own > 0]
    keys = np.concatenate([x.numpy().astype(np.float64), target.numpy().reshape(len(x), -1)], axis=1)
    _, first, group = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    joined = torch.zeros(len(first), dtype=torch.float64).index_add_(0, torch.from_numpy(group.ravel()), own.double())
    if weights is None and len(first) == len(x):
        return x[first], target[first], None
    return x[first], target[first], (joined / joined.mean()).float()


def is_large_map(X: Any) -> bool:
    return isinstance(X, np.memmap) and X.nbytes > IN_MEMORY_BYTES
