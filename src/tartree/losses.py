"""What training minimises: pure functions of arrivals, leaf logits and targets, one value a member."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from tartree.nn import Leaves, Output
from tartree.nn.dispatch import counts_by_class
from tartree.ops.index_tables import kept_on_device
from tartree.structure import Structure


def expected(leaves: Leaves, target: Tensor, output: Output, weight: Tensor | None = None) -> Tensor:
    """Eq. 4: the cost of each leaf weighted by arrival, ``sum_u p(u) cost(g_u(x), y)``, averaged over rows.

    Parameters
    ----------
    leaves : Leaves
        What a tree returns: arrival, (members, batch, leaves), and numbers, (members, batch or 1, leaves, numbers).
    target : Tensor of shape (batch, ...) or (members, batch, ...)
    output : Output
    weight : Tensor of shape (batch,) or (members, batch), optional
        Weights of rows; the mean is a weighted one.

    Returns
    -------
    Tensor of shape (members,)
    """
    arrival, numbers = _checked(leaves, target, output)
    share = shares(arrival, weight)  # (members or 1, batch)
    if counts_by_class(output, numbers):  # what arrives of each class first, (members, leaves, classes), then its cost
        rows = output.indicators(target, arrival.dtype) * share.unsqueeze(-2)
        arrived = arrival.transpose(-1, -2) @ rows.transpose(-1, -2)
        return (arrived * output.costs(numbers)[:, 0]).sum((-1, -2))
    return mean_of((arrival * output.cost(numbers, target)).sum(-1), share)


def mixture(leaves: Leaves, target: Tensor, output: Output, weight: Tensor | None = None) -> Tensor:
    """Negative log likelihood of the mixture of leaves, ``-log sum_u p(u) exp(-nll(u))``, averaged over rows.

    Arguments and result are those of `expected`, which it never exceeds where the cost is the likelihood.
    """
    arrival, numbers = _checked(leaves, target, output)
    floor = torch.finfo(arrival.dtype).tiny  # a leaf that nobody reaches has no say, rather than an infinite one
    joint = arrival.clamp_min(floor).log() - output.negative_log_likelihood(numbers, target)
    return mean_of(-joint.logsumexp(-1), shares(arrival, weight))


def selected(leaves: Leaves, target: Tensor, output: Output, weight: Tensor | None = None) -> Tensor:
    """Negative log likelihood of the leaf of the largest arrival, averaged over rows: for reports, not for training."""
    arrival, numbers = _checked(leaves, target, output)
    chosen = arrival.argmax(-1, keepdim=True)
    cost = torch.take_along_dim(output.negative_log_likelihood(numbers, target), chosen, dim=-1).squeeze(-1)
    return mean_of(cost, shares(arrival, weight))


def balance(arrivals: list[Tensor], branching: Tensor, structure: Structure, weight: Tensor | None = None) -> Tensor:
    """The penalty of Frosst and Hinton on nodes that send all rows the same way.

    Of each node, the cross entropy between an even split and the mean split of the rows that arrive; averaged over the
    nodes of a layer, since layers halve what arrives, and summed over layers.

    Parameters
    ----------
    arrivals : list of Tensor
        Arrival at every layer, (members, batch, nodes).
    branching : Tensor of shape (members, batch, branches)
    structure : Structure
    weight : as for `expected`

    Returns
    -------
    Tensor of shape (members,)
    """
    branching = single(branching)
    share = shares(branching, weight).unsqueeze(-1)  # (members or 1, batch, 1)
    eps, tiny = torch.finfo(branching.dtype).eps, torch.finfo(branching.dtype).tiny
    total = branching.new_zeros(branching.shape[0])
    tables = _layer_tables(structure, branching.dtype, branching.device)
    branching_of_layers = branching.split(structure.layer_branches, dim=-1) if structure.depth else ()
    for d, ((parent, even), layer_branching) in enumerate(zip(tables, branching_of_layers, strict=True)):
        arrived = single(arrivals[d]).index_select(-1, parent) * share  # (members, batch, branches of the layer)
        mass = arrived.sum(1)  # (members, branches of the layer)
        split = (arrived * layer_branching).sum(1) / mass.clamp_min(tiny)
        cross_entropy = torch.where(mass > tiny, -even * split.clamp_min(eps).log(), 0.0)  # 0 where nobody arrives
        total = total + cross_entropy.sum(-1) / structure.widths[d]
    return total


@kept_on_device
def _layer_tables(structure: Structure, dtype: torch.dtype, device: torch.device) -> list[tuple[Tensor, Tensor]]:
    """For each layer, the parent of each branch and its share in an even split."""
    tables = []
    for d in range(structure.depth):
        parents, _, branches = structure.edges(d)
        deciding = parents[branches >= 0]
        even = 1 / structure.n_children(d)[deciding]
        tables.append((torch.from_numpy(deciding).to(device), torch.from_numpy(even).to(device, dtype)))
    return tables


def _checked(leaves: Leaves, target: Tensor, output: Output) -> tuple[Tensor, Tensor]:
    """Arrival and numbers in single precision at least: logarithms and sums of a half are too coarse."""
    members, batch, _ = leaves.arrival.shape
    output.check_target(target, members, batch)
    return single(leaves.arrival), single(leaves.numbers)


def single(x: Tensor) -> Tensor:
    """In single precision at least; the gradient goes back in the precision that came."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def outside_autocast(device: torch.device) -> AbstractContextManager[Any]:
    """Where products are not rounded, whatever is around: sums over rows and leaves are products here too."""
    return torch.autocast(device.type, enabled=False) if torch.is_autocast_enabled(device.type) else nullcontext()


def shares(like: Tensor, weight: Tensor | None) -> Tensor:
    """Return each row's share of the mean, (members or 1, batch), in single precision at least.

    `like` is (members, batch, ...) on the device and in the precision of the computation.
    """
    batch, dtype = like.shape[1], torch.promote_types(like.dtype, torch.float32)
    if weight is None:
        return like.new_full((1, batch), 1 / max(batch, 1), dtype=dtype)
    if weight.shape not in ((batch,), (like.shape[0], batch)):
        raise ValueError(f"weight must be ({batch},) or ({like.shape[0]}, {batch}), got {tuple(weight.shape)}")
    weight = weight.to(dtype)
    total = weight.sum(-1, keepdim=True)
    return (weight / total.clamp_min(torch.finfo(weight.dtype).tiny)).reshape(-1, batch)


def mean_of(rows: Tensor, share: Tensor) -> Tensor:
    """Return the mean of a value of each row, (members, batch), by their shares: (members,)."""
    return (rows * share).sum(-1)
