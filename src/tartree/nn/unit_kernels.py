"""Triton kernels of hidden units. A program takes eight rows of units and a block of the batch.

Eight, since one call of the random generator gives four numbers of 32 bits: eight of 16, which is enough to decide what
is dropped. Random numbers would take longer than reading and writing otherwise.
"""

# Kernels are compiled from source, not run: annotations and types are Triton's own.
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _kept(a, b, c, d, k: tl.constexpr, least):
    """Which units of row k are kept."""
    if k < 2:
        bits = a
    elif k < 4:
        bits = b
    elif k < 6:
        bits = c
    else:
        bits = d
    return ((bits.to(tl.uint32) >> (16 * (k % 2))) & 0xFFFF).to(tl.int32) >= least


@triton.jit
def forward(units, bias, seed, outcome, n_rows, n_batch, least, scale, DROP: tl.constexpr, SIZE: tl.constexpr):
    """Bias, ELU, dropout."""
    columns = tl.program_id(1) * SIZE + tl.arange(0, SIZE)
    if DROP:
        a, b, c, d = tl.randint4x(tl.load(seed), tl.program_id(0) * n_batch + columns)
    for k in tl.static_range(8):
        row = tl.program_id(0) * 8 + k
        mask = columns < tl.where(row < n_rows, n_batch, 0)
        position = row.to(tl.int64) * n_batch + columns
        z = tl.load(units + position, mask=mask, other=0.0).to(tl.float32)
        z += tl.load(bias + tl.minimum(row, n_rows - 1)).to(tl.float32)
        y = tl.where(z > 0, z, tl.exp(tl.minimum(z, 0.0)) - 1)
        if DROP:
            y = tl.where(_kept(a, b, c, d, k, least), y * scale, 0.0)
        tl.store(outcome + position, y, mask=mask)


@triton.jit
def backward(
    outcome, gradient, seed, units_gradient, bias_parts, n_rows, n_batch, least, scale,
    DROP: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """The gradient of units, and what this block adds to that of the biases, (blocks, rows up to eight more)."""
    columns = tl.program_id(1) * SIZE + tl.arange(0, SIZE)
    if DROP:
        a, b, c, d = tl.randint4x(tl.load(seed), tl.program_id(0) * n_batch + columns)
    for k in tl.static_range(8):
        row = tl.program_id(0) * 8 + k
        mask = columns < tl.where(row < n_rows, n_batch, 0)
        position = row.to(tl.int64) * n_batch + columns
        y = tl.load(outcome + position, mask=mask, other=0.0).to(tl.float32) / scale
        g = tl.load(gradient + position, mask=mask, other=0.0).to(tl.float32) * scale
        g *= tl.where(y > 0, 1.0, y + 1)  # the slope of ELU from its value
        if DROP:
            g = tl.where(_kept(a, b, c, d, k, least), g, 0.0)
        tl.store(units_gradient + position, g, mask=mask)
        tl.store(bias_parts + tl.program_id(1) * tl.num_programs(0) * 8 + row, tl.sum(g))
