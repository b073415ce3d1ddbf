"""Streams of rows that are read in the background, from a table that need not fit into memory."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tartree.training.batches import Batch, TensorRows
from tartree.training.jitter import CurveFeatures
from tartree.training.shards import Chunk, Shard, Shards, concatenate_chunks

Item = TypeVar("Item")

#: Rows in the buffers of all shards together, and the most bytes that they may take.
BUFFER_ROWS = 2**18
BUFFER_BYTES = 2**27
#: Batches that are prepared in advance, at most.
AHEAD = 16


class Blocks(Protocol):
    """A table in blocks, read and encoded on the CPU."""

    def read(self, block: int) -> Iterator[Chunk]:
        """Yield the rows of a block, chunk by chunk and always in the same order."""

    def empty(self) -> Chunk:
        """Return a chunk without rows, of the types that `read` yields."""


@dataclass(frozen=True)
class SplitFractions:
    """Fractions of rows that are held out, those with the lowest draws, and sampled, those with the highest."""

    held_out: float = 0.0
    sample: float = 0.0


class StreamRows:
    """Rows of blocks as a stream of batches, read by a thread in the background.

    Parameters
    ----------
    blocks : Blocks
    shards : Shards
        Their numbers of rows do not count held-out rows.
    fractions : SplitFractions
    seed : int
        Of the order of rows and of jitter.
    device : torch.device
        Device of the batches.
    served : sequence of int, optional
        The shards of this worker; by default all.
    is_number : array of bool of shape (values,), optional
        Whether a value gets noise; by default all.
    curves : CurveFeatures, optional
        How features are made from values; by default they are the values.

    Attributes
    ----------
    held_out : HeldOut
        Held-out rows; filled by the first epoch.
    sample : Chunk
        The sample of this worker's rows; filled by the first epoch.
    collected : bool
        Whether an epoch has been read.

    Examples
    --------
    >>> class Blocks:
    ...     def read(self, block):
    ...         x = np.full((4, 1), block, dtype=np.float32)
    ...         yield Chunk(x, x[:, 0], None, np.full(4, 0.5))
    ...
    ...     def empty(self):
    ...         return next(self.read(0)).take(slice(0))
    >>> rows = StreamRows(Blocks(), Shards.deal([4, 4], 2), SplitFractions(), seed=0, device=torch.device("cpu"))
    >>> [batch.x.sum().item() for batch in rows.epoch(0, n_steps=2, noise=0.0)]
    [2.0, 2.0]
    """

    def __init__(
        self,
        blocks: Blocks,
        shards: Shards,
        fractions: SplitFractions,
        *,
        seed: int,
        device: torch.device,
        served: Sequence[int] | None = None,
        is_number: NDArray[np.bool_] | None = None,
        curves: CurveFeatures | None = None,
    ) -> None:
        self.is_number, self.curves = is_number, curves
        self.blocks, self.shards, self.fractions = blocks, shards, fractions
        self.seed, self.device = seed, device
        self.served = tuple(range(len(shards.blocks)) if served is None else served)
        self.held_out = HeldOut(device)
        self.sample = blocks.empty()
        self.collected = False

    def __len__(self) -> int:
        """Count the rows to learn from, those of other workers too."""
        return sum(self.shards.rows)

    @property
    def n_values(self) -> int:
        """Values that the features are made from."""
        return self.blocks.empty().x.shape[1] if self.curves is None else len(self.curves.value_features)

    def take(self, index: Tensor | None) -> Batch:
        raise TypeError("the rows of a stream are read epoch by epoch, got an index of rows")

    def step_rows(self, step: int, n_steps: int) -> int:
        """Count the rows of a step, those of other workers too.

        Parameters
        ----------
        step : int
            From 0.
        n_steps : int
            Steps of an epoch.

        Returns
        -------
        int
        """
        return sum(self.shards.share(shard, step, n_steps) for shard in range(len(self.shards.rows)))

    def epoch(self, number: int, n_steps: int, noise: float) -> Generator[Batch]:
        """Yield the batches of an epoch on the device; without rows where this worker has none in a step.

        Parameters
        ----------
        number : int
            From 0.
        n_steps : int
        noise : float
            Standard deviation of the noise added to features that are numbers.

        Yields
        ------
        Batch
        """
        with closing(prefetch(self._batches(number, n_steps, noise), AHEAD)) as chunks:
            for chunk in chunks:
                yield _as_batch(chunk, self.device)

    def _batches(self, number: int, n_steps: int, noise: float) -> Iterator[Chunk]:
        empty = self.blocks.empty()
        collect = not self.collected
        held_out, sample = Heap(empty), Heap(empty)

        def read(block: int) -> Iterator[Chunk]:
            for chunk in self.blocks.read(block):
                out = chunk.draw < self.fractions.held_out
                if collect:
                    held_out.add(chunk.take(out), block)
                    sample.add(chunk.take(chunk.draw >= 1 - self.fractions.sample), block)
                yield chunk.take(~out) if out.any() else chunk

        buffer_rows = self._buffer_rows(empty)
        shards = []
        for shard in self.served:
            rng = np.random.Generator(np.random.SFC64([self.seed, number, shard]))
            shards.append((shard, Shard(self.shards.blocks[shard], read, buffer_rows, rng), rng))
        for step in range(n_steps):
            taken: list[Chunk] = []
            for shard, rows, rng in shards:
                chunks = rows.take(self.shards.share(shard, step, n_steps))
                taken += [self._jittered(chunk, noise, rng) for chunk in chunks] if noise else chunks
            yield concatenate_chunks(taken) if taken else empty
        if collect:
            for _, rows, _ in shards:
                rows.finish()  # held-out rows may follow the last row to learn from
            self.held_out.fill(held_out.rows())
            self.sample = sample.rows()
            self.collected = True

    def _jittered(self, chunk: Chunk, noise: float, rng: np.random.Generator) -> Chunk:
        values = chunk.x if self.curves is None else self.curves.values_of(torch.from_numpy(chunk.x)).numpy()
        x = rng.standard_normal(values.shape, dtype=np.float32)
        x *= noise if self.is_number is None else np.float32(noise) * self.is_number
        x += values
        return replace(chunk, x=x if self.curves is None else self.curves.of(torch.from_numpy(x)).numpy())

    def _buffer_rows(self, empty: Chunk) -> int:
        """Count the rows of a shard's buffer, which is the same for any number of workers."""
        arrays = [array for array in (empty.x, empty.target, empty.weight, empty.draw) if array is not None]
        row_bytes = sum(array.itemsize * int(np.prod(array.shape[1:])) for array in arrays)
        return max(1, min(BUFFER_ROWS, BUFFER_BYTES // row_bytes) // len(self.shards.blocks))


class Heap:
    """Rows collected a few at a time, in memory that grows by doubling."""

    def __init__(self, empty: Chunk) -> None:
        self._chunk, self._blocks, self._n_rows = empty, np.empty(0, dtype=np.int64), 0

    def add(self, chunk: Chunk, block: int) -> None:
        """Add rows of a block, after earlier ones of the same block."""
        end = self._n_rows + len(chunk)
        if end > len(self._chunk):
            room = np.zeros(max(1024, 2 * end), dtype=np.intp)[self._n_rows :]
            self._chunk = concatenate_chunks([self._chunk.take(slice(0, self._n_rows)), chunk.take(room)])
            self._blocks = np.concatenate([self._blocks[: self._n_rows], room])
        added = slice(self._n_rows, end)
        self._chunk.take(added).copy_from(chunk)
        self._blocks[added] = block
        self._n_rows = end

    def rows(self) -> Chunk:
        """Return all rows in the order of their blocks."""
        return self._chunk.take(np.argsort(self._blocks[: self._n_rows], kind="stable"))


class HeldOut:
    """Held-out rows of a stream; empty until the first epoch has ended."""

    curves = None  # held-out rows get no noise

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._rows: TensorRows | None = None

    def fill(self, chunk: Chunk) -> None:
        self._rows = TensorRows(*_as_batch(chunk, self._device))

    def __len__(self) -> int:
        return 0 if self._rows is None else len(self._rows)

    def take(self, index: Tensor | None) -> Batch:
        assert self._rows is not None
        return self._rows.take(index)


def _as_batch(chunk: Chunk, device: torch.device) -> Batch:
    x, target = torch.from_numpy(chunk.x).to(device), torch.from_numpy(chunk.target).to(device)
    return Batch(x, target, None if chunk.weight is None else torch.from_numpy(chunk.weight).to(device))


def prefetch(items: Iterator[Item], most: int) -> Generator[Item]:
    """Yield items that a thread in the background makes, at most so many in advance.

    Its errors are raised here. The thread ends when the generator is closed.
    """
    waiting: queue.Queue[tuple[bool, Any]] = queue.Queue(most)
    ended = threading.Event()

    def put(is_last: bool, item: Any) -> bool:
        while not ended.is_set():
            with suppress(queue.Full):
                waiting.put((is_last, item), timeout=0.1)
                return True
        return False

    def work() -> None:
        try:
            for item in items:
                if not put(False, item):
                    return
            put(True, None)
        except BaseException as error:
            put(True, error)

    thread = threading.Thread(target=work, name="tartree-stream", daemon=True)
    thread.start()
    try:
        while True:
            is_last, item = waiting.get()
            if is_last:
                if item is not None:
                    raise item
                return
            yield item
    finally:
        ended.set()
        thread.join()
