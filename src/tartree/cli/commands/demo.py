"""`tartree demo`: fit and predict breast cancer data of scikit-learn."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from tartree.cli.command_group import CommandEntry, debug_option
from tartree.cli.problems import Problem
from tartree.cli.rendering.console import make_console
from tartree.cli.rendering.notes import Notes

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

TARGET = "diagnosis"
N_NEW = 100


@click.command()
@click.option("-o", "--out", default="tartree-demo", show_default=True, metavar="DIR", help="Where the results go.")
@debug_option
def demo(out: str) -> None:
    """Fit a readable tree to breast cancer data that comes with scikit-learn."""
    run_demo(out)


ENTRY = CommandEntry(demo, "demo", "a first look, on data that is already here")


def run_demo(directory: str, *, epochs: int | None = None) -> None:
    """Write data, model, predictions and a summary into a directory, and print their paths."""
    from pathlib import Path

    from tartree.cli.rendering.fit_text import show_fit
    from tartree.cli.workflow.file_fit import FitSettings, fit_file
    from tartree.cli.workflow.file_prediction import predict_file

    folder = Path(directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise Problem(f"{folder} is a file; give the name of a directory to --out") from None
    data, new, model = folder / "breast-cancer.csv", folder / "new-patients.csv", folder / "breast-cancer.tart"
    predictions, summary = folder / "predictions.csv", folder / "summary.txt"
    rows = _breast_cancer()
    training_rows, new_rows = rows.slice(N_NEW), rows.slice(0, N_NEW)
    _write(training_rows, data)
    _write(new_rows, new)
    notes = Notes()
    n_measurements = training_rows.num_columns - 1
    notes.say(f"Learning from {training_rows.num_rows} tumours, each with {n_measurements} measurements ...")
    settings = FitSettings(out=str(model), force=True, epochs=epochs)
    report = fit_file(str(data), TARGET, settings, Notes(quiet=not notes.shows_progress))
    predict_file(str(model), str(new), str(predictions), proba=True, chunk_rows=100_000, notes=Notes(quiet=True))
    n_right = int((report.model.predict(new_rows.drop_columns([TARGET])) == new_rows[TARGET].to_numpy()).sum())
    console = make_console()
    with summary.open("w", encoding="utf-8") as file:
        for output in (make_console(file), console):
            show_fit(output, report)
            output.print(f"Of {N_NEW} other tumours, the model names {n_right} rightly.")
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
    """Return the rows in random order, as a pyarrow.Table with the diagnosis as text."""
    import numpy as np
    import pyarrow as pa
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    order = np.random.default_rng(0).permutation(len(bunch.target))
    columns = {name: bunch.data[order, index] for index, name in enumerate(bunch.feature_names.tolist())}
    return pa.table({**columns, TARGET: bunch.target_names[bunch.target[order]].tolist()})


def _write(table: Any, path: Path) -> None:
    from tartree.cli.io.table_writer import open_writer

    with open_writer(str(path)) as write:
        write(table)


def _show_files(console: Console, files: dict[Path, str]) -> None:
    console.print("\nWritten:")
    width = max(len(str(path)) for path in files)
    for path, what in files.items():
        console.print(f"  {path!s:{width}}  {what}", soft_wrap=True)


def _show_next(console: Console, data: Path, new: Path, model: Path) -> None:
    data_path, new_path, model_path = (shlex.quote(str(path)) for path in (data, new, model))
    console.print("\nThe same by hand, and then with a table of your own:")
    console.print(f"  tartree fit {data_path} --target {TARGET} --out {model_path}", soft_wrap=True)
    console.print(f"  tartree predict {model_path} {new_path}", soft_wrap=True)
    console.print(f"  tartree inspect {model_path}", soft_wrap=True)
