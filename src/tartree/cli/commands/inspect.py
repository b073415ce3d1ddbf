"""`tartree inspect`: describe a model file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from tartree.cli import options as shared
from tartree.cli.command_group import CommandEntry, debug_option
from tartree.cli.rendering.console import (
    describe_file_size,
    describe_structure,
    make_console,
    print_json,
    show_facts,
)
from tartree.cli.rendering.phrases import counted, listed

if TYPE_CHECKING:
    from rich.console import Console

    from tartree.model import FittedModel

MOST_COLUMNS = 40


@click.command()
@click.argument("model")
@shared.json_option()
@debug_option
def inspect(model: str, as_json: bool) -> None:
    """Say what a model file holds: target, structure, and the columns it reads."""
    description = _describe_model(model)
    if as_json:
        print_json(description)
    else:
        _show_model(make_console(), description)


ENTRY = CommandEntry(inspect, "inspect model.tart", "what a model file holds")


def _describe_model(path: str) -> dict[str, Any]:
    """Return a model file as plain data for JSON."""
    os.stat(path)  # a wrong name is reported before torch is imported, which takes seconds
    from tartree import load, persist

    estimator = load(path)
    model = estimator.model_
    document, _ = persist.read(path)
    return {
        "file": path,
        "bytes": os.path.getsize(path),
        "estimator": type(estimator).__name__,
        "task": model.task,
        "version": document.get("tartree"),
        "target": model.target_name,
        "classes": model.classes.tolist() if model.is_classifier else None,
        "structure": model.structure.to_dict(),
        "depth": model.structure.depth,
        "members": estimator.members,
        "decisions": model.structure.n_decisions,
        "leaves": model.structure.n_leaves,
        "parameters": model.n_parameters,
        "settings": document["parameters"],
        "columns": _describe_columns(model),
    }


def _describe_columns(model: FittedModel) -> list[dict[str, Any]]:
    import numpy as np

    described = []
    for index, (name, column) in enumerate(zip(model.column_names, model.encoder.columns_, strict=True)):
        features = [feature.label for feature in model.encoder.features_ if feature.column == index]
        summary = column.summary
        fields: dict[str, Any] = {"name": name, "kind": column.kind if features else "left out"}
        if features and column.is_measured:
            values = np.array([summary.low, summary.typical, summary.high], dtype=np.float64)
            low, median, high = column.quantity.originals(values, fine=True).tolist()
            fields |= {"unit": summary.unit, "low": low, "median": median, "high": high, "whole": summary.whole}
        if features and column.kind == "category":
            fields |= {"levels": list(summary.levels), "other": summary.other}
        if features:
            fields |= {"gaps": summary.gaps, "features": features}
        described.append(fields)
    return described


def _show_model(console: Console, description: dict[str, Any]) -> None:
    from rich.table import Table

    sizes = (description[key] for key in ("structure", "leaves", "members", "parameters"))
    size = describe_file_size(description["file"])
    facts = {
        "file": f"{description['file']} ({size}, tartree {description['version']})",
        "model": f"{description['estimator']}, {describe_structure(*sizes)}",
        "target": f"{description['target'] or '(no name)'}: {description['task']}",
    }
    if description["classes"] is not None:
        facts["classes"] = listed(description["classes"], 20)
    show_facts(console, facts)
    columns = description["columns"]
    table = Table(title=counted(len(columns), "column"), title_justify="left")
    table.add_column("column", overflow="fold")
    table.add_column("kind")
    table.add_column("values", overflow="fold")
    table.add_column("missing")
    for column in columns[:MOST_COLUMNS]:
        table.add_row(column["name"], column["kind"], _describe_values(column), "yes" if column.get("gaps") else "")
    console.print(table)
    if len(columns) > MOST_COLUMNS:
        console.print(f"and {len(columns) - MOST_COLUMNS} more; --json shows all of them")


def _describe_values(column: dict[str, Any]) -> str:
    if column["kind"] == "numeric":
        low, middle, high = (
            f"{column[key]:.6g}" if isinstance(column[key], float) else str(column[key])
            for key in ("low", "median", "high")
        )
        unit = "" if column["unit"] == "number" else f" ({column['unit']})"
        return f"{low} to {high}, median {middle}{unit}"
    if column["kind"] == "category":
        other = ["(other)"] if column["other"] else []
        return listed([*(" ".join(str(level).split()) for level in column["levels"]), *other])
    return "true or false" if column["kind"] == "boolean" else ""
