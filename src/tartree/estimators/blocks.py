"""The rows of a table in files on their way to training: features, targets and weights, block by block."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tartree.estimators.targets import TargetCoder, TargetStatistics, as_values, missing
from tartree.table import ParquetTable, TableEncoder, TableStatistics
from tartree.table.parquet import Block
from tartree.training.lanes import Piece
from tartree.training.stream import Shares, ahead

#: Threads that look at columns side by side.
THREADS = 4


class RawPiece(NamedTuple):
    """Rows as they are in a file."""

    features: Any  # pyarrow.RecordBatch
    targets: list[Any]  # of pyarrow.Array
    weights: NDArray[np.float64] | None  # (rows,)
    draw: NDArray[np.float64]  # (rows,), from 0 to 1


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
        path, roles = self.table.files[here.file], self.roles
        first = here.first
        for piece in self.table.read(here, piece_rows=piece_rows):
            draw = draws(roles.seed, first, piece.num_rows)
            first += piece.num_rows
            gaps = self._gaps(piece, path)
            if gaps is not None:
                keep = pc.invert(gaps)
                piece, draw = piece.filter(keep), draw[keep.to_numpy(zero_copy_only=False)]
            weights = None if roles.weight is None else self._weights(piece, path)
            yield RawPiece(piece.select(roles.features), [piece.column(name) for name in roles.targets], weights, draw)

    def _gaps(self, piece: Any, path: str) -> Any:
        """Rows without a target, None if there are none."""
        found = None
        for name in self.roles.targets:
            gaps = missing(piece.column(name))
            n_gaps = pc.sum(gaps).as_py() or 0
            if not n_gaps:
                continue
            if not self.roles.drop_missing_target:
                raise ValueError(
                    f"{path}: target {name!r} must have a value in every row, however: {n_gaps:,} of "
                    f"{piece.num_rows:,} rows read are without; fill them or leave these rows out"
                )
            found = gaps if found is None else pc.or_(found, gaps)
        return found

    def _weights(self, piece: Any, path: str) -> NDArray[np.float64]:
        weights = as_values(piece.column(self.roles.weight))
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            wrong = weights[~(np.isfinite(weights) & (weights >= 0))][0]
            raise ValueError(
                f"{path}: sample_weight {self.roles.weight!r} must hold numbers of at least 0, without gaps, "
                f"however: {wrong}; correct the column"
            )
        return weights


@dataclass
class StreamStatistics:
    """All that has to be known of a table before training: columns, target, and the rows of each block."""

    columns: TableStatistics
    target: TargetStatistics
    held_out: TargetStatistics  # of the rows held out alone
    rows: dict[int, tuple[int, int]] = field(default_factory=dict)  # of each block: to learn from, and held out

    def merge(self, other: StreamStatistics) -> None:
        """Add what another worker found in other blocks."""
        self.columns.merge(other.columns)
        self.target.merge(other.target)
        self.held_out.merge(other.held_out)
        self.rows |= other.rows


def gather(
    blocks: RawBlocks,
    numbers: Sequence[int],
    target: TargetStatistics,
    shares: Shares,
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

    with ThreadPoolExecutor(THREADS) as executor, closing(ahead(pieces(), 2)) as coming:
        for number, piece in coming:
            path = blocks.table.files[blocks.table.blocks[number].file]
            try:
                if look_at_columns:
                    statistics.columns.update(piece.features, piece.weights, executor)
                target.update(piece.targets, piece.weights)
            except (ValueError, TypeError) as error:
                raise ValueError(f"{path}: {error}") from error
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

    def read(self, block: int) -> Iterator[Piece]:
        for piece in self.blocks.read(block, self.piece_rows):
            yield self._encoded(piece)

    def nothing(self) -> Piece:
        table, roles = self.blocks.table, self.blocks.roles
        empty = pa.RecordBatch.from_pylist([], schema=table.schema)
        targets = [empty.column(name) for name in roles.targets]
        weights = None if roles.weight is None else np.empty(0)
        return self._encoded(RawPiece(empty.select(roles.features), targets, weights, np.empty(0)))

    def _encoded(self, piece: RawPiece) -> Piece:
        target = self.coder.encode(piece.targets)
        return Piece(
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
