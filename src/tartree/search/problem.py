"""What a search learns from: an encoded table, and which rows are learnt and held out in each fold of each part.

A part is what one search may look at. `StructureSearch` has one part; a study with several outer runs has one for each
run, and the members of all parts are trained together. A row in no fold of a part is never seen there.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tartree.nn import Output
from tartree.search.candidates import Key
from tartree.training import TensorRows

Rows = NDArray[np.intp]
Fold = tuple[Rows, Rows]  # rows to learn from, rows held out


@dataclass(frozen=True, eq=False)
class Table:
    """A table as candidates of one encoding see it."""

    x: Tensor  # (rows, features), on the CPU
    target: Tensor  # (rows, ...)
    weight: Tensor | None  # (rows,) of training

    def to(self, device: torch.device) -> TensorRows:
        """The rows to learn from, on a device."""
        weight = None if self.weight is None else self.weight.to(device)
        return TensorRows(self.x.to(device), self.target.to(device), weight)


@dataclass(frozen=True, eq=False)
class Problem:
    """All that a training has to know."""

    tables: dict[Key, Table]
    output: Output
    parts: tuple[tuple[Fold, ...], ...]
    scoring: str
    score_weight: Tensor | None  # (rows,)
    seeds: int  # trainings of each fold
    random_state: int
    device: torch.device


def split(n_rows: int, strata: NDArray[Any] | None, folds: int, seed: int, rows: Rows | None = None) -> Iterator[Fold]:
    """Folds of some rows, with the same shares of classes; a class of one row is learnt in each, and never held out."""
    from sklearn.model_selection import KFold, StratifiedKFold

    rows = np.arange(n_rows) if rows is None else rows
    if strata is None:
        for train, held in KFold(folds, shuffle=True, random_state=seed).split(rows):
            yield rows[train], rows[held]
        return
    labels = strata[rows]
    _, place, counts = np.unique(labels, return_inverse=True, return_counts=True)
    alone, others = rows[counts[place] == 1], rows[counts[place] > 1]
    if len(others) < folds or counts.max() < folds:
        raise ValueError(f"folds must be at most the rows of the largest class, {int(counts.max())}, however: {folds=}")
    with warnings.catch_warnings():  # a class with fewer rows than folds is missing from some of them
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        splits = list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(others, strata[others]))
    for train, held in splits:
        yield np.sort(np.concatenate([others[train], alone])), others[held]


def draw_rows(n_rows: int, strata: NDArray[Any] | None, most: int, seed: int) -> Rows:
    """So many rows at most, in order, with the same shares of classes."""
    if n_rows <= most:
        return np.arange(n_rows)
    order = np.random.default_rng(seed).permutation(n_rows)
    if strata is not None:  # sorted by class, of which every k-th is taken
        order = order[np.argsort(strata[order], kind="stable")]
    return np.sort(order[np.floor(np.arange(most) * n_rows / most).astype(np.intp)])


def padded(lists: Sequence[Rows]) -> tuple[Tensor, Tensor | None]:
    """Rows of each member, (members, longest), and a weight of 0 for what only fills up; None where all are full."""
    longest = max(map(len, lists))
    index = torch.zeros(len(lists), longest, dtype=torch.int64)
    weight = torch.zeros(len(lists), longest)
    for i, rows in enumerate(lists):
        index[i, : len(rows)] = torch.from_numpy(rows)
        weight[i, : len(rows)] = 1.0
    return index, None if bool((weight == 1).all()) else weight
