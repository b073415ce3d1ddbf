"""Large buffers on a CPU that are used again, step after step.

What a step frees goes back to the system, which hands it out again only after clearing it; for a deep tree that takes a
fifth of the step. A buffer is lent for as long as its lease lives, and goes to the next who needs the same size.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch
from torch import Tensor

SMALLEST = 2**20  # bytes; below, the allocator keeps memory by itself
KEPT = 2  # buffers of one size: those of this step and those of the step before, whose graph may still be alive

_free: dict[tuple[int, torch.dtype], list[Tensor]] = {}


class Lease:
    """Holds a buffer; when the lease is gone, the buffer is free for others."""

    def __init__(self, buffer: Tensor) -> None:
        self.buffer = buffer

    def __del__(self) -> None:
        kept = _free.setdefault((self.buffer.numel(), self.buffer.dtype), [])
        if len(kept) < KEPT:
            kept.append(self.buffer)


def borrow(shape: Sequence[int], like: Tensor) -> tuple[Tensor, Lease | None]:
    """An uninitialised tensor, and the lease to keep for as long as it is used (none for a small one, or on a GPU)."""
    size = torch.Size(shape).numel()
    if like.device.type != "cpu" or size * like.element_size() < SMALLEST or torch.compiler.is_compiling():
        return like.new_empty(shape), None
    _keep_freed_memory()
    try:
        buffer = _free[size, like.dtype].pop()
    except LookupError:
        buffer = like.new_empty(size)
    return buffer.view(shape), Lease(buffer)


@functools.cache
def _keep_freed_memory() -> None:
    """Once a block of nearly 32 MB has been freed, glibc keeps blocks up to that size for the next who asks.

    The block is never touched, so it costs nothing; other allocators take no notice.
    """
    torch.empty(2**25 - 2**16, dtype=torch.uint8)
