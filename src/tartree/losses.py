"""What training minimises: pure functions of arrivals, leaf numbers and targets, one value a member."""

from __future__ import annotations

import torch
from torch import Tensor

from tartree.nn import Classes, Leaves, Output
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
    share = _shares(arrival, weight)  # (members or 1, batch)
    if isinstance(output, Classes) and numbers.shape[1] == 1:
        # Constant leaves: count what arrives of each class first, (members, leaves, classes), then weigh it.
        rows = output.indicators(target, arrival.dtype) * share.unsqueeze(-1)
        arrived = arrival.transpose(-1, -2) @ rows
        return (arrived * output.costs(numbers)[:, 0]).sum((-1, -2))
    return _mean((arrival * output.cost(numbers, target)).sum(-1), share)


def mixture(leaves: Leaves, target: Tensor, output: Output, weight: Tensor | None = None) -> Tensor:
    """Negative log likelihood of the mixture of leaves, ``-log sum_u p(u) exp(-cost(u))``, averaged over rows.

    Arguments and result are those of `expected`, which it never exceeds.
    """
    arrival, numbers = _checked(leaves, target, output)
    floor = torch.finfo(arrival.dtype).tiny  # a leaf that nobody reaches has no say, rather than an infinite one
    joint = arrival.clamp_min(floor).log() - output.cost(numbers, target)
    return _mean(-joint.logsumexp(-1), _shares(arrival, weight))


def selected(leaves: Leaves, target: Tensor, output: Output, weight: Tensor | None = None) -> Tensor:
    """Cost of the leaf of the largest arrival, averaged over rows; for reports, since the choice has no gradient."""
    arrival, numbers = _checked(leaves, target, output)
    chosen = arrival.argmax(-1, keepdim=True)
    cost = torch.take_along_dim(output.cost(numbers, target), chosen, dim=-1).squeeze(-1)
    return _mean(cost, _shares(arrival, weight))


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
    branching = _single(branching)
    share = _shares(branching, weight).unsqueeze(-1)  # (members or 1, batch, 1)
    eps, tiny = torch.finfo(branching.dtype).eps, torch.finfo(branching.dtype).tiny
    total = branching.new_zeros(branching.shape[0])
    for d in range(structure.depth):
        parents, _, branches = structure.edges(d)
        counts = structure.n_children(d)
        decides = branches >= 0
        parent = torch.from_numpy(parents[decides]).to(branching.device)
        first = sum(structure.layer_branches[:d])
        own = branching[..., first : first + len(parent)]
        arrived = _single(arrivals[d]).index_select(-1, parent) * share  # (members, batch, branches of the layer)
        mass = arrived.sum(1)  # (members, branches of the layer)
        split = (arrived * own).sum(1) / mass.clamp_min(tiny)
        even = torch.from_numpy(1 / counts[parents[decides]]).to(split)
        cross_entropy = torch.where(mass > tiny, -even * split.clamp_min(eps).log(), 0.0)  # 0 where nobody arrives
        total = total + cross_entropy.sum(-1) / structure.widths[d]
    return total


def _checked(leaves: Leaves, target: Tensor, output: Output) -> tuple[Tensor, Tensor]:
    """Arrival and numbers in single precision at least: logarithms and sums of a half are too coarse."""
    members, batch, _ = leaves.arrival.shape
    output.check_target(target, members, batch)
    return _single(leaves.arrival), _single(leaves.numbers)


def _single(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _shares(arrival: Tensor, weight: Tensor | None) -> Tensor:
    """Each row's share of the mean, (members or 1, batch)."""
    batch = arrival.shape[1]
    if weight is None:
        return arrival.new_full((1, batch), 1 / max(batch, 1))
    if weight.shape not in ((batch,), (arrival.shape[0], batch)):
        raise ValueError(
            f"weight must be ({batch},) or ({arrival.shape[0]}, {batch}), however: shape={tuple(weight.shape)}"
        )
    weight = weight.to(arrival.dtype)
    total = weight.sum(-1, keepdim=True)
    return (weight / total.clamp_min(torch.finfo(weight.dtype).tiny)).reshape(-1, batch)


def _mean(rows: Tensor, share: Tensor) -> Tensor:
    return (rows * share).sum(-1)
