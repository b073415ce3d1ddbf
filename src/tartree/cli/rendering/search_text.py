"""Text about a search: its front, its progress, the chosen structure and the command that fits it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from tartree.cli.rendering.phrases import counted
from tartree.cli.workflow.file_fit import PARAMETERS

if TYPE_CHECKING:
    from rich.console import Console

    from tartree import StructureSearch
    from tartree.cli.workflow.file_search import SearchReport, SearchSettings
    from tartree.model.target import Task

RULES = {"1se": "the smallest within one standard error of the best", "best": "the best"}
COLUMNS = ("leaves", "conditions", "features", "parameters")


def score_label(search: StructureSearch) -> str:
    """Return the name of the scores of a search."""
    from tartree.search.scores import METRICS

    return METRICS[search.scoring_].label


def front_table(search: StructureSearch, title: str) -> Any:
    """Return the front as a table with the chosen structure in bold."""
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for name in (*COLUMNS, score_label(search)):
        table.add_column(name, justify="right")
    table.add_column("structure")
    chosen = getattr(search, "best_index_", None)
    for trial in search.front_:
        table.add_row(*front_row(trial), style="bold" if trial["number"] == chosen else None)
    return table


def front_row(trial: dict[str, Any]) -> tuple[str, ...]:
    """Return size, score and description of a structure of the front."""
    return (
        f"{trial['leaves']:.3g}",
        f"{trial['conditions']:.3g}",
        f"{trial['features']:.3g}",
        f"{trial['parameters']:,}",
        f"{trial['score']:.3f} \N{PLUS-MINUS SIGN} {trial['error']:.3f}",
        describe_params(trial["params"]),
    )


def describe_params(params: dict[str, Any]) -> str:
    """Return the parameters of a structure as a phrase.

    Examples
    --------
    >>> describe_params({"depth": 2, "leaf_layers": 1, "selection": "multi"})
    'depth 2, leaf layers 1, multi'
    """
    parts = []
    for name, value in params.items():
        parts.append(f"{value}" if name in ("selection", "branching") else f"{name.replace('_', ' ')} {value}")
    return ", ".join(parts)


def leaves(number: float) -> str:
    """Return a mean number of leaves with its noun."""
    return "1 leaf" if number == 1 else f"{number:.3g} leaves"


def decided(search: StructureSearch) -> str:
    """Return how many structures are decided."""
    trials = search.trials_
    done = sum(trial["state"] in ("complete", "dropped", "failed") for trial in trials)
    return f"{done} of {counted(len(trials), 'structure')} decided"


def describe_unfinished(search: StructureSearch) -> str | None:
    """Return a note about structures neither trained to the end nor dropped for better ones; None without any."""
    states = [trial["state"] for trial in search.trials_]
    n_unfinished = states.count("unfinished")
    if not n_unfinished:
        return None
    verb = "was" if n_unfinished == 1 else "were"
    text = (
        f"{n_unfinished:,} of {counted(len(states), 'structure')} {verb} not trained to the end before the search ended"
    )
    if "complete" not in states:
        return f"{text}, and none was: the front compares those that got furthest, and may change; give more --minutes"
    return f"{text}: they are not on the front; give more --minutes to include them"


def fit_command(params: dict[str, Any], settings: SearchSettings, data: str, target_name: str, task: Task) -> str:
    """Return the command that fits a structure, or a line of Python if `tartree fit` lacks an option for it."""
    from tartree.estimators import ESTIMATORS

    estimator = ESTIMATORS[task]
    defaults = estimator().get_params(deep=False)
    changes = {name: value for name, value in {"epochs": settings.epochs, **params}.items() if value != defaults[name]}
    if not set(changes) <= set(PARAMETERS):
        arguments = {**changes, "random_state": settings.seed}
        return f"{estimator.__name__}({', '.join(f'{name}={value!r}' for name, value in arguments.items())}).fit(X, y)"
    parts = ["tartree", "fit", data, "--target", target_name]
    parts += [] if settings.task == "auto" else ["--task", settings.task]
    left_out = settings.drop if settings.groups is None else (*settings.drop, settings.groups)
    parts += [part for name in left_out for part in ("--drop", name)]
    parts += [part for name, kind in settings.columns.items() for part in ("--column", f"{name}:{kind}")]
    parts += ["--drop-missing-target"] if settings.drop_missing_target else []
    for name, value in changes.items():
        option = f"--{name.replace('_', '-')}"
        flags = {True: [option], False: [option.replace("--", "--not-")]}
        parts += flags[value] if isinstance(value, bool) else [option, str(value)]
    parts += [] if settings.seed == 0 else ["--seed", str(settings.seed)]
    return shlex.join([*parts, "-o", settings.out, *(["--force"] if settings.force else [])])


def _title(report: SearchReport) -> str:
    search = report.search
    tried = sum(trial["score"] is not None for trial in search.trials_)
    left = sum(trial["score"] is not None and trial["state"] == "unfinished" for trial in search.trials_)
    less = f" ({left:,} of them not to the end)" if left else ""
    return (
        f"{counted(tried, 'structure')} tried{less} in {search.search_seconds_:.1f} s, {len(search.splits_)} folds, "
        f"{counted(report.n_rows, 'row')}"
    )


def show_search(console: Console, report: SearchReport) -> None:
    """Print the front, the models beside it, the chosen structure and the files."""
    search = report.search
    console.print(front_table(search, _title(report)))
    for name, scores in report.files.baselines.items():
        console.print(f"{name}: {score_label(search)} {scores.mean():.3f}", soft_wrap=True)
    if report.fit_with is None:
        outcome = f"fitted to all rows it uses {leaves(search.best_size_.leaves)}."
    else:
        outcome = f"not fitted to all rows. To fit it: {report.fit_with}"
    console.print(
        f"Chosen ({RULES[search.rule]}): {describe_params(search.best_params_)}; {outcome}",
        soft_wrap=True,
    )
    for path, what in report.files.written.items():
        console.print(f"Written {shlex.quote(path)}: {what}", soft_wrap=True)
