"""The files that a search writes: the model, a picture of the front and a page."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tartree.cli.problems import report_error
from tartree.cli.rendering.notes import Notes
from tartree.cli.rendering.phrases import counted
from tartree.cli.rendering.search_text import COLUMNS, RULES, front_row, score_label
from tartree.cli.workflow.target_column import Target

if TYPE_CHECKING:
    from tartree import StructureSearch
    from tartree.cli.workflow.file_search import SearchSettings


class SearchFiles:
    """Files of a search; after the search, neither a full disk nor Ctrl-C keeps its results from being reported."""

    def __init__(self, search: StructureSearch, settings: SearchSettings, notes: Notes) -> None:
        self.search, self.settings, self.notes = search, settings, notes
        self.written: dict[str, str] = {}  # contents by path
        self.baselines: dict[str, Any] = {}
        self.interrupted = bool(search.interrupted_)
        self.failed = False

    def write(self, path: str, what: str, make: Callable[[], None]) -> None:
        """Write a file; the reason of a failure is a note."""
        try:
            make()
            self.written[path] = what
        except KeyboardInterrupt:
            self.interrupted = True
            self.notes.add(f"interrupted: {path} ({what}) was not written", always=True)
        except Exception as error:
            self.failed = True
            reason = error.strerror if isinstance(error, OSError) and error.strerror else report_error(error)
            self.notes.add(f"{path} ({what}) was not written: {reason}", always=True)

    def write_results(self, table: Any, target: Target, data: str) -> None:
        """Compare with other models, and write picture and page; after Ctrl-C the picture alone."""
        settings, notes = self.settings, self.notes
        if not self.interrupted:
            self._compare(table, target)
        if _can_draw(notes):
            self.write(settings.picture, "score against size", self._draw)
        if settings.out not in self.written:
            return  # no model for a page
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
            saved = f"; the model is saved in {self.settings.out}" if self.settings.out in self.written else ""
            self.notes.add(f"interrupted: there is no comparison with other models{saved}", always=True)
        except Exception as error:
            self.failed = True
            self.notes.add(f"there is no comparison with other models: {report_error(error)}", always=True)

    def _draw(self) -> None:
        from tartree.search import plot_front

        figure = plot_front(self.search, baselines=self.baselines).figure
        figure.savefig(self.settings.picture, dpi=150, bbox_inches="tight")

    def _write_page(self, table: Any, target: Target) -> None:
        from tartree.explain.page import Validation, write_report

        search = self.search
        chosen = search.trials_[search.best_index_]
        front = search.front_
        validation = Validation(
            score_label(search),
            chosen["score"],
            chosen["error"],
            len(search.splits_),
            f"{counted(len(search.trials_), 'structure')} tried. Chosen: {RULES[search.rule]}.",
            (*COLUMNS, score_label(search), "structure"),
            tuple(front_row(trial) for trial in front),
            next((index for index, trial in enumerate(front) if trial["number"] == search.best_index_), None),
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
