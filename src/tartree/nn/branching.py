"""From the logits of nodes to distributions over their children, and on to arrivals."""

from __future__ import annotations

import numbers
from typing import Literal

import torch
from torch import Tensor, nn

from tartree import ops
from tartree.nn.activations import Activation, as_activation
from tartree.structure import Structure


class Branching(nn.Module):
    """Arrivals, (members, batch, leaves), from logits, (members, batch, logits).

    Parameters
    ----------
    structure : Structure
    activation : str, Activation or callable, default="softmax"
        A name of `ACTIVATIONS`, or a function of logits and an axis. A node with two children has one logit ``z``,
        which is the pair ``(z / 2, -z / 2)``; softmax is then the sigmoid.
    temperature : float or "learned", default=1.0
        Divides the logits. Learned: each node has its own, which starts at 1.
    members : int, default=1
    """

    log_scale: nn.Parameter | None
    _owner: Tensor

    def __init__(
        self,
        structure: Structure,
        activation: str | Activation | ops.ActivationFunction = "softmax",
        temperature: float | Literal["learned"] = 1.0,
        *,
        members: int = 1,
    ) -> None:
        super().__init__()
        learned = temperature == "learned"
        if not learned and not (isinstance(temperature, numbers.Real) and 0 < temperature < float("inf")):
            raise ValueError(f"temperature must be a positive number or 'learned', got {temperature!r}")
        self.structure = structure
        self.activation = as_activation(activation)
        if isinstance(self.activation.function, nn.Module):  # registered, so that its parameters are learned and moved
            self.activation_module = self.activation.function
        self.temperature = 1.0 if isinstance(temperature, str) else float(temperature)
        self.log_scale = nn.Parameter(torch.zeros(members, structure.n_decisions)) if learned else None
        owner = torch.empty(structure.n_logits, dtype=torch.long)
        for fan in structure.fans:
            owner[torch.from_numpy(fan.logits)] = torch.from_numpy(fan.nodes)[:, None]
        self.register_buffer("_owner", owner, persistent=False)

    def extra_repr(self) -> str:
        temperature = "learned" if self.log_scale is not None else self.temperature
        return f"{self.structure}, {self.activation.name}, temperature={temperature}"

    @property
    def is_softmax(self) -> bool:
        """Whether the activation is the softmax; for nodes with two children, the sigmoid."""
        return self.activation.function is torch.softmax

    @property
    def is_plain(self) -> bool:
        """Whether branching is the softmax of the logits as they are."""
        return self.is_softmax and self.log_scale is None and self.temperature == 1

    def scale(self, logits: Tensor) -> Tensor:
        """The logits over the temperature."""
        if self.log_scale is None:
            return logits if self.temperature == 1 else logits / self.temperature
        return logits * self.log_scale.exp()[:, None, self._owner]

    def probabilities(self, logits: Tensor) -> Tensor:
        """Branching probabilities, (members, batch, branches)."""
        return ops.branch(self.scale(logits), self.structure, self.activation.function)

    def forward(self, logits: Tensor) -> Tensor:
        if self.is_softmax:
            return ops.arrival(self.scale(logits), self.structure)
        return ops.spread(self.probabilities(logits), self.structure)

    def arrivals(self, logits: Tensor) -> list[Tensor]:
        """Arrivals at every layer, root first, each (members, batch, nodes)."""
        if self.is_softmax:
            return ops.arrival(self.scale(logits), self.structure, layers=True)
        return ops.spread(self.probabilities(logits), self.structure, layers=True)
