"""What training minimises: pure functions of arrivals, leaf numbers and targets, one value a member."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from tartree.nn import Classes, Leaves, MLPLeaf, Output, PieceLeaf, Tree, blocks
from tartree.nn.hooks import has_hooks
from tartree.ops import fused, native
from tartree.ops.scratch import borrow
from tartree.ops.tables import kept_on_device
from tartree.structure import Structure

#: Up to so many, the cost of each row's class is picked; of more it is faster to multiply by indicators.
FEW_LEAVES = 512


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
        rows = output.indicators(target, arrival.dtype) * share.unsqueeze(-2)
        arrived = arrival.transpose(-1, -2) @ rows.transpose(-1, -2)
        return (arrived * output.costs(numbers)[:, 0]).sum((-1, -2))
    return _mean((arrival * output.cost(numbers, target)).sum(-1), share)


def expected_gradient(tree: Tree, x: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor | None:
    """`expected` of a batch, with its gradient left in the parameters of the tree: in one pass, where there is one.

    None means that there is none, and that nothing has been done. There is one for softmax branching: on a GPU for
    classes, on a CPU for binary trees; never where parts of the tree have forward hooks, which a pass would not call.
    """
    if has_hooks(tree):
        return None
    if tree.fuses(x):
        return _fused_gradient(tree, x, target, weight)
    if blocks.suits(tree.leaf, x):
        with blocks.one_thread() as n_threads:
            return _blocked_gradient(tree, x, target, weight, n_threads)
    if tree.structure.is_binary and tree.structure.depth and tree.branching.is_plain and x.device.type == "cpu":
        return _native_gradient(tree, x, target, weight)
    return None


def _fused_gradient(tree: Tree, x: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
    parts = tree.parts(x)
    logits = parts[0]
    tree.output.check_target(target, logits.shape[0], logits.shape[1])
    with torch.no_grad():
        share = None if weight is None else _shares(logits, weight)
        loss, *gradients = fused.expected_cost(*parts, target, share, tree.structure)
    _backward(parts, gradients)
    return loss


def _blocked_gradient(tree: Tree, x: Tensor, target: Tensor, weight: Tensor | None, n_threads: int) -> Tensor:
    """Perceptrons as leaves on a CPU, a few at a time; the decisions learn from the costs after them."""
    output = tree.output
    arrival = tree.branching(tree.decision(x))  # (members, batch, leaves)
    members, batch, _ = arrival.shape
    output.check_target(target, members, batch)
    share = _shares(arrival, weight)  # (members or 1, batch)
    reached = (arrival.detach() * share.unsqueeze(-1)).transpose(-1, -2).contiguous()  # (members, leaves, batch)
    costs = torch.empty_like(reached)
    own_targets = target.dim() > (1 if isinstance(output, Classes) else 2)

    def judge(numbers: Tensor, member: int, leaves: slice) -> Tensor:
        numbers = numbers.requires_grad_()
        with torch.enable_grad():
            cost = output.cost(numbers, target[member : member + 1] if own_targets else target)  # (1, batch, leaves)
            (gradient,) = torch.autograd.grad((cost * reached[member, leaves].t()).sum(), numbers)
        costs[member, leaves] = cost.detach()[0].t()
        return gradient

    leaf = tree.leaf
    assert isinstance(leaf, MLPLeaf | PieceLeaf)
    blocks.leave_leaf_gradient(leaf, x, judge, n_threads)
    loss = (arrival * costs.transpose(-1, -2)).sum(-1)
    loss = _mean(loss, share)
    if loss.requires_grad:
        loss.sum().backward()
    return loss.detach()


def _native_gradient(tree: Tree, x: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
    logits, bias = tree.decision_parts(x)
    numbers = tree.leaf(x)
    with outside_autocast(x.device):
        return _native_walk(tree, single(logits), bias, single(numbers), target, weight)


def _native_walk(
    tree: Tree, logits: Tensor, bias: Tensor | None, numbers: Tensor, target: Tensor, weight: Tensor | None
) -> Tensor:
    tree.check_shapes(logits, numbers)
    # A product does not need its outcome again; a decision of the user's own might. (`data`, since a change through
    # `detach` would be counted, and make autograd take the gradient through a buffer of zeros.)
    own = logits.data if bias is not None else logits.detach().clone()
    output, constant = tree.output, numbers.shape[1] == 1
    output.check_target(target, logits.shape[0], logits.shape[1])
    share = _shares(logits, weight)
    if constant and isinstance(output, Classes):  # through products with indicators, as in `expected`
        with torch.no_grad():
            costs = output.costs(numbers)  # (members, 1, leaves, classes)
            indicators = output.indicators(target, costs.dtype)
            values, lease = borrow((*costs.shape[::2], logits.shape[1]), costs)  # (members, leaves, batch)
            if len(values) == 1 and values.shape[1] <= FEW_LEAVES:
                torch.index_select(costs[0, 0], 1, target.view(-1), out=values[0])
            else:
                torch.matmul(costs[:, 0], indicators, out=values)
            found = native.expect(own, bias, values.transpose(-1, -2), share)
            del lease
            mass = indicators @ found.leaves  # (members, classes, leaves): faster in this order
            said, gradient = numbers, output.gradient(costs, mass.transpose(-1, -2).unsqueeze(1))
    else:
        said = output.cost(numbers, target)  # (members, batch or 1, leaves)
        with torch.no_grad():
            found = native.expect(own, bias, said.expand(logits.shape[0], logits.shape[1], -1), share)
            gradient = found.leaves if said.shape[1] == logits.shape[1] else found.leaves.sum(1, keepdim=True)
    bias_gradient = None if bias is None else found.logits.sum(1)
    _backward((logits, bias, said), (found.logits, bias_gradient, gradient))
    return (found.value * share).sum(-1)


def _backward(outputs: Sequence[Tensor | None], gradients: Sequence[Tensor | None]) -> None:
    """Take given gradients further back, through what is learnt."""
    pairs = [(y, g) for y, g in zip(outputs, gradients, strict=True) if y is not None and y.requires_grad]
    learnt, given = [y for y, _ in pairs], [g for _, g in pairs]
    if learnt and learnt[0].device.type == "cpu":
        # Given gradients make torch load its symbolic shapes, which takes longer than the fit of a small table.
        _Outcome.apply(given, *learnt).backward()  # type: ignore[no-untyped-call]
    elif learnt:
        torch.autograd.backward(learnt, given)


class _Outcome(torch.autograd.Function):
    """A number whose gradient is known already."""

    @staticmethod
    def forward(ctx: Any, gradients: list[Tensor], *inputs: Tensor) -> Tensor:
        ctx.gradients = gradients
        return inputs[0].new_zeros(())

    @staticmethod
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor | None, ...]:
        return None, *ctx.gradients


def mixture(leaves: Leaves, target: Tensor, output: Output, weight: Tensor | None = None) -> Tensor:
    """Negative log likelihood of the mixture of leaves, ``-log sum_u p(u) exp(-nll(u))``, averaged over rows.

    Arguments and result are those of `expected`, which it never exceeds where the cost is the likelihood.
    """
    arrival, numbers = _checked(leaves, target, output)
    floor = torch.finfo(arrival.dtype).tiny  # a leaf that nobody reaches has no say, rather than an infinite one
    joint = arrival.clamp_min(floor).log() - output.negative_log_likelihood(numbers, target)
    return _mean(-joint.logsumexp(-1), _shares(arrival, weight))


def selected(leaves: Leaves, target: Tensor, output: Output, weight: Tensor | None = None) -> Tensor:
    """Negative log likelihood of the leaf of the largest arrival, averaged over rows: for reports, not for training."""
    arrival, numbers = _checked(leaves, target, output)
    chosen = arrival.argmax(-1, keepdim=True)
    cost = torch.take_along_dim(output.negative_log_likelihood(numbers, target), chosen, dim=-1).squeeze(-1)
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
    branching = single(branching)
    share = _shares(branching, weight).unsqueeze(-1)  # (members or 1, batch, 1)
    eps, tiny = torch.finfo(branching.dtype).eps, torch.finfo(branching.dtype).tiny
    total = branching.new_zeros(branching.shape[0])
    tables = _layer_tables(structure, branching.dtype, branching.device)
    own_branches = branching.split(structure.layer_branches, dim=-1) if structure.depth else ()
    for d, ((parent, even), own) in enumerate(zip(tables, own_branches, strict=True)):
        arrived = single(arrivals[d]).index_select(-1, parent) * share  # (members, batch, branches of the layer)
        mass = arrived.sum(1)  # (members, branches of the layer)
        split = (arrived * own).sum(1) / mass.clamp_min(tiny)
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


def _shares(arrival: Tensor, weight: Tensor | None) -> Tensor:
    """Each row's share of the mean, (members or 1, batch), in single precision at least."""
    batch, dtype = arrival.shape[1], torch.promote_types(arrival.dtype, torch.float32)
    if weight is None:
        return arrival.new_full((1, batch), 1 / max(batch, 1), dtype=dtype)
    if weight.shape not in ((batch,), (arrival.shape[0], batch)):
        raise ValueError(
            f"weight must be ({batch},) or ({arrival.shape[0]}, {batch}), however: shape={tuple(weight.shape)}"
        )
    weight = weight.to(dtype)
    total = weight.sum(-1, keepdim=True)
    return (weight / total.clamp_min(torch.finfo(weight.dtype).tiny)).reshape(-1, batch)


def _mean(rows: Tensor, share: Tensor) -> Tensor:
    return (rows * share).sum(-1)
