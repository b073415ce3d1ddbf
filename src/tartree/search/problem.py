"""Problem: encoded tables, and the rows learnt from and held out in each fold of each part.

A part is what one search may look at. `StructureSearch` has one part; a study with several outer runs has one for each
run, and the members of all parts are trained together. A row in no fold of a part is never seen in that part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tartree.model import Sample
from tartree.nn import Output
from tartree.search.candidates import Key
from tartree.search.scores import Metric

RowIndex = NDArray[np.intp]
Fold = tuple[RowIndex, RowIndex]  # rows to learn from, rows held out


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything that trainings have in common.

    Parameters
    ----------
    tables : dict of key to Sample
        Encoded rows on the CPU, by what candidates ask of the encoding; see `Candidate.table`.
    output : Output
    parts : tuple of tuples of folds
    metric : Metric
    score_weight : Tensor of shape (rows,) or None
        Weights of rows in the scores.
    seeds : int
        Trainings of each fold.
    random_state : int
    device : torch.device
    """

    tables: dict[Key, Sample]
    output: Output
    parts: tuple[tuple[Fold, ...], ...]
    metric: Metric
    score_weight: Tensor | None
    seeds: int
    random_state: int
    device: torch.device


def pad_rows(lists: Sequence[RowIndex]) -> tuple[Tensor, Tensor | None]:
    """Return rows of each member, (members, longest), and a weight of 0 for padding; None if nothing was padded."""
    longest = max(map(len, lists))
    index = torch.zeros(len(lists), longest, dtype=torch.int64)
    weight = torch.zeros(len(lists), longest)
    for i, rows in enumerate(lists):
        index[i, : len(rows)] = torch.from_numpy(rows)
        weight[i, : len(rows)] = 1.0
    return index, None if bool((weight == 1).all()) else weight
