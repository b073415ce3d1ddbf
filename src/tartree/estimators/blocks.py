"""The rows of a table in files on their way to training: features, targets and weights, block by block."""

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

from tartree.estimators.targets import TargetCoder, TargetStatistics, as_values, missing
from tartree.table import ParquetTable, TableEncoder, TableStatistics
from tartree.table.parquet import Block
from tartree.table.places import RowError, among, naming
from tartree.training.shards import Chunk
from tartree.training.stream import SplitFractions, prefetch

#: Threads that look at columns side by side.
THREADS = 4


class RawPiece(NamedTuple):
    """Rows as they are in a file."""

    features: Any  # pyarrow.RecordBatch
    targets: list[Any]  # of pyarrow.Array
    weights: NDArray[np.float64] | None  # (rows,)
    draw: NDArray[np.float64]  # (rows,), from 0 to 1
    rows: Any  # a range or an array, (rows,): their numbers in the file


@dataclass(frozen=True)
class Roles:
    """Which column is what, and the seed of what is drawn for each row."""

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

    def read(self, block: int, piece_rows: int) -> Iterator[RawPiece]:
        """Rows of a block that have a target."""
        here: Block = self.table.blocks[block]
        first, before = here.first, self.table.rows_of(here).start
        for piece in self.table.read(here, piece_rows=piece_rows):
            rows = range(before, before + piece.num_rows)
            draw = draws(self.roles.seed, first, piece.num_rows)
            first, before = first + piece.num_rows, rows.stop
            with self.naming(block, rows):
                found = self._sorted(piece, draw, rows)
            yield found

    def naming(self, block: int, rows: Any) -> AbstractContextManager[None]:
        """Errors with the name of the file, and the row there."""
        return naming(self.table.files[self.table.blocks[block].file], rows)

    def _sorted(self, piece: Any, draw: NDArray[np.float64], rows: range) -> RawPiece:
        """The columns by their roles, of rows that have a target."""
        roles, kept = self.roles, None
        gaps = [missing(piece.column(name)) for name in roles.targets]
        if not roles.drop_missing_target:
            for name, own in zip(roles.targets, gaps, strict=True):
                check_gaps(own, name)
        elif any(pc.any(own).as_py() for own in gaps):
            keep = np.logical_not(np.any([own.to_numpy(zero_copy_only=False) for own in gaps], axis=0))
            kept = np.flatnonzero(keep)
            piece, draw = piece.filter(pa.array(keep)), draw[keep]
        weights = None
        if roles.weight is not None:
            weights = as_values(piece.column(roles.weight))
            with among(kept):
                check_weights(weights, roles.weight)
        targets = [piece.column(name) for name in roles.targets]
        numbers = rows if kept is None else rows.start + kept
        return RawPiece(piece.select(roles.features), targets, weights, draw, numbers)


def check_gaps(gaps: Any, name: str) -> None:
    """Raise where a target is missing."""
    if pc.any(gaps).as_py():
        said = f"target {name!r} must have a value in every row, however: "
        raise RowError(said, pc.index(gaps, True).as_py(), " has none; fill it, or leave such rows out")


def check_finite(column: Any, name: str, weights: NDArray[np.float64] | None = None) -> None:
    """Raise where a target with weight is infinite."""
    if not pa.types.is_floating(column.type):
        return
    wrong = np.isinf(as_values(column)) & (weights is None or weights > 0)
    if wrong.any():
        said = f"target {name!r} must be finite, however: "
        raise RowError(said, int(wrong.argmax()), " contains infinity; leave such rows out")


def check_weights(weights: NDArray[np.float64], name: str) -> None:
    """Raise where a weight is negative or none."""
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        row = int(wrong.argmax())
        said = f"sample_weight {name!r} must hold numbers of at least 0, without gaps, however: "
        raise RowError(said, row, f" holds {weights[row]}; correct the column")


@dataclass
class StreamStatistics:
    """All that has to be known of a table before training: columns, target, and the rows of each block."""

    columns: TableStatistics
    target: TargetStatistics
    held_out: TargetStatistics  # of the rows held out alone
    rows: dict[int, tuple[int, int]] = field(default_factory=dict)  # of each block: to learn from, and held out

    def merge(self, other: StreamStatistics) -> None:
        """Add what was found in other blocks."""
        self.columns.merge(other.columns)
        self.target.merge(other.target)
        self.held_out.merge(other.held_out)
        self.rows |= other.rows


def gather(
    blocks: RawBlocks,
    numbers: Sequence[int],
    target: TargetStatistics,
    shares: SplitFractions,
    *,
    look_at_columns: bool = True,
) -> StreamStatistics:
    """One pass over some blocks."""
    statistics = StreamStatistics(TableStatistics(), target, copy.deepcopy(target))

    def pieces() -> Iterator[tuple[int, RawPiece]]:
        for number in numbers:
            statistics.rows[number] = 0, 0
            for piece in blocks.read(number, 2**16):
                yield number, piece

    with ThreadPoolExecutor(THREADS) as executor, closing(prefetch(pieces(), 2)) as coming:
        for number, piece in coming:
            with blocks.naming(number, piece.rows):
                if look_at_columns:
                    statistics.columns.update(piece.features, piece.weights, executor)
                for name, column in zip(blocks.roles.targets, piece.targets, strict=True):
                    check_finite(column, name, piece.weights)
                target.update(piece.targets, piece.weights)
            out = np.flatnonzero(piece.draw < shares.held_out)
            n_held_out = len(out)
            if n_held_out:
                weights = None if piece.weights is None else piece.weights[out]
                statistics.held_out.update([column.take(pa.array(out)) for column in piece.targets], weights)
            kept, held_out = statistics.rows[number]
            statistics.rows[number] = kept + len(piece.draw) - n_held_out, held_out + n_held_out
    return statistics


class EncodedBlocks:
    """Blocks as training reads them."""

    def __init__(self, blocks: RawBlocks, encoder: TableEncoder, coder: TargetCoder, piece_rows: int) -> None:
        self.blocks, self.encoder, self.coder, self.piece_rows = blocks, encoder, coder, piece_rows

    def read(self, block: int) -> Iterator[Chunk]:
        for piece in self.blocks.read(block, self.piece_rows):
            with self.blocks.naming(block, piece.rows):
                found = self._encoded(piece)
            yield found

    def empty(self) -> Chunk:
        table, roles = self.blocks.table, self.blocks.roles
        empty = pa.RecordBatch.from_pylist([], schema=table.schema)
        targets = [empty.column(name) for name in roles.targets]
        weights = None if roles.weight is None else np.empty(0)
        return self._encoded(RawPiece(empty.select(roles.features), targets, weights, np.empty(0), range(0)))

    def _encoded(self, piece: RawPiece) -> Chunk:
        target = self.coder.encode(piece.targets)
        return Chunk(
            self.encoder.transform(piece.features), target, self.coder.weigh(target, piece.weights), piece.draw
        )


def draws(seed: int, first: int, n_rows: int) -> NDArray[np.float64]:
    """A number from 0 to 1 for each row, (rows,), by a hash of its place in the table (splitmix64)."""
    with np.errstate(over="ignore"):
        mixed = np.arange(first, first + n_rows, dtype=np.uint64) + np.uint64(1)
        mixed = mixed * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed) * np.uint64(0xD1342543DE82EF95)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
