"""`tartree fit` of Parquet files that are not read into memory."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa

from tartree.cli.errors import Problem, counted, missing_column, naming
from tartree.cli.notes import Notes
from tartree.cli.preparing import count_columns
from tartree.cli.reading import note_index
from tartree.cli.targets import Target, Task, guess_task, is_number

#: Rows that are looked at to find out whether to classify or to predict a number.
SAMPLE_ROWS = 100_000


def prepare(
    table: Any, data: str, target: str, drop: tuple[str, ...], asked: Literal["auto"] | Task, notes: Notes
) -> Task:
    """Check the columns of a table, of which some are dropped already; the task, which the first rows may tell."""
    for name in (target, *drop):
        if name not in table.all_names:
            raise missing_column(name, table.all_names, data)
    if target in drop:
        raise Problem(f"column {target!r} cannot be both the target and left out")
    if table.names == [target]:
        raise Problem(f"{data} has no column beside the target {target!r} to predict it from")
    if not table.n_rows:
        raise Problem(f"{data} has a header and no rows")
    note_index(table, drop, notes)
    if asked != "auto":
        return asked
    column = _first_rows(table, target)
    if not len(column):
        raise Problem(f"target {target!r} has no values in the first {SAMPLE_ROWS:,} rows; give --task")
    task, reason = guess_task(column, len(column.unique()), target)
    if is_number(column.type):
        other = "regression" if task == "classification" else "classification"
        notes.add(f"{target!r} holds {reason} in the first rows: taken as {task}; for {other} give --task {other}")
    return task


def _first_rows(table: Any, target: str) -> Any:
    """The first values of the target, without gaps."""
    chosen = table.select([target])
    found: list[Any] = []
    n_rows = 0
    for *_, piece in chosen.scan():
        found.append(chosen.as_table(piece)[target])
        n_rows += piece.num_rows
        if n_rows >= SAMPLE_ROWS:
            break
    joined = pa.chunked_array([chunk for column in found for chunk in column.chunks], chosen.schema.field(0).type)
    return joined.drop_null()


def fit(
    model: Any,
    table: Any,
    target: str,
    task: Task,
    drop_missing_target: bool,
    notes: Notes,
    cluster: dict[str, Any] | None = None,
) -> tuple[dict[str, int], Target, int]:
    """Fit in place, here or on a cluster; the kinds of columns, the target and the number of rows."""
    from tartree.cli import clusters
    from tartree.model.stream_source import StreamSource

    with naming(None):  # the library says the file
        if cluster is None:
            source = StreamSource(table, [target], drop_missing_target=drop_missing_target)
            model.fit_source(source)
            found = source.statistics
        else:
            found = clusters.fit(model, table, target, drop_missing_target, cluster)
    n_rows = sum(map(sum, found.rows.values()))
    if n_rows < table.n_rows:
        notes.add(f"left out: {counted(table.n_rows - n_rows, 'row')} without a target")
    columns = count_columns(model.encoder_, table.label, notes)
    if task == "regression":
        center, scale = float(model.target_center_[0]), float(model.target_scale_[0])
        summary = f"mean {center:.6g}, standard deviation {scale:.6g}"
        return columns, Target(target, task, np.empty(0), {}, summary), n_rows
    counts = {label: int(row[0]) for label, row in found.target.counts.items()}  # type: ignore[attr-defined]
    classes = dict(sorted(counts.items(), key=lambda pair: -pair[1]))
    return columns, Target(target, task, np.empty(0), classes), n_rows
