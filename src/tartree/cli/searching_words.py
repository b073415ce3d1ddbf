"""What `tartree search` says: the front as a table, what came of the structures, the chosen one and how to fit it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from tartree.cli.errors import counted
from tartree.cli.fitting import PARAMETERS

if TYPE_CHECKING:
    from rich.console import Console

    from tartree.cli.searching import Found, Settings

WHY = {"1se": "the smallest within one standard error of the best", "best": "the best"}
COLUMNS = ("leaves", "conditions", "features", "parameters")


def front_table(search: Any, title: str) -> Any:
    """The front as a table, the chosen structure in bold."""
    from rich.table import Table

    from tartree.search.scores import METRICS

    table = Table(title=title, title_justify="left")
    for name in (*COLUMNS, METRICS[search.scoring_].label):
        table.add_column(name, justify="right")
    table.add_column("structure")
    chosen = getattr(search, "best_index_", None)
    for trial in search.front_:
        table.add_row(*front_row(trial), style="bold" if trial["number"] == chosen else None)
    return table


def front_row(trial: dict[str, Any]) -> tuple[str, ...]:
    """One structure of the front: its size, its score and what it is."""
    return (
        f"{trial['leaves']:.3g}",
        f"{trial['conditions']:.3g}",
        f"{trial['features']:.3g}",
        f"{trial['parameters']:,}",
        f"{trial['score']:.3f} \N{PLUS-MINUS SIGN} {trial['error']:.3f}",
        describe(trial["params"]),
    )


def describe(params: dict[str, Any]) -> str:
    """A candidate in a few words.

    Examples
    --------
    >>> describe({"depth": 2, "leaf_layers": 1, "selection": "multi"})
    'depth 2, leaf layers 1, multi'
    """
    parts = []
    for name, value in params.items():
        words = name.replace("_", " ")
        parts.append(f"{value}" if name in ("selection", "branching") else f"{words} {value}")
    return ", ".join(parts)


def leaves(number: float) -> str:
    return "1 leaf" if number == 1 else f"{number:.3g} leaves"


def decided(search: Any) -> str:
    """How far a search is."""
    trials = search.trials_
    done = sum(trial["state"] in ("complete", "dropped", "failed") for trial in trials)
    return f"{done} of {counted(len(trials), 'structure')} decided"


def unfinished(search: Any) -> str | None:
    """What to know about structures that were neither trained to the end nor dropped for better ones, if anything."""
    states = [trial["state"] for trial in search.trials_]
    n_unfinished = states.count("unfinished")
    if not n_unfinished:
        return None
    verb = "was" if n_unfinished == 1 else "were"
    said = (
        f"{n_unfinished:,} of {counted(len(states), 'structure')} {verb} not trained to the end before the search ended"
    )
    if "complete" not in states:
        return f"{said}, and none was: the front compares those that got furthest, and may change; give more --minutes"
    return f"{said}: they are not on the front; give more --minutes to include them"


def fit_with(params: dict[str, Any], settings: Settings, data: str, target_name: str, task: str) -> str:
    """How to fit a structure: a command where `tartree fit` has all options for it, else a line of Python."""
    from tartree import TartClassifier, TartRegressor

    kind = TartClassifier if task == "classification" else TartRegressor
    usual = kind().get_params(deep=False)
    own = {name: value for name, value in {"epochs": settings.epochs, **params}.items() if value != usual[name]}
    if not set(own) <= set(PARAMETERS):
        given = ", ".join(f"{name}={value!r}" for name, value in {**own, "random_state": settings.seed}.items())
        return f"{kind.__name__}({given}).fit(X, y)"
    words = ["tartree", "fit", data, "--target", target_name]
    words += [] if settings.task == "auto" else ["--task", settings.task]
    left_out = settings.drop if settings.groups is None else (*settings.drop, settings.groups)
    words += [word for name in left_out for word in ("--drop", name)]
    words += ["--drop-missing-target"] if settings.drop_missing_target else []
    words += [word for name, value in own.items() for word in (f"--{name}", str(value))]
    words += [] if settings.seed == 0 else ["--seed", str(settings.seed)]
    return shlex.join([*words, "-o", settings.out, *(["--force"] if settings.force else [])])


def title_of(found: Found) -> str:
    """What the front comes from."""
    search = found.search
    tried = sum(trial["score"] is not None for trial in search.trials_)
    left = sum(trial["score"] is not None and trial["state"] == "unfinished" for trial in search.trials_)
    less = f" ({left:,} of them not to the end)" if left else ""
    return (
        f"{counted(tried, 'structure')} tried{less} in {search.search_seconds_:.1f} s, {len(search.splits_)} folds, "
        f"{counted(found.n_rows, 'row')}"
    )


def show(console: Console, found: Found) -> None:
    """The front, the models beside it, and what was written."""
    from tartree.search.scores import METRICS

    search = found.search
    console.print(front_table(search, title_of(found)))
    for name, scores in found.baselines.items():
        console.print(f"{name}: {METRICS[search.scoring_].label} {scores.mean():.3f}", soft_wrap=True)
    if found.fit_with is None:
        outcome = f"fitted to all rows it uses {leaves(search.best_size_.leaves)}."
    else:
        outcome = f"not fitted to all rows. To fit it: {found.fit_with}"
    console.print(f"Chosen ({WHY[search.rule]}): {describe(search.best_params_)}; {outcome}", soft_wrap=True)
    for path, what in found.files.items():
        console.print(f"Written {shlex.quote(path)}: {what}", soft_wrap=True)
