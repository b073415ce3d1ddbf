"""From the logits of nodes to distributions over their children, and on to arrivals."""

from __future__ import annotations

import numbers
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tartree import ops
from tartree.structure import Structure


def sigsoftmax(logits: Tensor, axis: int) -> Tensor:
    """Softmax of ``z + log sigmoid(z)``, that is, ``exp(z) sigmoid(z)`` over its sum."""
    return torch.softmax(logits + F.logsigmoid(logits), axis)


def spherical(logits: Tensor, axis: int) -> Tensor:
    """Squares of ``1 + z`` over their sum: zero logits split evenly, where squares of ``z`` would be 0 / 0.

    Not monotone, as the spherical softmax never is: a node with two children is surest at ``z = 2`` and goes back to an
    even split beyond, so a lower temperature does not sharpen it.
    """
    shifted = 1 + logits
    # The largest is scaled to 1, so that neither squares nor their sum overflow.
    shifted = shifted / shifted.abs().amax(axis, keepdim=True).clamp_min(torch.finfo(logits.dtype).tiny)
    squares = shifted.square() + torch.finfo(logits.dtype).eps
    return squares / squares.sum(axis, keepdim=True)


def sparsemax(logits: Tensor, axis: int) -> Tensor:
    """The nearest distribution, often with exact zeros (package entmax)."""
    result: Tensor = _entmax().sparsemax(logits, dim=axis)
    return result


def entmax15(logits: Tensor, axis: int) -> Tensor:
    """Between softmax and sparsemax (package entmax)."""
    result: Tensor = _entmax().entmax15(logits, dim=axis)
    return result


def hard(logits: Tensor, axis: int) -> Tensor:
    """All to the child of the largest logit; the gradient is that of softmax (straight through)."""
    soft = torch.softmax(logits, axis)
    one = torch.zeros_like(soft).scatter_(axis, logits.argmax(axis, keepdim=True), 1.0)
    return one + (soft - soft.detach())


def _entmax() -> Any:
    try:
        import entmax
    except ImportError as error:
        raise ImportError("sparsemax and entmax15 need the package entmax: pip install 'tartree[sparse]'") from error
    return entmax


ACTIVATIONS: dict[str, ops.Activation] = {
    "softmax": torch.softmax,
    "sigsoftmax": sigsoftmax,
    "spherical": spherical,
    "sparsemax": sparsemax,
    "entmax15": entmax15,
    "hard": hard,
}


class Branching(nn.Module):
    """Arrivals, (members, batch, leaves), from logits, (members, batch, logits).

    Parameters
    ----------
    structure : Structure
    activation : str or callable, default="softmax"
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
        activation: str | ops.Activation = "softmax",
        temperature: float | Literal["learned"] = 1.0,
        *,
        members: int = 1,
    ) -> None:
        super().__init__()
        if isinstance(activation, str):
            if activation not in ACTIVATIONS:
                raise ValueError(f"branching must be one of {', '.join(ACTIVATIONS)}, however: {activation!r}")
            activation = ACTIVATIONS[activation]
        if not callable(activation):
            raise ValueError(f"branching must be a name or a function of logits and an axis, however: {activation!r}")
        learned = temperature == "learned"
        if not learned and not (isinstance(temperature, numbers.Real) and 0 < temperature < float("inf")):
            raise ValueError(f"temperature must be a positive number or 'learned', however: {temperature=}")
        self.structure = structure
        self.activation = activation
        self.temperature = 1.0 if isinstance(temperature, str) else float(temperature)
        self.log_scale = nn.Parameter(torch.zeros(members, structure.n_decisions)) if learned else None
        owner = torch.empty(structure.n_logits, dtype=torch.long)
        for fan in structure.fans:
            owner[torch.from_numpy(fan.logits)] = torch.from_numpy(fan.nodes)[:, None]
        self.register_buffer("_owner", owner, persistent=False)

    def extra_repr(self) -> str:
        temperature = "learned" if self.log_scale is not None else self.temperature
        return f"{self.structure}, {getattr(self.activation, '__name__', self.activation)}, temperature={temperature}"

    @property
    def is_plain(self) -> bool:
        """Whether branching is the softmax of the logits as they are."""
        return self.activation is torch.softmax and self.log_scale is None and self.temperature == 1

    def scale(self, logits: Tensor) -> Tensor:
        """The logits over the temperature."""
        if self.log_scale is None:
            return logits if self.temperature == 1 else logits / self.temperature
        return logits * self.log_scale.exp()[:, None, self._owner]

    def probabilities(self, logits: Tensor) -> Tensor:
        """Branching probabilities, (members, batch, branches)."""
        return ops.branch(self.scale(logits), self.structure, self.activation)

    def forward(self, logits: Tensor) -> Tensor:
        if self.activation is torch.softmax:
            return ops.arrival(self.scale(logits), self.structure)
        return ops.spread(self.probabilities(logits), self.structure)

    def arrivals(self, logits: Tensor) -> list[Tensor]:
        """Arrivals at every layer, root first, each (members, batch, nodes)."""
        if self.activation is torch.softmax:
            return ops.arrival(self.scale(logits), self.structure, layers=True)
        return ops.spread(self.probabilities(logits), self.structure, layers=True)
