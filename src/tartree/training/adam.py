"""Adam with decoupled weight decay, by torch's own fused function.

`torch.optim.AdamW` computes the same, but its first use in a process loads torch's compiler, which takes longer than
the whole fit of a small table.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.optim.adamw import adamw


class Adam:
    """One group of parameters with the same weight decay."""

    def __init__(self, parameters: Iterable[Tensor], weight_decay: float) -> None:
        self.parameters = list(parameters)
        self.weight_decay = weight_decay
        self.means = [torch.zeros_like(p) for p in self.parameters]
        self.squares = [torch.zeros_like(p) for p in self.parameters]
        self.steps = [torch.zeros((), dtype=torch.float32, device=p.device) for p in self.parameters]

    def zero_grad(self) -> None:
        for p in self.parameters:
            p.grad = None

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        used = [i for i, p in enumerate(self.parameters) if p.grad is not None]
        adamw(
            [self.parameters[i] for i in used],
            [g for i in used if (g := self.parameters[i].grad) is not None],
            [self.means[i] for i in used],
            [self.squares[i] for i in used],
            [],
            [self.steps[i] for i in used],
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=learning_rate,
            weight_decay=self.weight_decay,
            eps=1e-8,
            maximize=False,
        )
