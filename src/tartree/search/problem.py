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
    scaling : pair of Tensor of shape (targets,), optional
        Center and scale of the target columns; None for classes.
    """

    tables: dict[Key, Sample]
    output: Output
    parts: tuple[tuple[Fold, ...], ...]
    metric: Metric
    score_weight: Tensor | None
    seeds: int
    random_state: int
    device: torch.device
    scaling: tuple[Tensor, Tensor] | None = None

    def score(self, predicted: Tensor, target: Tensor, weight: Tensor) -> Tensor:
        """Return the scores of members, (members,), by the metric; of a regression in units of the target.

        Parameters
        ----------
        predicted : Tensor of shape (members, batch, ...)
            Probabilities, or means of the target columns and what follows them, in training units.
        target : Tensor of shape (members, batch, ...)
        weight : Tensor of shape (members, batch)

        Returns
        -------
        Tensor of shape (members,)
        """
        if self.scaling is not None:
            center, scale = self.scaling
            predicted, target = (center + scale * part[..., : len(scale)].double() for part in (predicted, target))
        return self.metric.score(predicted, target, weight)


def pad_rows(lists: Sequence[RowIndex]) -> tuple[Tensor, Tensor | None]:
    """Return rows of each member, (members, longest), and a weight of 0 for padding; None if nothing was padded."""
    longest = max(map(len, lists))
    index = torch.zeros(len(lists), longest, dtype=torch.int64)
    weight = torch.zeros(len(lists), longest)
    for i, rows in enumerate(lists):
        index[i, : len(rows)] = torch.from_numpy(rows)
        weight[i, : len(rows)] = 1.0
    return index, None if bool((weight == 1).all()) else weight
