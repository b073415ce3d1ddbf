"""The decisions of a soft decision tree: a linear filter and an inverse temperature for each node."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tartree.nn.decisions import MLPDecision
from tartree.nn.families import Family
from tartree.structure import Structure


class SoftDecision(Family):
    """Linear decisions with a learned inverse temperature of each logit: ``beta (w x + b)``, as Frosst and Hinton.

    Parameters
    ----------
    structure : Structure
    n_features : int
    sharpness : float, default=1.0
        The inverse temperature at the start. It stays positive.
    members : int, default=1
    """

    def __init__(self, structure: Structure, n_features: int, *, sharpness: float = 1.0, members: int = 1) -> None:
        super().__init__()
        if not 0 < sharpness < float("inf"):
            raise ValueError(f"sharpness must be a positive number, got {sharpness!r}")
        self.sharpness = sharpness
        self.linear = MLPDecision(structure, n_features, members=members)
        self.log_beta = nn.Parameter(torch.empty(members, structure.n_logits))
        self.reset_parameters()

    def reset_parameters(self, generators: Sequence[torch.Generator] | None = None) -> None:
        self.linear.reset_parameters(generators)
        nn.init.zeros_(self.log_beta)

    @property
    def inverse_temperature(self) -> Tensor:
        """Beta of each logit, (members, logits)."""
        return self.sharpness * self.log_beta.exp()

    @property
    def last_layer(self) -> Sequence[Tensor] | None:
        return self.linear.last_layer

    def linear_parameters(self) -> tuple[Tensor, Tensor] | None:
        parameters = self.linear.linear_parameters()
        steep = self.inverse_temperature.detach()
        return None if parameters is None else (parameters[0] * steep.unsqueeze(-1), parameters[1] * steep)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.linear(x)
        return logits * self.inverse_temperature.unsqueeze(1)
