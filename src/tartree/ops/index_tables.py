"""Index tables that are copied to a device once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch

Table = TypeVar("Table")


def kept_on_device(function: Callable[..., Table]) -> Callable[..., Table]:
    """Remember the results of ``function(*key, device)``.

    A captured CUDA graph cannot hold copies from the host, and reads its tables at the addresses that they had when it
    was captured. So on a GPU tables are kept for good; on a CPU, the most recent ones.

    >>> @kept_on_device
    ... def numbers(count, device):
    ...     return torch.arange(count, device=device)
    >>> numbers(3, torch.device("cpu")) is numbers(3, torch.device("cpu"))
    True
    """
    recent, kept = functools.lru_cache(maxsize=64)(function), functools.cache(function)

    @functools.wraps(function)
    def remembered(*key: Any) -> Table:
        device: torch.device = key[-1]
        return recent(*key) if device.type == "cpu" else kept(*key)

    return remembered
