"""Tables in Parquet files as a source of training rows: read into memory if small, streamed otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tartree.model.memory_source import MemorySource, curve_features
from tartree.model.sample import SAMPLE_ROWS, Sample
from tartree.model.spec import ModelSpec
from tartree.model.stream_blocks import (
    EncodedBlocks,
    RawBlocks,
    Roles,
    StreamStatistics,
    check_finite,
    check_present,
    check_weight_values,
    collect_statistics,
    missing_mask,
)
from tartree.model.target import TargetCodec, as_array, as_values, check_target_type
from tartree.table import ParquetTable, TableEncoder
from tartree.table.parquet import as_parquet
from tartree.table.parquet.arrow_families import family
from tartree.table.row_error import RowError
from tartree.training import SINGLE_WORKER, Rows, StreamRows, WorkerGroup
from tartree.training.shards import SHARDS, Shards, concatenate_chunks
from tartree.training.stream import SplitFractions

#: Rows that a stream holds out for early stopping, at most, and the most values of them: they stay in memory.
HELD_OUT_ROWS = 100_000
HELD_OUT_VALUES = 2**25
#: Values of the rows that are read at a time.
CHUNK_VALUES = 2**18


def parquet_source(spec: ModelSpec, X: Any, y: Any, sample_weight: Any) -> MemorySource | StreamSource:
    """Return the source for a table in files; `y` and `sample_weight` are names of its columns."""
    table = as_parquet(X).with_index([*(y if isinstance(y, list | tuple) else [y]), sample_weight])
    targets, weight = check_names(table, y, sample_weight)
    source = ParquetRows if table.in_memory else StreamSource
    return source(table, targets, weight)


def read_target_columns(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any]:
    """Read target and weights of a table in files; `y` and `sample_weight` are names of its columns."""
    targets, weight = _names(y, sample_weight)
    rows = as_parquet(X, [*targets, *([] if weight is None else [weight])]).read_all()
    return _target_and_weight(rows, targets, weight)


def _target_and_weight(rows: Any, targets: Sequence[str], weight: str | None) -> tuple[Any, Any]:
    columns = [as_array(rows[name]) for name in targets]
    weights = None if weight is None else rows[weight].to_numpy().copy()  # Arrow owns it, and torch must not
    return columns[0] if len(columns) == 1 else np.stack(columns, axis=1), weights


class ParquetRows(MemorySource):
    """A table in files that is read into memory; errors name the file and the row in it.

    Parameters
    ----------
    table : ParquetTable
    targets : sequence of str
        Target columns.
    weight : str, optional
        Column of weights.
    """

    def __init__(self, table: ParquetTable, targets: Sequence[str], weight: str | None = None) -> None:
        super().__init__(None, None, target_name=", ".join(targets))
        self.table, self.targets, self.weight_name = table, list(targets), weight

    def learn(
        self,
        spec: ModelSpec,
        seeds: NDArray[Any],
        encoder: TableEncoder | None,
        codec: TargetCodec | None,
        workers: WorkerGroup,
    ) -> None:
        """Read and check the table, and learn its encoder and codec; those of a resumed training are given."""
        check_types(self.table, self.targets, self.weight_name, spec.codec_type)
        rows = self.table.read_all()
        for name in self.targets:
            check_present(missing_mask(rows[name]), name)
            check_finite(rows[name], name)
        if self.weight_name is not None:
            check_weight_values(as_values(rows[self.weight_name]), self.weight_name)
        self.X = rows.drop_columns([*self.targets, *([] if self.weight_name is None else [self.weight_name])])
        self.y, self._given_weight = _target_and_weight(rows, self.targets, self.weight_name)
        super().learn(spec, seeds, encoder, codec, workers)

    @contextmanager
    def locating(self) -> Iterator[None]:
        """Prefix errors about a row of the whole table with its file, and the row's number there."""
        try:
            yield
        except RowError as error:
            path, row = self.table.place(error.row)
            raise error.at(row, path) from error


