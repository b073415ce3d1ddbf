"""Adam for members that differ by learning rate and weight decay, whose state can be taken out and put back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import torch
from torch import Tensor

from tartree.nn import Tree
from tartree.search.candidates import OptimizerSettings
from tartree.training.adam import Adam, KernelAdam

Moments = list[tuple[Tensor, Tensor]]  # of each parameter: means and squares of its gradient


class MemberAdam:
    """Neighbours of one pace share an Adam that works on their slice of every parameter.

    Parameters
    ----------
    tree : Tree
    paces : sequence of OptimizerSettings
        Of each member.
    reference : float
        The learning rate that `step` is told; members have their own in proportion.
    n_batches : int
        Steps of an epoch, over which the weight decay is shared out.
    captured : bool
        Whether steps will be captured in a graph on a GPU.
    """

    def __init__(
        self,
        tree: Tree,
        paces: Sequence[OptimizerSettings],
        reference: float,
        n_batches: int,
        *,
        captured: bool = False,
    ) -> None:
        decision, leaf = list(tree.decision.parameters()), list(tree.leaf.parameters())
        own = {id(p) for p in (*decision, *leaf)}
        rest = [p for p in tree.parameters() if id(p) not in own]
        self.parameters = [*decision, *leaf, *rest]
        self.slices: list[_Slice] = []
        first = 0
        for pace, members in groupby(paces):
            last = first + len(list(members))
            views = [p.detach() if last - first == len(paces) else p.detach()[first:last] for p in self.parameters]
            parts = views[: len(decision)], views[len(decision) : len(own)], views[len(own) :]
            decays = pace.decision_decay / n_batches, pace.leaf_decay / n_batches, 0.0
            groups = [(part, decay) for part, decay in zip(parts, decays, strict=True) if part]
            optimizer = KernelAdam(groups) if captured else Adam(groups)
            self.slices.append(_Slice(first, last, pace.learning_rate / reference, views, optimizer))
            first = last
        self.n_members = len(paces)

    def zero_grad(self) -> None:
        for p in self.parameters:
            p.grad = None

    def step(self, pace: float | Tensor) -> None:
        for one in self.slices:
            for p, view in zip(self.parameters, one.views, strict=True):
                gradient = p.grad
                if gradient is not None and one.last - one.first < self.n_members:
                    gradient = gradient[one.first : one.last]
                view.grad = gradient
            one.optimizer.step(pace if one.factor == 1.0 else _scaled(pace, one.factor))

    def moments(self) -> Moments:
        """The state: means and squares of gradients, of all members."""
        of_slices = [_state(one.optimizer) for one in self.slices]
        found = []
        for parts in zip(*of_slices, strict=True):
            means, squares = zip(*parts, strict=True)
            found.append((torch.cat(means), torch.cat(squares)) if len(parts) > 1 else (means[0], squares[0]))
        return found

    def set_moments(self, moments: Moments, steps: int) -> None:
        for one in self.slices:
            whole = one.last - one.first == self.n_members
            for own, kept in zip(_state(one.optimizer), moments, strict=True):
                for now, before in zip(own, kept, strict=True):
                    now.copy_(before if whole else before[one.first : one.last])
            if isinstance(one.optimizer, Adam):
                for group in one.optimizer.groups:
                    for count in group.steps:
                        count.fill_(steps)


class _Slice:
    def __init__(self, first: int, last: int, factor: float, views: list[Tensor], optimizer: Adam | KernelAdam) -> None:
        self.first, self.last, self.factor, self.views, self.optimizer = first, last, factor, views, optimizer


def _scaled(pace: float | Tensor, factor: float) -> float | Tensor:
    if not isinstance(pace, Tensor):
        return pace * factor
    return torch.cat([pace[:2] * factor, pace[2:]])  # rate and step size; the correction of squares stays


def _state(optimizer: Adam | KernelAdam) -> Moments:
    if isinstance(optimizer, KernelAdam):
        return [(mean, square) for _, mean, square, _ in optimizer.tensors]
    return [pair for group in optimizer.groups for pair in zip(group.means, group.squares, strict=True)]
