"""`tartree demo`: a first look, on breast cancer data that comes with scikit-learn."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tartree.cli import fitting, reporting
from tartree.cli.errors import Problem
from tartree.cli.notes import Notes
from tartree.cli.predicting import predict_file
from tartree.cli.writing import open_writer

if TYPE_CHECKING:
    from rich.console import Console

TARGET = "diagnosis"
N_NEW = 100


def run(directory: str, *, epochs: int | None = None) -> None:
    """Write data, model, predictions and a summary into a directory, and say what they are."""
    folder = Path(directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise Problem(f"{folder} is a file; give the name of a directory to --out") from None
    data, new, model = folder / "breast-cancer.csv", folder / "new-patients.csv", folder / "breast-cancer.tart"
    predictions, summary = folder / "predictions.csv", folder / "summary.txt"
    rows = _breast_cancer()
    known, unknown = rows.slice(N_NEW), rows.slice(0, N_NEW)
    _write(known, data)
    _write(unknown, new)
    notes = Notes()
    notes.say(f"Learning from {known.num_rows} tumours, each with {known.num_columns - 1} measurements ...")
    settings = fitting.Settings(out=str(model), force=True, epochs=epochs)
    report = fitting.fit_file(str(data), TARGET, settings, Notes(quiet=not notes.shows_progress))
    predict_file(str(model), str(new), str(predictions), proba=True, chunk_rows=100_000, notes=Notes(quiet=True))
    right = int(np.sum(report.model.predict(unknown.drop_columns([TARGET])) == unknown[TARGET].to_numpy()))
    console = reporting.make_console()
    with summary.open("w", encoding="utf-8") as file:
        for out in (reporting.make_console(file), console):
            reporting.show_fit(out, report)
            out.print(f"Of {N_NEW} other tumours, the model names {right} rightly.")
    files = {
        data: "what it learnt from",
        new: f"the {N_NEW} other tumours",
        model: "the model",
        predictions: f"its predictions for the {N_NEW}",
        summary: "the tables above",
    }
    _show_files(console, files)
    _show_next(console, data, new, folder / "mine.tart")


def _breast_cancer() -> Any:
    """The rows in random order, as a pyarrow.Table with the diagnosis in words."""
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    order = np.random.default_rng(0).permutation(len(bunch.target))
    columns = {name: bunch.data[order, place] for place, name in enumerate(bunch.feature_names.tolist())}
    return pa.table({**columns, TARGET: bunch.target_names[bunch.target[order]].tolist()})


def _write(table: Any, path: Path) -> None:
    with open_writer(str(path)) as write:
        write(table)


def _show_files(console: Console, files: dict[Path, str]) -> None:
    console.print("\nWritten:")
    width = max(len(str(path)) for path in files)
    for path, what in files.items():
        console.print(f"  {path!s:{width}}  {what}", soft_wrap=True)


def _show_next(console: Console, data: Path, new: Path, model: Path) -> None:
    known, unknown, mine = (shlex.quote(str(path)) for path in (data, new, model))
    console.print("\nThe same by hand, and then with a table of your own:")
    console.print(f"  tartree fit {known} --target {TARGET} --out {mine}", soft_wrap=True)
    console.print(f"  tartree predict {mine} {unknown}", soft_wrap=True)
    console.print(f"  tartree inspect {mine}", soft_wrap=True)
