"""The operation in plain torch, for CPU and GPU, with its backward written out (README.md has the derivation).

Inside, nodes come before the batch, ``(..., nodes, batch)``: a layer is then a block of whole rows, the children of its
nodes are strided rows of the next one, and every step runs over contiguous memory. Tensors come and go as
``(..., batch, nodes)``; a transposed view of the right memory layout costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tartree.ops.backend import forgets_layers
from tartree.ops.index_tables import kept_on_device
from tartree.ops.scratch import Lease, borrow
from tartree.structure import Structure

ActivationFunction = Callable[[Tensor, int], Tensor]  # (logits, axis) -> distributions along the axis


def arrival(logits: Tensor, structure: Structure, layers: bool = False) -> list[Tensor]:
    """Arrival from logits, (..., logits): at the leaves, or at every layer."""
    rows = _nodes_first(logits)
    branches = (*rows.shape[:-2], structure.n_branches, rows.shape[-1])
    if forgets_layers(rows, structure, branches, layers=layers):
        arrivals = (_lowest_arrival(rows, structure),)
    elif structure.is_regular:
        arrivals = _RegularArrival.apply(rows, structure, layers)  # type: ignore[no-untyped-call]
    else:
        branching = _branch(rows, structure, torch.softmax)
        arrivals = _IrregularSpread.apply(branching, structure, layers)  # type: ignore[no-untyped-call]
    return [_nodes_last(p, logits) for p in arrivals]


def branch(logits: Tensor, structure: Structure, activation: ActivationFunction) -> Tensor:
    """Branching probabilities, (..., branches), of an activation other than softmax."""
    return _nodes_last(_branch(_nodes_first(logits), structure, activation), logits)


def spread(branching: Tensor, structure: Structure, layers: bool = False) -> list[Tensor]:
    """Arrival from branching probabilities, (..., branches): at the leaves, or at every layer."""
    spread_rows = _RegularSpread if structure.is_regular else _IrregularSpread
    arrivals = spread_rows.apply(_nodes_first(branching), structure, layers)  # type: ignore[no-untyped-call]
    return [_nodes_last(p, branching) for p in arrivals]


def _nodes_first(x: Tensor) -> Tensor:
    """(..., batch, nodes) as contiguous (..., nodes, batch), in single precision at least."""
    x = x.unsqueeze(0) if x.dim() == 1 else x
    x = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    return x.transpose(-1, -2).contiguous()


def _nodes_last(rows: Tensor, like: Tensor) -> Tensor:
    x = rows.transpose(-1, -2).to(like.dtype)
    return x.squeeze(0) if like.dim() == 1 else x


def _branch(rows: Tensor, structure: Structure, activation: ActivationFunction) -> Tensor:
    """Branching probabilities (..., branches, batch) from logits (..., logits, batch)."""
    parts = []
    mixed = len(structure.fans) > 1
    logits_of_fans, order = _fans_on(structure, rows.device) if mixed else ([], None)
    for i, fan in enumerate(structure.fans):
        own = rows.index_select(-2, logits_of_fans[i]) if mixed else rows
        if fan.n_children == 2:
            own = torch.stack([own / 2, own / -2], dim=-2)  # the one logit is the difference of two
        else:
            own = own.unflatten(-2, (-1, fan.n_children))  # (..., nodes, children, batch)
        parts.append(activation(own, -2).flatten(-3, -2))
    if not parts:
        return rows
    return parts[0] if order is None else torch.cat(parts, dim=-2).index_select(-2, order)


@kept_on_device
def _fans_on(structure: Structure, device: torch.device) -> tuple[list[Tensor], Tensor]:
    """The logits of each fan, and where each branch stands when the branches of all fans are joined."""
    branches = np.concatenate([fan.branches.ravel() for fan in structure.fans])
    *logits, order = _on(device, *(fan.logits.ravel() for fan in structure.fans), np.argsort(branches))
    return logits, order


class Expected(NamedTuple):
    """What rows may expect of the leaves, and the gradient of its mean."""

    value: Tensor  # (members, batch)
    logits: Tensor  # (members, batch, nodes)
    leaves: Tensor  # (members, batch, leaves): the arrival times the share of the row
    leases: list[Lease | None]  # hold the memory of the others


def expect(logits: Tensor, bias: Tensor | None, values: Tensor, share: Tensor) -> Expected:
    """The way down and up a binary tree in one go, with nothing kept for autograd: five passes over memory.

    Parameters
    ----------
    logits : Tensor of shape (members, batch, nodes)
        Of all nodes, without their biases. They are overwritten.
    bias : Tensor of shape (members, nodes), optional
    values : Tensor of shape (members, batch, leaves)
        What each leaf gives to each row.
    share : Tensor of shape (members or 1, batch)
        Of each row in the mean.
    """
    left = logits.transpose(-1, -2)  # (members, nodes, batch), as is everything below
    left = left if left.is_contiguous() else left.contiguous()
    if bias is not None:
        left.add_(bias.unsqueeze(-1))
    left.sigmoid_()
    members, nodes, batch = left.shape
    widths = [1 << d for d in range((nodes + 1).bit_length() - 1)]
    layers = left.split(widths, dim=1)

    arrivals, arrivals_lease = borrow((members, 2 * nodes, batch), left)  # at the children of all nodes
    to_left, to_right = arrivals[:, 0::2], arrivals[:, 1::2]
    above = share.unsqueeze(1).expand(members, 1, batch)
    for own, left_child, right_child, children in zip(
        layers,
        to_left.split(widths, dim=1),
        to_right.split(widths, dim=1),
        arrivals.split([2 * width for width in widths], dim=1),
        strict=True,
    ):
        # What does not go left goes right: to the rounding of what arrives, which is enough for a mean over leaves.
        torch.mul(above, own, out=left_child)
        torch.sub(above, left_child, out=right_child)
        above = children

    expected, expected_lease = borrow((members, nodes, batch), left)  # of all nodes
    leaves = values.transpose(-1, -2)
    inner, lowest = expected.split([nodes // 2, nodes - nodes // 2], dim=1)
    inner_right, leaves_right = expected[:, 2::2], leaves[:, 1::2]
    torch.lerp(leaves_right, leaves[:, 0::2], layers[-1], out=lowest)
    for own, nodes_, left_child, right_child in zip(
        layers[-2::-1],
        inner.split(widths[:-1], dim=1)[::-1],
        expected[:, 1::2].split(widths[:-1], dim=1)[::-1],
        inner_right.split(widths[:-1], dim=1)[::-1],
        strict=True,
    ):
        torch.lerp(right_child, left_child, own, out=nodes_)

    # In the gradient p b_0 b_1 (v_0 - v_1), p b_1 is what went right, and b_0 (v_0 - v_1) how much more the node gives
    # than its right child.
    torch.sub(lowest, leaves_right, out=layers[-1])
    torch.sub(inner, inner_right, out=left[:, : nodes // 2])
    left.mul_(to_right)
    return Expected(expected[:, 0], left.transpose(-1, -2), above.transpose(-1, -2), [arrivals_lease, expected_lease])


class _RegularArrival(torch.autograd.Function):
    """Logits of a regular structure to arrivals, by softmax, which is the sigmoid where a node has one logit."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, structure: Structure, layers: bool) -> tuple[Tensor, ...]:
        if structure.window == 2:
            shape = (*logits.shape[:-2], structure.n_branches, logits.shape[-1])
            branching, ctx.branching_lease = borrow(shape, logits)
            right = branching[..., 1::2, :]
            torch.sigmoid(logits, out=branching[..., 0::2, :])
            torch.sigmoid(torch.neg(logits, out=right), out=right)  # 1 - left would round to 0 too early
        else:
            branching = logits.unflatten(-2, (-1, structure.window)).softmax(-2).flatten(-3, -2)
        arrivals = _walk_down(branching, structure)
        ctx.structure, ctx.layers = structure, layers
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(branching, *arrivals[:-1])
        return arrivals if layers else arrivals[-1:]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None, None]:
        _refuse_second_derivatives()
        structure: Structure = ctx.structure
        branching, *arrivals = ctx.saved_tensors
        logits = branching.new_empty((*branching.shape[:-2], structure.n_logits, branching.shape[-1]))
        parts = logits.split(structure.layer_logits, dim=-2)
        for d, b, values, below in _walk_up(branching, structure, grads):
            if structure.window == 2:  # p b_0 b_1 (v_0 - v_1)
                part = torch.sub(below.select(-2, 0), below.select(-2, 1), out=parts[d])
                part.mul_(b.select(-2, 0)).mul_(b.select(-2, 1)).mul_(arrivals[d])
            else:  # p b_j (v_j - sum_k b_k v_k)
                part = torch.sub(below, values.unsqueeze(-2), out=parts[d].unflatten(-2, (-1, structure.window)))
                part.mul_(b).mul_(arrivals[d].unsqueeze(-2))
        return logits, None, None


