"""What a search learns from: an encoded table, and which rows are learnt and held out in each fold of each part.

A part is what one search may look at. `StructureSearch` has one part; a study with several outer runs has one for each
run, and the members of all parts are trained together. A row in no fold of a part is never seen there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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


def padded(lists: Sequence[Rows]) -> tuple[Tensor, Tensor | None]:
    """Rows of each member, (members, longest), and a weight of 0 for what only fills up; None where all are full."""
    longest = max(map(len, lists))
    index = torch.zeros(len(lists), longest, dtype=torch.int64)
    weight = torch.zeros(len(lists), longest)
    for i, rows in enumerate(lists):
        index[i, : len(rows)] = torch.from_numpy(rows)
        weight[i, : len(rows)] = 1.0
    return index, None if bool((weight == 1).all()) else weight
