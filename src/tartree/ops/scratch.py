"""Large buffers on a CPU that are used again, step after step.

What a step frees goes back to the system, which hands it out again only after clearing it; for a deep tree that takes a
fifth of the step. A buffer is lent for as long as its lease lives, and goes to the next who needs about the same size.
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
    """Buffers that wait for the next who needs them."""

    def __init__(self) -> None:
        self.returned: deque[Tensor] = deque()  # leases may end at any time, also within a loan: they only append
        self.free: list[Tensor] = []  # the least recently used first
        self.lent = 0  # bytes
        self.loans = 0
        self.peaks = (0, 0)  # bytes lent at once: in these loans, and in those before
        self.lock = threading.Lock()

    def take(self, size: int, like: Tensor) -> Tensor:
        """A buffer of at least `size` numbers."""
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
    """Holds a buffer; when the lease is gone, the buffer is free for others."""

    def __init__(self, buffer: Tensor) -> None:
        self.buffer = buffer

    def __del__(self) -> None:
        _pool.returned.append(self.buffer)


def borrow(shape: Sequence[int], like: Tensor) -> tuple[Tensor, Lease | None]:
    """An uninitialised tensor, and the lease to keep for as long as it is used (none for a small one, or on a GPU)."""
    if not is_worth_keeping(shape, like):
        return like.new_empty(shape), None
    _keep_freed_memory()
    size = torch.Size(shape).numel()
    buffer = _pool.take(size, like)
    return buffer[:size].view(shape), Lease(buffer)


def is_worth_keeping(shape: Sequence[int], like: Tensor) -> bool:
    """Whether memory of this size takes long to come by."""
    large = torch.Size(shape).numel() * like.element_size() >= SMALLEST
    return large and like.device.type == "cpu" and not torch.compiler.is_compiling()


def release() -> None:
    """Give back all memory that is not lent."""
    _pool.release()


@functools.cache
def _keep_freed_memory() -> None:
    """Once a block of nearly 32 MB has been freed, glibc keeps blocks up to that size for the next who asks.

    The block is never touched, so it costs nothing; other allocators take no notice.
    """
    torch.empty(2**25 - 2**16, dtype=torch.uint8)
