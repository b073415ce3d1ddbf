"""Rows that are read as they are needed, from a table that need not fit into memory."""

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
from tartree.training.shards import Chunk, Shard, Shards, concatenate_chunks

Thing = TypeVar("Thing")

#: Rows in the buffers of all shards together, and the most bytes that they may take.
BUFFER_ROWS = 2**18
BUFFER_BYTES = 2**27
#: Batches that are made ready ahead.
AHEAD = 16


class Blocks(Protocol):
    """A table in blocks, read and encoded on the CPU."""

    def read(self, block: int) -> Iterator[Chunk]:
        """The rows of a block, chunk by chunk and always in the same order."""

    def empty(self) -> Chunk:
        """A chunk without rows, of the types that `read` gives."""


@dataclass(frozen=True)
class SplitFractions:
    """How many rows are held out, those with the lowest draws, and kept as a sample, those with the highest."""

    held_out: float = 0.0
    sample: float = 0.0


class StreamRows:
    """A stream of batches: blocks in shards, read by a thread in the background while the last batches are learnt from.

    Parameters
    ----------
    blocks : Blocks
    shards : Shards
        With the numbers of rows to learn from, held-out rows not counted.
    fractions : SplitFractions
    seed : int
        Of the order of rows and of jitter.
    device : torch.device
        Where batches go.
    served : sequence of int, optional
        The shards of this worker; by default all.
    is_number : array of bool of shape (features,), optional
        Which features get noise; by default all.

    Attributes
    ----------
    held_out : HeldOut
        Rows that are not learnt from; known after the first epoch.
    sample : Chunk
        The sample of this worker's rows; known after the first epoch.
    collected : bool
        Whether there was an epoch.
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
    ) -> None:
        self.is_number = is_number
        self.blocks, self.shards, self.fractions = blocks, shards, fractions
        self.seed, self.device = seed, device
        self.served = tuple(range(len(shards.blocks)) if served is None else served)
        self.held_out = HeldOut(device)
        self.sample = blocks.empty()
        self.collected = False

    def __len__(self) -> int:
        """Rows to learn from, those of other workers too."""
        return sum(self.shards.rows)

    def take(self, index: Tensor | None) -> Batch:
        raise TypeError("a stream gives its rows epoch by epoch, however: some rows were asked for")

    def step_rows(self, step: int, n_steps: int) -> int:
        """Rows of a step, those of other workers too."""
        return sum(self.shards.share(shard, step, n_steps) for shard in range(len(self.shards.rows)))

    def epoch(self, number: int, n_steps: int, noise: float) -> Generator[Batch]:
        """The batches of epoch `number`, from 0, on the device, with noise added to the rows.

        A batch is without rows where the shards of this worker have none in a step.
        """
        with closing(prefetch(self._batches(number, n_steps, noise), AHEAD)) as chunks:
            for chunk in chunks:
                yield _as_batch(chunk, self.device)

    def _batches(self, number: int, n_steps: int, noise: float) -> Iterator[Chunk]:
        nothing = self.blocks.empty()
        collect = not self.collected
        held_out, sample = Heap(nothing), Heap(nothing)

        def read(block: int) -> Iterator[Chunk]:
            for chunk in self.blocks.read(block):
                out = chunk.draw < self.fractions.held_out
                if collect:
                    held_out.add(chunk.take(out), block)
                    sample.add(chunk.take(chunk.draw >= 1 - self.fractions.sample), block)
                yield chunk.take(~out) if out.any() else chunk

        buffer_rows = self._buffer_rows(nothing)
        shards = []
        for shard in self.served:
            rng = np.random.Generator(np.random.SFC64([self.seed, number, shard]))
            shards.append((shard, Shard(self.shards.blocks[shard], read, buffer_rows, rng), rng))
        for step in range(n_steps):
            taken: list[Chunk] = []
            for shard, rows, rng in shards:
                own = rows.take(self.shards.share(shard, step, n_steps))
                taken += [self._jittered(chunk, noise, rng) for chunk in own] if noise else own
            yield concatenate_chunks(taken) if taken else nothing
        if collect:
            for _, rows, _ in shards:
                rows.finish()  # held-out rows may come after the last that is learnt from
            self.held_out.fill(held_out.rows())
            self.sample = sample.rows()
            self.collected = True

    def _jittered(self, chunk: Chunk, noise: float, rng: np.random.Generator) -> Chunk:
        x = rng.standard_normal(chunk.x.shape, dtype=np.float32)
        x *= noise if self.is_number is None else np.float32(noise) * self.is_number
        x += chunk.x
        return replace(chunk, x=x)

    def _buffer_rows(self, nothing: Chunk) -> int:
        """Rows of a shard's buffer: it depends on the table and on all shards, not on those of this worker."""
        arrays = [array for array in (nothing.x, nothing.target, nothing.weight, nothing.draw) if array is not None]
        row_bytes = sum(array.itemsize * int(np.prod(array.shape[1:])) for array in arrays)
        return max(1, min(BUFFER_ROWS, BUFFER_BYTES // row_bytes) // len(self.shards.blocks))


class Heap:
    """Rows put aside a few at a time, in memory that grows by doubling: many small chunks would lie in the way."""

    def __init__(self, nothing: Chunk) -> None:
        self._piece, self._blocks, self._n_rows = nothing, np.empty(0, dtype=np.int64), 0

    def add(self, chunk: Chunk, block: int) -> None:
        """Put aside the rows of a block, after those of the same block that came before."""
        end = self._n_rows + len(chunk)
        if end > len(self._piece):
            room = np.zeros(max(1024, 2 * end), dtype=np.intp)[self._n_rows :]
            self._piece = concatenate_chunks([self._piece.take(slice(0, self._n_rows)), chunk.take(room)])
            self._blocks = np.concatenate([self._blocks[: self._n_rows], room])
        here = slice(self._n_rows, end)
        self._piece.take(here).copy_from(chunk)
        self._blocks[here] = block
        self._n_rows = end

    def rows(self) -> Chunk:
        """All rows, in the order of their blocks."""
        return self._piece.take(np.argsort(self._blocks[: self._n_rows], kind="stable"))


class HeldOut:
    """Rows of a stream that are not learnt from; there are none before the first epoch has ended."""

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


def prefetch(things: Iterator[Thing], most: int) -> Generator[Thing]:
    """The same things, made by a thread in the background that is at most so many ahead.

    What goes wrong there is raised here. When nobody asks any more, the thread ends.
    """
    waiting: queue.Queue[tuple[bool, Any]] = queue.Queue(most)
    ended = threading.Event()

    def put(last: bool, thing: Any) -> bool:
        while not ended.is_set():
            with suppress(queue.Full):
                waiting.put((last, thing), timeout=0.1)
                return True
        return False

    def work() -> None:
        try:
            for thing in things:
                if not put(False, thing):
                    return
            put(True, None)
        except BaseException as error:
            put(True, error)

    thread = threading.Thread(target=work, name="tartree-stream", daemon=True)
    thread.start()
    try:
        while True:
            last, thing = waiting.get()
            if last:
                if thing is not None:
                    raise thing
                return
            yield thing
    finally:
        ended.set()
        thread.join()
