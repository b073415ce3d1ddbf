"""Perceptron leaves on a CPU, a few at a time: intermediate results stay in the cache until the backward pass.

All leaves at once write tensors of (members, leaves, hidden, batch) to memory, read them for each small operation, and
read them again backwards; that takes many times longer than the products. In Eq. 4 the gradient of a leaf's cost is
its arrival, independent of the other leaves, so a few leaves can go forwards and backwards before the next begin.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch
from torch import Tensor

from tartree.nn.leaves import MLPLeaf
from tartree.nn.piecewise_leaf import PieceLeaf
from tartree.nn.products import GroupedMLP

#: Elements of a tensor of hidden units, about; several of them are in use at a time.
BLOCK = 2**18
LEVELS = 256  # fractions of dropout are rounded to one over this

#: From the raw output of some leaves, (1, batch, leaves, logits), and the indices of member and leaves: its gradient.
CostGradient = Callable[[Tensor, int, slice], Tensor]
Gradients = tuple[list[Tensor], list[Tensor]]  # of the weights and the biases of a `GroupedMLP`


@torch.no_grad()
def leaf_gradients(
    leaf: MLPLeaf | PieceLeaf, x: Tensor, cost_gradient: CostGradient, n_threads: int = 1
) -> list[Tensor]:
    """Compute all leaves, and return the gradients of their parameters.

    Parameters
    ----------
    leaf : MLPLeaf or PieceLeaf
        With at least two layers.
    x : Tensor of shape (batch, features) or (tables, batch, features), as for `affine`
    cost_gradient : callable
        ``cost_gradient(leaf_logits, member, leaves)`` gives the gradient by the raw output of the leaves of a block,
        both (1, batch, leaves of the block, logits).
    n_threads : int
        Blocks that are computed at the same time; see `one_thread`.

    Returns
    -------
    list of Tensor
        In the order of ``leaf.mlp.parameters()``.
    """
    mlp, x = leaf.mlp, leaf.expand(x) if isinstance(leaf, PieceLeaf) else x
    gradients = [torch.empty_like(p) for p in mlp.weights], [torch.empty_like(p) for p in mlp.biases]
    _all_blocks(mlp, x, cost_gradient, gradients, n_threads)
    return [*gradients[0], *gradients[1]]


def _all_blocks(mlp: GroupedMLP, x: Tensor, cost_gradient: CostGradient, gradients: Gradients, n_threads: int) -> None:
    """Write the gradients, block by block."""
    members, groups = mlp.weights[0].shape[0], len(mlp.sizes)
    size = max(1, min(groups, BLOCK // (mlp.hidden * x.shape[-2])))
    dropped = round(mlp.dropout * LEVELS) if mlp.training else 0
    seed = int(torch.randint(2**62, (1,))) if dropped else 0

    def compute(block: tuple[int, int]) -> None:
        member, first = block
        rows = x if x.dim() == 2 else x[member * len(x) // members]  # (batch, features)
        # A generator for each block, so that their order does not matter.
        generator = torch.Generator().manual_seed(seed + member * groups + first)
        leaves = slice(first, min(first + size, groups))
        with torch.no_grad():
            _block(mlp, rows, member, leaves, dropped, generator, cost_gradient, gradients)

    blocks = [(member, first) for member in range(members) for first in range(0, groups, size)]
    if min(n_threads, len(blocks)) == 1:
        for block in blocks:
            compute(block)
        return
    # Whole blocks side by side: within one, threads would wait for each other after every operation.
    for _ in _pool(n_threads, os.getpid()).map(compute, blocks):
        pass


_reserved: list[int] = []  # threads for blocks, of the nested contexts


@contextmanager
def one_thread() -> Iterator[int]:
    """Run operations on one thread each, and yield the number of threads before, which blocks use.

    Around a whole training it keeps torch's threads asleep, which would otherwise busy-wait and take the cores from
    the blocks.
    """
    before = torch.get_num_threads()
    n_threads = _reserved[-1] if _reserved else before
    _reserved.append(n_threads)
    torch.set_num_threads(1)
    try:
        yield n_threads
    finally:
        _reserved.pop()
        torch.set_num_threads(before)


@functools.lru_cache(maxsize=4)
def _pool(n_threads: int, process: int) -> ThreadPoolExecutor:
    """Return threads of this process: a child has none of those of its parent."""
    return ThreadPoolExecutor(n_threads, "leaves", initializer=torch.set_num_threads, initargs=(1,))


def _block(
    mlp: GroupedMLP,
    x: Tensor,
    member: int,
    leaves: slice,
    dropped: int,
    generator: torch.Generator,
    cost_gradient: CostGradient,
    gradients: Gradients,
) -> None:
    """Compute some leaves of one member, forwards and backwards. `dropped` of 256 units are left out."""
    weights, biases = _views(mlp, [p.detach() for p in mlp.weights], [p.detach() for p in mlp.biases], member, leaves)
    scale = LEVELS / (LEVELS - dropped)  # of the units that are kept
    features = x.t().unsqueeze(0).expand(len(weights[0]), -1, -1)
    units, masks = [features], []
    for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        z = torch.baddbmm(bias.unsqueeze(-1), weight, units[-1], alpha=scale if layer else 1.0)
        if layer == len(weights) - 1:
            break
        torch.nn.functional.elu(z, inplace=True)
        if dropped:
            mask = _draw_mask(z, dropped, generator)
            z.mul_(mask)
            masks.append(mask)
        units.append(z)  # (leaves, hidden, batch)
    leaf_logits = z.permute(2, 0, 1).unsqueeze(0)  # (1, batch, leaves, logits)
    gradient = cost_gradient(leaf_logits, member, leaves).squeeze(0).permute(1, 2, 0)  # (leaves, logits, batch)
    weight_gradients, bias_gradients = _views(mlp, *gradients, member, leaves)
    for layer in reversed(range(len(weights))):
        factor = scale if layer else 1.0
        bias_gradients[layer].copy_(gradient.sum(-1))
        torch.baddbmm(
            weight_gradients[layer], gradient, units[layer].transpose(1, 2), beta=0.0, alpha=factor,
            out=weight_gradients[layer],
        )  # fmt: skip
        if not layer:
            return
        below = torch.bmm(weights[layer].transpose(1, 2), gradient)
        if dropped:
            below.mul_(masks[layer - 1])
        if factor != 1.0:
            below.mul_(factor)
        gradient = torch.ops.aten.elu_backward(below, 1.0, 1.0, 1.0, True, units[layer])


def _views(
    mlp: GroupedMLP, weights: list[Tensor], biases: list[Tensor], member: int, leaves: slice
) -> tuple[list[Tensor], list[Tensor]]:
    """Return the weights, (leaves, outputs, inputs), and biases, (leaves, outputs), of a block as views."""
    groups = len(mlp.sizes)
    return (
        [weight[member].view(groups, -1, weight.shape[-1])[leaves] for weight in weights],
        [bias[member].view(groups, -1)[leaves] for bias in biases],
    )


def _draw_mask(like: Tensor, dropped: int, generator: torch.Generator) -> Tensor:
    """Return 1 for each unit that is kept and 0 for one that is dropped; random bytes are drawn eight at a time."""
    n = like.numel()
    drawn = torch.empty(-(-n // 8), dtype=torch.int64)
    drawn = drawn.random_(-(2**63), None, generator=generator).view(torch.uint8)[:n]  # all 64 bits
    return (drawn >= dropped).view(like.shape).to(like.dtype)
