"""`tartree search`: from a file to the structure that suits it, with the front, a picture and a page."""

from __future__ import annotations

import shlex
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from tartree.cli import clusters
from tartree.cli.errors import counted, told
from tartree.cli.notes import Notes
from tartree.cli.preparing import check_columns, group_values, look_at_columns, prepare
from tartree.cli.reading import open_table
from tartree.cli.searching_checks import check_files, check_optuna, check_storage
from tartree.cli.searching_words import COLUMNS, WHY, decided, fit_with, front_row, front_table, leaves, unfinished
from tartree.cli.targets import Target, Task, read_target

SAY_EVERY = 5.0  # seconds between plain lines of progress
LAST_FIT = "Fitting the chosen structure to all rows (Ctrl-C to skip)"


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
    groups: str | None = None
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
    interrupted: bool  # by Ctrl-C, in the search or after it
    failed: bool  # whether something could not be written
    fit_with: str | None  # how to fit the chosen structure, where that was not done
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
            "chosen": {
                "params": _plain(search.best_params_),
                "score": search.best_score_,
                "rule": search.rule,
                "fitted": self.fit_with is None,
                "fit_with": self.fit_with,
            },
            "size": None if self.fit_with else vars(search.best_size_),
            "front": [_plain(trial) for trial in search.front_],
            "trials": [_plain(trial) for trial in search.trials_],
            "baselines": {name: [float(value) for value in scores] for name, scores in self.baselines.items()},
            "seconds": search.search_seconds_,
            "files": list(self.files),
            "interrupted": self.interrupted,
            "notes": notes,
        }


def search_file(data: str, target_name: str, settings: Settings, notes: Notes) -> Found:
    """Read a table, search on it, and write the model, the picture and the page."""
    check_optuna(settings)
    with open_table(data, notes, target=target_name, drop=settings.drop) as source:
        check_columns(source, target_name, settings.drop, settings.groups)
        check_files(settings, data)
        check_storage(settings)
        table, labels, raw = prepare(source, target_name, settings.drop, settings.drop_missing_target, notes)
    target = read_target(labels, raw, target_name, settings.task, notes)
    groups = None
    if settings.groups is not None:
        groups = group_values(table[settings.groups], settings.groups)
        table = table.drop_columns([settings.groups])
    with notes.warnings():
        # What an interrupted fit leaves is said below, in words of the command line.
        warnings.filterwarnings("ignore", "(the fit of the chosen structure|fit was interrupted)", UserWarning)
        look_at_columns(table, source.label, notes)
        with _shown(notes) as show, clusters.backend(settings.cluster):
            search = settings.make_search(target.task, show).fit(table, target.values, groups=groups)
        if said := unfinished(search):
            notes.add(said)
        results = _Results(search, settings, notes)
        command = None
        if not hasattr(search, "best_estimator_"):  # Ctrl-C in the last fit
            command = fit_with(search.best_params_, settings, data, target_name, target.task)
            notes.add(f"interrupted: the chosen structure was not fitted, and no model saved; {command}", always=True)
        else:
            search.best_estimator_.target_name_ = target_name
            results.write(settings.out, "the model", lambda: search.best_estimator_.save(settings.out))
        if not settings.no_report:
            results.look_at(table, target, data)
    return Found(
        source.label,
        table.num_rows,
        target,
        results.baselines,
        results.files,
        results.interrupted,
        results.failed,
        command,
        search,
    )


