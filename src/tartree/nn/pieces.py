"""Leaves that see each number by its rank and in pieces: perceptrons learn steps and bends in it faster that way."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import torch
from torch import Tensor, nn

from tartree.nn.products import GroupedMLP
from tartree.structure import Structure

#: Where the outermost pieces end, in standard deviations.
REACH = 2.5
#: Values of a feature that tell a number's rank.
QUANTILES = 128


class PieceLeaf(nn.Module):
    """Multilayer perceptrons, one a leaf, that see each feature by its rank among the rows learnt from, and in pieces.

    A feature first goes through some quantiles of those rows to a standard normal distribution (`look_at`), so that
    neither a long tail nor a crowd in its middle matters. A piece runs from one quantile of that distribution to the
    next: 0 below, 1 above, and rising in between (Gorishniy et al. 2022). Pieces are standardised.

    Every second member may see features as they are instead, and zeros in place of the pieces: members that see
    different things err on different rows.

    Parameters
    ----------
    structure : Structure
    n_features : int
    n_numbers : int
    pieces : int, default=8
        Of each feature.
    mixed : bool, default=False
        Whether every second member sees features as they are, and no pieces.
    layers, hidden, dropout, members
        As for `MLPLeaf`; at least two layers.
    """

    capturable = True  # in a CUDA graph
    places: Tensor  # (members, features, quantiles): values of a feature, rising
    ranks: Tensor  # the same shape: where they go to
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
            raise ValueError(f"layers must be at least 2, however: {layers=}; for linear leaves use MLPLeaf")
        if pieces < 2:
            raise ValueError(f"pieces must be at least 2, however: {pieces=}; without pieces use MLPLeaf")
        self.n_numbers, self.mixed = n_numbers, mixed
        self.mlp = GroupedMLP(
            n_features * (1 + pieces),
            [n_numbers] * structure.n_leaves,
            layers=layers,
            hidden=hidden,
            dropout=dropout,
            members=members,
        )
        for name in ("places", "ranks"):
            self.register_buffer(name, torch.empty(members, n_features, QUANTILES))
        self._forget_rows()
        low, high, mean, deviation = normal_pieces(pieces)
        for name, values in (("low", low), ("rise", 1 / (high - low)), ("mean", mean), ("deviation", deviation)):
            self.register_buffer(name, values.float(), persistent=False)
        seen = (torch.arange(members) % 2 == 0).view(members, 1, 1)
        self.register_buffer("seen", seen, persistent=False)

    def reset_parameters(self, generators: Sequence[torch.Generator] | None = None) -> None:
        self.mlp.reset_parameters(generators)
        self._forget_rows()

    def _forget_rows(self) -> None:
        """Features stay as they are, within the reach of the pieces, until rows are looked at."""
        self.has_looked = False
        line = torch.linspace(-REACH, REACH, QUANTILES, device=self.places.device)
        self.places.copy_(line)
        self.ranks.copy_(line)

    @torch.no_grad()
    def look_at(self, tables: Sequence[Tensor]) -> None:
        """Find the quantiles, once: training calls this before its first step.

        `tables` are rows to learn from, (rows, features): one table for all members, or each for as many members.
        """
        if self.has_looked:
            return
        self.has_looked = True
        found = [normal_map(table) for table in tables]
        share = len(self.places) // len(tables)
        for values, parts in zip((self.places, self.ranks), zip(*found, strict=True), strict=True):
            values.copy_(torch.stack(parts).repeat_interleave(share, dim=0))

    def forward(self, x: Tensor) -> Tensor:
        rows = self.mlp(self.expand(x))  # (members, leaves * numbers, batch)
        numbers: Tensor = rows.unflatten(1, (-1, self.n_numbers))
        return numbers.movedim(-1, 1)

    def expand(self, x: Tensor) -> Tensor:
        """What the perceptrons see, (members, batch, features and pieces), from (batch, features) or tables of it."""
        tables = x if x.dim() == 3 else x.unsqueeze(0)
        share = len(self.seen) // len(tables)  # members that learn from one table
        x = tables.unsqueeze(1).expand(-1, share, -1, -1).flatten(0, 1)
        ranks = self.to_normal(x)
        come = ((ranks.unsqueeze(-1) - self.low) * self.rise).clamp(0, 1)  # (members, batch, features, pieces)
        pieces = ((come - self.mean) / self.deviation).flatten(-2)
        if self.mixed:
            ranks, pieces = torch.where(self.seen, ranks, x), pieces * self.seen
        return torch.cat([ranks, pieces], dim=-1)

    def to_normal(self, x: Tensor) -> Tensor:
        """Each feature by its rank, (members, batch, features): linear between the quantiles, level outside them."""
        columns = x.transpose(-1, -2).contiguous()  # (members, features, batch)
        after = torch.searchsorted(self.places, columns, right=True).clamp(1, QUANTILES - 1)
        left, right = (self.places.gather(-1, place) for place in (after - 1, after))
        low, high = (self.ranks.gather(-1, place) for place in (after - 1, after))
        share = ((columns - left) / (right - left).clamp_min(1e-30)).clamp(0, 1)
        return (low + share * (high - low)).transpose(-1, -2)


def normal_map(x: Tensor) -> tuple[Tensor, Tensor]:
    """Quantiles of each feature, rising, and where they go: the normal quantiles of their middle ranks.

    From (rows, features) to two tensors of shape (features, QUANTILES). Equal values have one rank.

    >>> places, ranks = normal_map(torch.tensor([[0.0], [0.0], [1.0], [9.0]]))
    >>> places[0, [0, -1]].tolist(), [round(rank, 2) for rank in ranks[0, [0, -1]].tolist()]
    ([0.0, 9.0], [-0.67, 1.15])
    """
    columns = x.t().contiguous().sort(dim=1).values  # (features, rows)
    n_rows = columns.shape[1]
    if not n_rows:
        raise ValueError("quantiles must come from at least one row, however: there is none")
    ends = NormalDist().inv_cdf(1 - 0.5 / n_rows) if n_rows > 1 else 0.0  # where the lowest and the highest row go
    wanted = torch.special.ndtr(torch.linspace(-ends, ends, QUANTILES, dtype=torch.float64))  # closer in the tails
    index = (wanted * n_rows - 0.5).round().long().clamp(0, n_rows - 1)
    places = columns[:, index.to(x.device)].contiguous()
    below, up_to = (torch.searchsorted(columns, places, right=right) for right in (False, True))
    ranks = torch.special.ndtri((below + up_to).double() / (2 * n_rows))
    return places, ranks.to(x.dtype)


def normal_pieces(count: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Where pieces begin and end, and the mean and standard deviation of each, for standard normal numbers."""
    normal = NormalDist()
    inner = [normal.inv_cdf(place / count) for place in range(1, count)]
    edges = torch.tensor([-REACH, *inner, REACH], dtype=torch.float64)
    numbers = torch.tensor([normal.inv_cdf((place + 0.5) / 4096) for place in range(4096)], dtype=torch.float64)
    come = ((numbers.unsqueeze(1) - edges[:-1]) / edges.diff()).clamp(0, 1)  # (numbers, pieces)
    return edges[:-1], edges[1:], come.mean(0), come.std(0, correction=0)
