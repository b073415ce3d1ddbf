"""A search from a file to a saved model, with a picture of the front and a page."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tartree.cli.rendering.notes import Notes
from tartree.cli.rendering.search_text import (
    decided,
    describe_unfinished,
    fit_command,
    front_table,
    leaves,
)
from tartree.cli.workflow import cluster_calls
from tartree.cli.workflow.search_checks import check_files, check_optuna, check_storage
from tartree.cli.workflow.search_files import SearchFiles
from tartree.cli.workflow.target_column import Target
from tartree.cli.workflow.training_table import TableSettings, group_values, inspect_columns, read_training_table

if TYPE_CHECKING:
    from tartree import StructureSearch
    from tartree.model.target import Task

LINE_SECONDS = 5.0  # between plain lines of progress
LAST_FIT = "Fitting the chosen structure to all rows (Ctrl-C to skip)"


@dataclass(frozen=True)
class SearchSettings(TableSettings):
    """The options of `tartree search`, except data and target."""

    minutes: float = 2.0
    space: str = "small"
    trials: int | None = None
    rule: Literal["1se", "best"] = "1se"
    max_leaves: int | None = None
    picture: str = "front.png"
    report: str = "report.html"
    no_report: bool = False
    folds: int = 4
    groups: str | None = None
    jobs: int | None = None
    study: str | None = None

    def make_search(self, task: Task, callback: Callable[[Any], None]) -> StructureSearch:
        """Return the unfitted search."""
        from tartree import StructureSearch
        from tartree.estimators import ESTIMATORS

        return StructureSearch(
            ESTIMATORS[task](epochs=self.epochs, columns=self.columns or None),
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
class SearchReport:
    """The results of `tartree search`."""

    data: str
    n_rows: int
    target: Target
    files: SearchFiles
    fit_with: str | None  # command that fits the chosen structure, if it was not fitted
    search: StructureSearch = field(repr=False)

    def to_dict(self, notes: list[str]) -> dict[str, Any]:
        """Return plain data for JSON."""
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
            "baselines": {name: [float(value) for value in scores] for name, scores in self.files.baselines.items()},
            "seconds": search.search_seconds_,
            "files": list(self.files.written),
            "interrupted": self.files.interrupted,
            "notes": notes,
        }


def search_file(data: str, target_name: str, settings: SearchSettings, notes: Notes) -> SearchReport:
    """Read a table, search on it, and write the model, the picture and the page."""
    check_optuna(settings)
    check_files(settings, data)
    rows = read_training_table(data, target_name, settings, notes, settings.groups)
    table, target, label = rows.table, rows.target, rows.label
    check_storage(settings)
    groups = None
    if settings.groups is not None:
        groups = group_values(table[settings.groups], settings.groups)
        table = table.drop_columns([settings.groups])
    with notes.warnings():
        # Notes below report interrupted fits.
        warnings.filterwarnings("ignore", "(the fit of the chosen structure|fit was interrupted)", UserWarning)
        inspect_columns(table, label, settings.columns, notes)
        with _progress(notes) as show, cluster_calls.joblib_backend(settings.cluster):
            search = settings.make_search(target.task, show).fit(table, target.values, groups=groups)
        if unfinished := describe_unfinished(search):
            notes.add(unfinished)
        files = SearchFiles(search, settings, notes)
        command = None
        if not hasattr(search, "best_estimator_"):  # Ctrl-C in the last fit
            command = fit_command(search.best_params_, settings, data, target_name, target.task)
            notes.add(f"interrupted: the chosen structure was not fitted, and no model saved; {command}", always=True)
        else:
            search.best_estimator_.target_name_ = target_name
            rows.record_forms(search.best_estimator_.encoder_)
            files.write(settings.out, "the model", lambda: search.best_estimator_.save(settings.out))
        if not settings.no_report:
            files.write_results(table, target, data)
    return SearchReport(label, table.num_rows, target, files, command, search)


@contextmanager
def _progress(notes: Notes) -> Iterator[Callable[[StructureSearch], None]]:
    """Give a function that shows the state of a search: a live table on a terminal, otherwise lines at intervals."""
    start = time.perf_counter()
    if not notes.shows_progress:
        last, is_fitting = start, False

        def say(search: StructureSearch) -> None:
            nonlocal last, is_fitting
            if _is_last_fit(search):
                if not is_fitting:
                    is_fitting = True
                    notes.say(LAST_FIT)
            elif time.perf_counter() - last > LINE_SECONDS and search.front_:
                last = time.perf_counter()
                best = search.front_[-1]
                score = f"best {best['score']:.3f} with {leaves(best['leaves'])}"
                notes.say(f"{last - start:.0f} s: {decided(search)}; {score}")

        yield say
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), transient=True) as live:

        def update(search: StructureSearch) -> None:
            title = f"{time.perf_counter() - start:.0f} s, {decided(search)}"
            live.update(front_table(search, f"{title}. {LAST_FIT}" if _is_last_fit(search) else title), refresh=True)

        yield update


def _is_last_fit(search: StructureSearch) -> bool:
    """Whether only the fit of the chosen structure is left of a search."""
    if hasattr(search, "best_params_"):
        return True
    # Optuna may ask for more structures once all are decided; others do not.
    states = {trial["state"] for trial in search.trials_}
    return bool(search.front_) and not hasattr(search, "study_") and not states & {"waiting", "running"}


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
