"""Hidden units: bias, ELU and dropout in one pass over memory on a GPU, where perceptrons spend their time otherwise.

The backward pass draws the mask again from the seed, so no mask is kept, and needs the result only.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from tartree.ops.backend import takes_unit_kernels

BATCH_BLOCK = 512
LEVELS = 2**16  # shares of dropout are rounded to one over this


def activate(units: Tensor, bias: Tensor, dropout: float) -> Tensor:
    """``dropout(elu(units + bias))``; `units` may be written over.

    Parameters
    ----------
    units : Tensor of shape (members, groups, hidden, batch)
        The result of a product, which is not needed again.
    bias : Tensor of shape (members, groups, hidden) or (members, groups * hidden)
    dropout : float
        Share of units to drop; 0 in prediction.
    """
    if takes_unit_kernels(units):
        result: Tensor = FusedUnits.apply(units, bias, dropout)  # type: ignore[no-untyped-call]
        return result
    added = bias.view(units.shape[:-1]).unsqueeze(-1)
    units = units.add_(added) if units.dtype == bias.dtype else units + added
    return F.dropout(F.elu(units, inplace=True), dropout, training=dropout > 0)


class FusedUnits(torch.autograd.Function):
    """Computes `activate` by Triton, with random numbers from a seed that torch's generator draws."""

    @staticmethod
    def forward(ctx: Any, units: Tensor, bias: Tensor, dropout: float) -> Tensor:
        from tartree.nn import unit_kernels

        units, bias = units.contiguous(), bias.contiguous()
        # Without dropout the seed is not read.
        seed = torch.randint(2**31, (1,), device=units.device) if dropout else units
        outcome = torch.empty_like(units)
        unit_kernels.forward[_grid(units)](
            units, bias, seed, outcome, *_numbers(units, dropout), DROP=dropout > 0, SIZE=BATCH_BLOCK
        )
        ctx.save_for_backward(outcome, seed if dropout else outcome)
        ctx.dropout, ctx.shape, ctx.dtype = dropout, bias.shape, bias.dtype
        return outcome

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        from tartree.nn import unit_kernels

        outcome, seed = ctx.saved_tensors
        grid = _grid(outcome)
        units_gradient = torch.empty_like(outcome)
        parts = torch.empty(grid[1], grid[0] * 8, device=outcome.device)
        unit_kernels.backward[grid](
            outcome, gradient.contiguous(), seed, units_gradient, parts, *_numbers(outcome, ctx.dropout),
            DROP=ctx.dropout > 0, SIZE=BATCH_BLOCK,
        )  # fmt: skip
        return units_gradient, parts.sum(0)[: ctx.shape.numel()].view(ctx.shape).to(ctx.dtype), None


def _grid(units: Tensor) -> tuple[int, int]:
    rows = units.numel() // units.shape[-1]
    return -(-rows // 8), -(-units.shape[-1] // BATCH_BLOCK)


def _numbers(units: Tensor, dropout: float) -> tuple[int, int, int, float]:
    """Return rows, batch, the bound below which a random number drops a unit, and the factor of the others."""
    least = round(dropout * LEVELS)
    return units.numel() // units.shape[-1], units.shape[-1], least, LEVELS / (LEVELS - least)
