"""`tartree report`: one HTML page about a model, measured on the rows of a table."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tartree.cli import values
from tartree.cli.errors import Problem, counted, listed, missing_column
from tartree.cli.notes import Notes
from tartree.cli.predicting import Columns, names_read
from tartree.cli.reading import Source, is_several, open_table
from tartree.cli.reporting import size_of
from tartree.cli.streams import STANDARD_INPUT


def report_file(
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
    """Write the page."""
    if os.path.exists(out) and any(os.path.exists(path) and os.path.samefile(out, path) for path in (model_path, data)):
        raise Problem(f"{out} is read by this command; give another --out")
    if not out.lower().endswith((".html", ".htm")):
        raise Problem(f"the name of --out must end in .html, however: {out}")
    if not os.path.exists(model_path):
        raise Problem(f"{model_path}: No such file; the model comes first, then the data")
    if data != STANDARD_INPUT and not is_several(data):
        os.stat(data)  # a wrong name is said at once, before torch is imported
    from tartree import load
    from tartree.explain.page import write_report

    with notes.warnings():
        model = load(model_path)
        needed = names_read(model)
        if needed is not None:
            needed += [name for name in (target, getattr(model, "target_name_", None)) if name is not None]
        with open_table(data, notes, needed=needed) as source, notes.progress(None) as begin:
            begin("reading")
            name = _target_name(model, source, target, notes)
            columns = Columns(model, source, notes)
            table = source.read_all()
            if not table.num_rows:
                raise Problem(f"{source.label} has a header and no rows")
            X = columns.select_all(table)
            y = None
            if name is not None:
                X, y = _with_truth(model, X, table[name], name, source, notes)
            begin("explaining")
            write_report(model, X, y, out, rows=rows, title=title, sizes=None if simplify else ())
            n_rows = table.num_rows if y is None else len(y)
    notes.say(f"Report on {counted(n_rows, 'row')} written to {out} ({size_of(out)}); open it in a browser")


def _target_name(model: Any, source: Source, asked: str | None, notes: Notes) -> str | None:
    """The column with the true values, None where there is none."""
    if asked is not None:
        if asked not in source.names:
            raise missing_column(asked, source.names, source.label)
        return asked
    name: str | None = getattr(model, "target_name_", None)
    if name in source.names:
        return name
    missing = "the model does not say which column is the target" if name is None else f"there is no column {name!r}"
    notes.add(f"{missing}: the report says nothing about errors; give --target")
    return None


def _with_truth(model: Any, X: Any, column: Any, name: str, source: Source, notes: Notes) -> tuple[Any, NDArray[Any]]:
    """The rows that have a true value, and these values."""
    if getattr(model, "target_center_", np.zeros(1)).shape != (1,):
        raise Problem("a report from the command line is for one target, however: the model predicts several")
    is_classifier = hasattr(model, "classes_")
    if source.is_text:
        kind = ("category", None) if is_classifier else ("numeric", "number")
        column = values.read_as(column, *kind, name=name, first_row=2)
    found = column.to_pylist()
    present = np.array([value is not None and value == value for value in found], dtype=bool)  # NaN is no value
    if not present.any():
        raise Problem(f"target {name!r} has no values at all")
    if not present.all():
        notes.add(f"left out: {counted(int((~present).sum()), 'row')} without a target")
        X = X[present] if isinstance(X, np.ndarray) else X.filter(pa.array(present))
    kept = np.flatnonzero(present).tolist()
    if is_classifier:
        labels = [_label(found[row], row, model.classes_, name) for row in kept]
        return X, np.array(labels, dtype=model.classes_.dtype)
    try:
        return X, np.array([float(found[row]) for row in kept])
    except (TypeError, ValueError):
        raise Problem(f"target {name!r} must hold numbers, however: its values are {column.type}") from None


def _label(value: Any, row: int, classes: NDArray[Any], name: str) -> Any:
    """The class that a value means: itself, or the one that is written like it."""
    known = classes.tolist()
    if value in known:
        return value
    text = str(value).strip()
    same = [label for label in known if str(label) == text] or [
        label for label in known if str(label).lower() == text.lower() or _is_same_number(label, text)
    ]
    if len(same) != 1:
        raise Problem(
            f"column {name!r} must hold the classes of the model, {listed(map(repr, known))}, "
            f"however: row {row + 2} holds {text!r}"  # the header is row 1
        )
    return same[0]


def _is_same_number(label: Any, text: str) -> bool:
    try:
        return not isinstance(label, str | bool) and float(label) == float(text)
    except ValueError:
        return False
