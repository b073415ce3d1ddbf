"""`tartree inspect`: what a model file says about itself."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tartree.cli.errors import counted, listed
from tartree.cli.reporting import describe_structure, show_facts, size_of

if TYPE_CHECKING:
    from rich.console import Console

MOST_COLUMNS = 40


def describe(path: str) -> dict[str, Any]:
    """A model file as plain data for JSON."""
    os.stat(path)  # a wrong name is said at once, before torch is imported
    from tartree import load, persist

    model = load(path)
    document, _ = persist.read(path)
    classes = getattr(model, "classes_", None)
    return {
        "file": path,
        "bytes": os.path.getsize(path),
        "estimator": type(model).__name__,
        "task": "regression" if classes is None else "classification",
        "version": document.get("tartree"),
        "target": getattr(model, "target_name_", None),
        "classes": None if classes is None else classes.tolist(),
        "structure": model.structure_.to_dict(),
        "members": model.members,
        "decisions": model.structure_.n_decisions,
        "leaves": model.structure_.n_leaves,
        "parameters": model.n_parameters_,
        "settings": document["parameters"],
        "columns": _columns(model.encoder_),
    }


def _columns(encoder: Any) -> list[dict[str, Any]]:
    names = getattr(encoder, "feature_names_in_", [f"x{index}" for index in range(encoder.n_features_in_)])
    described = []
    for index, column in enumerate(encoder.columns_):
        own = [feature for feature in encoder.features_ if feature.column == index]
        fields: dict[str, Any] = {"name": str(names[index]), "kind": column.kind if own else "left out"}
        if own and column.kind == "numeric":
            low, high, middle = _in_units(column)
            fields |= {"unit": column.unit, "low": low, "median": middle, "high": high, "whole": column.whole}
        if own and column.kind == "category":
            fields |= {"levels": list(column.levels), "other": column.other}
        if own:
            fields |= {"gaps": column.gaps, "features": [feature.label for feature in own]}
        described.append(fields)
    return described


def _in_units(column: Any) -> list[Any]:
    """Lowest, highest and middle value: numbers, or ISO text for dates and times."""
    import numpy as np

    from tartree.table.columns import written

    return list(written(np.array([column.low, column.high, column.fill]), column.unit, fine=True).tolist())


def show(console: Console, found: dict[str, Any]) -> None:
    """The same for people."""
    from rich.table import Table

    facts = {
        "file": f"{found['file']} ({size_of(found['file'])}, tartree {found['version']})",
        "model": f"{found['estimator']}, "
        + describe_structure(found["structure"], found["leaves"], found["members"], found["parameters"]),
        "target": f"{found['target'] or '(no name)'}: {found['task']}",
    }
    if found["classes"] is not None:
        facts["classes"] = listed(found["classes"], 20)
    show_facts(console, facts)
    table = Table(title=counted(len(found["columns"]), "column"), title_justify="left")
    table.add_column("column", overflow="fold")
    table.add_column("kind")
    table.add_column("values", overflow="fold")
    table.add_column("gaps")
    for column in found["columns"][:MOST_COLUMNS]:
        table.add_row(column["name"], column["kind"], _values(column), "yes" if column.get("gaps") else "")
    console.print(table)
    if len(found["columns"]) > MOST_COLUMNS:
        console.print(f"and {len(found['columns']) - MOST_COLUMNS} more; --json shows all of them")


def _values(column: dict[str, Any]) -> str:
    if column["kind"] == "numeric":
        low, middle, high = (
            f"{column[key]:.6g}" if isinstance(column[key], float) else str(column[key])
            for key in ("low", "median", "high")
        )
        unit = "" if column["unit"] == "number" else f" ({column['unit']})"
        return f"{low} to {high}, median {middle}{unit}"
    if column["kind"] == "category":
        return listed(
            [*(" ".join(str(level).split()) for level in column["levels"]), *(["(other)"] if column["other"] else [])]
        )
    return "true or false" if column["kind"] == "boolean" else ""
