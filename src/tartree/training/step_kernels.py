"""Triton kernels of a captured training step, which runs without the host."""

# Kernels are compiled from source, not run: annotations and types are Triton's own.
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def gather(x, target, order, clock, x_out, target_out, index, n_batches, size, n_features, FEATURES: tl.constexpr):
    """Find the row of the table for a row of the batch, store its index, and copy it; one program a row."""
    i = tl.program_id(0).to(tl.int64)
    first = (tl.load(clock) % n_batches) * size
    row = tl.load(order + first + i)
    tl.store(index + i, row)
    tl.store(target_out + i, tl.load(target + row))
    for start in range(0, n_features, FEATURES):
        features = start + tl.arange(0, FEATURES)
        mask = features < n_features
        tl.store(x_out + i * n_features + features, tl.load(x + row * n_features + features, mask=mask), mask=mask)


@triton.jit
def advance(clock, rate_table, rates, loss, losses, n_batches, share, n_members, MEMBERS: tl.constexpr):
    """Add the loss of a step, and set the learning rate of the next."""
    step = tl.load(clock)
    members = tl.arange(0, MEMBERS)
    mask = members < n_members
    position = losses + (step // n_batches) * n_members + members
    total = tl.load(position, mask=mask, other=0.0) + share * tl.load(loss + members, mask=mask, other=0.0)
    tl.store(position, total, mask=mask)
    tl.store(clock, step + 1)
    numbers = tl.arange(0, 4)
    tl.store(rates + numbers, tl.load(rate_table + (step + 1) * 4 + numbers))


@triton.jit
def _update(program, parameter, gradient, mean, square, rates, size, decay, SIZE: tl.constexpr):
    i = program.to(tl.int64) * SIZE + tl.arange(0, SIZE)
    mask = i < size
    rate, step_size, scale = tl.load(rates), tl.load(rates + 1), tl.load(rates + 2)
    g = tl.load(gradient + i, mask=mask, other=0.0).to(tl.float32)
    m = tl.load(mean + i, mask=mask, other=0.0)
    v = tl.load(square + i, mask=mask, other=0.0)
    p = tl.load(parameter + i, mask=mask, other=0.0)
    m += 0.1 * (g - m)
    v += 0.001 * (g * g - v)
    p -= p * (rate * decay) + step_size * m / (tl.sqrt(v) * scale + 1e-8)
    tl.store(parameter + i, p, mask=mask)
    tl.store(mean + i, m, mask=mask)
    tl.store(square + i, v, mask=mask)


@triton.jit
def adam(
    rates,
    parameter_0, gradient_0, mean_0, square_0, size_0, decay_0, programs_0,
    parameter_1, gradient_1, mean_1, square_1, size_1, decay_1, programs_1,
    parameter_2, gradient_2, mean_2, square_2, size_2, decay_2, programs_2,
    parameter_3, gradient_3, mean_3, square_3, size_3, decay_3,
    SIZE: tl.constexpr,
):  # fmt: skip
    """Update four tensors at once by Adam with decoupled weight decay."""
    program = tl.program_id(0)
    if program < programs_0:
        _update(program, parameter_0, gradient_0, mean_0, square_0, rates, size_0, decay_0, SIZE)
    elif program < programs_1:
        _update(program - programs_0, parameter_1, gradient_1, mean_1, square_1, rates, size_1, decay_1, SIZE)
    elif program < programs_2:
        _update(program - programs_1, parameter_2, gradient_2, mean_2, square_2, rates, size_2, decay_2, SIZE)
    else:
        _update(program - programs_2, parameter_3, gradient_3, mean_3, square_3, rates, size_3, decay_3, SIZE)
