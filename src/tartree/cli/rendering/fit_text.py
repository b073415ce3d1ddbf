"""Text about a fit: data, target, model, comparison, and what to do next."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from tartree.cli.rendering.console import describe_file_size, describe_structure, show_facts
from tartree.cli.rendering.phrases import counted

if TYPE_CHECKING:
    from rich.console import Console

    from tartree.cli.workflow.comparison import Comparison
    from tartree.cli.workflow.file_fit import FitReport
    from tartree.table import TableSummary

MOST_CLASSES = 10
MOST_COLUMNS = 6


def show_fit(console: Console, report: FitReport) -> None:
    """Print data, target, model and comparison of a fit."""
    kinds = [f"{count} {kind}" for kind, count in report.columns.items() if count]
    n_columns = counted(sum(report.columns.values()), "column")
    target = report.target
    numbers = target.summary or ("" if target.is_classification else _describe_numbers(target.values))
    what = f"{len(target.classes)} classes" if target.is_classification else numbers
    facts = {
        "data": f"{report.data}: {counted(report.n_rows, 'row')}, {n_columns} ({', '.join(kinds)})",
        "target": f"{target.name}: {target.task}, {what}",
    }
    if texts := describe_texts(report.model.encoder_.summary()):
        facts["read as"] = texts
    if target.is_classification:
        facts["classes"] = _describe_classes(target.classes)
    model, seconds = report.model, f"fitted in {report.seconds:.1f} s"
    sizes = model.get_n_leaves(), model.members, model.n_parameters_
    facts["model"] = describe_structure(model.structure_.to_dict(), *sizes, seconds)
    reading = model.reading_size_
    if reading.numbers is not None:
        columns = f", at most {counted(reading.columns, 'column')} a decision" if reading.columns else ""
        facts["to read"] = f"{counted(reading.numbers, 'number')}{columns}"
    show_facts(console, facts)
    if report.comparison is not None:
        _show_comparison(console, report.comparison)


def describe_texts(columns: TableSummary) -> str:
    """Return how columns of text were read as numbers or dates: "price: number, in $"; "" if there is none."""
    read = [f"{column.name}: {column.kind}, {column.form}" for column in columns if column.form]
    more = f" and {len(read) - MOST_COLUMNS} more" if len(read) > MOST_COLUMNS else ""
    return "; ".join(read[:MOST_COLUMNS]) + more


def _show_comparison(console: Console, comparison: Comparison) -> None:
    from rich.table import Table

    title = f"{comparison.n_folds}-fold cross-validation, {comparison.n_rows:,} rows"
    table = Table(title=title, title_justify="left")
    table.add_column("model")
    table.add_column(comparison.metric, justify="right")
    table.add_column("seconds a fit", justify="right")
    for index, score in enumerate(comparison.scores):
        table.add_row(
            score.name,
            f"{score.mean:.3f} \N{PLUS-MINUS SIGN} {score.sd:.3f}",
            f"{score.seconds:.2f}",
            style="bold" if index == 0 else None,
        )
    console.print(table)


def show_saved(console: Console, report: FitReport) -> None:
    """Print where the model was saved, and commands to use it."""
    console.print(f"Saved {report.path} ({describe_file_size(report.path)}). Next:", soft_wrap=True)
    path = shlex.quote(report.path)
    console.print(f"  tartree predict {path} new.csv --out predictions.csv", soft_wrap=True)
    console.print(f"  tartree inspect {path}", soft_wrap=True)


def _describe_classes(classes: dict[Any, int]) -> str:
    total = sum(classes.values())
    parts = [f"{label}: {count:,} ({count / total:.1%})" for label, count in list(classes.items())[:MOST_CLASSES]]
    more = len(classes) - MOST_CLASSES
    return ", ".join(parts) + (f" and {more} more" if more > 0 else "")


def _describe_numbers(values: Any) -> str:
    return f"{values.min():.6g} to {values.max():.6g}, mean {values.mean():.6g}"
