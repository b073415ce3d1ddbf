"""Axis-aligned decisions that are trained by gradient: each node compares one feature with one threshold."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tartree.nn.families import Family
from tartree.nn.products import affine, draw_uniform_
from tartree.structure import Structure

#: A logit so large that its sigmoid is 1, and that of its negative 0, in single and in double precision.
SURE = 1000.0


class AxisDecision(Family):
    """Each node sends a row to its first child where one feature is at most a threshold, to the second otherwise.

    In training the node compares the feature that it weighs most, and learns weights and thresholds by the gradient of
    a soft choice and a sigmoid; with the branching "hard" rows go one way only from the first step on. When it
    predicts, the answer is always hard.

    Parameters
    ----------
    structure : Structure
        Every node that decides must have two children.
    n_features : int
    slope : float, default=8.0
        Of the sigmoid in training, in units of the encoded features.
    members : int, default=1
    """

    def __init__(self, structure: Structure, n_features: int, *, slope: float = 8.0, members: int = 1) -> None:
        super().__init__()
        check_two_children(structure)
        if n_features < 1:
            raise ValueError(f"an axis-aligned decision needs a feature to look at, got {n_features!r}")
        if not 0 < slope < float("inf"):
            raise ValueError(f"slope must be a positive number, got {slope!r}")
        self.slope = slope
        self.choice = nn.Parameter(torch.empty(members, structure.n_logits, n_features))
        self.thresholds = nn.Parameter(torch.empty(members, structure.n_logits, n_features))
        self.reset_parameters()

    def reset_parameters(self, generators: Sequence[torch.Generator] | None = None) -> None:
        draw_uniform_(self.choice, 0.5, generators)
        draw_uniform_(self.thresholds, 1.0, generators)

    @property
    def feature(self) -> Tensor:
        """The feature that each node compares, (members, nodes)."""
        return self.choice.argmax(-1)

    @property
    def threshold(self) -> Tensor:
        """What each node compares it with, (members, nodes)."""
        return self.thresholds.gather(-1, self.feature.unsqueeze(-1)).squeeze(-1)

    def step_parameters(self) -> tuple[Tensor, Tensor]:
        return self.feature, self.threshold.detach().double()

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            soft = torch.softmax(self.choice, -1)
            pick = F.one_hot(self.feature, soft.shape[-1]) + (soft - soft.detach())
            rows = affine(x, -pick, (pick * self.thresholds).sum(-1))  # (members, nodes, batch)
            return self.slope * rows.transpose(-1, -2)
        x = x if x.dim() == 3 else x.unsqueeze(0)
        values = torch.stack(
            [own[:, feature] for own, feature in zip(x.expand(len(self.choice), -1, -1), self.feature, strict=True)]
        )  # (members, batch, nodes)
        return torch.where(values <= self.threshold.unsqueeze(1), SURE, -SURE).to(x.dtype)


def check_two_children(structure: Structure) -> None:
    """Raise unless every node that decides has two children."""
    if structure.n_logits != structure.n_decisions:
        raise ValueError(f"axis-aligned decisions need nodes with two children, got {structure}; use window=2")
