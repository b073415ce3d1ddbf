"""Large buffers on a CPU that are reused, step after step.

Memory that a step frees goes back to the system, which clears it before the next use; for a deep tree that takes a
fifth of the step. A buffer is lent for as long as its lease lives, then reused for about the same size.
No more is held than was lent at once of late: the least recently used goes first, and all of it after a training.
"""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Sequence

import torch
from torch import Tensor

SMALLEST = 2**20  # bytes; below, the allocator keeps memory by itself
LATELY = 256  # loans, of which a step takes a few


class _Pool:
    """Holds free buffers."""

    def __init__(self) -> None:
        self.returned: deque[Tensor] = deque()  # leases may end at any time, also within a loan: they only append
        self.free: list[Tensor] = []  # the least recently used first
        self.lent = 0  # bytes
        self.loans = 0
        self.peaks = (0, 0)  # bytes lent at once: in these loans, and in those before
        self.lock = threading.Lock()

    def take(self, size: int, like: Tensor) -> Tensor:
        """Return a buffer of at least `size` elements."""
        quantum = max(1, 1 << (size.bit_length() - 4))  # sizes that differ a little are one
        size = -(-size // quantum) * quantum
        with self.lock:
            while self.returned:
                self.free.append(self.returned.popleft())
                self.lent -= self.free[-1].nbytes
            matching = [
                i for i, buffer_ in enumerate(self.free) if buffer_.numel() == size and buffer_.dtype == like.dtype
            ]
            buffer = self.free.pop(matching[-1]) if matching else like.new_empty(size)
            self.lent += buffer.nbytes
            self.loans += 1
            now, before = self.peaks if self.loans % LATELY else (0, self.peaks[0])
            self.peaks = max(now, self.lent), before
            held = self.lent + sum(b.nbytes for b in self.free)
            while self.free and held > max(self.peaks):
                held -= self.free.pop(0).nbytes
        return buffer

    def release(self) -> None:
        with self.lock:
            while self.returned:
                self.lent -= self.returned.popleft().nbytes
            self.free.clear()
            self.peaks = self.lent, 0


_pool = _Pool()


class Lease:
    """Holds a buffer; when the lease is deleted, the buffer is free."""

    def __init__(self, buffer: Tensor) -> None:
        self.buffer = buffer

    def __del__(self) -> None:
        _pool.returned.append(self.buffer)


def borrow(shape: Sequence[int], like: Tensor) -> tuple[Tensor, Lease | None]:
    """Return an uninitialised tensor, and the lease to keep while it is used (None if small, or on a GPU)."""
    if not is_worth_keeping(shape, like):
        return like.new_empty(shape), None
    _keep_freed_memory()
    size = torch.Size(shape).numel()
    buffer = _pool.take(size, like)
    return buffer[:size].view(shape), Lease(buffer)


def is_worth_keeping(shape: Sequence[int], like: Tensor) -> bool:
    """Whether memory of this size takes long to allocate."""
    large = torch.Size(shape).numel() * like.element_size() >= SMALLEST
    return large and like.device.type == "cpu" and not torch.compiler.is_compiling()


def release() -> None:
    """Free all memory that is not lent."""
    _pool.release()


@functools.cache
def _keep_freed_memory() -> None:
    """Make glibc keep freed blocks of up to 32 MB: it does once a block of nearly that size has been freed.

    The block is never touched, so it costs nothing; other allocators are not affected.
    """
    torch.empty(2**25 - 2**16, dtype=torch.uint8)
