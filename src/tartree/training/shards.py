"""Shards: the order of rows in a stream, the same for any number of workers.

The blocks of a table are dealt to a fixed number of shards. In each epoch a shard shuffles the order of its blocks,
reads them one after the other into a bounded buffer, and hands out a share of its shuffled rows in every step. The rows
of a step are what all shards hand out. Worker `w` of `k` serves the shards `w`, `w + k`, and so on.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Shards of a stream, and so the most workers of a training.
SHARDS = 8


@dataclass(frozen=True)
class Chunk:
    """Encoded rows as arrays, with a fixed random number of each row."""

    x: NDArray[np.float32]  # (rows, features)
    target: NDArray[np.generic]  # (rows, ...)
    weight: NDArray[np.float32] | None  # (rows,)
    draw: NDArray[np.float64]  # (rows,), from 0 to 1

    def take(self, rows: NDArray[np.generic] | slice) -> Chunk:
        weight = None if self.weight is None else self.weight[rows]
        return Chunk(self.x[rows], self.target[rows], weight, self.draw[rows])

    def copy_from(self, other: Chunk) -> None:
        """Overwrite the rows with those of another chunk."""
        self.x[:], self.target[:], self.draw[:] = other.x, other.target, other.draw
        if self.weight is not None and other.weight is not None:
            self.weight[:] = other.weight

    def __len__(self) -> int:
        return len(self.x)


def concatenate_chunks(chunks: Sequence[Chunk]) -> Chunk:
    """Concatenate chunks, at least one."""
    if len(chunks) == 1:
        return chunks[0]
    weights = [chunk.weight for chunk in chunks if chunk.weight is not None]
    return Chunk(
        np.concatenate([chunk.x for chunk in chunks]),
        np.concatenate([chunk.target for chunk in chunks]),
        np.concatenate(weights) if weights else None,
        np.concatenate([chunk.draw for chunk in chunks]),
    )


@dataclass(frozen=True)
class Shards:
    """The blocks of each shard, and the number of its rows to learn from.

    Examples
    --------
    >>> Shards.deal([5, 4, 3, 2], 2)
    Shards(blocks=((0, 3), (1, 2)), rows=(7, 7))
    """

    blocks: tuple[tuple[int, ...], ...]
    rows: tuple[int, ...]

    @classmethod
    def deal(cls, rows: Sequence[int], n_shards: int = SHARDS) -> Shards:
        """Assign blocks of so many rows, the largest first, to the shard with the fewest rows; no shard is empty."""
        n_shards = max(1, min(n_shards, len(rows)))
        shards = [(0, shard) for shard in range(n_shards)]
        dealt: list[list[int]] = [[] for _ in range(n_shards)]
        for block in sorted(range(len(rows)), key=lambda block: (-rows[block], block)):
            total, shard = heapq.heappop(shards)
            dealt[shard].append(block)
            heapq.heappush(shards, (total + rows[block], shard))
        blocks = tuple(tuple(sorted(shard_blocks)) for shard_blocks in dealt)
        return cls(blocks, tuple(sum(rows[block] for block in shard_blocks) for shard_blocks in blocks))

    def count(self, rows: Mapping[int, int]) -> Shards:
        """Return the same shards with other numbers of rows of each block."""
        return Shards(self.blocks, tuple(sum(rows[block] for block in shard_blocks) for shard_blocks in self.blocks))

    def share(self, shard: int, step: int, n_steps: int) -> int:
        """Count the rows that a shard contributes to a step; all shards end together."""
        rows = self.rows[shard]
        return rows * (step + 1) // n_steps - rows * step // n_steps


class Shard:
    """The rows of one shard in one epoch, shuffled through a buffer.

    Parameters
    ----------
    blocks : sequence of int
    read : callable
        Yields the rows of a block to learn from, chunk by chunk.
    buffer_rows : int
        Rows that are shuffled together. Half of them are returned before more are read.
    rng : numpy.random.Generator
    """

    def __init__(
        self,
        blocks: Sequence[int],
        read: Callable[[int], Iterator[Chunk]],
        buffer_rows: int,
        rng: np.random.Generator,
    ) -> None:
        order = rng.permutation(len(blocks)).tolist()
        self._chunks = (chunk for index in order for chunk in read(blocks[index]))
        self._buffer_rows, self._rng = buffer_rows, rng
        self._rest: Chunk | None = None  # in the buffer, to be shuffled again
        self._ready: Chunk | None = None
        self._n_taken = 0  # of the ready rows

    def take(self, n_rows: int) -> list[Chunk]:
        """Return the next rows, in one or several chunks."""
        taken = []
        while n_rows:
            if self._ready is None or self._n_taken == len(self._ready):
                self._refill()
            assert self._ready is not None
            chunk = self._ready.take(slice(self._n_taken, self._n_taken + n_rows))
            self._n_taken += len(chunk)
            n_rows -= len(chunk)
            taken.append(chunk)
        return taken

    def finish(self) -> None:
        """Read to the end: rows that are held out may follow the last."""
        for chunk in self._chunks:
            if len(chunk):
                raise RuntimeError("a shard must hold as many rows as were counted, got more")

    def _refill(self) -> None:
        waiting = [] if self._rest is None else [self._rest]
        n_waiting = sum(map(len, waiting))
        ended = True
        for chunk in self._chunks:
            if len(chunk):
                waiting.append(chunk)
                n_waiting += len(chunk)
            if n_waiting >= self._buffer_rows:
                ended = False
                break
        if not n_waiting:
            raise RuntimeError("a shard must hold as many rows as were counted, got fewer")
        order = self._rng.permutation(n_waiting)
        n_ready = n_waiting if ended else max(1, n_waiting - self._buffer_rows // 2)
        pool = concatenate_chunks(waiting)
        self._ready, self._n_taken = pool.take(order[:n_ready]), 0
        self._rest = None if ended else pool.take(order[n_ready:])
