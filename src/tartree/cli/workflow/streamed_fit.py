"""Fits to Parquet files that are not read into memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from tartree.cli.io.parquet_input import note_index
from tartree.cli.problems import Problem, located_errors
from tartree.cli.rendering.notes import Notes
from tartree.cli.rendering.phrases import counted
from tartree.cli.workflow.target_column import Target, guess_task
from tartree.cli.workflow.training_table import check_target, count_columns

if TYPE_CHECKING:
    from tartree import TartClassifier, TartRegressor
    from tartree.model.target import Task
    from tartree.table import ParquetTable

#: Rows from which the task is guessed.
SAMPLE_ROWS = 100_000


def check_stream(
    table: ParquetTable, data: str, target: str, drop: tuple[str, ...], asked: Literal["auto"] | Task, notes: Notes
) -> Task:
    """Check the columns of a table, without those already dropped, and return the task, guessed if not asked for."""
    check_target(table.all_names, data, target, drop, drop)
    if table.names == [target]:
        raise Problem(f"{data} has no column beside the target {target!r} to predict it from")
    if not table.n_rows:
        raise Problem(f"{data} has a header and no rows")
    note_index(table, drop, notes)
    if asked != "auto":
        return asked
    column = _first_values(table, target)
    if not len(column):
        raise Problem(f"target {target!r} has no values in the first {SAMPLE_ROWS:,} rows; give --task")
    return guess_task(column, len(column.unique()), target, notes, " in the first rows")


def _first_values(table: ParquetTable, target: str) -> Any:
    """Return the first values of the target that are not missing."""
    selected = table.select([target])
    columns: list[Any] = []
    n_rows = 0
    for *_, piece in selected.scan():
        columns.append(selected.as_table(piece)[target])
        n_rows += piece.num_rows
        if n_rows >= SAMPLE_ROWS:
            break
    chunks = [chunk for column in columns for chunk in column.chunks]
    return pa.chunked_array(chunks, selected.schema.field(0).type).drop_null()


def fit_stream(
    estimator: TartClassifier | TartRegressor,
    table: ParquetTable,
    target: str,
    drop_missing_target: bool,
    notes: Notes,
    cluster: dict[str, Any] | None = None,
) -> tuple[dict[str, int], Target, int]:
    """Fit an estimator in place, here or on a cluster; return the kinds of columns, the target and the rows."""
    from tartree.cluster.distributed_fit import ClusterSettings, fit_source
    from tartree.model.stream_source import StreamSource
    from tartree.model.target import LabelStatistics

    with located_errors(None):  # the library names the file
        source = StreamSource(table, [target], drop_missing_target=drop_missing_target)
        if cluster is None:
            estimator.fit_source(source)
        else:
            fit_source(estimator, source, ClusterSettings(**cluster))
    statistics = source.statistics
    n_rows = sum(map(sum, statistics.rows.values()))
    if n_rows < table.n_rows:
        notes.add(f"left out: {counted(table.n_rows - n_rows, 'row')} without a target")
    model = estimator.model_
    columns = count_columns(estimator.encoder_, table.label, notes)
    if isinstance(statistics.target, LabelStatistics):
        counts = {label: int(row[0]) for label, row in statistics.target.counts.items()}
        classes = dict(sorted(counts.items(), key=lambda pair: -pair[1]))
        return columns, Target(target, model.task, np.empty(0), classes), n_rows
    center, scale = (float(values[0]) for values in model.target_scaling)
    summary = f"mean {center:.6g}, standard deviation {scale:.6g}"
    return columns, Target(target, model.task, np.empty(0), {}, summary), n_rows
