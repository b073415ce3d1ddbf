"""Fitting to a table in Parquet files: into memory where it is small, in a stream of batches where it is not."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import torch
from sklearn.utils import check_random_state

from tartree.estimators.base import SAMPLE_ROWS
from tartree.estimators.blocks import (
    EncodedBlocks,
    RawBlocks,
    Roles,
    StreamStatistics,
    check_finite,
    check_gaps,
    check_weights,
    gather,
)
from tartree.estimators.targets import as_values, check_target_type, missing, plain
from tartree.table import ParquetTable, TableEncoder
from tartree.table.parquet import as_parquet
from tartree.table.places import RowError
from tartree.table.schemas import family
from tartree.training import SINGLE_WORKER, CheckpointStore, StreamRows, WorkerGroup, train
from tartree.training.shards import SHARDS, Shards, concatenate_chunks
from tartree.training.stream import SplitFractions

if TYPE_CHECKING:
    from tartree.estimators.base import BaseTart

#: Rows that a stream holds out for early stopping, at most, and the most values of them: they stay in memory.
HELD_OUT_ROWS = 100_000
HELD_OUT_VALUES = 2**25
#: Families of types that become one feature, and one for gaps.
NUMERIC = ("number", "boolean", "date", "datetime", "datetime with time zone", "duration", "time of day")
#: Values of the rows that are read at a time.
PIECE_VALUES = 2**18


def fit_parquet(estimator: BaseTart, X: Any, y: Any, sample_weight: Any) -> None:
    """Fit to a table in files; `y` and `sample_weight` are names of its columns."""
    table = as_parquet(X).with_index([*(y if isinstance(y, list | tuple) else [y]), sample_weight])
    targets, weight = check_names(table, y, sample_weight)
    if not table.in_memory:
        fit_stream(estimator, table, targets, weight)
        return
    check_types(table, targets, weight, labels=hasattr(estimator, "class_weight"))
    rows = table.read_all()
    features = rows.drop_columns([*targets, *([] if weight is None else [weight])])
    with _all_or_nothing(estimator), _placing(table):
        for name in targets:
            check_gaps(missing(rows[name]), name)
            check_finite(rows[name], name)
        if weight is not None:
            check_weights(as_values(rows[weight]), weight)
        estimator.fit(features, *_target_and_weight(rows, targets, weight))
        estimator.target_name_ = ", ".join(targets)


@contextmanager
def _placing(table: ParquetTable) -> Iterator[None]:
    """Say what is wrong with a row of the whole table with its file, and the row's number there."""
    try:
        yield
    except RowError as error:
        path, row = table.place(error.row)
        raise error.at(row, path) from error


def read_target(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any]:
    """Target and weights of a table in files; `y` and `sample_weight` are names of its columns."""
    targets, weight = _names(y, sample_weight)
    rows = as_parquet(X, [*targets, *([] if weight is None else [weight])]).read_all()
    return _target_and_weight(rows, targets, weight)


def _target_and_weight(rows: Any, targets: Sequence[str], weight: str | None) -> tuple[Any, Any]:
    own = [_array(rows[name]) for name in targets]
    weights = None if weight is None else rows[weight].to_numpy().copy()  # Arrow owns it, and torch must not
    return own[0] if len(own) == 1 else np.stack(own, axis=1), weights


def fit_stream(
    estimator: BaseTart,
    table: ParquetTable,
    targets: Sequence[str],
    weight: str | None = None,
    *,
    team: WorkerGroup = SINGLE_WORKER,
    keeper: CheckpointStore | None = None,
    drop_missing_target: bool = False,
    n_lanes: int = SHARDS,
) -> StreamStatistics:
    """Fit to a table in two kinds of passes: one for statistics, and one an epoch.

    Parameters
    ----------
    estimator : TartClassifier or TartRegressor
        In place; where something goes wrong, it is left as it was.
    table : ParquetTable
    targets : sequence of str
        The target column, or several for a regression.
    weight : str, optional
        The column of weights.
    team : WorkerGroup
        Workers that fit the same estimator to the same table, each with its own blocks; in the end all have it.
    keeper : CheckpointStore, optional
        Keeps the state of training after each epoch, and gives that of a run that was cut off.
    drop_missing_target : bool, default=False
        Leave out rows without a target; otherwise they are an error.
    n_lanes : int
        The most workers that there may be. Batches depend on it.

    Returns
    -------
    StreamStatistics
        What the first pass found.
    """
    with _all_or_nothing(estimator):
        return _fit(estimator, table, list(targets), weight, team, keeper, drop_missing_target, n_lanes)


