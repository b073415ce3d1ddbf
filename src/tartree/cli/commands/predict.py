"""`tartree predict`: write the rows of a table with their predictions."""

from __future__ import annotations

from typing import Any

import click

from tartree.cli import options as shared
from tartree.cli.command_group import CommandEntry, debug_option


@click.command(epilog=shared.DATA_HELP)
@click.argument("model")
@click.argument("data")
@click.option(
    "-o", "--out", default="-", show_default=True, metavar="FILE", help="A .csv, .tsv or .parquet file, or -."
)
@click.option("--proba/--no-proba", default=True, help="Also write probabilities (for numbers: the spread).")
@click.option("--chunk-rows", type=click.IntRange(min=1), default=100_000, show_default=True, help="Rows at a time.")
@shared.cluster_option
@click.option("--workers", type=click.IntRange(min=1), help="Processes of the cluster; by default as many as fit.")
@shared.quiet_option
@debug_option
def predict(model: str, data: str, out: str, quiet: bool, **options: Any) -> None:
    """Write the rows of a table with their predictions.

    The columns of the table come first, as they are; then prediction, and probability_CLASS for each class or, for
    numbers, std. The order of the columns does not matter, and the target may be there or not.
    """
    from tartree.cli.rendering.notes import Notes
    from tartree.cli.workflow import cluster_calls
    from tartree.cli.workflow.file_prediction import predict_file

    with cluster_calls.connection(options["cluster"], workers=options["workers"]):
        predict_file(model, data, out, notes=Notes(quiet), **options)


ENTRY = CommandEntry(predict, "predict model.tart new.csv", "predict the rows of another one")