class _Results:
    """What is written of a search: once something is found, neither a full disk nor Ctrl-C keeps it from being said."""

    def __init__(self, search: Any, settings: Settings, notes: Notes) -> None:
        self.search, self.settings, self.notes = search, settings, notes
        self.files: dict[str, str] = {}
        self.baselines: dict[str, Any] = {}
        self.interrupted = bool(search.interrupted_)
        self.failed = False

    def write(self, path: str, what: str, make: Callable[[], None]) -> None:
        """Make a file; why there is none is a note."""
        try:
            make()
            self.files[path] = what
        except KeyboardInterrupt:
            self.interrupted = True
            self.notes.add(f"interrupted: {path} ({what}) was not written", always=True)
        except Exception as error:
            self.failed = True
            reason = error.strerror if isinstance(error, OSError) and error.strerror else told(error)
            self.notes.add(f"{path} ({what}) was not written: {reason}", always=True)

    def look_at(self, table: Any, target: Target, data: str) -> None:
        """Other models, the picture and the page; who is in a hurry gets the picture alone."""
        settings, notes = self.settings, self.notes
        if not self.interrupted:
            self._compare(table, target)
        if _can_draw(notes):
            self.write(settings.picture, "score against size", self._draw)
        if settings.out not in self.files:
            return  # without a model there is nothing to write a page about
        if self.interrupted:
            command = shlex.join(["tartree", "report", settings.out, data, "-o", settings.report])
            less = "" if self.baselines else " and no other models in the picture"
            notes.add(f"no page{less}, since it was interrupted; write the page with: {command}")
            return
        self.write(settings.report, "a page about the model, for a browser", lambda: self._write_page(table, target))

    def _compare(self, table: Any, target: Target) -> None:
        from tartree.search import baseline_scores

        self.notes.say("Comparing with a decision tree, a random forest and boosting (Ctrl-C to skip)")
        try:
            self.baselines = baseline_scores(self.search, table, target.values)
        except KeyboardInterrupt:
            self.interrupted = True
            saved = f"; the model is saved in {self.settings.out}" if self.settings.out in self.files else ""
            self.notes.add(f"interrupted: there is no comparison with other models{saved}", always=True)
        except Exception as error:
            self.failed = True
            self.notes.add(f"there is no comparison with other models: {told(error)}", always=True)

    def _draw(self) -> None:
        from tartree.search import plot_front

        figure = plot_front(self.search, baselines=self.baselines).figure
        figure.savefig(self.settings.picture, dpi=150, bbox_inches="tight")

    def _write_page(self, table: Any, target: Target) -> None:
        from tartree.explain.page import Validation, write_report
        from tartree.search.scores import METRICS

        search = self.search
        chosen = search.trials_[search.best_index_]
        front = search.front_
        score = METRICS[search.scoring_].label
        validation = Validation(
            score,
            chosen["score"],
            chosen["error"],
            len(search.splits_),
            f"{counted(len(search.trials_), 'structure')} tried. Chosen: {WHY[search.rule]}.",
            (*COLUMNS, score, "structure"),
            tuple(front_row(trial) for trial in front),
            next((place for place, trial in enumerate(front) if trial["number"] == search.best_index_), None),
        )
        path = self.settings.report
        write_report(search.best_estimator_, table, target.values, path, sizes=(), validation=validation)


def _can_draw(notes: Notes) -> bool:
    try:
        import matplotlib as mpl
    except ImportError:
        notes.add("no picture: matplotlib is not installed; pip install 'tartree[plot]'")
        return False
    mpl.use("agg")
    return True


@contextmanager
def _shown(notes: Notes) -> Iterator[Callable[[Any], None]]:
    """A function that shows how far a search is: a live table on a terminal, else a line now and then."""
    start = time.perf_counter()
    if not notes.shows_progress:
        last, is_fitting = start, False

        def say(search: Any) -> None:
            nonlocal last, is_fitting
            if _is_last_fit(search):
                if not is_fitting:
                    is_fitting = True
                    notes.say(LAST_FIT)
            elif time.perf_counter() - last > SAY_EVERY and search.front_:
                last = time.perf_counter()
                best = search.front_[-1]
                said = f"best {best['score']:.3f} with {leaves(best['leaves'])}"
                notes.say(f"{last - start:.0f} s: {decided(search)}; {said}")

        yield say
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), transient=True) as live:

        def update(search: Any) -> None:
            title = f"{time.perf_counter() - start:.0f} s, {decided(search)}"
            live.update(front_table(search, f"{title}. {LAST_FIT}" if _is_last_fit(search) else title), refresh=True)

        yield update


def _is_last_fit(search: Any) -> bool:
    """Whether all that is left of a search is the fit of the chosen structure."""
    if hasattr(search, "best_params_"):
        return True
    # Optuna may ask for more structures once all are decided; others do not.
    states = {trial["state"] for trial in search.trials_}
    return bool(search.front_) and not hasattr(search, "study_") and not states & {"waiting", "running"}


def _plain(value: Any) -> Any:
    """A value that JSON can hold."""
    if isinstance(value, dict):
        return {str(key): _plain(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(own) for own in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
