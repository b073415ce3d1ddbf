"""Adam for members that differ by learning rate and weight decay, whose state can be saved and restored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

from tartree.nn import Tree
from tartree.search.candidates import OptimizerSettings
from tartree.training.adam import Adam, KernelAdam

Moments = list[tuple[Tensor, Tensor]]  # of each parameter: means and squares of its gradient


class MemberAdam:
    """Adam whose members have their own settings: neighbours with equal ones share a slice of every parameter.

    Parameters
    ----------
    tree : Tree
    settings : sequence of OptimizerSettings
        Of each member.
    reference : float
        The learning rate that `step` gets; those of the members are in proportion to it.
    n_batches : int
        Steps of an epoch, among which the weight decay is divided.
    captured : bool
        Whether steps will be captured in a graph on a GPU.
    """

    def __init__(
        self,
        tree: Tree,
        settings: Sequence[OptimizerSettings],
        reference: float,
        n_batches: int,
        *,
        captured: bool = False,
    ) -> None:
        decision, leaf = list(tree.decision.parameters()), list(tree.leaf.parameters())
        decayed = {id(p) for p in (*decision, *leaf)}
        rest = [p for p in tree.parameters() if id(p) not in decayed]
        self.parameters = [*decision, *leaf, *rest]
        self.n_members = len(settings)
        self.slices: list[_Slice] = []
        first = 0
        for shared, members in groupby(settings):
            last = first + len(list(members))
            is_whole = last - first == len(settings)
            views = [p.detach() if is_whole else p.detach()[first:last] for p in self.parameters]
            parts = views[: len(decision)], views[len(decision) : len(decayed)], views[len(decayed) :]
            decays = shared.decision_decay / n_batches, shared.leaf_decay / n_batches, 0.0
            groups = [(part, decay) for part, decay in zip(parts, decays, strict=True) if part]
            optimizer = KernelAdam(groups) if captured else Adam(groups)
            self.slices.append(_Slice(first, last, shared.learning_rate / reference, views, optimizer))
            first = last

    def zero_grad(self) -> None:
        """Drop the gradients."""
        for p in self.parameters:
            p.grad = None

    def step(self, rate: float | Tensor) -> None:
        """Take one step at a learning rate, or as a row of `tartree.training.adam.rate_table` says."""
        for part in self.slices:
            for p, view in zip(self.parameters, part.views, strict=True):
                gradient = p.grad
                if gradient is not None and part.last - part.first < self.n_members:
                    gradient = gradient[part.first : part.last]
                view.grad = gradient
            part.optimizer.step(rate if part.factor == 1.0 else _scaled(rate, part.factor))

    def moments(self) -> Moments:
        """Return the state: means and squares of the gradients of all members."""
        merged = []
        for parts in zip(*(_state(part.optimizer) for part in self.slices), strict=True):
            means, squares = zip(*parts, strict=True)
            merged.append((torch.cat(means), torch.cat(squares)) if len(parts) > 1 else (means[0], squares[0]))
        return merged

    def set_moments(self, moments: Moments, steps: int) -> None:
        """Restore the state after a number of steps."""
        for part in self.slices:
            is_whole = part.last - part.first == self.n_members
            for current, saved in zip(_state(part.optimizer), moments, strict=True):
                for tensor, before in zip(current, saved, strict=True):
                    tensor.copy_(before if is_whole else before[part.first : part.last])
            if isinstance(part.optimizer, Adam):
                for group in part.optimizer.groups:
                    for count in group.steps:
                        count.fill_(steps)


@dataclass(frozen=True)
class _Slice:
    """Neighbouring members with equal settings."""

    first: int
    last: int
    factor: float
    views: list[Tensor]
    optimizer: Adam | KernelAdam


def _scaled(rate: float | Tensor, factor: float) -> float | Tensor:
    if not isinstance(rate, Tensor):
        return rate * factor
    return torch.cat([rate[:2] * factor, rate[2:]])  # rate and step size; the correction of squares stays


def _state(optimizer: Adam | KernelAdam) -> Moments:
    if isinstance(optimizer, KernelAdam):
        return [(mean, square) for _, mean, square, _ in optimizer.tensors]
    return [pair for group in optimizer.groups for pair in zip(group.means, group.squares, strict=True)]
