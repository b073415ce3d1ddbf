"""`tartree search`: from a file to the structure that suits it, with the front, a picture and a page."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tartree.cli import clusters
from tartree.cli.errors import Problem, counted
from tartree.cli.notes import Notes
from tartree.cli.preparing import check_columns, look_at_columns, prepare
from tartree.cli.reading import open_table
from tartree.cli.targets import Target, Task, read_target

if TYPE_CHECKING:
    from rich.console import Console

SAY_EVERY = 5.0  # seconds between plain lines of progress


@dataclass(frozen=True)
class Settings:
    """The options of `tartree search`, but for the data and the target."""

    minutes: float = 2.0
    space: str = "small"
    trials: int | None = None
    rule: Literal["1se", "best"] = "1se"
    max_leaves: int | None = None
    out: str = "model.tart"
    picture: str = "front.png"
    report: str = "report.html"
    no_report: bool = False
    force: bool = False
    task: Literal["auto"] | Task = "auto"
    drop: tuple[str, ...] = ()
    drop_missing_target: bool = False
    folds: int = 4
    epochs: int | None = None
    jobs: int | None = None
    cluster: str | None = None
    storage: str | None = None
    study: str | None = None
    seed: int = 0

    def make_search(self, task: Task, callback: Callable[[Any], None]) -> Any:
        from tartree import StructureSearch, TartClassifier, TartRegressor

        estimator = (TartClassifier if task == "classification" else TartRegressor)(epochs=self.epochs)
        return StructureSearch(
            estimator,
            self.space,
            trials=self.trials,
            seconds=60 * self.minutes,
            rule=self.rule,
            max_leaves=self.max_leaves,
            folds=self.folds,
            sampler="optuna" if self.storage or self.study else "auto",
            storage=self.storage,
            study_name=self.study,
            callbacks=[callback],
            n_jobs=-1 if self.jobs is None and self.cluster is not None else self.jobs,  # the whole cluster
            random_state=self.seed,
        )


@dataclass(frozen=True)
class Found:
    """What `tartree search` has to say."""

    data: str
    n_rows: int
    target: Target
    baselines: dict[str, Any]
    files: dict[str, str]  # what they are, by path
    search: Any = field(repr=False)

    def to_dict(self, notes: list[str]) -> dict[str, Any]:
        """Plain data for JSON."""
        search = self.search
        return {
            "data": self.data,
            "rows": self.n_rows,
            "target": self.target.name,
            "task": self.target.task,
            "score": search.scoring_,
            "folds": len(search.splits_),
            "chosen": {"params": _plain(search.best_params_), "score": search.best_score_, "rule": search.rule},
            "size": vars(search.best_size_),
            "front": [_plain(trial) for trial in search.front_],
            "trials": [_plain(trial) for trial in search.trials_],
            "baselines": {name: [float(value) for value in scores] for name, scores in self.baselines.items()},
            "seconds": search.search_seconds_,
            "files": list(self.files),
            "interrupted": search.interrupted_,
            "notes": notes,
        }


def search_file(data: str, target_name: str, settings: Settings, notes: Notes) -> Found:
    """Read a table, search on it, and write the model, the picture and the page."""
    with open_table(data, notes, target=target_name, drop=settings.drop) as source:
        check_columns(source, target_name, settings.drop)
        _check_files(settings)
        table, labels, raw = prepare(source, target_name, settings.drop, settings.drop_missing_target, notes)
    target = read_target(labels, raw, target_name, settings.task, notes)
    with notes.warnings():
        look_at_columns(table, source.label, notes)
        with _shown(notes) as show, clusters.backend(settings.cluster):
            search = settings.make_search(target.task, show).fit(table, target.values)
        if not hasattr(search, "best_estimator_"):  # Ctrl-C in the last fit
            notes.add(f"nothing was written; the structure chosen is {describe(search.best_params_)}", always=True)
            raise KeyboardInterrupt
        model = search.best_estimator_
        model.target_name_ = target_name
        model.save(settings.out)
        files, baselines = {settings.out: "the model"}, {}
        if not settings.no_report:
            if not search.interrupted_:
                notes.say("Comparing with a decision tree, a random forest and boosting ...")
                baselines = _baselines(search, table, target)
            if _draw(search, baselines, settings.picture, notes):
                files[settings.picture] = "score against size"
            if search.interrupted_:  # who is in a hurry does not want to wait for it
                command = shlex.join(["tartree", "report", settings.out, data, "-o", settings.report])
                notes.add(
                    f"no page and no other models in the picture, since it was interrupted; {command} writes the page"
                )
            else:
                model.report(table, target.values, settings.report, sizes=())
                files[settings.report] = "a page about the model, for a browser"
    return Found(source.label, table.num_rows, target, baselines, files, search)


def _check_files(settings: Settings) -> None:
    """Find out before the work whether its results can be kept."""
    for name in (settings.out,) if settings.no_report else (settings.out, settings.picture, settings.report):
        path = Path(name)
        if path.exists() and not settings.force:
            raise Problem(f"{path} exists; give --force to replace it, or another name")
        if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
            raise Problem(f"{path} cannot be written: {path.parent} is not a directory that can be written to")
    if not settings.no_report:
        _check_picture(Path(settings.picture))
    if settings.storage is not None and "://" not in settings.storage:
        raise Problem(f"--storage must be an address such as sqlite:///{settings.storage}, however: {settings.storage}")
    if settings.storage is not None and settings.study is None:
        raise Problem("--storage needs --study NAME, by which the study is found again")


def _check_picture(path: Path) -> None:
    """Raise where matplotlib, if it is there, does not know the kind of a picture."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        return
    if path.suffix and path.suffix[1:].lower() not in FigureCanvasBase.filetypes:
        known = ", ".join(sorted(FigureCanvasBase.filetypes))
        raise Problem(f"{path} cannot be drawn: a picture must end in one of {known}")


