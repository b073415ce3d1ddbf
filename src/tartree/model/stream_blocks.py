"""Rows of a table in files on their way to training: features, targets and weights, block by block."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tartree.model.target import RowWeighting, TargetCodec, TargetStatistics, Weights, as_values
from tartree.table import ParquetTable, TableEncoder, TableStatistics
from tartree.table.parquet import Block
from tartree.table.row_error import RowError, among, naming
from tartree.training.shards import Chunk
from tartree.training.stream import SplitFractions, prefetch

#: Threads that look at columns side by side.
THREADS = 4


class RawChunk(NamedTuple):
    """Rows as they are in a file."""

    features: Any  # pyarrow.RecordBatch
    targets: list[Any]  # of pyarrow.Array
    weights: Weights
    draw: NDArray[np.float64]  # (rows,), from 0 to 1
    rows: Any  # a range or an array, (rows,): their numbers in the file


@dataclass(frozen=True)
class Roles:
    """Which columns are features, targets and weights, and the seed of what is drawn for each row."""

    features: list[str]
    targets: list[str]
    weight: str | None
    seed: int
    drop_missing_target: bool = False

    @property
    def names(self) -> list[str]:
        return [*self.features, *self.targets, *([] if self.weight is None else [self.weight])]


class RawBlocks:
    """A table read in blocks, its columns sorted by their roles and checked."""

    def __init__(self, table: ParquetTable, roles: Roles) -> None:
        self.table, self.roles = table.select(roles.names), roles

    def read(self, index: int, chunk_rows: int) -> Iterator[RawChunk]:
        """Yield rows of a block that have a target."""
        block: Block = self.table.blocks[index]
        first, start = block.first, self.table.rows_of(block).start
        for batch in self.table.read(block, piece_rows=chunk_rows):
            rows = range(start, start + batch.num_rows)
            draw = draws(self.roles.seed, first, batch.num_rows)
            first, start = first + batch.num_rows, rows.stop
            with self.naming(index, rows):
                chunk = self._sort_columns(batch, draw, rows)
            yield chunk

    def naming(self, index: int, rows: Any) -> AbstractContextManager[None]:
        """Prefix errors with the name of the file, and the row in it."""
        return naming(self.table.files[self.table.blocks[index].file], rows)

    def _sort_columns(self, batch: Any, draw: NDArray[np.float64], rows: range) -> RawChunk:
        """Return the columns by their roles, of rows that have a target."""
        roles, kept = self.roles, None
        masks = [missing_mask(batch.column(name)) for name in roles.targets]
        if not roles.drop_missing_target:
            for name, mask in zip(roles.targets, masks, strict=True):
                check_present(mask, name)
        elif any(pc.any(mask).as_py() for mask in masks):
            keep = np.logical_not(np.any([mask.to_numpy(zero_copy_only=False) for mask in masks], axis=0))
            kept = np.flatnonzero(keep)
            batch, draw = batch.filter(pa.array(keep)), draw[keep]
        weights = None
        if roles.weight is not None:
            weights = as_values(batch.column(roles.weight))
            with among(kept):
                check_weight_values(weights, roles.weight)
        targets = [batch.column(name) for name in roles.targets]
        numbers = rows if kept is None else rows.start + kept
        return RawChunk(batch.select(roles.features), targets, weights, draw, numbers)


def missing_mask(column: Any) -> Any:
    """Return where an Arrow column has missing values, as an Arrow array of booleans."""
    return pc.is_null(column, nan_is_null=True)


def check_present(mask: Any, name: str) -> None:
    """Raise if a target has missing values."""
    if pc.any(mask).as_py():
        expected = f"target {name!r} must have a value in every row, but "
        raise RowError(expected, pc.index(mask, True).as_py(), " has none; fill it, or leave such rows out")


def check_finite(column: Any, name: str, weights: Weights = None) -> None:
    """Raise if a target with weight is infinite."""
    if not pa.types.is_floating(column.type):
        return
    infinite = np.isinf(as_values(column)) & (weights is None or weights > 0)
    if infinite.any():
        expected = f"target {name!r} must be finite, but "
        raise RowError(expected, int(infinite.argmax()), " contains infinity; leave such rows out")


def check_weight_values(weights: NDArray[np.float64], name: str) -> None:
    """Raise if a weight is negative or missing."""
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        row = int(wrong.argmax())
        expected = f"sample_weight {name!r} must hold numbers of at least 0, without missing values, but "
        raise RowError(expected, row, f" holds {weights[row]}; correct the column")


@dataclass
class StreamStatistics:
    """Statistics of a table that a fit needs before training: columns, target, and the rows of each block."""

    columns: TableStatistics
    target: TargetStatistics
    held_out: TargetStatistics  # of the rows held out alone
    rows: dict[int, tuple[int, int]] = field(default_factory=dict)  # of each block: to learn from, and held out

    def merge(self, other: StreamStatistics) -> None:
        """Add the statistics of other blocks."""
        self.columns.merge(other.columns)
        self.target.merge(other.target)
        self.held_out.merge(other.held_out)
        self.rows |= other.rows


def collect_statistics(
    blocks: RawBlocks,
    indices: Sequence[int],
    target: TargetStatistics,
    fractions: SplitFractions,
    *,
    with_columns: bool = True,
) -> StreamStatistics:
    """Pass once over some blocks."""
    statistics = StreamStatistics(TableStatistics(), target, copy.deepcopy(target))

    def chunks() -> Iterator[tuple[int, RawChunk]]:
        for index in indices:
            statistics.rows[index] = 0, 0
            for chunk in blocks.read(index, 2**16):
                yield index, chunk

    with ThreadPoolExecutor(THREADS) as executor, closing(prefetch(chunks(), 2)) as prefetched:
        for index, chunk in prefetched:
            with blocks.naming(index, chunk.rows):
                if with_columns:
                    statistics.columns.update(chunk.features, chunk.weights, executor)
                for name, column in zip(blocks.roles.targets, chunk.targets, strict=True):
                    check_finite(column, name, chunk.weights)
                target.update(chunk.targets, chunk.weights)
            held_out = np.flatnonzero(chunk.draw < fractions.held_out)
            if len(held_out):
                weights = None if chunk.weights is None else chunk.weights[held_out]
                statistics.held_out.update([column.take(pa.array(held_out)) for column in chunk.targets], weights)
            n_learnt, n_held_out = statistics.rows[index]
            statistics.rows[index] = n_learnt + len(chunk.draw) - len(held_out), n_held_out + len(held_out)
    return statistics


class EncodedBlocks:
    """Blocks as training reads them."""

    def __init__(
        self,
        blocks: RawBlocks,
        encoder: TableEncoder,
        codec: TargetCodec,
        weighting: RowWeighting,
        chunk_rows: int,
    ) -> None:
        self.blocks, self.encoder, self.codec, self.weighting = blocks, encoder, codec, weighting
        self.chunk_rows = chunk_rows

    def read(self, block: int) -> Iterator[Chunk]:
        """Yield the encoded rows of a block."""
        for raw in self.blocks.read(block, self.chunk_rows):
            with self.blocks.naming(block, raw.rows):
                chunk = self._encode(raw)
            yield chunk

    def empty(self) -> Chunk:
        """Return a chunk without rows, whose shapes and types are those of all chunks."""
        table, roles = self.blocks.table, self.blocks.roles
        batch = pa.RecordBatch.from_pylist([], schema=table.schema)
        targets = [batch.column(name) for name in roles.targets]
        weights = None if roles.weight is None else np.empty(0)
        return self._encode(RawChunk(batch.select(roles.features), targets, weights, np.empty(0), range(0)))

    def _encode(self, raw: RawChunk) -> Chunk:
        target = self.codec.encode_columns(raw.targets)
        return Chunk(self.encoder.transform(raw.features), target, self.weighting(target, raw.weights), raw.draw)


def draws(seed: int, first: int, n_rows: int) -> NDArray[np.float64]:
    """Return a number from 0 to 1 for each row, (rows,), by a hash of its position in the table (splitmix64)."""
    with np.errstate(over="ignore"):
        mixed = np.arange(first, first + n_rows, dtype=np.uint64) + np.uint64(1)
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed) * np.uint64(0xD1342543DE82EF95)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
