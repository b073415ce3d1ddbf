"""`tartree search`: search for the structure that suits a table."""

from __future__ import annotations

from typing import Any

import click

from tartree.cli import options as shared
from tartree.cli.command_group import INTERRUPTED, CommandEntry, debug_option
from tartree.cli.problems import Problem


def _above_zero(context: click.Context, parameter: click.Parameter, value: float) -> float:
    if not value > 0:  # nan neither
        raise click.BadParameter(f"must be a number above 0, such as 0.5 or 10, got {value:g}")
    return value


def _not_zero(context: click.Context, parameter: click.Parameter, value: int | None) -> int | None:
    if value == 0:
        raise click.BadParameter("must be at least 1, or -1 for one a core, got 0")
    return value


@click.command(epilog=shared.DATA_HELP)
@click.argument("data")
@shared.target_option
@click.option("--minutes", type=float, default=2, show_default=True, callback=_above_zero, help="Of search.")
@click.option("--space", type=click.Choice(["readable", "small", "paper", "full"]), default="small", show_default=True)
@click.option("--trials", type=click.IntRange(min=1), help="The most structures to try.")
@click.option("--rule", type=click.Choice(["1se", "best"]), default="1se", show_default=True, help="Which is chosen.")
@click.option("--max-leaves", type=click.IntRange(min=1), help="Only structures that use at most so many leaves.")
@shared.model_out_option
@click.option("--picture", default="front.png", show_default=True, metavar="FILE", help="Score against size.")
@click.option("--report", default="report.html", show_default=True, metavar="FILE", help="A page about the model.")
@click.option("--no-report", is_flag=True, help="Write the model alone, without picture and page.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
@shared.task_option
@shared.drop_option
@shared.column_option
@shared.drop_missing_target_option
@shared.folds_option(4)
@click.option(
    "--groups",
    metavar="COLUMN",
    help="Hold rows with the same value here out together, such as visits of a patient. Not used to predict.",
)
@shared.epochs_option
@click.option("--jobs", type=int, callback=_not_zero, help="Processes that train at the same time; -1: one a core.")
@click.option("--cluster", metavar="ADDRESS", help="Train on a Ray cluster: auto, or HOST:PORT.")
@click.option("--storage", metavar="URL", help="Where Optuna keeps its study, such as sqlite:///search.db.")
@click.option("--study", metavar="NAME", help="The study's name; an existing one is resumed.")
@shared.seed_option("structures")
@shared.json_option()
@shared.quiet_option
@debug_option
def search(data: str, target: str, as_json: bool, quiet: bool, **options: Any) -> None:
    """Search for the structure with the best balance between score and size.

    Tries structures by cross-validation, shows the best of each size while it runs, and fits the chosen one to all
    rows. Ctrl-C ends the search early with the best so far; in the fit after it, it leaves that out.
    """
    from tartree.cli.rendering import console as out
    from tartree.cli.rendering import search_text
    from tartree.cli.rendering.notes import Notes
    from tartree.cli.workflow import cluster_calls, file_search

    notes = Notes(quiet)
    with cluster_calls.connection(options["cluster"]):
        report = file_search.search_file(data, target, file_search.SearchSettings(**options), notes)
    if as_json:
        out.print_json(report.to_dict(notes.texts))
    else:
        search_text.show_search(out.make_console(), report)
    if report.files.interrupted:  # results are kept, but a script must not take the search for a finished one
        click.get_current_context().exit(INTERRUPTED)
    if report.files.failed:
        click.get_current_context().exit(Problem.exit_code)


ENTRY = CommandEntry(search, "search patients.csv --target diagnosis", "find the structure that suits it")
