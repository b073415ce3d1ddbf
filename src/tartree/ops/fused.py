"""The operation on a GPU: Triton kernels that walk a tree in registers; logits are read from memory once, then cached.

Beside `arrival`, which other backends have too, two functions save the most: `expected_cost` goes from logits to the
loss of Eq. 4 and its gradient, and `probabilities` from logits to a prediction.
`backend` tells when it is used; `kernels` has the kernels themselves.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tartree.ops.backend import binary_tiers
from tartree.structure import Structure

UNROLLED_CLASSES = 16  # of a prediction; for more, a loop


class CostGradient(NamedTuple):
    """A loss and its gradient: each part has the shape of its tensor."""

    loss: Tensor  # (members,)
    logits: Tensor  # (members, batch, logits)
    bias: Tensor | None  # (members, logits)
    numbers: Tensor  # (members, batch or 1, leaves, classes)
    numbers_bias: Tensor | None  # (members, leaves, classes)


def arrival(logits: Tensor, structure: Structure, layers: bool = False) -> list[Tensor]:
    """Return the arrival at the leaves from logits, (..., logits)."""
    if layers:
        raise ValueError("the fused backend returns the arrival at the leaves only, got layers=True; use 'native'")
    rows = logits.reshape(-1, logits.shape[-2] if logits.dim() > 1 else 1, logits.shape[-1])
    result: Tensor = _Arrival.apply(_nodes_first(rows), structure)  # type: ignore[no-untyped-call]
    return [result.transpose(-1, -2).reshape(*logits.shape[:-1], structure.n_leaves).to(logits.dtype)]


def expected_cost(
    logits: Tensor,
    bias: Tensor | None,
    numbers: Tensor,
    numbers_bias: Tensor | None,
    target: Tensor,
    share: Tensor | None,
    structure: Structure,
) -> CostGradient:
    """Compute Eq. 4 for classes, and its gradient.

    Parameters
    ----------
    logits : Tensor of shape (members, batch, logits)
    bias : Tensor of shape (members, logits), optional
        Added to the logits here, so that their product is not written twice.
    numbers : Tensor of shape (members, batch or 1, leaves, classes)
        Class logits of each leaf.
    numbers_bias : Tensor of shape (members, leaves, classes), optional
        Added to the class logits if they differ by row.
    target : Tensor of shape (batch,) or (members, batch)
    share : Tensor of shape (members or 1, batch), optional
        Of each row in the mean; even by default.
    structure : Structure
    """
    constant = numbers.shape[1] == 1
    rows, n_classes = _nodes_first(logits), numbers.shape[-1]
    members, _, batch = rows.shape
    leaf_logits = numbers.movedim(1, -1).contiguous()  # (members, leaves, classes, batch or 1)
    plan = _plan(structure, batch, members, n_classes)
    rows_gradient = torch.empty_like(rows)
    gradient_shape = (members, structure.n_leaves, n_classes) if constant else leaf_logits.shape
    leaf_logits_gradient = rows.new_empty(gradient_shape, dtype=leaf_logits.dtype)
    bias_gradient = None if bias is None else torch.empty_like(bias)
    numbers_bias_gradient = None if numbers_bias is None else torch.empty_like(numbers_bias)
    loss = rows.new_empty(members, dtype=torch.float32)

    def parts(*shape: int) -> Tensor:
        return rows.new_empty((plan.n_blocks, *shape), dtype=torch.float32)

    bias_parts = None if bias is None else parts(*bias.shape)
    leaf_parts = None
    if constant or numbers_bias is not None:
        leaf_parts = parts(members, structure.n_leaves, n_classes)
    loss_parts = rows.new_empty((members, plan.n_blocks), dtype=torch.float32)
    plan.run(
        "CONSTANT" if constant else "NUMBERS",
        logits=rows,
        bias=bias,
        share=share,
        target=target,
        numbers=leaf_logits,
        numbers_bias=numbers_bias,
        logits_gradient=rows_gradient,
        bias_parts=bias_parts,
        numbers_gradient=leaf_parts if constant else leaf_logits_gradient,
        numbers_bias_parts=leaf_parts,
        loss_parts=loss_parts,
        even_share=1 / max(batch, 1),
    )
    summed = leaf_logits_gradient if constant else numbers_bias_gradient
    _finish(plan, bias_parts, bias_gradient, leaf_parts, leaf_logits, summed, loss_parts, loss, constant, n_classes)
    return CostGradient(
        loss,
        rows_gradient.transpose(-1, -2),
        bias_gradient,
        leaf_logits_gradient.unsqueeze(1) if constant else leaf_logits_gradient.movedim(-1, 1),
        numbers_bias_gradient,
    )


def probabilities(
    logits: Tensor, bias: Tensor | None, numbers: Tensor, numbers_bias: Tensor | None, structure: Structure
) -> Tensor:
    """Return class probabilities, (members, batch, classes): the mean of the leaves weighted by arrival (Eq. 5)."""
    constant = numbers.shape[1] == 1
    rows, n_classes = _nodes_first(logits), numbers.shape[-1]
    members, _, batch = rows.shape
    plan = _plan(structure, batch, members, n_classes, predicts=True, by_row=not constant)
    out = rows.new_empty((plan.n_parts, members, batch, n_classes), dtype=torch.float32)
    plan.run(
        "PREDICT_CONSTANT" if constant else "PREDICT_NUMBERS",
        logits=rows,
        bias=bias,
        numbers=numbers.movedim(1, -1).contiguous(),
        numbers_bias=numbers_bias,
        out=out,
    )
    return out[0] if plan.n_parts == 1 else out.sum(0)


def probabilities_of_best(
    logits: Tensor, bias: Tensor | None, numbers: Tensor, numbers_bias: Tensor | None, structure: Structure
) -> Tensor:
    """Return class probabilities, (members, batch, classes), at the leaf of the largest arrival (Eq. 6)."""
    from tartree.ops import kernels

    rows, n_classes = _nodes_first(logits), numbers.shape[-1]
    members, _, batch = rows.shape
    out = rows.new_empty((members, batch, n_classes), dtype=torch.float32)
    if not batch:
        return out
    plan = _plan(structure, batch, members, 1, predicts=True)
    largest = rows.new_empty((plan.n_parts, members, batch), dtype=torch.float32)
    leaf = torch.empty(largest.shape, dtype=torch.int64, device=rows.device)
    plan.run("BEST", logits=rows, bias=bias, numbers_gradient=leaf, out=largest)
    leaf_logits = numbers.movedim(1, -1).contiguous()
    kernels.pick[(-(-batch // 32), members)](
        largest, leaf, leaf_logits, leaf_logits if numbers_bias is None else numbers_bias, out, plan.n_parts,
        structure.n_leaves, batch,
        n_classes, CONSTANT_LEAVES=numbers.shape[1] == 1, HAS_NUMBERS_BIAS=numbers_bias is not None,
        CLASS_BLOCK=class_block(n_classes), ROWS=32, num_warps=1,
    )  # fmt: skip
    return out


class _Arrival(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, structure: Structure) -> Tensor:
        members, _, batch = rows.shape
        out = rows.new_empty((members, structure.n_leaves, batch), dtype=torch.float32)
        _plan(structure, batch, members, 1, predicts=True).run("ARRIVE", logits=rows, out=out)
        ctx.structure = structure
        ctx.save_for_backward(rows)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        if torch.is_grad_enabled():
            raise NotImplementedError(
                "the fused backend must be differentiated once, got create_graph=True; "
                "use ops.arrival(..., backend='reference')"
            )
        (rows,) = ctx.saved_tensors
        members, _, batch = rows.shape
        result = torch.empty_like(rows)
        plan = _plan(ctx.structure, batch, members, 1)
        plan.run("VALUES", logits=rows, numbers=gradient.contiguous(), logits_gradient=result)
        return result, None


def class_block(n_classes: int) -> int:
    """Return the columns for classes in a kernel: a power of two, and few different ones, since each compiles anew."""
    return max(16, 1 << (n_classes - 1).bit_length())


def _nodes_first(x: Tensor) -> Tensor:
    return x.transpose(-1, -2).contiguous()


class _Plan:
    """Cuts the work on a structure into programs."""

    def __init__(
        self, structure: Structure, batch: int, members: int, n_classes: int, predicts: bool, by_row: bool
    ) -> None:
        self.structure, self.batch, self.members, self.n_classes = structure, batch, members, n_classes
        self.is_binary = structure.is_binary
        self.class_block = class_block(n_classes)
        if self.is_binary:
            self.tiers, self.rows, self.together, self.warps = binary_tiers(structure.depth, predicts, by_row)
            self.n_parts = 1 << (structure.depth - self.tiers[0])
        else:
            self.rows, self.nodes, self.warps = 16, 64, 8
            self.n_parts = -(-structure.n_leaves // self.nodes)
        self.n_blocks = -(-batch // self.rows)

    def run(
        self,
        mode: str,
        *,
        logits: Tensor,
        bias: Tensor | None = None,
        share: Tensor | None = None,
        target: Tensor | None = None,
        numbers: Tensor | None = None,
        numbers_bias: Tensor | None = None,
        logits_gradient: Tensor | None = None,
        bias_parts: Tensor | None = None,
        numbers_gradient: Tensor | None = None,
        numbers_bias_parts: Tensor | None = None,
        loss_parts: Tensor | None = None,
        out: Tensor | None = None,
        even_share: float = 1.0,
    ) -> None:
        from tartree.ops import kernels

        if not self.batch:
            return
        structure, filler = self.structure, logits  # a pointer that is never read
        leaves = structure.n_leaves
        tensors = (bias, share, target, numbers, numbers_bias, logits_gradient, bias_parts, numbers_gradient)
        bias_, share_, target_, numbers_, numbers_bias_, gradient_, bias_parts_, numbers_gradient_ = (
            filler if x is None else x for x in tensors
        )
        flags = {
            "ROWS": self.rows,
            # Loops over classes are most of such a prediction; training, with other work to do, has one kernel for all.
            "CLASSES": self.n_classes if mode == "PREDICT_NUMBERS" and self.n_classes <= UNROLLED_CLASSES else 0,
            "CLASS_BLOCK": self.class_block,
            "HAS_BIAS": bias is not None,
            "HAS_NUMBERS_BIAS": numbers_bias is not None,
            "HAS_SHARE": share is not None,
            "num_warps": self.warps,
        }
        ends = [filler if x is None else x for x in (numbers_bias_parts, loss_parts, out)]
        share_stride = 0 if share is None or share.shape[0] == 1 else self.batch
        target_stride = 0 if target is None or target.dim() == 1 else self.batch
        number = getattr(kernels, mode)
        sizes = (self.n_classes, share_stride, target_stride, even_share)
        if not self.is_binary:
            n_all = sum(structure.widths)
            work = [
                torch.empty((self.members, n, self.batch), dtype=torch.float32, device=logits.device)
                for n in (structure.n_branches, n_all, n_all)
            ]
            kernels.layered[(self.n_blocks, 1, self.members)](
                logits, bias_, share_, target_, numbers_, numbers_bias_, gradient_, bias_parts_, numbers_gradient_,
                ends[0], *work, ends[1], ends[2], self.batch, structure.depth, structure.n_decisions, n_all, leaves,
                *sizes, WINDOW=structure.window, STRIDE=structure.stride, NODES=self.nodes, MODE=number,
                WITH_LOSS=loss_parts is not None, **flags,
            )  # fmt: skip
            return
        goes_up = mode in ("VALUES", "CONSTANT", "NUMBERS")
        top = structure.depth
        for levels in self.tiers if goes_up else self.tiers[:1]:
            top -= levels
            roots = filler
            if goes_up and top:
                roots = torch.empty((self.members, 1 << top, self.batch), dtype=torch.float32, device=logits.device)
            kernels.binary[(self.n_blocks, 1 << top, self.members)](
                logits, bias_, share_, target_, numbers_, numbers_bias_, gradient_, bias_parts_, numbers_gradient_,
                ends[0], roots, ends[1], ends[2], self.batch, structure.n_decisions, leaves, *sizes, TOP=top,
                LEVELS=levels, TOGETHER=self.together, MODE=number, WITH_LOSS=loss_parts is not None, **flags,
            )  # fmt: skip
            # The next tier: its leaves are the roots of this one, whose expected values have just been written.
            numbers_, leaves, number, flags["HAS_NUMBERS_BIAS"] = roots, 1 << top, kernels.VALUES, False


@functools.lru_cache(maxsize=256)
def _plan(
    structure: Structure, batch: int, members: int, n_classes: int, predicts: bool = False, by_row: bool = False
) -> _Plan:
    return _Plan(structure, batch, members, n_classes, predicts, by_row)


def _finish(
    plan: _Plan,
    bias_parts: Tensor | None,
    bias_gradient: Tensor | None,
    leaf_parts: Tensor | None,
    numbers: Tensor,
    leaf_gradient: Tensor | None,
    loss_parts: Tensor,
    loss: Tensor,
    constant: bool,
    n_classes: int,
) -> None:
    """Add up the partial sums of the programs."""
    from tartree.ops import kernels

    n_biases = 0 if bias_gradient is None else bias_gradient.numel()
    n_leaves = 0 if leaf_gradient is None else plan.members * plan.structure.n_leaves
    size, leaves = 128, max(1, 128 // plan.class_block)
    bias_programs, leaf_programs = -(-n_biases // size), -(-n_leaves // leaves)
    kernels.finish[(bias_programs + leaf_programs + plan.members,)](
        loss if bias_parts is None else bias_parts,
        loss if bias_gradient is None else bias_gradient,
        loss if leaf_parts is None else leaf_parts,
        numbers,
        loss if leaf_gradient is None else leaf_gradient,
        loss_parts,
        loss,
        plan.n_blocks,
        n_biases,
        n_leaves,
        bias_programs,
        leaf_programs,
        n_classes,
        CONSTANT_LEAVES=constant,
        CLASS_BLOCK=plan.class_block,
        SIZE=size,
        LEAVES=leaves,
        BLOCKS=16,
    )
