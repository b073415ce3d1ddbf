"""Adam with decoupled weight decay: by torch's fused function, or by a kernel for all tensors at once.

`torch.optim.AdamW` computes the same, but its first use in a process loads torch's compiler, which takes longer than
the whole fit of a small table. On a GPU its function gives 65,536 numbers to one block of threads, so that a tree of
depth 8 keeps four of them busy; the kernel fills the GPU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor
from torch.optim.adamw import adamw

MEAN_DECAY, SQUARE_DECAY, EPSILON = 0.9, 0.999, 1e-8
Group = tuple[list[Tensor], float]  # parameters and their weight decay


class Optimizer(Protocol):
    """Changes parameters by their gradients."""

    def zero_grad(self) -> None:
        """Drop the gradients."""

    def step(self, rate: float | Tensor) -> None:
        """Update the parameters; `rate` is the learning rate, or a row of `rate_table` on the device."""


class Adam:
    """Adam for groups of parameters, with a weight decay each; those of the same decay take one call."""

    def __init__(self, groups: Sequence[Group]) -> None:
        of_decay: dict[float, list[Tensor]] = {}
        for parameters, decay in groups:
            of_decay.setdefault(decay, []).extend(parameters)
        self.groups = [_Group(parameters, decay) for decay, parameters in of_decay.items() if parameters]

    def zero_grad(self) -> None:
        for group in self.groups:
            for p in group.parameters:
                p.grad = None

    @torch.no_grad()
    def step(self, rate: float | Tensor) -> None:
        for group in self.groups:
            used = [i for i, p in enumerate(group.parameters) if p.grad is not None]
            adamw(
                [group.parameters[i] for i in used],
                [g for i in used if (g := group.parameters[i].grad) is not None],
                [group.means[i] for i in used],
                [group.squares[i] for i in used],
                [],
                [group.steps[i] for i in used],
                fused=True,
                amsgrad=False,
                beta1=MEAN_DECAY,
                beta2=SQUARE_DECAY,
                lr=rate,
                weight_decay=group.decay,
                eps=EPSILON,
                maximize=False,
            )

    def tensors_of_state(self) -> list[Tensor]:
        """Return the state of the optimizer, to be read and written."""
        return [tensor for group in self.groups for tensor in (*group.means, *group.squares, *group.steps)]


class _Group:
    def __init__(self, parameters: list[Tensor], decay: float) -> None:
        self.parameters, self.decay = parameters, decay
        self.means = [torch.zeros_like(p) for p in parameters]
        self.squares = [torch.zeros_like(p) for p in parameters]
        self.steps = [torch.zeros((), dtype=torch.float32, device=p.device) for p in parameters]


class KernelAdam:
    """The same on a GPU, in one launch for four tensors; a captured step reads its `rate` from memory."""

    SIZE = 1024  # numbers of a program

    def __init__(self, groups: Sequence[Group]) -> None:
        self.tensors = [
            (p, torch.zeros_like(p), torch.zeros_like(p), decay) for parameters, decay in groups for p in parameters
        ]

    def zero_grad(self) -> None:
        for p, *_ in self.tensors:
            p.grad = None

    @torch.no_grad()
    def step(self, rate: float | Tensor) -> None:
        from tartree.training import step_kernels

        used = [(p, p.grad.contiguous(), m, v, decay) for p, m, v, decay in self.tensors if p.grad is not None]
        for first in range(0, len(used), 4):
            arguments, programs = [], 0
            four = used[first : first + 4]
            for k in range(4):
                p, g, m, v, decay = four[min(k, len(four) - 1)]
                size = p.numel() if k < len(four) else 0
                programs += -(-size // self.SIZE)
                arguments += [p, g, m, v, size, decay, programs]
            step_kernels.adam[(programs,)](rate, *arguments[:-1], SIZE=self.SIZE)


def rate_table(rates: Sequence[float]) -> Tensor:
    """Return the settings of each step for `KernelAdam`, (steps, 4): rate, step size, correction of squares, 0."""
    rows = [
        (rate, rate / (1 - MEAN_DECAY**t), 1 / math.sqrt(1 - SQUARE_DECAY**t), 0.0) for t, rate in enumerate(rates, 1)
    ]
    return torch.tensor(rows)
