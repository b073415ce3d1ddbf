"""`tartree zoo`: list the named models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tartree.cli import options as shared
from tartree.cli.command_group import CommandEntry, debug_option
from tartree.cli.rendering.console import make_console, print_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

NUMBERS = ("W", "S", "D", "H", "L")


@click.command("zoo")
@shared.json_option("a table")
@debug_option
def list_models(as_json: bool) -> None:
    """List the named models, with their numbers and sources."""
    from tartree import zoo

    models = zoo.table()
    if as_json:
        print_json({"models": models})
    else:
        show_models(make_console(), models)


ENTRY = CommandEntry(list_models, "zoo", "the named models, for fit --preset NAME")


def show_models(console: Console, models: list[dict[str, Any]]) -> None:
    """Print the models as a table, or in a few lines each on a terminal too narrow for it."""
    from rich.console import Console

    table = _table(models)
    needed = Console(width=10_000).measure(table).maximum
    if console.is_terminal and console.width < needed:
        for row in models:
            _show_lines(console, row)
    else:
        console.width = max(needed, console.width)
        console.print(table)
    console.print("\nW children of a node, S stride, D depth, H layers of f, L layers of g. In Python:", soft_wrap=True)
    console.print('  from tartree import zoo; zoo.make("sdt").fit(X, y)', soft_wrap=True)


def _table(models: list[dict[str, Any]]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("name", "f", "g"):
        table.add_column(column, no_wrap=True)
    for column in NUMBERS:
        table.add_column(column, justify="right", no_wrap=True)
    for column in ("selection", "purpose", "source"):
        table.add_column(column, no_wrap=True)
    for row in models:
        table.add_row(row["name"], row["f"], row["g"], *_numbers(row), _selection(row), row["purpose"], row["source"])
    return table


def _numbers(row: dict[str, Any]) -> list[str]:
    return ["-" if row[key] is None else str(row[key]) for key in NUMBERS]


def _selection(row: dict[str, Any]) -> str:
    forest = f", {row['members']} trees" if row["members"] > 1 else ""
    return (row["selection"] or "-") + forest


def _show_lines(console: Console, row: dict[str, Any]) -> None:
    """Print a model in a few lines, wrapped between words."""
    from rich.padding import Padding

    numbers = ", ".join(f"{key} {number}" for key, number in zip(NUMBERS, _numbers(row), strict=True))
    console.print(row["name"])
    for line in (
        f"{row['purpose']} ({row['source']})",
        f"f {row['f']}; g {row['g']}; {numbers}; selection {_selection(row)}",
    ):
        console.print(Padding(line, (0, 0, 0, 2)))
