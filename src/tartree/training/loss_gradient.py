"""The loss of a batch and its gradient, written into the parameters: by autograd or by a path that is faster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tartree import losses
from tartree.nn import Tree, dispatch, leaf_blocks
from tartree.ops import fused, native
from tartree.ops.scratch import borrow
from tartree.training.batches import Batch
from tartree.training.recipe import Recipe

#: Up to so many leaves, the cost of each row's class is picked; of more it is faster to multiply by indicators.
FEW_LEAVES = 512


def write_gradient(tree: Tree, x: Tensor, batch: Batch, recipe: Recipe) -> Tensor:
    """Add the gradient of the loss to that of the parameters; return the loss of each member, (members,)."""
    path = dispatch.gradient_path(tree, x, loss=recipe.loss, balance=recipe.balance)
    if path != "autograd":
        return PATHS[path](tree, x, batch.target, batch.weight)
    loss = loss_of(tree, x, batch, recipe)
    with losses.outside_autocast(x.device):  # rounded products have rounded gradients by themselves
        loss.sum().backward()
    return loss.detach()


def loss_of(tree: Tree, x: Tensor, batch: Batch, recipe: Recipe) -> Tensor:
    """Return the loss that the recipe names, with its balance penalty, (members,)."""
    logits, leaf_logits = tree.decision(x), tree.leaf(x)
    with losses.outside_autocast(x.device):
        logits = losses.single(logits)
        leaves = tree.checked(logits, losses.single(leaf_logits))
        function = losses.expected if recipe.loss == "expected" else losses.mixture
        loss = function(leaves, batch.target, tree.output, batch.weight)
        if recipe.balance:
            arrivals, branching = tree.branching.arrivals(logits), tree.branching.probabilities(logits)
            loss = loss + recipe.balance * losses.balance(arrivals, branching, tree.structure, batch.weight)
    return loss


def _fused(tree: Tree, x: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
    """Compute classes on a GPU by kernels."""
    parts = tree.parts(x)
    logits = parts[0]
    tree.output.check_target(target, logits.shape[0], logits.shape[1])
    with torch.no_grad():
        share = None if weight is None else losses.shares(logits, weight)
        loss, *gradients = fused.expected_cost(*parts, target, share, tree.structure)
    _backward(parts, gradients)
    return loss


def _by_blocks(tree: Tree, x: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
    """Compute perceptron leaves on a CPU, a few at a time; the decisions learn from the costs after them."""
    leaf, output = tree.leaf, tree.output
    assert dispatch.computes_leaves_in_blocks(leaf, x)
    with leaf_blocks.one_thread() as n_threads:
        arrival = tree.branching(tree.decision(x))  # (members, batch, leaves)
        members, batch, _ = arrival.shape
        output.check_target(target, members, batch)
        share = losses.shares(arrival, weight)  # (members or 1, batch)
        reached = (arrival.detach() * share.unsqueeze(-1)).transpose(-1, -2).contiguous()  # (members, leaves, batch)
        costs = torch.empty_like(reached)
        has_members = target.dim() > output.target_dim

        def cost_gradient(leaf_logits: Tensor, member: int, leaves: slice) -> Tensor:
            leaf_logits = leaf_logits.requires_grad_()
            with torch.enable_grad():
                cost = output.cost(leaf_logits, target[member : member + 1] if has_members else target)
                (gradient,) = torch.autograd.grad((cost * reached[member, leaves].t()).sum(), leaf_logits)
            costs[member, leaves] = cost.detach()[0].t()  # from (1, batch, leaves)
            return gradient

        gradients = leaf_blocks.leaf_gradients(leaf, x, cost_gradient, n_threads)
        for parameter, gradient in zip(leaf.mlp.parameters(), gradients, strict=True):
            parameter.grad = gradient if parameter.grad is None else gradient.add_(parameter.grad)
        loss = losses.mean_of((arrival * costs.transpose(-1, -2)).sum(-1), share)
        if loss.requires_grad:
            loss.sum().backward()
        return loss.detach()


def _native(tree: Tree, x: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
    """Compute a binary tree on a CPU in one pass."""
    logits, bias = tree.decision_parts(x)
    leaf_logits = tree.leaf(x)
    with losses.outside_autocast(x.device):
        return _native_pass(tree, losses.single(logits), bias, losses.single(leaf_logits), target, weight)


def _native_pass(
    tree: Tree, logits: Tensor, bias: Tensor | None, leaf_logits: Tensor, target: Tensor, weight: Tensor | None
) -> Tensor:
    tree.check_shapes(logits, leaf_logits)
    # A product does not need its result again; a decision of the user's might. (`data`, since a change through
    # `detach` would be counted, and autograd would take the gradient through a buffer of zeros.)
    free_logits = logits.data if bias is not None else logits.detach().clone()
    output = tree.output
    output.check_target(target, logits.shape[0], logits.shape[1])
    share = losses.shares(logits, weight)
    if dispatch.counts_by_class(output, leaf_logits):  # through products with indicators, as in `losses.expected`
        with torch.no_grad():
            costs = output.costs(leaf_logits)  # (members, 1, leaves, classes)
            indicators = output.indicators(target, costs.dtype)
            values, lease = borrow((*costs.shape[::2], logits.shape[1]), costs)  # (members, leaves, batch)
            if len(values) == 1 and values.shape[1] <= FEW_LEAVES:
                torch.index_select(costs[0, 0], 1, target.view(-1), out=values[0])
            else:
                torch.matmul(costs[:, 0], indicators, out=values)
            expected = native.expect(free_logits, bias, values.transpose(-1, -2), share)
            del lease
            mass = indicators @ expected.leaves  # (members, classes, leaves): faster in this order
            outcome, gradient = leaf_logits, output.gradient(costs, mass.transpose(-1, -2).unsqueeze(1))
    else:
        outcome = output.cost(leaf_logits, target)  # (members, batch or 1, leaves)
        with torch.no_grad():
            every = outcome.expand(logits.shape[0], logits.shape[1], -1)
            expected = native.expect(free_logits, bias, every, share)
            is_by_row = outcome.shape[1] == logits.shape[1]
            gradient = expected.leaves if is_by_row else expected.leaves.sum(1, keepdim=True)
    bias_gradient = None if bias is None else expected.logits.sum(1)
    _backward((logits, bias, outcome), (expected.logits, bias_gradient, gradient))
    return (expected.value * share).sum(-1)


PATHS = {"fused": _fused, "blocks": _by_blocks, "native": _native}


def _backward(outputs: Sequence[Tensor | None], gradients: Sequence[Tensor | None]) -> None:
    """Take gradients of outputs further back, to the parameters."""
    pairs = [(y, g) for y, g in zip(outputs, gradients, strict=True) if y is not None and y.requires_grad]
    trained, upstream = [y for y, _ in pairs], [g for _, g in pairs]
    if trained and trained[0].device.type == "cpu":
        # Upstream gradients make torch load its symbolic shapes, which takes longer than the fit of a small table.
        _Outcome.apply(upstream, *trained).backward()  # type: ignore[no-untyped-call]
    elif trained:
        torch.autograd.backward(trained, upstream)


class _Outcome(torch.autograd.Function):
    """A number whose gradient has been computed already."""

    @staticmethod
    def forward(ctx: Any, gradients: list[Tensor], *inputs: Tensor) -> Tensor:
        ctx.gradients = gradients
        return inputs[0].new_zeros(())

    @staticmethod
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor | None, ...]:
        return None, *ctx.gradients
