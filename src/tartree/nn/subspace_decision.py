"""Decisions that each look at a random part of the features."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from tartree.nn.decisions import logits_per_node
from tartree.nn.families import Family
from tartree.nn.products import GroupedMLP
from tartree.structure import Structure


class SubspaceDecision(Family):
    """A linear map or a perceptron for each node, on a random subset of the features that stays as it was drawn.

    Parameters
    ----------
    structure : Structure
    n_features : int
    share : float, default=0.5
        Share of the features that a node sees, at least one.
    layers, hidden, dropout, members
        As for `MLPDecision`.
    """

    seen: Tensor

    def __init__(
        self,
        structure: Structure,
        n_features: int,
        *,
        share: float = 0.5,
        layers: int = 1,
        hidden: int = 16,
        dropout: float = 0.0,
        members: int = 1,
    ) -> None:
        super().__init__()
        if not 0 < share <= 1:
            raise ValueError(f"share must be above 0 and at most 1, got {share!r}")
        if layers < 1:
            raise ValueError(f"layers must be at least 1, got {layers!r}")
        sizes = logits_per_node(structure)
        self.n_seen = min(n_features, max(1, math.ceil(share * n_features)))
        self.mlp = GroupedMLP(n_features, sizes, layers=layers, hidden=hidden, dropout=dropout, members=members)
        self._units = torch.tensor([hidden] * len(sizes) if layers > 1 else sizes)  # of each node, in the first layer
        self.register_buffer("seen", torch.empty(members, int(self._units.sum()), n_features, dtype=torch.bool))
        self.reset_parameters()

    def reset_parameters(self, generators: Sequence[torch.Generator] | None = None) -> None:
        """Draw weights and features; with one generator a member, each member draws its own."""
        self.mlp.reset_parameters(generators)
        members, _, features = self.seen.shape
        for member in range(members):
            generator = None if generators is None else generators[member]
            rank = torch.rand(len(self._units), features, generator=generator).argsort(-1).argsort(-1)
            self.seen[member] = (rank < self.n_seen).repeat_interleave(self._units, dim=0)

    def linear_parameters(self) -> tuple[Tensor, Tensor] | None:
        is_linear = len(self.mlp.weights) == 1
        return (self.mlp.weights[0].detach() * self.seen, self.mlp.biases[0].detach()) if is_linear else None

    def forward(self, x: Tensor) -> Tensor:
        first = {"weights.0": self.mlp.weights[0] * self.seen}  # (members, units, features)
        rows: Tensor = torch.func.functional_call(self.mlp, first, (x,))
        return rows.transpose(-1, -2)
