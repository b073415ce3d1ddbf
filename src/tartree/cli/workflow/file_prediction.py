"""Predictions of the rows of a file, in constant memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tartree.cli.io.byte_stream import label
from tartree.cli.io.input_formats import open_table
from tartree.cli.io.input_table import InputTable, free_name
from tartree.cli.io.path_checks import check_inputs, check_not_read
from tartree.cli.io.table_writer import STANDARD_OUTPUT, open_writer
from tartree.cli.problems import located_errors
from tartree.cli.rendering.notes import Notes
from tartree.cli.rendering.phrases import counted
from tartree.cli.workflow.model_columns import ModelColumns, needed_columns

if TYPE_CHECKING:
    from tartree.model import FittedModel

DECIMALS = 6  # of probabilities


def predict_file(
    model_path: str,
    data: str,
    out: str,
    *,
    proba: bool,
    chunk_rows: int,
    notes: Notes,
    cluster: str | None = None,
    workers: int | None = None,
) -> int:
    """Write a table with its predictions chunk by chunk, here or on a cluster, and return the number of its rows."""
    check_inputs(model_path, data, out)
    from tartree import load
    from tartree.cli.workflow.cluster_calls import predict_on_cluster

    with notes.warnings():
        estimator = load(model_path)
        model = estimator.model_
        bar = (notes if out != STANDARD_OUTPUT else Notes(quiet=True)).progress(None)
        opened = open_table(data, notes, needed=needed_columns(model))
        with opened as source, open_writer(out) as write, bar as begin:
            check_not_read(out, [] if source.parquet is None else source.parquet.files)
            columns = ModelColumns(model, source, notes)
            if cluster is None:
                chunks = _predicted_chunks(model, source, columns, proba, chunk_rows)
            else:
                chunks = predict_on_cluster(estimator, source, columns, proba, cluster, workers)
            n_rows = 0
            for chunk in chunks:
                write(chunk)
                n_rows += chunk.num_rows
                begin(f"{n_rows:,} rows")
    if not n_rows:
        notes.add(f"{label(data)} has a header and no rows")
    if out != STANDARD_OUTPUT:
        notes.say(f"{counted(n_rows, 'row')} written to {out}")
    return n_rows


def _predicted_chunks(
    model: FittedModel, source: InputTable, columns: ModelColumns, proba: bool, chunk_rows: int
) -> Iterator[Any]:
    for path, n_before, chunk in source.chunks(chunk_rows):
        with located_errors(path, n_before):
            predicted = append_predictions(model, chunk, columns.select(chunk, n_before), proba)
        yield predicted


def append_predictions(model: FittedModel, chunk: Any, rows: Any, proba: bool) -> Any:
    """Return a chunk of a table with the predictions for its rows, as the model takes them, in further columns."""
    for name, values in _prediction_columns(model, rows, proba):
        chunk = chunk.append_column(free_name(name, chunk.column_names), pa.array(values))
    return chunk


def _prediction_columns(model: FittedModel, rows: Any, proba: bool) -> Iterator[tuple[str, Any]]:
    if model.is_classifier:
        probabilities = model.predict_proba(rows)  # (rows, classes)
        labels = model.classes[probabilities.argmax(axis=1)] if len(probabilities) else model.classes[:0]
        yield "prediction", labels
        if proba:
            for index, name in enumerate(model.classes.tolist()):
                yield f"probability_{name}", probabilities[:, index].round(DECIMALS)
        return
    has_spread = model.codec.output.has_spread
    predicted, spread = model.predict_moments(rows) if has_spread else (model.predict(rows), None)
    is_several = predicted.ndim == 2
    for index in range(predicted.shape[1] if is_several else 1):
        suffix = f"_{index + 1}" if is_several else ""
        yield f"prediction{suffix}", predicted[:, index] if is_several else predicted
        if proba and spread is not None:
            yield f"std{suffix}", spread[:, index] if is_several else spread
