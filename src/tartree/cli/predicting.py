"""`tartree predict`: the rows of a table with their predictions, in constant memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from tartree.cli import values
from tartree.cli.errors import Problem, counted, listed, missing_column, naming, nearest
from tartree.cli.notes import Notes
from tartree.cli.reading import Source, free_name, is_several, open_table
from tartree.cli.streams import STANDARD_INPUT, label
from tartree.cli.writing import STANDARD_OUTPUT, open_writer

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
    """Predict a table chunk by chunk, here or on a cluster; the number of its rows."""
    if os.path.exists(out) and any(os.path.exists(path) and os.path.samefile(out, path) for path in (model_path, data)):
        raise Problem(f"{out} is read by this command; give another --out")
    if not os.path.exists(model_path):
        raise Problem(f"{model_path}: No such file; the model comes first, then the data")
    if data != STANDARD_INPUT and not is_several(data):
        os.stat(data)  # a wrong name is said at once, before torch is imported
    from tartree import load
    from tartree.cli import clusters

    with notes.warnings():
        model = load(model_path)
        bar = (notes if out != STANDARD_OUTPUT else Notes(quiet=True)).progress(None)
        reading = open_table(data, notes, needed=names_read(model))
        with reading as source, open_writer(out) as write, bar as begin:
            files = [] if source.table is None else source.table.files
            if os.path.exists(out) and any(os.path.samefile(out, path) for path in files):
                raise Problem(f"{out} is read by this command; give another --out")
            columns = Columns(model, source, notes)
            if cluster is None:
                chunks = _predicted(model, source, columns, proba, chunk_rows)
            else:
                chunks = clusters.predicted(model, source, columns, proba, cluster, workers)
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


def names_read(model: Any) -> list[str] | None:
    """The columns that a model reads; None where it knows no names, and takes all columns in their order."""
    if not hasattr(model, "feature_names_in_"):
        return None
    used = {feature.column for feature in model.encoder_.features_}
    return [str(name) for place, name in enumerate(model.feature_names_in_) if place in used]


class Columns:
    """How the columns of a table become those of the model, by name."""

    def __init__(self, model: Any, source: Source, notes: Notes) -> None:
        self._source = source
        self._notes = notes
        self._doubted: set[str] = set()
        self._encoder = model.encoder_
        used = {feature.column for feature in self._encoder.features_}
        names = getattr(model, "feature_names_in_", None)
        if names is None:  # fitted to an array: the columns of the table in their order
            index = [] if source.table is None else source.table.index_names
            names = [
                name for name in source.names if name != getattr(model, "target_name_", None) and name not in index
            ]
            if len(names) != self._encoder.n_features_in_:
                raise Problem(
                    f"the model was fitted to {counted(self._encoder.n_features_in_, 'column')} without names, "
                    f"however: {source.label} has {len(names)}: {listed(names)}"
                )
        self._names = [str(name) for name in names]
        self._has_names = hasattr(model, "feature_names_in_")
        self._read = [index in used for index in range(len(self._names))]
        self._check_missing()

    def _check_missing(self) -> None:
        there = self._source.names
        missing = [name for name, read in zip(self._names, self._read, strict=True) if read and name not in there]
        free = [name for name in there if name not in self._names]
        if len(missing) == 1:
            raise missing_column(missing[0], free, self._source.label, "the model was fitted with it")
        if missing:
            pairs = {name: nearest(name, free) for name in missing}
            hints = [f"{name!r} may be {found[0]!r}" for name, found in pairs.items() if found]
            hint = f"; {listed(hints, 4)}" if hints else ""
            raise Problem(f"{self._source.label} has no columns {listed(map(repr, missing))}{hint}")

    def select(self, chunk: Any, n_before: int) -> Any:
        """The columns of the model in its order; what it does not read is left empty.

        `n_before` rows came before this chunk.
        """
        arrays = [
            self._convert(chunk[name], name, column, n_before) if read else pa.nulls(chunk.num_rows)
            for name, column, read in zip(self._names, self._encoder.columns_, self._read, strict=True)
        ]
        if self._has_names:
            return pa.table(arrays, names=self._names)
        return np.array([array.to_pylist() for array in arrays], dtype=object).T

    def select_all(self, table: Any) -> Any:
        """The same of a whole table, which may come from several files; what is wrong is said with the file."""
        try:
            return self.select(table, 0)
        except Problem:
            for path, part in self._source.parts(table):
                with naming(path):
                    self.select(part, 0)
            raise

    def _convert(self, array: Any, name: str, column: Any, n_before: int) -> Any:
        first_row = n_before + 2  # the header is row 1, also of tables that are not text: one way to count
        if not self._source.is_text:
            if column.kind != "numeric":
                return array
            if not pa.types.is_string(array.type) and not pa.types.is_large_string(array.type):
                values.check_finite(array, name, first_row)
                return array
            array = array.cast(pa.string())
        unit = getattr(column, "unit", None)
        ends = (column.low, column.high) if unit == "number" and not self._source.decimal_comma else None
        found = values.read_as(array, column.kind, unit, name=name, first_row=first_row, fitted_range=ends)
        if unit == "number" and not self._source.decimal_comma and name not in self._doubted:
            doubt = values.comma_doubt(array, found, name, first_row)
            if doubt:
                self._doubted.add(name)
                self._notes.add(doubt)
        return found


def _predicted(model: Any, source: Source, columns: Columns, proba: bool, chunk_rows: int) -> Iterator[Any]:
    """The rows of a table with their predictions, chunk by chunk."""
    for path, n_before, chunk in source.chunks(chunk_rows):
        with naming(path, n_before):
            found = with_predictions(model, chunk, columns.select(chunk, n_before), proba)
        yield found


def _predict(model: Any, table: Any, proba: bool) -> Iterator[tuple[str, Any]]:
    """Names and values of the columns that come after those of the table."""
    if hasattr(model, "classes_"):
        probabilities = model.predict_proba(table)  # (rows, classes)
        labels = model.classes_[probabilities.argmax(axis=1)] if len(probabilities) else model.classes_[:0]
        yield "prediction", labels
        if proba:
            for place, name in enumerate(model.classes_.tolist()):
                yield f"probability_{name}", probabilities[:, place].round(DECIMALS)
        return
    predicted, spread = model.predict(table, return_std=True)
    several = predicted.ndim == 2
    for place in range(predicted.shape[1] if several else 1):
        suffix = f"_{place + 1}" if several else ""
        yield f"prediction{suffix}", predicted[:, place] if several else predicted
        if proba:
            yield f"std{suffix}", spread[:, place] if several else spread


def with_predictions(model: Any, chunk: Any, table: Any, proba: bool) -> Any:
    """A chunk with what the model predicts from `table`, its columns as the model takes them."""
    for name, found in _predict(model, table, proba):
        chunk = chunk.append_column(free_name(name, chunk.column_names), pa.array(found))
    return chunk
