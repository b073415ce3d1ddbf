"""The page of `tartree report`: a model, measured on the rows of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tartree.cli.io import text_values
from tartree.cli.io.input_formats import open_table
from tartree.cli.io.input_table import InputTable
from tartree.cli.io.path_checks import check_inputs
from tartree.cli.problems import FIRST_ROW, Problem, missing_column
from tartree.cli.rendering.console import describe_file_size
from tartree.cli.rendering.notes import Notes
from tartree.cli.rendering.phrases import counted, listed
from tartree.cli.workflow.model_columns import ModelColumns, needed_columns
from tartree.table.texts.number_form import NumberForm

if TYPE_CHECKING:
    from tartree.model import FittedModel


def write_page(
    model_path: str,
    data: str,
    out: str,
    *,
    notes: Notes,
    target: str | None = None,
    rows: int = 1000,
    title: str | None = None,
    simplify: bool = True,
) -> None:
    """Write the page about a model in a file, on the rows of another file."""
    check_inputs(model_path, data, out)
    if not out.lower().endswith((".html", ".htm")):
        raise Problem(f"the name of --out must end in .html, got {out}")
    from tartree import load
    from tartree.explain.page import write_report

    with notes.warnings():
        estimator = load(model_path)
        model = estimator.model_
        needed = needed_columns(model)
        if needed is not None:
            needed += [name for name in (target, model.target_name) if name is not None]
        with open_table(data, notes, needed=needed) as source, notes.progress(None) as begin:
            begin("reading")
            name = _target_name(model, source, target, notes)
            columns = ModelColumns(model, source, notes)
            table = source.read_all()
            if not table.num_rows:
                raise Problem(f"{source.label} has a header and no rows")
            X = columns.select_all(table)
            y = None
            if name is not None:
                X, y = _with_truth(model, X, table[name], name, source, notes)
            begin("explaining")
            write_report(estimator, X, y, out, rows=rows, title=title, sizes=None if simplify else ())
            n_rows = table.num_rows if y is None else len(y)
    notes.say(f"Report on {counted(n_rows, 'row')} written to {out} ({describe_file_size(out)}); open it in a browser")


def _target_name(model: FittedModel, source: InputTable, asked: str | None, notes: Notes) -> str | None:
    """Return the column with the true values, or None without one."""
    if asked is not None:
        if asked not in source.names:
            raise missing_column(asked, source.names, source.label)
        return asked
    name = model.target_name
    if name in source.names:
        return name
    missing = "the model does not say which column is the target" if name is None else f"there is no column {name!r}"
    notes.add(f"{missing}: the report says nothing about errors; give --target")
    return None


def _with_truth(
    model: FittedModel, X: Any, column: Any, name: str, source: InputTable, notes: Notes
) -> tuple[Any, NDArray[Any]]:
    """Return the rows that have a true value, and these values."""
    if not model.is_classifier and model.n_outputs != 1:
        raise Problem(f"a report from the command line is for one target, got a model of {model.n_outputs}")
    if source.is_text:
        typed = None if model.is_classifier else text_values.infer(column, decimal_comma=source.decimal_comma)
        if typed is not None and isinstance(typed.form, NumberForm):
            column = typed.values
        else:
            unit = None if model.is_classifier else "number"
            column = text_values.read_as(column, unit, name=name, first_row=FIRST_ROW)
    values = column.to_pylist()
    present = np.array([value is not None and value == value for value in values], dtype=bool)  # NaN is missing
    if not present.any():
        raise Problem(f"target {name!r} has no values at all")
    if not present.all():
        notes.add(f"left out: {counted(int((~present).sum()), 'row')} without a target")
        X = X[present] if isinstance(X, np.ndarray) else X.filter(pa.array(present))
    kept = np.flatnonzero(present).tolist()
    if model.is_classifier:
        labels = [_label(values[row], row, model.classes, name) for row in kept]
        return X, np.array(labels, dtype=model.classes.dtype)
    try:
        return X, np.array([float(values[row]) for row in kept])
    except (TypeError, ValueError):
        raise Problem(f"target {name!r} must hold numbers, got values of type {column.type}") from None


def _label(value: Any, row: int, classes: NDArray[Any], name: str) -> Any:
    """Return the class that equals a value, or is spelled like it."""
    labels = classes.tolist()
    if value in labels:
        return value
    text = str(value).strip()
    same = [label for label in labels if str(label) == text] or [
        label for label in labels if str(label).lower() == text.lower() or _is_same_number(label, text)
    ]
    if len(same) != 1:
        raise Problem(
            f"column {name!r} must hold the classes of the model, {listed(map(repr, labels))}, "
            f"got {text!r} in row {row + FIRST_ROW}"
        )
    return same[0]


def _is_same_number(label: Any, text: str) -> bool:
    try:
        return not isinstance(label, str | bool) and float(label) == float(text)
    except ValueError:
        return False
