"""Lanes: the order of rows in a stream, the same for any number of workers.

The blocks of a table are dealt to a fixed number of lanes. In each epoch a lane shuffles the order of its blocks,
reads them one after the other into a bounded buffer, and hands out a share of its shuffled rows in every step. The rows
of a step are what all lanes hand out. Worker `w` of `k` serves the lanes `w`, `w + k`, and so on.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Lanes of a stream, and so the most workers of a training.
LANES = 8


@dataclass(frozen=True)
class Piece:
    """Some rows as arrays: encoded, with a number of each row that is drawn once and for all."""

    x: NDArray[np.float32]  # (rows, features)
    target: NDArray[np.generic]  # (rows, ...)
    weight: NDArray[np.float32] | None  # (rows,)
    draw: NDArray[np.float64]  # (rows,), from 0 to 1

    def take(self, rows: NDArray[np.generic] | slice) -> Piece:
        weight = None if self.weight is None else self.weight[rows]
        return Piece(self.x[rows], self.target[rows], weight, self.draw[rows])

    def copy_from(self, other: Piece) -> None:
        """Write the rows of another piece over its own."""
        self.x[:], self.target[:], self.draw[:] = other.x, other.target, other.draw
        if self.weight is not None and other.weight is not None:
            self.weight[:] = other.weight

    def __len__(self) -> int:
        return len(self.x)


def joined(pieces: Sequence[Piece]) -> Piece:
    """Pieces, at least one of them, one below the other."""
    if len(pieces) == 1:
        return pieces[0]
    weights = [piece.weight for piece in pieces if piece.weight is not None]
    return Piece(
        np.concatenate([piece.x for piece in pieces]),
        np.concatenate([piece.target for piece in pieces]),
        np.concatenate(weights) if weights else None,
        np.concatenate([piece.draw for piece in pieces]),
    )


@dataclass(frozen=True)
class Lanes:
    """Which blocks belong to each lane, and how many rows it learns from.

    Examples
    --------
    >>> Lanes.deal([5, 4, 3, 2], 2)
    Lanes(blocks=((0, 3), (1, 2)), rows=(7, 7))
    """

    blocks: tuple[tuple[int, ...], ...]
    rows: tuple[int, ...]

    @classmethod
    def deal(cls, rows: Sequence[int], n_lanes: int = LANES) -> Lanes:
        """Blocks of so many rows, the largest first, each to the lane that has least; no lane stays without."""
        n_lanes = max(1, min(n_lanes, len(rows)))
        lanes = [(0, lane) for lane in range(n_lanes)]
        dealt: list[list[int]] = [[] for _ in range(n_lanes)]
        for block in sorted(range(len(rows)), key=lambda block: (-rows[block], block)):
            total, lane = heapq.heappop(lanes)
            dealt[lane].append(block)
            heapq.heappush(lanes, (total + rows[block], lane))
        blocks = tuple(tuple(sorted(own)) for own in dealt)
        return cls(blocks, tuple(sum(rows[block] for block in own) for own in blocks))

    def count(self, rows: Mapping[int, int]) -> Lanes:
        """The same lanes, where only so many rows of each block are learnt from."""
        return Lanes(self.blocks, tuple(sum(rows[block] for block in own) for own in self.blocks))

    def share(self, lane: int, step: int, n_steps: int) -> int:
        """Rows that a lane hands out in a step; all lanes end together."""
        rows = self.rows[lane]
        return rows * (step + 1) // n_steps - rows * step // n_steps


class Lane:
    """The rows of one lane in one epoch, shuffled through a buffer.

    Parameters
    ----------
    blocks : sequence of int
    read : callable
        Gives the rows of a block to learn from, piece by piece.
    buffer_rows : int
        Rows that are shuffled together. Half of them are handed out before others come in.
    rng : numpy.random.Generator
    """

    def __init__(
        self,
        blocks: Sequence[int],
        read: Callable[[int], Iterator[Piece]],
        buffer_rows: int,
        rng: np.random.Generator,
    ) -> None:
        order = rng.permutation(len(blocks)).tolist()
        self._pieces = (piece for place in order for piece in read(blocks[place]))
        self._buffer_rows, self._rng = buffer_rows, rng
        self._rest: Piece | None = None  # in the buffer, not to be handed out yet
        self._ready: Piece | None = None
        self._given = 0  # of the ready rows

    def take(self, n_rows: int) -> list[Piece]:
        """The next rows, in one piece or in several."""
        taken = []
        while n_rows:
            if self._ready is None or self._given == len(self._ready):
                self._refill()
            assert self._ready is not None
            some = self._ready.take(slice(self._given, self._given + n_rows))
            self._given += len(some)
            n_rows -= len(some)
            taken.append(some)
        return taken

    def finish(self) -> None:
        """Read what there is after the last row."""
        for piece in self._pieces:
            if len(piece):
                raise RuntimeError("a lane must hold as many rows as were counted, however: there are more")

    def _refill(self) -> None:
        waiting = [] if self._rest is None else [self._rest]
        n_waiting = sum(map(len, waiting))
        ended = True
        for piece in self._pieces:
            if len(piece):
                waiting.append(piece)
                n_waiting += len(piece)
            if n_waiting >= self._buffer_rows:
                ended = False
                break
        if not n_waiting:
            raise RuntimeError("a lane must hold as many rows as were counted, however: there are fewer")
        order = self._rng.permutation(n_waiting)
        n_ready = n_waiting if ended else max(1, n_waiting - self._buffer_rows // 2)
        pool = joined(waiting)
        self._ready, self._given = pool.take(order[:n_ready]), 0
        self._rest = None if ended else pool.take(order[n_ready:])
