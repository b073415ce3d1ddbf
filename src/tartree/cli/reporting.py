"""Results on standard output: tables for people, one JSON object for machines."""

from __future__ import annotations

import json
import os
import shlex
import textwrap
from typing import TYPE_CHECKING, Any

import click

from tartree.cli.errors import counted

if TYPE_CHECKING:
    from rich.console import Console

    from tartree.cli.comparing import Comparison
    from tartree.cli.fitting import Report

MOST_CLASSES = 10


def make_console(file: Any = None) -> Console:
    """A console that prints text as it is: column names may look like markup."""
    from rich.console import Console

    return Console(file=file, markup=False, highlight=False, emoji=False)


def print_json(data: dict[str, Any]) -> None:
    click.echo(json.dumps(data, indent=2, allow_nan=False, ensure_ascii=False))


def show_facts(console: Console, facts: dict[str, str]) -> None:
    """Names and what they say, in two columns."""
    indent = max(map(len, facts)) + 2
    width = max(console.width, indent + 20)
    for name, text in facts.items():
        lines = textwrap.wrap(text, width, initial_indent=f"{name:{indent}}", subsequent_indent=" " * indent)
        console.print("\n".join(lines), soft_wrap=True)


def show_fit(console: Console, report: Report) -> None:
    """What was learnt from, what was learnt, and how good it is."""
    kinds = [f"{count} {kind}" for kind, count in report.columns.items() if count]
    n_columns = counted(sum(report.columns.values()), "column")
    target = report.target
    numbers = target.summary or ("" if target.is_classification else describe_numbers(target.values))
    what = f"{len(target.classes)} classes" if target.is_classification else numbers
    facts = {
        "data": f"{report.data}: {counted(report.n_rows, 'row')}, {n_columns} ({', '.join(kinds)})",
        "target": f"{target.name}: {target.task}, {what}",
    }
    if target.is_classification:
        facts["classes"] = describe_classes(target.classes)
    facts["model"] = describe_structure(
        report.structure, report.n_leaves, report.n_members, report.n_parameters, f"fitted in {report.seconds:.1f} s"
    )
    show_facts(console, facts)
    if report.comparison is not None:
        show_comparison(console, report.comparison)


def show_comparison(console: Console, found: Comparison) -> None:
    from rich.table import Table

    table = Table(title=f"{found.n_folds}-fold cross-validation, {found.n_rows:,} rows", title_justify="left")
    table.add_column("model")
    table.add_column(found.metric, justify="right")
    table.add_column("seconds a fit", justify="right")
    for place, score in enumerate(found.scores):
        table.add_row(
            score.name,
            f"{score.mean:.3f} \N{PLUS-MINUS SIGN} {score.sd:.3f}",
            f"{score.seconds:.2f}",
            style="bold" if place == 0 else None,
        )
    console.print(table)


def show_saved(console: Console, report: Report) -> None:
    console.print(f"Saved {report.path} ({size_of(report.path)}). Next:", soft_wrap=True)
    path = shlex.quote(report.path)
    console.print(f"  tartree predict {path} new.csv --out predictions.csv", soft_wrap=True)
    console.print(f"  tartree inspect {path}", soft_wrap=True)


def size_of(path: str) -> str:
    size = os.path.getsize(path)
    return f"{size / 1000:,.0f} kB" if size >= 1000 else f"{size} bytes"


def describe_classes(classes: dict[Any, int]) -> str:
    total = sum(classes.values())
    parts = [f"{label}: {count:,} ({count / total:.1%})" for label, count in list(classes.items())[:MOST_CLASSES]]
    more = len(classes) - MOST_CLASSES
    return ", ".join(parts) + (f" and {more} more" if more > 0 else "")


def describe_numbers(values: Any) -> str:
    return f"{values.min():.6g} to {values.max():.6g}, mean {values.mean():.6g}"


def describe_structure(structure: dict[str, Any], n_leaves: int, members: int, n_parameters: int, *more: str) -> str:
    shape = ", ".join(f"{key} {value}" for key, value in structure.items() if key != "children") or "irregular"
    leaves = "leaf" if n_leaves == 1 else "leaves"
    each = f"{members} trees of " if members > 1 else ""
    return ", ".join([f"{each}{shape}: {n_leaves:,} {leaves}", counted(n_parameters, "parameter"), *more])