class _RegularSpread(torch.autograd.Function):
    """Branching probabilities of a regular structure to arrivals."""

    @staticmethod
    def forward(ctx: Any, branching: Tensor, structure: Structure, layers: bool) -> tuple[Tensor, ...]:
        arrivals = _walk_down(branching, structure)
        ctx.structure = structure
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(branching, *arrivals[:-1])
        return arrivals if layers else arrivals[-1:]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None, None]:
        _refuse_second_derivatives()
        structure: Structure = ctx.structure
        branching, *arrivals = ctx.saved_tensors
        gradient = torch.empty_like(branching)
        parts = gradient.split(structure.layer_branches, dim=-2)
        for d, _, _, below in _walk_up(branching, structure, grads):  # p v_j
            torch.mul(below, arrivals[d].unsqueeze(-2), out=parts[d].unflatten(-2, (-1, structure.window)))
        return gradient, None, None


class _IrregularSpread(torch.autograd.Function):
    """Branching probabilities of any structure to arrivals, by its children lists: gather, multiply, scatter."""

    @staticmethod
    def forward(ctx: Any, branching: Tensor, structure: Structure, layers: bool) -> tuple[Tensor, ...]:
        routes = structure.routes
        slots = branching.new_zeros((*branching.shape[:-2], routes.n_slots, branching.shape[-1]))
        slots[..., 0, :] = 1
        steps, slots_of_layers = _routes_on(structure, branching.device)
        for parents, children, branches in steps:
            flow = slots.index_select(-2, parents)
            flow[..., : len(branches), :] *= branching.index_select(-2, branches)  # the rest passes on
            slots.index_add_(-2, children, flow)
        wanted = slots_of_layers if layers else slots_of_layers[-1:]
        ctx.steps, ctx.wanted = steps, wanted
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(branching, slots)
        return tuple(slots.index_select(-2, own) for own in wanted)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None, None]:
        _refuse_second_derivatives()
        branching, slots = ctx.saved_tensors
        gradient = torch.empty_like(branching)
        values = torch.zeros_like(slots)
        for own, grad in zip(ctx.wanted, grads, strict=True):
            if grad is not None:
                values.index_add_(-2, own, grad)
        for parents, children, branches in reversed(ctx.steps):
            below = values.index_select(-2, children)
            deciding = below[..., : len(branches), :]
            gradient.index_copy_(-2, branches, deciding * slots.index_select(-2, parents[: len(branches)]))
            deciding *= branching.index_select(-2, branches)
            values.index_add_(-2, parents, below)
        return gradient, None, None


