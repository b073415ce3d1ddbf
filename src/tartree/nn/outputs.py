"""What the numbers of a leaf mean: what a wrong answer costs, and what is averaged over the leaves.

Leaf numbers are ``(members, batch, leaves, numbers)``, with a batch axis of 1 where they are constant. Targets are
``(batch, ...)``, shared by the members, or ``(members, batch, ...)``.
"""

from __future__ import annotations

import math
import numbers as kinds
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F


class Output(ABC):
    """A kind of leaf output for ``n_targets`` classes or target columns."""

    target_dim: ClassVar[int] = 2

    def __init__(self, n_targets: int) -> None:
        if not isinstance(n_targets, kinds.Integral) or n_targets < 1:
            raise ValueError(f"n_targets must be an integer of at least 1, however: {n_targets=}")
        self.n_targets: int = int(n_targets)

    @property
    def n_numbers(self) -> int:
        """Numbers that a leaf must give."""
        return self.n_targets

    @abstractmethod
    def check_target(self, target: Tensor, members: int, batch: int) -> None:
        """Raise unless the target is of the right shape and kind for so many members and rows."""

    @abstractmethod
    def cost(self, numbers: Tensor, target: Tensor) -> Tensor:
        """Cost of each leaf that training minimises in the mean of Eq. 4, (members, batch, leaves)."""

    def negative_log_likelihood(self, numbers: Tensor, target: Tensor) -> Tensor:
        """Negative log likelihood of the target at each leaf, (members, batch, leaves); by default the cost."""
        return self.cost(numbers, target)

    @abstractmethod
    def mean(self, numbers: Tensor) -> Tensor:
        """What a leaf predicts, and what is averaged over leaves: (members, batch or 1, leaves, ...)."""

    @abstractmethod
    def score(self, predicted: Tensor, target: Tensor) -> Tensor:
        """How good the prediction of each row is, at most 1: (members, batch) from (members, batch, ...)."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_targets})"


class Classes(Output):
    """Logits of classes; targets are class numbers, (batch,); the cost is the cross entropy."""

    target_dim = 1

    def check_target(self, target: Tensor, members: int, batch: int) -> None:
        if target.dtype != torch.int64 or target.shape not in ((batch,), (members, batch)):
            raise ValueError(
                f"target must be class numbers (int64) of shape ({batch},) or ({members}, {batch}), "
                f"however: {target.dtype} of shape {tuple(target.shape)}"
            )
        if target.device.type == "cpu" and batch and not 0 <= int(target.min()) <= int(target.max()) < self.n_targets:
            raise ValueError(
                f"target must be class numbers from 0 to {self.n_targets - 1}, "
                f"however: from {int(target.min())} to {int(target.max())}"
            )

    def cost(self, numbers: Tensor, target: Tensor) -> Tensor:
        if numbers.shape[1] == 1:  # a product with indicators, so that no (batch, leaves, classes) exists
            costs = self.costs(numbers)[:, 0]
            return (costs @ self.indicators(target, costs.dtype)).transpose(-1, -2)
        # Picked where the batch is last, as it lies in memory: the gradient needs no turned copy of all numbers.
        logs = F.log_softmax(numbers.movedim(1, -1), dim=-2)  # (members, leaves, classes, batch)
        index = (target if target.dim() == 2 else target.unsqueeze(0))[:, None, None, :]  # (members or 1, 1, 1, batch)
        return -torch.take_along_dim(logs, index, dim=-2).squeeze(-2).movedim(-1, 1)

    def costs(self, numbers: Tensor) -> Tensor:
        """Cross entropy of each class, were it the target: the shape of `numbers`."""
        return -_on_dense_axes(F.log_softmax, numbers)

    def gradient(self, costs: Tensor, mass: Tensor) -> Tensor:
        """Gradient of ``(mass * costs).sum()`` by the numbers that have these costs."""
        return torch.exp(-costs) * mass.sum(-1, keepdim=True) - mass

    def indicators(self, target: Tensor, dtype: torch.dtype) -> Tensor:
        """1 where a row of the target has a class, else 0, (..., classes, batch): the faster way round in products."""
        shape = (*target.shape[:-1], self.n_targets, target.shape[-1])
        return torch.zeros(shape, dtype=dtype, device=target.device).scatter_(-2, target.unsqueeze(-2), 1.0)

    def mean(self, numbers: Tensor) -> Tensor:
        return _on_dense_axes(F.softmax, numbers)

    def score(self, predicted: Tensor, target: Tensor) -> Tensor:
        """1 where the most probable class is right: the mean is the accuracy."""
        return (predicted.argmax(-1) == target).to(predicted.dtype)


class _RealOutput(Output):
    def check_target(self, target: Tensor, members: int, batch: int) -> None:
        rows = (batch, self.n_targets)
        if not target.is_floating_point() or target.shape not in (rows, (members, *rows)):
            raise ValueError(
                f"target must be real numbers of shape {rows} or {(members, *rows)}, "
                f"however: {target.dtype} of shape {tuple(target.shape)}"
            )

    def score(self, predicted: Tensor, target: Tensor) -> Tensor:
        """1 less the squared error: the mean is R2 where the target has been standardised."""
        return 1 - (predicted[..., : self.n_targets] - target).square().mean(-1)


class Values(_RealOutput):
    """Real values; targets are (batch, targets); the cost is half the squared error, summed over the targets."""

    def cost(self, numbers: Tensor, target: Tensor) -> Tensor:
        total = numbers.new_zeros(())
        for t in range(self.n_targets):  # one at a time, so that nothing larger than (batch, leaves) exists
            total = total + (numbers[..., t] - target[..., t].unsqueeze(-1)).square() / 2
        return total

    def mean(self, numbers: Tensor) -> Tensor:
        return numbers


class Gaussian(_RealOutput):
    """A mean and a spread for each target; targets are (batch, targets).

    `mean` gives the first two moments, ``(..., 2 * targets)``: means, then means of squares. Averaged over leaves they
    are the moments of the mixture.

    The cost is half the squared error of the mean, plus the negative log likelihood of the spread at that error. The
    likelihood of both together would let a leaf explain rows away by a large spread instead of learning their mean.

    Parameters
    ----------
    n_targets : int
    limits : sequence of (float, float), optional
        Lowest and highest mean of each target. Predictions stay within; training ignores them.
    """

    def __init__(self, n_targets: int, limits: Sequence[tuple[float, float]] | None = None) -> None:
        super().__init__(n_targets)
        if limits is not None and (len(limits) != n_targets or any(not low <= high for low, high in limits)):
            raise ValueError(f"limits must be {n_targets} pairs of a low and a high number, got {limits}")
        self.limits = limits

    @property
    def n_numbers(self) -> int:
        return 2 * self.n_targets

    def parameters(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """Mean, within the limits, and standard deviation of each leaf and target."""
        mean, spread = self._raw_parameters(numbers)
        return self.limited(mean), spread

    def _raw_parameters(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        mean, raw = numbers.split(self.n_targets, dim=-1)
        # A floor, so that one row alone in a leaf cannot make its likelihood infinite.
        return mean, F.softplus(raw) + 1e-3

    def limited(self, mean: Tensor) -> Tensor:
        """Means of leaves, (..., targets), within the limits."""
        if self.limits is None:
            return mean
        # By plain numbers: a tensor of limits would be copied to the device in every call.
        each = [mean[..., t : t + 1].clamp(low, high) for t, (low, high) in enumerate(self.limits)]
        return each[0] if len(each) == 1 else torch.cat(each, dim=-1)

    def cost(self, numbers: Tensor, target: Tensor) -> Tensor:
        mean, spread = self._raw_parameters(numbers)
        total = numbers.new_zeros(())
        for t in range(self.n_targets):
            error = (target[..., t].unsqueeze(-1) - mean[..., t]).square()
            total = total + error / 2 + error.detach() / (2 * spread[..., t].square()) + spread[..., t].log()
        return total

    def negative_log_likelihood(self, numbers: Tensor, target: Tensor) -> Tensor:
        mean, spread = self._raw_parameters(numbers)
        # Filled on the device: a copy from the host could not be part of a captured step.
        total = numbers.new_full((), self.n_targets * math.log(2 * math.pi) / 2)
        for t in range(self.n_targets):
            error = (target[..., t].unsqueeze(-1) - mean[..., t]) / spread[..., t]
            total = total + error.square() / 2 + spread[..., t].log()
        return total

    def mean(self, numbers: Tensor) -> Tensor:
        mean, spread = self.parameters(numbers)
        return torch.cat([mean, mean.square() + spread.square()], dim=-1)


def _on_dense_axes(function: object, numbers: Tensor) -> Tensor:
    """A softmax over the last axis, computed with the batch last where that is how the memory lies."""
    if numbers.shape[1] == 1:
        return function(numbers, dim=-1)  # type: ignore[operator, no-any-return]
    rows = numbers.movedim(1, -1)  # (members, leaves, numbers, batch)
    return function(rows, dim=-2).movedim(-1, 1)  # type: ignore[operator, no-any-return]