@contextmanager
def _all_or_nothing(estimator: BaseTart) -> Iterator[None]:
    """Where something goes wrong, the estimator is left as it was."""
    before = dict(estimator.__dict__)
    weights = copy.deepcopy(estimator.tree_.state_dict()) if hasattr(estimator, "tree_") else None
    try:
        yield
    except BaseException:
        estimator.__dict__ = before
        if weights is not None:  # a warm start changes the tree in place
            estimator.tree_.load_state_dict(weights)
            estimator.tree_.eval()
        raise


def _fit(
    estimator: BaseTart,
    table: ParquetTable,
    targets: list[str],
    weight: str | None,
    team: WorkerGroup,
    keeper: CheckpointStore | None,
    drop_missing_target: bool,
    n_lanes: int,
) -> StreamStatistics:
    recipe = estimator._recipe()
    if recipe.optimizer != "adam":
        raise ValueError(
            f"a table that is streamed must be learnt with Adam, however: the recipe has {recipe.optimizer}; "
            "use ParquetTable(..., in_memory=True)"
        )
    if team.size > n_lanes:
        raise ValueError(f"a team must have at most {n_lanes} workers, one a lane, however: {team.size}")
    labels = hasattr(estimator, "class_weight")
    check_types(table, targets, weight, labels=labels)
    seeds = team.gather(estimator._draw_seeds(check_random_state(estimator.random_state)))[0]
    stopping = estimator._stopping(table.n_rows)
    most = min(HELD_OUT_ROWS, HELD_OUT_VALUES // _most_features(table))
    shares = SplitFractions(
        held_out=min(recipe.validation_fraction, most / max(1, table.n_rows)) if stopping else 0.0,
        sample=min(1.0, SAMPLE_ROWS / max(1, table.n_rows)),
    )
    features = [name for name in table.names if name not in targets and name != weight]
    blocks = RawBlocks(table, Roles(features, targets, weight, int(seeds[0]), drop_missing_target))
    lanes = Shards.deal([block.rows for block in table.blocks], n_lanes)
    served = range(team.rank, len(lanes.blocks), team.size)
    going_on = estimator.warm_start and hasattr(estimator, "tree_")

    def look(lane: int) -> StreamStatistics:
        target = estimator._target_statistics(len(targets))
        return gather(blocks, lanes.blocks[lane], target, shares, look_at_columns=not going_on)

    statistics = _merged(team, ((lane, look(lane)) for lane in served))
    if not sum(map(sum, statistics.rows.values())):
        raise ValueError(f"{table.label} must have rows to learn from, however: there are none")
    if going_on:
        encoder = estimator.encoder_
        if getattr(encoder, "feature_names_in_", np.empty(0)).tolist() != features:
            raise ValueError(f"warm_start must keep the columns, however: {features}")
    else:
        estimator._refuse_grown()
        encoder = TableEncoder(numeric=estimator.numeric, extrapolation=estimator.extrapolation).fit_statistics(
            statistics.columns
        )
    coder = estimator._learn_target(statistics.target, weighted=weight is not None)
    counted, held_out = coder.counted(statistics.target), coder.counted(statistics.held_out)
    if stopping and not 0 < held_out < counted:
        raise ValueError(
            "early stopping must hold out some rows with weight and learn from others, however: it holds out "
            f"{held_out:,} of {counted:,} rows with weight; use early_stopping=False"
        )
    estimator._set_encoder(encoder)
    device = estimator._make_tree(seeds, counted)
    encoded = EncodedBlocks(blocks, encoder, coder, max(64, min(2**15, PIECE_VALUES // max(1, len(encoder.features_)))))
    learnt = lanes.count({block: kept for block, (kept, _) in statistics.rows.items()})
    is_number = np.array([feature.kind == "value" for feature in encoder.features_], dtype=bool)
    stream = partial(StreamRows, encoded, seed=int(seeds[0]), device=device, served=served, is_number=is_number)
    rows = stream(learnt, shares)
    estimator.history_ = train(
        estimator.tree_,
        rows,
        recipe,
        generator=torch.Generator().manual_seed(int(seeds[0])),
        validation=rows.held_out if stopping else None,
        selection=estimator.selection,
        callbacks=estimator._callbacks(),
        verbose=estimator.verbose,
        workers=team,
        checkpoints=keeper,
    )
    if not rows.collected:  # a run that was cut off after its last epoch
        for _ in rows.epoch(0, recipe.n_batches(len(rows)), noise=0.0):
            pass
    _set_sample(estimator, rows, team)
    if stopping == "refit" and not estimator.history_.interrupted:
        everything = lanes.count({block: sum(counts) for block, counts in statistics.rows.items()})
        estimator._refit(stream(everything, SplitFractions()), recipe, seeds, team)
    estimator.target_name_ = ", ".join(targets)
    estimator.streamed_ = True
    estimator.tree_.eval()
    return statistics


def _names(y: Any, sample_weight: Any) -> tuple[list[str], str | None]:
    targets = [y] if isinstance(y, str) else list(y) if isinstance(y, list | tuple) else []
    if not targets or not all(isinstance(name, str) for name in targets):
        raise ValueError(
            f"y must be the name of the target column where X is read from files, however: {type(y).__name__}; "
            "give for example y='price'"
        )
    if sample_weight is not None and not isinstance(sample_weight, str):
        raise ValueError(
            "sample_weight must be the name of a column where X is read from files, however: "
            f"{type(sample_weight).__name__}"
        )
    return targets, sample_weight


def check_names(table: ParquetTable, y: Any, sample_weight: Any) -> tuple[list[str], str | None]:
    """The target columns and the column of weights, by name."""
    targets, weight = _names(y, sample_weight)
    named = [*targets, *([] if weight is None else [weight])]
    for name in named:
        if name not in table.names:
            raise ValueError(f"{table.label} must have the column {name!r}, however: its columns are {table.names}")
    if len(set(named)) < len(named):
        raise ValueError(f"target and weight must be different columns, however: {named}")
    if len(named) == len(table.names):
        raise ValueError(f"{table.label} must have columns to predict from, however: there are only {named}")
    return targets, weight


def check_types(table: ParquetTable, targets: Sequence[str], weight: str | None, *, labels: bool) -> None:
    """Raise unless targets, weights and features can be what they are to be."""
    table.check_plain(table.names)
    for name in targets:
        check_target_type(table.schema.field(name).type, name, table.label, labels=labels)
    if labels and len(targets) > 1:
        raise ValueError(f"TartClassifier must have one target column, however: {list(targets)}")
    if weight is not None and family(table.schema.field(weight).type) not in ("number", "boolean"):
        kind = table.schema.field(weight).type
        raise ValueError(f"{table.label}: sample_weight {weight!r} must hold numbers, however: its type is {kind}")


def _most_features(table: ParquetTable) -> int:
    """Features that the columns may become: a number and its gaps, or each level, rare ones and gaps."""
    levels = TableEncoder().max_levels + 2
    return sum(2 if family(field.type) in NUMERIC else levels for field in table.schema)


def _merged(team: WorkerGroup, own: Iterator[tuple[int, StreamStatistics]]) -> StreamStatistics:
    """The statistics of all lanes, merged in the order of lanes, from those of this worker's.

    A sketch, or a count that forgets, depends on what was merged with what. So every lane has its own, whoever looks at
    it: the encoder is the same to the last bit for any number of workers. One worker alone merges as it goes, and never
    holds more than two.
    """
    if team.size > 1:
        own = iter(sorted((pair for part in team.gather(list(own)) for pair in part), key=itemgetter(0)))
    _, merged = next(own)
    for _, lane in own:
        merged.merge(lane)
    return merged


def _set_sample(estimator: BaseTart, rows: StreamRows, team: WorkerGroup) -> None:
    """Rows that importances are computed from, those of all workers."""
    pieces = [piece for piece in team.gather(rows.sample) if len(piece)]
    estimator._importances, estimator._sample = None, None
    if pieces:
        found = concatenate_chunks(pieces)
        weight = None if found.weight is None else torch.from_numpy(found.weight).double()
        estimator._sample = torch.from_numpy(found.x), torch.from_numpy(found.target), weight


def _array(column: Any) -> Any:
    """A target as numpy has it."""
    found = column.combine_chunks()
    found = plain(found if isinstance(found, pa.Array) else pa.concat_arrays(found.chunks))
    values = found.to_numpy(zero_copy_only=False)
    return values.astype(np.str_) if values.dtype.kind == "O" and not found.null_count else values
