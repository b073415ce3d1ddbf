"""`tartree fit`: fit a model to a table and save it."""

from __future__ import annotations

from typing import Any

import click

from tartree.cli import options as shared
from tartree.cli.command_group import INTERRUPTED, CommandEntry, debug_option

FAMILY = ("dt", "sdt", "ndf", "dndf", "nrf", "lr", "mlp", "experts", "tree-1", "tree-2", "tree-3")
PRESETS = (*FAMILY, "tart-a", "tart-b", "tart-c", "tart-max")


@click.command(epilog=shared.DATA_HELP)
@click.argument("data")
@shared.target_option
@shared.model_out_option
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@shared.task_option
@shared.drop_option
@shared.column_option
@shared.drop_missing_target_option
@click.option("--preset", type=click.Choice(PRESETS), help="A named model; by default one tree.")
@click.option(
    "--readable/--not-readable",
    default=None,
    help="A tree to be read: few leaves, curves, one column a decision, one path a row. The default, unless options "
    "describe another model.",
)
@click.option("--depth", type=click.IntRange(min=0), help="Layers of decisions; by default 3, and more of many rows.")
@click.option("--max-features", type=click.IntRange(min=1), help="Columns that each decision may use.")
@click.option("--max-terms", type=click.IntRange(min=0), help="Terms of all leaves together: a column each.")
@click.option("--window", type=click.IntRange(min=2), help="Children of each decision.")
@click.option("--stride", type=click.IntRange(min=1), help="Below the window, neighbours share children.")
@click.option("--members", type=click.IntRange(min=1), help="Trees whose predictions are averaged.")
@click.option("--selection", type=click.Choice(["multi", "single"]), help="Mix all leaves, or take the likeliest.")
@shared.epochs_option
@shared.seed_option("model")
@shared.folds_option(5)
@click.option(
    "--stream/--no-stream",
    default=None,
    help="Whether Parquet files are read into memory; by default those above 33,554,432 values are streamed.",
)
@shared.cluster_option
@click.option("--workers", type=click.IntRange(min=1), help="Processes of the cluster; by default one a node.")
@click.option("--storage", metavar="FOLDER", help="Where the cluster keeps checkpoints; all its nodes must see it.")
@click.option("--no-compare", is_flag=True, help="Skip the cross-validation and the models beside it.")
@shared.json_option()
@shared.quiet_option
@debug_option
def fit(data: str, target: str, as_json: bool, quiet: bool, **options: Any) -> None:
    """Fit a model to a table and save it.

    Guesses from the target whether to classify or to predict a number, compares the model by cross-validation with a
    majority guess, a decision tree and a random forest, then fits it to all rows. Large Parquet files are streamed,
    without the comparison.
    """
    from tartree.cli.rendering import console as out
    from tartree.cli.rendering import fit_text
    from tartree.cli.rendering.notes import Notes
    from tartree.cli.workflow import cluster_calls, file_fit

    notes = Notes(quiet)
    with cluster_calls.connection(options["cluster"], workers=options["workers"], storage=options["storage"]):
        report = file_fit.fit_file(data, target, file_fit.FitSettings(**options), notes)
    if as_json:
        out.print_json(report.to_dict(notes.texts))
    else:
        console = out.make_console()
        fit_text.show_fit(console, report)
        fit_text.show_saved(console, report)
    if report.interrupted:  # the model is saved, but a script must not take it for a finished one
        click.get_current_context().exit(INTERRUPTED)


ENTRY = CommandEntry(fit, "fit patients.csv --target diagnosis", "learn from a table")