class StreamSource:
    """A table in files that is read in two kinds of passes: one for statistics, and one an epoch.

    Parameters
    ----------
    table : ParquetTable
    targets : sequence of str
        The target column, or several for a regression.
    weight : str, optional
        Column of weights.
    drop_missing_target : bool, default=False
        Leave out rows without a target; otherwise they are an error.
    n_shards : int
        The most workers that there may be. Batches depend on it.

    Attributes
    ----------
    statistics : StreamStatistics
        What the first pass collected.
    """

    is_streamed = True
    is_lazy = True

    encoder: TableEncoder
    codec: TargetCodec
    n_counted: int
    statistics: StreamStatistics

    def __init__(
        self,
        table: ParquetTable,
        targets: Sequence[str],
        weight: str | None = None,
        *,
        drop_missing_target: bool = False,
        n_shards: int = SHARDS,
    ) -> None:
        self.table, self.targets, self.weight_name = table, list(targets), weight
        self.drop_missing_target, self.n_shards = drop_missing_target, n_shards
        self.target_name = ", ".join(targets)
        self.n_rows = table.n_rows
        self._rows: StreamRows | None = None

    def learn(
        self,
        spec: ModelSpec,
        seeds: NDArray[Any],
        encoder: TableEncoder | None,
        codec: TargetCodec | None,
        workers: WorkerGroup,
    ) -> None:
        """Pass over the table once, and learn its encoder and codec; those of a resumed training are given."""
        self._check(spec, workers)
        table, recipe, stopping = self.table, spec.recipe, spec.stopping(self.n_rows)
        most = min(HELD_OUT_ROWS, HELD_OUT_VALUES // _most_features(table))
        self._fractions = SplitFractions(
            held_out=min(recipe.validation_fraction, most / max(1, table.n_rows)) if stopping else 0.0,
            sample=min(1.0, SAMPLE_ROWS / max(1, table.n_rows)),
        )
        features = [name for name in table.names if name not in self.targets and name != self.weight_name]
        roles = Roles(features, self.targets, self.weight_name, int(seeds[0]), self.drop_missing_target)
        self._blocks, self._seed, self._n_batches = RawBlocks(table, roles), int(seeds[0]), recipe.n_batches
        self._shards = Shards.deal([block.rows for block in table.blocks], self.n_shards)
        self._served = range(workers.rank, len(self._shards.blocks), workers.size)
        self.statistics = self._collect(spec, workers, with_columns=encoder is None)
        if encoder is None:
            encoder = spec.make_encoder()
            encoder.fit_statistics(self.statistics.columns)
        elif getattr(encoder, "feature_names_in_", np.empty(0)).tolist() != features:
            raise ValueError(f"warm_start must keep the columns, got {features}")
        self.encoder = encoder
        self.codec = spec.codec_type.learn_statistics(self.statistics.target, codec, spec.extrapolation)
        self._count_rows(spec, bool(stopping))
        weighting = self.codec.weighting(
            self.statistics.target, spec.class_weight, weighted=self.weight_name is not None
        )
        chunk_rows = max(64, min(2**15, CHUNK_VALUES // max(1, len(encoder.features_))))
        self._encoded = EncodedBlocks(self._blocks, encoder, self.codec, weighting, chunk_rows)

    def _check(self, spec: ModelSpec, workers: WorkerGroup) -> None:
        if spec.recipe.optimizer != "adam":
            raise ValueError(
                f"a streamed table needs the optimizer 'adam', got {spec.recipe.optimizer!r}; "
                "use ParquetTable(..., in_memory=True)"
            )
        if workers.size > self.n_shards:
            raise ValueError(f"there must be at most {self.n_shards} workers, one a shard, got {workers.size}")
        check_types(self.table, self.targets, self.weight_name, spec.codec_type)

    def _collect(self, spec: ModelSpec, workers: WorkerGroup, *, with_columns: bool) -> StreamStatistics:
        def collect(shard: int) -> StreamStatistics:
            target = spec.codec_type.statistics(len(self.targets))
            blocks = self._shards.blocks[shard]
            return collect_statistics(self._blocks, blocks, target, self._fractions, with_columns=with_columns)

        statistics = _merge_in_order(workers, ((shard, collect(shard)) for shard in self._served))
        if not sum(map(sum, statistics.rows.values())):
            raise ValueError(f"{self.table.label} must have rows to learn from, got none")
        return statistics

    def _count_rows(self, spec: ModelSpec, stopping: bool) -> None:
        self.n_counted = self.codec.count(self.statistics.target, spec.class_weight)
        if not self.n_counted:
            raise ValueError(f"class_weight must leave some row with weight, got {spec.class_weight}")
        held_out = self.codec.count(self.statistics.held_out, spec.class_weight)
        if stopping and not 0 < held_out < self.n_counted:
            raise ValueError(
                "early stopping must hold out some rows with weight and learn from others, but holds out "
                f"{held_out:,} of {self.n_counted:,} rows with weight; use early_stopping=False"
            )

    def split_rows(self, spec: ModelSpec, rng: np.random.RandomState, device: torch.device) -> tuple[Rows, Rows]:
        """Return the stream of rows to learn from, and those that early stopping holds out."""
        rows = self._learning_rows(device)
        return rows, rows.held_out

    def _learning_rows(self, device: torch.device) -> StreamRows:
        learnt = self._shards.count({block: kept for block, (kept, _) in self.statistics.rows.items()})
        self._rows = self._stream(device)(learnt, self._fractions)
        return self._rows

    def all_rows(self, device: torch.device) -> Rows:
        """Return the stream of all rows: the first one collects the sample, later ones are for a refit."""
        if self._rows is None:
            return self._learning_rows(device)
        everything = self._shards.count({block: sum(counts) for block, counts in self.statistics.rows.items()})
        return self._stream(device)(everything, SplitFractions())

    def _stream(self, device: torch.device) -> partial[StreamRows]:
        values = [feature for feature in self.encoder.features_ if feature.bin is None]
        return partial(
            StreamRows,
            self._encoded,
            seed=self._seed,
            device=device,
            served=self._served,
            is_number=np.array([feature.kind == "value" for feature in values], dtype=bool),
            curves=curve_features(self.encoder, torch.device("cpu")),  # noise is drawn where rows are read
        )

    def sample(self, workers: WorkerGroup = SINGLE_WORKER) -> Sample | None:
        """Return training rows of all workers that importances are computed from."""
        rows = self._rows
        assert rows is not None
        if not rows.collected:  # the run was cut off after its last epoch
            for _ in rows.epoch(0, self._n_batches(len(rows)), noise=0.0):
                pass
        chunks = [chunk for chunk in workers.gather(rows.sample) if len(chunk)]
        if not chunks:
            return None
        sample = concatenate_chunks(chunks)
        weight = None if sample.weight is None else torch.from_numpy(sample.weight).double()
        return Sample(torch.from_numpy(sample.x), torch.from_numpy(sample.target), weight)

    @contextmanager
    def locating(self) -> Iterator[None]:
        """Do nothing: blocks prefix errors with file and row themselves."""
        yield


def _names(y: Any, sample_weight: Any) -> tuple[list[str], str | None]:
    targets = [y] if isinstance(y, str) else list(y) if isinstance(y, list | tuple) else []
    if not targets or not all(isinstance(name, str) for name in targets):
        raise ValueError(
            f"y must be the name of the target column if X is read from files, got {type(y).__name__}; "
            "give for example y='price'"
        )
    if sample_weight is not None and not isinstance(sample_weight, str):
        raise ValueError(
            f"sample_weight must be the name of a column if X is read from files, got {type(sample_weight).__name__}"
        )
    return targets, sample_weight


def check_names(table: ParquetTable, y: Any, sample_weight: Any) -> tuple[list[str], str | None]:
    """Return the target columns and the column of weights by name, or raise if they are not in the table."""
    targets, weight = _names(y, sample_weight)
    names = [*targets, *([] if weight is None else [weight])]
    for name in names:
        if name not in table.names:
            raise ValueError(f"{table.label} must have the column {name!r}, got columns {table.names}")
    if len(set(names)) < len(names):
        raise ValueError(f"target and weight must be different columns, got {names}")
    if len(names) == len(table.names):
        raise ValueError(f"{table.label} must have columns to predict from, got only {names}")
    return targets, weight


def check_types(table: ParquetTable, targets: Sequence[str], weight: str | None, codec: type[TargetCodec]) -> None:
    """Raise unless the columns have types that targets, weights and features can have."""
    table.check_plain(table.names)
    labels = codec.is_classes
    for name in targets:
        check_target_type(table.schema.field(name).type, name, table.label, labels=labels)
    if labels and len(targets) > 1:
        raise ValueError(f"{codec.estimator} must have one target column, got {list(targets)}")
    if weight is None:
        return
    arrow_type = table.schema.field(weight).type
    arrow_family = family(arrow_type)
    if arrow_family is None or not arrow_family.is_number:
        raise ValueError(f"{table.label}: sample_weight {weight!r} must hold numbers, got type {arrow_type}")


def _most_features(table: ParquetTable) -> int:
    """Bound the features that the columns may become: a number and its missing values, or each level."""
    levels = TableEncoder().max_levels + 2
    families = (family(field.type) for field in table.schema)
    return sum(levels if arrow_family is None or arrow_family.has_levels else 2 for arrow_family in families)


def _merge_in_order(workers: WorkerGroup, shard_statistics: Iterator[tuple[int, StreamStatistics]]) -> StreamStatistics:
    """Merge the statistics of all shards in the order of shards.

    A sketch, or a count that forgets, depends on the order of merges. Since every shard has separate statistics, the
    encoder is the same to the last bit for any number of workers. One worker alone merges as it goes, and never
    holds more than two.
    """
    if workers.size > 1:
        parts = workers.gather(list(shard_statistics))
        shard_statistics = iter(sorted((pair for part in parts for pair in part), key=itemgetter(0)))
    _, merged = next(shard_statistics)
    for _, statistics in shard_statistics:
        merged.merge(statistics)
    return merged
