"""Perceptron leaves on a CPU, a few leaves at a time: what they compute stays in the cache until its gradient is known.

All leaves at once write tensors of (members, leaves, hidden, batch) to memory, read them for each small operation, and
read them again backwards; that takes many times longer than the products. In Eq. 4 the gradient of a leaf's cost is
its arrival, whatever the other leaves say, so a few leaves can go forwards and backwards before the next begin.
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
from tartree.nn.pieces import PieceLeaf
from tartree.nn.products import GroupedMLP

#: Numbers of a tensor of hidden units, about; several of them are in use at a time.
BLOCK = 2**18
#: Below so many numbers of all hidden units of a layer, one block would do, and autograd takes no longer.
FEW = 2**19
LEVELS = 256  # shares of dropout are rounded to one over this

#: From the numbers of some leaves, (1, batch, leaves, numbers), and the places of member and leaves: the gradient.
Judge = Callable[[Tensor, int, slice], Tensor]


def suits(leaf: object, x: Tensor) -> bool:
    """Whether leaves are better computed a few at a time for such input."""
    if not isinstance(leaf, MLPLeaf | PieceLeaf) or type(leaf) not in (MLPLeaf, PieceLeaf):  # nor one made from them
        return False
    if x.device.type != "cpu" or x.dtype != torch.float32:
        return False
    mlp = leaf.mlp
    if len(mlp.weights) < 2 or mlp.weights[0].dtype != torch.float32 or torch.is_autocast_enabled("cpu"):
        return False
    if not all(parameter.requires_grad for parameter in mlp.parameters()):
        return False
    numbers: int = mlp.weights[0].shape[0] * mlp.weights[0].shape[1] * x.shape[-2]
    return numbers > FEW


@torch.no_grad()
def leave_leaf_gradient(leaf: MLPLeaf | PieceLeaf, x: Tensor, judge: Judge, n_threads: int = 1) -> None:
    """Compute all leaves, ask for the gradient of what they say, and leave that of their parameters in `grad`.

    Parameters
    ----------
    leaf : MLPLeaf or PieceLeaf
        With at least two layers.
    x : Tensor of shape (batch, features) or (tables, batch, features), as for `affine`
    judge : callable
        ``judge(numbers, member, leaves)`` gives the gradient, both (1, batch, leaves of the block, numbers).
    n_threads : int
        Blocks that are computed at the same time; see `one_thread`.
    """
    mlp, x = leaf.mlp, leaf.expand(x) if isinstance(leaf, PieceLeaf) else x
    before = [parameter.grad for parameter in mlp.parameters()]
    for parameter in mlp.parameters():
        parameter.grad = torch.empty_like(parameter)
    _all_blocks(mlp, x, judge, n_threads)
    for parameter, earlier in zip(mlp.parameters(), before, strict=True):
        if earlier is not None:  # as autograd does, what is there already is added to
            _gradient(parameter).add_(earlier)


def _all_blocks(mlp: GroupedMLP, x: Tensor, judge: Judge, n_threads: int) -> None:
    members, groups = mlp.weights[0].shape[0], len(mlp.sizes)
    size = max(1, min(groups, BLOCK // (mlp.hidden * x.shape[-2])))
    dropped = round(mlp.dropout * LEVELS) if mlp.training else 0
    seed = int(torch.randint(2**62, (1,))) if dropped else 0

    def compute(place: tuple[int, int]) -> None:
        member, first = place
        own = x if x.dim() == 2 else x[member * len(x) // members]  # (batch, features)
        # A generator of its own, so that it does not matter who comes first.
        generator = torch.Generator().manual_seed(seed + member * groups + first)
        with torch.no_grad():
            _block(mlp, own, member, slice(first, min(first + size, groups)), dropped, generator, judge)

    places = [(member, first) for member in range(members) for first in range(0, groups, size)]
    if min(n_threads, len(places)) == 1:
        for place in places:
            compute(place)
        return
    # Whole blocks side by side: within one, threads would wait for each other after every operation.
    for _ in _pool(n_threads, os.getpid()).map(compute, places):
        pass


_reserved: list[int] = []  # threads for blocks, of whoever asked last


@contextmanager
def one_thread() -> Iterator[int]:
    """Operations on one thread each, while blocks use as many as there were, which it tells.

    Around a whole training it keeps torch's own threads asleep, which would otherwise wait for work in a loop, and
    take the cores from the blocks.
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
    """Threads of this process: a child has none of those of its parent."""
    return ThreadPoolExecutor(n_threads, "leaves", initializer=torch.set_num_threads, initargs=(1,))


def _block(
    mlp: GroupedMLP, x: Tensor, member: int, leaves: slice, dropped: int, generator: torch.Generator, judge: Judge
) -> None:
    """Some leaves of one member, forwards and backwards. `dropped` of 256 units are left out."""
    weights, biases = _views(mlp, [p.detach() for p in mlp.weights], [p.detach() for p in mlp.biases], member, leaves)
    grown = LEVELS / (LEVELS - dropped)  # what is kept is multiplied by this
    features = x.t().unsqueeze(0).expand(len(weights[0]), -1, -1)
    units, masks = [features], []
    for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        z = torch.baddbmm(bias.unsqueeze(-1), weight, units[-1], alpha=grown if layer else 1.0)
        if layer == len(weights) - 1:
            break
        torch.nn.functional.elu(z, inplace=True)
        if dropped:
            mask = _draw_mask(z, dropped, generator)
            z.mul_(mask)
            masks.append(mask)
        units.append(z)  # (leaves, hidden, batch)
    said = z.permute(2, 0, 1).unsqueeze(0)  # (1, batch, leaves, numbers)
    gradient = judge(said, member, leaves).squeeze(0).permute(1, 2, 0)  # (leaves, numbers, batch)
    weight_gradients, bias_gradients = _views(
        mlp, [_gradient(p) for p in mlp.weights], [_gradient(p) for p in mlp.biases], member, leaves
    )
    for layer in reversed(range(len(weights))):
        factor = grown if layer else 1.0
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
    """Weights (leaves, outputs, inputs) and biases (leaves, outputs) of a block, as views."""
    groups = len(mlp.sizes)
    return (
        [weight[member].view(groups, -1, weight.shape[-1])[leaves] for weight in weights],
        [bias[member].view(groups, -1)[leaves] for bias in biases],
    )


def _gradient(parameter: Tensor) -> Tensor:
    assert parameter.grad is not None
    return parameter.grad


def _draw_mask(like: Tensor, dropped: int, generator: torch.Generator) -> Tensor:
    """1 for what is kept and 0 for what is dropped; random bytes come eight at a time."""
    n = like.numel()
    drawn = torch.empty(-(-n // 8), dtype=torch.int64)
    drawn = drawn.random_(-(2**63), None, generator=generator).view(torch.uint8)[:n]  # all 64 bits
    return (drawn >= dropped).view(like.shape).to(like.dtype)
