"""The command line: `tartree demo`, `fit`, `search`, `predict`, `inspect`, `report`, `zoo` and `data`.

Only click is imported here: torch, scikit-learn, pyarrow and rich take seconds, and `--help` should not wait for them.
"""

from __future__ import annotations

from typing import Any

import click

from tartree import __version__
from tartree.cli.errors import INTERRUPTED, Commands, Problem, debug_option

FAMILY = ("dt", "sdt", "ndf", "dndf", "nrf", "lr", "mlp", "experts", "tree-1", "tree-2", "tree-3")
PRESETS = (*FAMILY, "tart-a", "tart-b", "tart-c", "tart-max")
DATA_HELP = (
    "DATA is a CSV or TSV file (also .gz), a Parquet file, a folder or pattern such as 'rows/*.parquet' of Parquet "
    "files, or - for CSV on standard input."
)


def _above_zero(context: click.Context, parameter: click.Parameter, value: float) -> float:
    if not value > 0:  # nan neither
        raise click.BadParameter(f"it must be a number above 0, such as 0.5 or 10, however: {value:g}")
    return value


def _not_zero(context: click.Context, parameter: click.Parameter, value: int | None) -> int | None:
    if value == 0:
        raise click.BadParameter("it must be at least 1, or -1 for one a core, however: 0")
    return value


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tartree")
@debug_option
def main() -> None:
    """Accurate and readable trees for tables.

    \b
    tartree demo                                  a first look, on data that is already here
    tartree fit patients.csv --target diagnosis   learn from a table
    tartree search patients.csv --target diagnosis  find the structure that suits it
    tartree predict model.tart new.csv            predict the rows of another one
    tartree inspect model.tart                    what a model file holds
    tartree report model.tart patients.csv        a page to look into the model
    tartree zoo                                   the named models, for fit --preset NAME
    tartree data uci                              121 data sets to compare models on
    """


