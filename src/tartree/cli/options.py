"""Options and help texts that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

DATA_HELP = (
    "DATA is a CSV or TSV file (also .gz), a Parquet file, a folder or pattern such as 'rows/*.parquet' of Parquet "
    "files, or - for CSV on standard input."
)

target_option = click.option("--target", required=True, metavar="COLUMN", help="The column to predict.")
model_out_option = click.option(
    "-o", "--out", default="model.tart", show_default=True, metavar="FILE", help="Where the model is saved."
)
task_option = click.option(
    "--task", type=click.Choice(["auto", "classification", "regression"]), default="auto", show_default=True
)
drop_option = click.option("--drop", multiple=True, metavar="COLUMN", help="Leave a column out; may be repeated.")

#: What `--column` may say; `tartree.table.column_kinds` has the same, and "ignore", which is `--drop`.
COLUMN_KINDS = (
    "number", "number-decimal-point", "number-decimal-comma", "date", "date-day-first", "date-month-first", "category",
)  # fmt: skip


def _read_kinds(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Return the kinds of columns by name, from texts such as price:number."""
    kinds = {}
    for value in values:
        name, colon, kind = value.rpartition(":")
        if not colon or kind not in COLUMN_KINDS:
            raise click.BadParameter(
                f"must be COLUMN:KIND with one of the kinds {', '.join(COLUMN_KINDS)}, got {value!r}"
            )
        kinds[name] = kind
    return kinds


column_option = click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="COLUMN:KIND",
    callback=_read_kinds,
    help="What a column is: number, date, category, number-decimal-comma, number-decimal-point, date-day-first or "
    "date-month-first; may be repeated.",
)
drop_missing_target_option = click.option(
    "--drop-missing-target", is_flag=True, help="Leave out rows without a target."
)
epochs_option = click.option("--epochs", type=click.IntRange(min=1), help="Passes over the rows in training.")
cluster_option = click.option(
    "--cluster", metavar="ADDRESS", help="Work on a Ray cluster: auto, or HOST:PORT. DATA must be Parquet."
)
quiet_option = click.option("--quiet", is_flag=True, help="No notes and no progress on standard error.")


def seed_option(same: str) -> Decorator:
    """Return `--seed`; `same` is what equal seeds repeat."""
    text = f"Same seed, same {same}."
    return click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help=text)


def folds_option(default: int) -> Decorator:
    """Return `--folds`."""
    least = click.IntRange(min=2)
    return click.option("--folds", type=least, default=default, show_default=True, help="Of the cross-validation.")


def json_option(tables: str = "tables") -> Decorator:
    """Return `--json`."""
    return click.option("--json", "as_json", is_flag=True, help=f"Print one JSON object instead of {tables}.")
