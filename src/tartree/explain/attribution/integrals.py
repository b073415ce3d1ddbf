"""Line integrals from a reference to a row share the change of a function among coordinates (Aumann and Shapley).

A function changes from ``phi(reference)`` to ``phi(row)``. Along the straight line between them, coordinate ``k``
contributes ``change_k * integral of d phi / d coordinate_k``; these parts add up to the whole change. The integral is
computed by Gauss-Legendre quadrature with increasing numbers of points, until the parts are complete.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

POINTS = (8, 16, 32, 64)
COMPLETE = 1e-7

#: Maximum number of elements of a tensor.
CHUNK_NUMBERS = 2**21

#: Gradients, (..., points, coordinates, outputs), at points: row indices, and positions from 0 to 1 on their lines.
Gradient = Callable[[Tensor, Tensor], Tensor]


def mean_gradient(gradient: Gradient, moves: Tensor, change: Tensor, points: tuple[int, ...] = POINTS) -> Tensor:
    """Return the mean gradient along the line, (..., rows, coordinates, outputs).

    `moves` are the changes of the coordinates, (..., rows, coordinates), `change` that of the function, (..., rows,
    outputs). Rows that are complete after few points get no more.
    """
    rows = torch.arange(moves.shape[-2])
    result = moves.new_zeros((*moves.shape, change.shape[-1]))
    per_point = max(1, result.numel() // max(1, len(rows)))
    for count in points:
        if not len(rows):
            break
        mean = moves.new_zeros((*moves.shape[:-2], len(rows), *result.shape[-2:]))
        positions, weights = (torch.from_numpy(part) / 2 for part in np.polynomial.legendre.leggauss(count))
        together = max(1, CHUNK_NUMBERS // (per_point * len(rows)))
        for ways, shares in zip((positions + 0.5).split(together), weights.split(together), strict=True):
            slopes = gradient(rows.repeat(len(ways)), ways.repeat_interleave(len(rows)))
            mean += torch.einsum("q,...qrko->...rko", shares, slopes.unflatten(-3, (len(ways), len(rows))))
        result[..., rows, :, :] = mean
        covered = torch.einsum("...rk,...rko->...ro", moves[..., rows, :], mean)
        missing = (covered - change[..., rows, :]).abs().amax(-1)  # (..., rows)
        rows = rows[missing.reshape(-1, len(rows)).amax(0) > COMPLETE]
    return result


def completed(parts: Tensor, change: Tensor, moves: Tensor) -> Tensor:
    """Spread the missing part of the change, (rows, outputs), over the parts, (rows, features, outputs).

    It is due to rounding, or to a kink that the quadrature misses, and spread in proportion to their sizes or, if all
    are 0, to the moves of the features, (rows, features).
    """
    lacking = change - parts.sum(1)  # (rows, outputs)
    size = parts.abs()
    nothing = size.sum(1, keepdim=True) <= 1e-12 * lacking.abs().unsqueeze(1)
    size = torch.where(nothing, moves.abs().unsqueeze(-1).expand_as(size), size)
    share = size / size.sum(1, keepdim=True).clamp_min(1e-300)
    return parts + share * lacking.unsqueeze(1)
