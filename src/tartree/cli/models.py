"""`tartree zoo`: the named models in one table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

NUMBERS = ("W", "S", "D", "H", "L")


def describe() -> dict[str, Any]:
    """The models as plain data for JSON."""
    from tartree import zoo

    return {"models": zoo.table()}


def show(console: Console, found: dict[str, Any]) -> None:
    """The same for people: a table where it fits or no screen ends a line, otherwise a few lines a model."""
    from rich.console import Console as Wide

    table = _table(found)
    needed = Wide(width=10_000).measure(table).maximum
    if console.is_terminal and console.width < needed:
        for row in found["models"]:
            _stacked(console, row)
    else:
        console.width = max(needed, console.width)
        console.print(table)
    console.print("\nW children of a node, S stride, D depth, H layers of f, L layers of g. In Python:", soft_wrap=True)
    console.print('  from tartree import zoo; zoo.make("sdt").fit(X, y)', soft_wrap=True)


def _table(found: dict[str, Any]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("name", "f", "g"):
        table.add_column(column, no_wrap=True)
    for column in NUMBERS:
        table.add_column(column, justify="right", no_wrap=True)
    for column in ("selection", "purpose", "source"):
        table.add_column(column, no_wrap=True)
    for row in found["models"]:
        table.add_row(row["name"], row["f"], row["g"], *_numbers(row), _selection(row), row["purpose"], row["source"])
    return table


def _numbers(row: dict[str, Any]) -> list[str]:
    return ["-" if row[key] is None else str(row[key]) for key in NUMBERS]


def _selection(row: dict[str, Any]) -> str:
    forest = f", {row['members']} trees" if row["members"] > 1 else ""
    return (row["selection"] or "-") + forest


def _stacked(console: Console, row: dict[str, Any]) -> None:
    """A model in a few lines, wrapped between words."""
    from rich.padding import Padding

    numbers = ", ".join(f"{key} {said}" for key, said in zip(NUMBERS, _numbers(row), strict=True))
    console.print(row["name"])
    for line in (
        f"{row['purpose']} ({row['source']})",
        f"f {row['f']}; g {row['g']}; {numbers}; selection {_selection(row)}",
    ):
        console.print(Padding(line, (0, 0, 0, 2)))
