"""ModelColumns: the columns of a table as a model takes them, matched by name."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tartree.cli.io import text_values
from tartree.cli.io.input_table import InputTable
from tartree.cli.problems import FIRST_ROW, Problem, located_errors, missing_column, nearest_names
from tartree.cli.rendering.notes import Notes
from tartree.cli.rendering.phrases import counted, listed

if TYPE_CHECKING:
    from tartree.model import FittedModel
    from tartree.table import Column


def needed_columns(model: FittedModel) -> list[str] | None:
    """Return the columns that a model reads; None if it was fitted without names, and takes all in their order."""
    if not _has_names(model):
        return None
    return [name for name, is_read in zip(model.column_names, _are_read(model), strict=True) if is_read]


def _has_names(model: FittedModel) -> bool:
    return hasattr(model.encoder, "feature_names_in_")


def _are_read(model: FittedModel) -> list[bool]:
    """Return for each column whether any feature is made of it."""
    indices = {feature.column for feature in model.encoder.features_}
    return [index in indices for index in range(model.encoder.n_features_in_)]


class ModelColumns:
    """The columns of a table as those of a model.

    Parameters
    ----------
    model : FittedModel
    source : InputTable
        Table with the columns, in any order and beside others.
    notes : Notes
        For notes about values that can be read in two ways.

    Raises
    ------
    Problem
        If columns are missing.
    """

    def __init__(self, model: FittedModel, source: InputTable, notes: Notes) -> None:
        self._source = source
        self._notes = notes
        self._noted: set[str] = set()  # columns with a note about their commas
        self._columns = model.encoder.columns_
        self._has_names = _has_names(model)
        self._names = model.column_names if self._has_names else _names_in_order(model, source)
        self._are_read = _are_read(model)
        self._check_missing()

    def _check_missing(self) -> None:
        present = self._source.names
        missing = [name for name, is_read in zip(self._names, self._are_read, strict=True) if is_read]
        missing = [name for name in missing if name not in present]
        free = [name for name in present if name not in self._names]
        if len(missing) == 1:
            raise missing_column(missing[0], free, self._source.label, "the model was fitted with it")
        if missing:
            near = {name: nearest_names(name, free) for name in missing}
            hints = [f"{name!r} may be {names[0]!r}" for name, names in near.items() if names]
            hint = f"; {listed(hints, 4)}" if hints else ""
            raise Problem(f"{self._source.label} has no columns {listed(map(repr, missing))}{hint}")

    def without_source(self) -> ModelColumns:
        """Return a copy to be sent elsewhere: without the rows and the terminal."""
        columns = copy.copy(self)
        columns._source = replace(self._source, batches=iter(()), parquet=None)
        columns._notes = Notes(quiet=True)
        return columns

    def select(self, chunk: Any, n_before: int) -> Any:
        """Return the columns of the model in its order, with those it does not read empty.

        Rows are counted after `n_before` rows.
        """
        arrays = [
            self._convert(chunk[name], name, column, n_before) if is_read else pa.nulls(chunk.num_rows)
            for name, column, is_read in zip(self._names, self._columns, self._are_read, strict=True)
        ]
        if self._has_names:
            return pa.table(arrays, names=self._names)
        return np.array([array.to_pylist() for array in arrays], dtype=object).T

    def select_all(self, table: Any) -> Any:
        """Return the columns of a whole table; errors name the file if there are several."""
        try:
            return self.select(table, 0)
        except Problem:
            for path, part in self._source.parts(table):
                with located_errors(path):
                    self.select(part, 0)
            raise

    def _convert(self, array: Any, name: str, column: Column, n_before: int) -> Any:
        first_row = n_before + FIRST_ROW
        if not self._source.is_text:
            if not column.is_measured:
                return array
            if not pa.types.is_string(array.type) and not pa.types.is_large_string(array.type):
                text_values.check_finite(array, name, first_row)
                return array
            array = array.cast(pa.string())
        unit = column.quantity.name if column.is_measured else None
        may_have_thousands = unit == "number" and not self._source.decimal_comma
        form = column.summary.form
        may_have_thousands = may_have_thousands and form is None
        limits = column.summary.range if may_have_thousands else None
        typed = text_values.read_as(array, unit, name=name, first_row=first_row, fitted_range=limits, form=form)
        if may_have_thousands and name not in self._noted:
            doubt = text_values.describe_comma_doubt(array, typed, name, first_row)
            if doubt:
                self._noted.add(name)
                self._notes.add(doubt)
        return typed


def _names_in_order(model: FittedModel, source: InputTable) -> list[str]:
    """Return all columns of a table but the target and the index, for a model fitted without names."""
    index = [] if source.parquet is None else source.parquet.index_names
    names = [name for name in source.names if name != model.target_name and name not in index]
    n_columns = model.encoder.n_features_in_
    if len(names) != n_columns:
        raise Problem(
            f"{source.label} must have {counted(n_columns, 'column')}, as many as the model was fitted to without "
            f"names, got {len(names)}: {listed(names)}"
        )
    return names
