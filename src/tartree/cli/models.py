"""`tartree zoo`: the named models in one table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

NUMBERS = ("W", "S", "D", "H", "L")


def describe() -> dict[str, Any]:
    """The models as plain data for JSON."""
    from tartree import zoo

    return {"models": zoo.table()}


def show(console: Console, found: dict[str, Any]) -> None:
    """The same for people."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True)
    for column in ("f", "g"):
        table.add_column(column)
    for column in NUMBERS:
        table.add_column(column, justify="right")
    for column in ("selection", "purpose", "source"):
        table.add_column(column)
    for row in found["models"]:
        said = ("-" if row[key] is None else str(row[key]) for key in NUMBERS)
        forest = f", {row['members']} trees" if row["members"] > 1 else ""
        table.add_row(
            row["name"], row["f"], row["g"], *said, (row["selection"] or "-") + forest, row["purpose"], row["source"]
        )
    console.print(table)
    console.print("\nW children of a node, S stride, D depth, H layers of f, L layers of g. In Python:", soft_wrap=True)
    console.print('  from tartree import zoo; zoo.make("sdt").fit(X, y)', soft_wrap=True)