@kept_on_device
def _routes_on(structure: Structure, device: torch.device) -> tuple[list[list[Tensor]], list[Tensor]]:
    """Steps and slots of an irregular structure."""
    routes = structure.routes
    return [_on(device, *step) for step in routes.steps], _on(device, *routes.slots)


def _on(device: torch.device, *arrays: NDArray[np.int64]) -> list[Tensor]:
    return [torch.from_numpy(array).to(device) for array in arrays]


def _refuse_second_derivatives() -> None:
    """Gradients are enabled in a backward only for those who differentiate it; what it computes has no graph."""
    if torch.is_grad_enabled():
        raise NotImplementedError(
            "the native backend must be differentiated once, got create_graph=True; "
            "use ops.arrival(..., backend='reference')"
        )


def _lowest_arrival(logits: Tensor, structure: Structure) -> Tensor:
    """Arrival (..., leaves, batch) of a binary tree where there is no way back: a layer at a time, nothing kept."""
    above = logits.new_ones((*logits.shape[:-2], 1, logits.shape[-1]))
    for own in logits.split(structure.layer_logits, dim=-2):
        below = logits.new_empty((*logits.shape[:-2], 2 * own.shape[-2], logits.shape[-1]))
        left, right = below[..., 0::2, :], below[..., 1::2, :]
        torch.sigmoid(own, out=left).mul_(above)
        torch.neg(own, out=right).sigmoid_().mul_(above)
        above = below
    return above


def _walk_down(branching: Tensor, structure: Structure) -> tuple[Tensor, ...]:
    """Arrivals (..., nodes, batch) at every layer of a regular structure, from (..., branches, batch)."""
    window, stride = structure.window, structure.stride
    assert stride is not None
    lead, batch = branching.shape[:-2], branching.shape[-1]
    arrivals = [branching.new_ones((*lead, 1, batch))]
    for b, width in zip(_by_node(branching, structure), structure.widths[1:], strict=True):
        above = arrivals[-1]
        if stride == window:
            below = torch.mul(above.unsqueeze(-2), b).flatten(-3, -2)
        else:
            below = branching.new_zeros((*lead, width, batch))
            span = (above.shape[-2] - 1) * stride + 1
            for j in range(window):
                below[..., j : j + span : stride, :].addcmul_(above, b.select(-2, j))
        arrivals.append(below)
    return tuple(arrivals)


def _walk_up(
    branching: Tensor, structure: Structure, grads: tuple[Tensor | None, ...]
) -> Iterator[tuple[int, Tensor, Tensor, Tensor]]:
    """From the leaves to the root, for each layer: its number, branching, value of each node, value of each child.

    The value of a node is the derivative of the outcome by its arrival: what is expected below it. It is the mean of
    its children's values weighted by its branching, a windowed gather.
    """
    window, stride = structure.window, structure.stride
    assert stride is not None
    lead, batch = branching.shape[:-2], branching.shape[-1]
    of_layer = (None,) * (structure.depth + 1 - len(grads)) + grads
    leaf = of_layer[-1]
    values = branching.new_zeros((*lead, structure.n_leaves, batch)) if leaf is None else leaf
    for d, b in reversed(list(enumerate(_by_node(branching, structure)))):
        below = values.unfold(-2, window, stride).transpose(-1, -2)  # (..., nodes, window, batch)
        values = torch.mul(below.select(-2, 0), b.select(-2, 0))
        for j in range(1, window):
            values.addcmul_(below.select(-2, j), b.select(-2, j))
        yield d, b, values, below
        own = of_layer[d]
        if own is not None:
            values = values + own


def _by_node(branching: Tensor, structure: Structure) -> list[Tensor]:
    """The branching of each layer, (..., nodes, window, batch)."""
    parts = branching.split(structure.layer_branches, dim=-2) if structure.depth else ()
    return [part.unflatten(-2, (-1, structure.window)) for part in parts]
