"""`tartree report`: write a page about a model."""

from __future__ import annotations

from typing import Any

import click

from tartree.cli import options as shared
from tartree.cli.command_group import CommandEntry, debug_option


@click.command(epilog=shared.DATA_HELP)
@click.argument("model")
@click.argument("data")
@click.option("--target", metavar="COLUMN", help="The column with the true values; by default the model's target.")
@click.option("-o", "--out", default="report.html", show_default=True, metavar="FILE", help="Where the page goes.")
@click.option("--rows", type=click.IntRange(min=0), default=1000, show_default=True, help="Rows that the page holds.")
@click.option("--title", metavar="TEXT", help="The title of the page.")
@click.option("--simplify/--no-simplify", default=True, help="Add smaller models, which takes most of the time.")
@shared.quiet_option
@debug_option
def report(model: str, data: str, out: str, quiet: bool, **options: Any) -> None:
    """Write a page about a model: how good it is, and its tree to explore.

    One HTML file that works without a network. It holds rows of the table: share it as you would share the table.
    """
    from tartree.cli.rendering.notes import Notes
    from tartree.cli.workflow.model_page import write_page

    write_page(model, data, out, notes=Notes(quiet), **options)


ENTRY = CommandEntry(report, "report model.tart patients.csv", "a page to look into the model")
