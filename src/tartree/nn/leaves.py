"""Leaf functions g: the raw numbers of all leaves, ``(members, batch, leaves, numbers)``.

What the numbers mean (logits of classes, values, a mean and a spread) is said by `outputs`. Leaves that do not look at
the input return a batch axis of 1, which broadcasts: nothing is expanded to the batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tartree.nn.families import Family
from tartree.nn.products import GroupedMLP, draw_uniform_
from tartree.structure import Structure


class ConstantLeaf(Family):
    """Learned numbers of each leaf, whatever the input (L = 0)."""

    is_fixed = True

    def __init__(self, structure: Structure, n_numbers: int, *, members: int = 1) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.empty(members, structure.n_leaves, n_numbers))
        self.reset_parameters()

    def reset_parameters(self, generators: Sequence[torch.Generator] | None = None) -> None:
        draw_uniform_(self.values, 1.0, generators)

    def forward(self, x: Tensor) -> Tensor:
        return self.values.unsqueeze(1)


class MLPLeaf(Family):
    """Linear leaves (one layer, L = 1) or multilayer perceptrons (L > 1) with ELU and dropout, one a leaf."""

    def __init__(
        self,
        structure: Structure,
        n_features: int,
        n_numbers: int,
        *,
        layers: int = 1,
        hidden: int = 100,
        dropout: float = 0.0,
        members: int = 1,
    ) -> None:
        super().__init__()
        if layers < 1:
            raise ValueError(f"layers must be at least 1, got {layers!r}; for constant leaves use ConstantLeaf")
        self.mlp = GroupedMLP(
            n_features,
            [n_numbers] * structure.n_leaves,
            layers=layers,
            hidden=hidden,
            dropout=dropout,
            members=members,
        )
        self.n_numbers = n_numbers

    def reset_parameters(self, generators: Sequence[torch.Generator] | None = None) -> None:
        self.mlp.reset_parameters(generators)

    @property
    def perceptrons(self) -> GroupedMLP:
        return self.mlp

    def forward(self, x: Tensor) -> Tensor:
        return self._by_leaf(self.mlp(x))

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The numbers without their biases, and the biases, (members, leaves, numbers)."""
        rows, bias = self.mlp.parts(x)
        return self._by_leaf(rows), bias.unflatten(1, (-1, self.n_numbers))

    def _by_leaf(self, rows: Tensor) -> Tensor:  # from (members, leaves * numbers, batch)
        numbers: Tensor = rows.unflatten(1, (-1, self.n_numbers))
        return numbers.movedim(-1, 1)