@main.command(epilog=DATA_HELP)
@click.argument("data")
@click.option("--target", required=True, metavar="COLUMN", help="The column to predict.")
@click.option("-o", "--out", default="model.tart", show_default=True, metavar="FILE", help="Where the model is saved.")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@click.option("--task", type=click.Choice(["auto", "classification", "regression"]), default="auto", show_default=True)
@click.option("--drop", multiple=True, metavar="COLUMN", help="Leave a column out; may be repeated.")
@click.option("--drop-missing-target", is_flag=True, help="Leave out rows without a target.")
@click.option("--preset", type=click.Choice(PRESETS), help="A named model; by default one readable tree.")
@click.option("--depth", type=click.IntRange(min=0), help="Layers of decisions; by default 4, or 6 from 1,000 rows on.")
@click.option("--window", type=click.IntRange(min=2), help="Children of each decision.")
@click.option("--stride", type=click.IntRange(min=1), help="Below the window, neighbours share children.")
@click.option("--members", type=click.IntRange(min=1), help="Trees whose predictions are averaged.")
@click.option("--selection", type=click.Choice(["multi", "single"]), help="Mix all leaves, or take the likeliest.")
@click.option("--epochs", type=click.IntRange(min=1), help="Passes over the rows in training.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Same seed, same model.")
@click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True, help="Of the cross-validation.")
@click.option(
    "--stream/--no-stream",
    default=None,
    help="Whether Parquet files are read into memory; by default those above 33,554,432 values are streamed.",
)
@click.option("--cluster", metavar="ADDRESS", help="Work on a Ray cluster: auto, or HOST:PORT. DATA must be Parquet.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes of the cluster; by default one a node.")
@click.option("--storage", metavar="FOLDER", help="Where the cluster keeps checkpoints; all its nodes must see it.")
@click.option("--no-compare", is_flag=True, help="Skip the cross-validation and the models beside it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@click.option("--quiet", is_flag=True, help="No notes and no progress on standard error.")
@debug_option
def fit(data: str, target: str, as_json: bool, quiet: bool, **options: Any) -> None:
    """Fit a model to a table and save it.

    Guesses from the target whether to classify or to predict a number, compares the model by cross-validation with a
    majority guess, a decision tree and a random forest, then fits it to all rows. Large Parquet files are streamed,
    without the comparison.
    """
    from tartree.cli import clusters, fitting, reporting
    from tartree.cli.notes import Notes

    notes = Notes(quiet)
    with clusters.connection(options["cluster"], workers=options["workers"], storage=options["storage"]):
        report = fitting.fit_file(data, target, fitting.Settings(**options), notes)
    if as_json:
        reporting.print_json(report.to_dict(notes.texts))
    else:
        console = reporting.make_console()
        reporting.show_fit(console, report)
        reporting.show_saved(console, report)
    if report.interrupted:  # the model is kept, but a script must not take it for a finished one
        click.get_current_context().exit(INTERRUPTED)


@main.command(epilog=DATA_HELP)
@click.argument("data")
@click.option("--target", required=True, metavar="COLUMN", help="The column to predict.")
@click.option("--minutes", type=float, default=2, show_default=True, callback=_above_zero, help="Of search.")
@click.option("--space", type=click.Choice(["readable", "small", "paper", "full"]), default="small", show_default=True)
@click.option("--trials", type=click.IntRange(min=1), help="The most structures to try.")
@click.option("--rule", type=click.Choice(["1se", "best"]), default="1se", show_default=True, help="Which is chosen.")
@click.option("--max-leaves", type=click.IntRange(min=1), help="Only structures that use at most so many leaves.")
@click.option("-o", "--out", default="model.tart", show_default=True, metavar="FILE", help="Where the model is saved.")
@click.option("--picture", default="front.png", show_default=True, metavar="FILE", help="Score against size.")
@click.option("--report", default="report.html", show_default=True, metavar="FILE", help="A page about the model.")
@click.option("--no-report", is_flag=True, help="Write the model alone, without picture and page.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
@click.option("--task", type=click.Choice(["auto", "classification", "regression"]), default="auto", show_default=True)
@click.option("--drop", multiple=True, metavar="COLUMN", help="Leave a column out; may be repeated.")
@click.option("--drop-missing-target", is_flag=True, help="Leave out rows without a target.")
@click.option("--folds", type=click.IntRange(min=2), default=4, show_default=True, help="Of the cross-validation.")
@click.option(
    "--groups",
    metavar="COLUMN",
    help="Hold rows with the same value here out together, such as visits of a patient. Not used to predict.",
)
@click.option("--epochs", type=click.IntRange(min=1), help="Passes over the rows in training.")
@click.option("--jobs", type=int, callback=_not_zero, help="Processes that train at the same time; -1: one a core.")
@click.option("--cluster", metavar="ADDRESS", help="Train on a Ray cluster: auto, or HOST:PORT.")
@click.option("--storage", metavar="URL", help="Where Optuna keeps its study, such as sqlite:///search.db.")
@click.option("--study", metavar="NAME", help="The study's name; one that is there is gone on with.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Same seed, same structures.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@click.option("--quiet", is_flag=True, help="No notes and no progress on standard error.")
@debug_option
def search(data: str, target: str, as_json: bool, quiet: bool, **options: Any) -> None:
    """Search for the structure with the best balance between score and size.

    Tries structures by cross-validation, shows the best of each size while it runs, and fits the chosen one to all
    rows. Ctrl-C ends the search early with the best so far; in the fit after it, it leaves that out.
    """
    from tartree.cli import clusters, reporting, searching, searching_words
    from tartree.cli.notes import Notes

    notes = Notes(quiet)
    with clusters.connection(options["cluster"]):
        found = searching.search_file(data, target, searching.Settings(**options), notes)
    if as_json:
        reporting.print_json(found.to_dict(notes.texts))
    else:
        searching_words.show(reporting.make_console(), found)
    if found.interrupted:  # what was found is kept, but a script must not take it for a finished search
        click.get_current_context().exit(INTERRUPTED)
    if found.failed:
        click.get_current_context().exit(Problem.exit_code)


@main.command(epilog=DATA_HELP)
@click.argument("model")
@click.argument("data")
@click.option(
    "-o", "--out", default="-", show_default=True, metavar="FILE", help="A .csv, .tsv or .parquet file, or -."
)
@click.option("--proba/--no-proba", default=True, help="Also write probabilities (for numbers: the spread).")
@click.option("--chunk-rows", type=click.IntRange(min=1), default=100_000, show_default=True, help="Rows at a time.")
@click.option("--cluster", metavar="ADDRESS", help="Work on a Ray cluster: auto, or HOST:PORT. DATA must be Parquet.")
@click.option("--workers", type=click.IntRange(min=1), help="Processes of the cluster; by default as many as fit.")
@click.option("--quiet", is_flag=True, help="No notes and no progress on standard error.")
@debug_option
def predict(model: str, data: str, out: str, quiet: bool, **options: Any) -> None:
    """Write the rows of a table with their predictions.

    The columns of the table come first, as they are; then prediction, and probability_CLASS for each class or, for
    numbers, std. The order of the columns does not matter, and the target may be there or not.
    """
    from tartree.cli import clusters, predicting
    from tartree.cli.notes import Notes

    with clusters.connection(options["cluster"], workers=options["workers"]):
        predicting.predict_file(model, data, out, notes=Notes(quiet), **options)


@main.command()
@click.argument("model")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@debug_option
def inspect(model: str, as_json: bool) -> None:
    """Say what a model file holds: target, structure, and the columns it reads."""
    from tartree.cli import inspecting, reporting

    description = inspecting.describe(model)
    if as_json:
        reporting.print_json(description)
    else:
        inspecting.show(reporting.make_console(), description)


@main.command(epilog=DATA_HELP)
@click.argument("model")
@click.argument("data")
@click.option("--target", metavar="COLUMN", help="The column with the true values; by default the model's target.")
@click.option("-o", "--out", default="report.html", show_default=True, metavar="FILE", help="Where the page goes.")
@click.option("--rows", type=click.IntRange(min=0), default=1000, show_default=True, help="Rows that the page holds.")
@click.option("--title", metavar="TEXT", help="The title of the page.")
@click.option("--simplify/--no-simplify", default=True, help="Add smaller models, which takes most of the time.")
@click.option("--quiet", is_flag=True, help="No notes and no progress on standard error.")
@debug_option
def report(model: str, data: str, out: str, quiet: bool, **options: Any) -> None:
    """Write a page about a model: how good it is, and its tree to explore.

    One HTML file that works without a network. It holds rows of the table: share it as you would share the table.
    """
    from tartree.cli import reporting_page
    from tartree.cli.notes import Notes

    reporting_page.report_file(model, data, out, notes=Notes(quiet), **options)


@main.command()
@click.option("-o", "--out", default="tartree-demo", show_default=True, metavar="DIR", help="Where the results go.")
@debug_option
def demo(out: str) -> None:
    """Fit a readable tree to breast cancer data that comes with scikit-learn."""
    from tartree.cli.demonstrating import run

    run(out)


@main.command("zoo")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
@debug_option
def list_models(as_json: bool) -> None:
    """List the named models, with their numbers and sources."""
    from tartree.cli import models, reporting

    found = models.describe()
    if as_json:
        reporting.print_json(found)
    else:
        models.show(reporting.make_console(), found)


@main.group("data")
@debug_option
def datasets() -> None:
    """Fetch public data to compare models on."""


@datasets.command("uci")
@click.option("--from", "archive", metavar="FILE", help="An archive that is here already, or a folder unpacked of it.")
@click.option("--url", metavar="URL", help="Where to download the archive, in place of its official address.")
@click.option("--folder", metavar="DIR", help="Where the sets are kept; by default TARTREE_DATA, or the user's cache.")
@click.option("--list", "only_list", is_flag=True, help="Show what is there, and fetch nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@debug_option
def uci(archive: str | None, url: str | None, folder: str | None, only_list: bool, as_json: bool) -> None:
    """Fetch the 121 UCI sets of Fernandez-Delgado et al. (2014), and list them.

    Downloads them if they are not there yet, and goes on where a download was cut. Load one in Python with
    tartree.datasets.load_uci(NAME).
    """
    from tartree.cli import data, reporting
    from tartree.cli.notes import Notes

    found = data.describe_uci(archive, url, folder, only_list=only_list, notes=Notes())
    if as_json:
        reporting.print_json(found)
    else:
        data.show_uci(reporting.make_console(), found)
