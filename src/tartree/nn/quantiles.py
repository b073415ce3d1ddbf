"""Quantiles of mixtures of Gaussians."""

from __future__ import annotations

import torch
from torch import Tensor


def mixture_quantiles(arrival: Tensor, mean: Tensor, spread: Tensor, levels: Tensor) -> Tensor:
    """Return quantiles of the mixture of all members' leaves, (rows, quantiles, targets), by bisection.

    `arrival` is (members, rows, leaves); `mean` and `spread` are (members, rows or 1, leaves, targets).
    """
    members, rows, _ = arrival.shape
    share = (arrival / members).permute(1, 0, 2).reshape(rows, 1, -1, 1)  # (rows, 1, components, 1)
    mean, spread = (
        v.expand(-1, rows, -1, -1).permute(1, 0, 2, 3).reshape(rows, 1, -1, v.shape[-1]) for v in (mean, spread)
    )
    reach = 10 * spread  # a level as far out as 1e-20 lies within
    low = (mean - reach).amin(2).expand(-1, len(levels), -1).clone()  # (rows, quantiles, targets)
    high = (mean + reach).amax(2).expand(-1, len(levels), -1).clone()
    target_levels = levels[None, :, None]
    for _ in range(60):
        middle = (low + high) / 2
        below = (share * torch.special.ndtr((middle.unsqueeze(2) - mean) / spread)).sum(2)
        low, high = torch.where(below < target_levels, middle, low), torch.where(below < target_levels, high, middle)
    return (low + high) / 2
