"""Rows of members that each learn from their own: gathered for each, or shared with a weight of zero elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from tartree.search.problem import Rows, Table, padded
from tartree.training import Recipe, TensorRows
from tartree.training.rows import Batch


class OwnRows:
    """Each member's own rows side by side: as many multiplications as separate trainings would take, and no more."""

    def __init__(self, table: Table, lists: Sequence[Rows]) -> None:
        self.table = table
        self.index, self.fill = padded(lists)  # (members, rows)
        self._all = self._gather(self.index, self.fill)

    def __len__(self) -> int:
        return self.index.shape[1]

    def take(self, index: Tensor | None) -> Batch:
        if index is None:
            return self._all
        x, target, weight = self._all
        own = None if weight is None else weight[:, index]
        return Batch(x[:, index], target[:, index], own)

    def _gather(self, index: Tensor, fill: Tensor | None) -> Batch:
        weight = fill
        if self.table.weight is not None:
            own = self.table.weight[index]
            weight = own if fill is None else own * fill
        return Batch(self.table.x[index], self.table.target[index], weight)


def shared_rows(table: Table, lists: Sequence[Rows], recipe: Recipe, device: torch.device) -> tuple[TensorRows, Recipe]:
    """One table for all members, on a device; and the recipe for it, of which a member uses a share of the rows.

    A step then has as many rows of a member's own as it would have alone, and as much jitter.
    """
    weight = torch.zeros(len(lists), len(table.x))  # (members, rows)
    for own, rows in zip(weight, lists, strict=True):
        own[torch.from_numpy(rows)] = 1.0
    used = weight.any(0).nonzero().squeeze(1)
    weight = weight[:, used]
    share = float(weight.mean())
    if table.weight is not None:
        weight = weight * table.weight[used]
    n_features, own_rows = table.x.shape[1], max(1, round(float(np.mean([len(rows) for rows in lists]))))
    jitter = recipe.jitter
    if jitter:
        jitter *= recipe.noise(n_features, own_rows) / recipe.noise(n_features, len(used))
    scaled = replace(recipe, batch_size=max(1, round(recipe.batch_size / share)), jitter=jitter)
    x, target = table.x[used].to(device), table.target[used].to(device)
    return TensorRows(x, target, weight.to(device)), scaled