def _baselines(search: Any, table: Any, target: Target) -> dict[str, Any]:
    from tartree.search import baseline_scores

    return baseline_scores(search, table, target.values)


def _draw(search: Any, baselines: dict[str, Any], path: str, notes: Notes) -> bool:
    try:
        import matplotlib as mpl
    except ImportError:
        notes.add("no picture: matplotlib is not installed; pip install 'tartree[plot]'")
        return False
    mpl.use("agg")
    from tartree.search import plot_front

    figure = plot_front(search, baselines=baselines).figure
    figure.savefig(path, dpi=150, bbox_inches="tight")
    return True


@contextmanager
def _shown(notes: Notes) -> Iterator[Callable[[Any], None]]:
    """A function that shows how far a search is: a live table on a terminal, else a line now and then."""
    start = time.perf_counter()
    if not notes.shows_progress:
        last = [start]

        def say(search: Any) -> None:
            if time.perf_counter() - last[0] > SAY_EVERY and search.front_:
                last[0] = time.perf_counter()
                best = search.front_[-1]
                said = f"best {best['score']:.3f} with {_leaves(best['leaves'])}"
                notes.say(f"{last[0] - start:.0f} s: {_progress(search)}; {said}")

        yield say
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), transient=True) as live:
        yield lambda search: live.update(
            front_table(search, f"{time.perf_counter() - start:.0f} s, {_progress(search)}"), refresh=True
        )


def _progress(search: Any) -> str:
    trials = search.trials_
    done = sum(trial["state"] in ("complete", "dropped", "failed") for trial in trials)
    return f"{done} of {counted(len(trials), 'structure')} decided"


def front_table(search: Any, title: str) -> Any:
    """The front as a table, the chosen structure in bold."""
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for name in ("leaves", "conditions", "features", "parameters", search.scoring_):
        table.add_column(name, justify="right")
    table.add_column("structure")
    chosen = getattr(search, "best_index_", None)
    for trial in search.front_:
        table.add_row(
            f"{trial['leaves']:.3g}",
            f"{trial['conditions']:.3g}",
            f"{trial['features']:.3g}",
            f"{trial['parameters']:,}",
            f"{trial['score']:.3f} \N{PLUS-MINUS SIGN} {trial['error']:.3f}",
            describe(trial["params"]),
            style="bold" if trial["number"] == chosen else None,
        )
    return table


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


def show(console: Console, found: Found) -> None:
    """The front, the models beside it, and what was written."""
    search = found.search
    tried = sum(trial["score"] is not None for trial in search.trials_)
    title = (
        f"{counted(tried, 'structure')} tried in {search.search_seconds_:.1f} s, {len(search.splits_)} folds, "
        f"{counted(found.n_rows, 'row')}"
    )
    console.print(front_table(search, title))
    for name, scores in found.baselines.items():
        console.print(f"{name}: {search.scoring_} {scores.mean():.3f}", soft_wrap=True)
    size = search.best_size_
    why = "the smallest within one standard error of the best" if search.rule == "1se" else "the best"
    console.print(
        f"Chosen ({why}): {describe(search.best_params_)}; fitted to all rows it uses {_leaves(size.leaves)}.",
        soft_wrap=True,
    )
    for path, what in found.files.items():
        console.print(f"Written {shlex.quote(path)}: {what}", soft_wrap=True)


def _leaves(number: float) -> str:
    return "1 leaf" if number == 1 else f"{number:.3g} leaves"


def _plain(value: Any) -> Any:
    """A value that JSON can hold."""
    if isinstance(value, dict):
        return {str(key): _plain(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(own) for own in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
