"""Leaves that see each number also in pieces: perceptrons learn steps and bends in one feature faster that way."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import torch
from torch import Tensor

from tartree.nn.families import Family
from tartree.nn.products import GroupedMLP
from tartree.structure import Structure

#: Where the outermost pieces end, in standard deviations.
REACH = 2.5


class PieceLeaf(Family):
    """Multilayer perceptrons, one a leaf, whose input is each feature and how far it has come in each of some pieces.

    A piece runs from one quantile of a standard normal distribution, which encoded features are near to, to the next:
    0 below, 1 above, and rising in between (Gorishniy et al. 2022). Pieces are standardised. Every second member may
    do without them, and see zeros in their place: members that see different things err on different rows.

    Parameters
    ----------
    structure : Structure
    n_features : int
    n_numbers : int
    pieces : int, default=8
        Of each feature.
    mixed : bool, default=False
        Whether every second member sees no pieces.
    layers, hidden, dropout, members
        As for `MLPLeaf`; at least two layers.
    """

    capturable = True  # in a CUDA graph
    low: Tensor
    rise: Tensor
    mean: Tensor
    deviation: Tensor
    seen: Tensor  # (members, 1, 1)

    def __init__(
        self,
        structure: Structure,
        n_features: int,
        n_numbers: int,
        *,
        pieces: int = 8,
        mixed: bool = False,
        layers: int = 2,
        hidden: int = 100,
        dropout: float = 0.0,
        members: int = 1,
    ) -> None:
        super().__init__()
        if layers < 2:
            raise ValueError(f"layers must be at least 2, got {layers!r}; for linear leaves use MLPLeaf")
        given: Any = pieces  # the annotation says what should come, not what does
        if not isinstance(given, numbers.Integral) or pieces < 2:
            raise ValueError(f"pieces must be an integer of at least 2, got {pieces!r}; without pieces use MLPLeaf")
        self.n_numbers, self.n_pieces, self.mixed = n_numbers, int(pieces), mixed
        self.mlp = GroupedMLP(
            n_features * (1 + pieces),
            [n_numbers] * structure.n_leaves,
            layers=layers,
            hidden=hidden,
            dropout=dropout,
            members=members,
        )
        low, high, mean, deviation = normal_pieces(pieces)
        for name, values in (("low", low), ("rise", 1 / (high - low)), ("mean", mean), ("deviation", deviation)):
            self.register_buffer(name, values.float(), persistent=False)
        seen = (torch.arange(members) % 2 == 0).float().view(members, 1, 1)
        self.register_buffer("seen", seen, persistent=False)
        self._scale_start()

    def reset_parameters(self, generators: Sequence[torch.Generator] | None = None) -> None:
        self.mlp.reset_parameters(generators)
        self._scale_start()

    def _scale_start(self) -> None:
        """Members without pieces begin as perceptrons of the features alone, not of all that the others see."""
        if self.mixed:
            with torch.no_grad():
                for first in (self.mlp.weights[0], self.mlp.biases[0]):
                    first[1::2] *= (1 + self.n_pieces) ** 0.5

    def forward(self, x: Tensor) -> Tensor:
        rows = self.mlp(self.expand(x))  # (members, leaves * numbers, batch)
        said: Tensor = rows.unflatten(1, (-1, self.n_numbers))
        return said.movedim(-1, 1)

    def expand(self, x: Tensor) -> Tensor:
        """Features and their pieces, from (batch, features) or (tables, batch, features)."""
        come = ((x.unsqueeze(-1) - self.low) * self.rise).clamp(0, 1)  # (..., batch, features, pieces)
        pieces = ((come - self.mean) / self.deviation).flatten(-2)
        if self.mixed:
            x, pieces = self._by_member(x), self._by_member(pieces) * self.seen
        return torch.cat([x, pieces], dim=-1)

    def _by_member(self, x: Tensor) -> Tensor:
        tables = x if x.dim() == 3 else x.unsqueeze(0)
        share = len(self.seen) // len(tables)  # members that learn from one table
        return tables.unsqueeze(1).expand(-1, share, -1, -1).flatten(0, 1)


def normal_pieces(count: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Where pieces begin and end, and the mean and standard deviation of each, for standard normal numbers."""
    normal = NormalDist()
    inner = [normal.inv_cdf(place / count) for place in range(1, count)]
    edges = torch.tensor([-REACH, *inner, REACH], dtype=torch.float64)
    places = torch.tensor([normal.inv_cdf((place + 0.5) / 4096) for place in range(4096)], dtype=torch.float64)
    come = ((places.unsqueeze(1) - edges[:-1]) / edges.diff()).clamp(0, 1)  # (places, pieces)
    return edges[:-1], edges[1:], come.mean(0), come.std(0, correction=0)
