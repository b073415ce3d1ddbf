"""Trials: one record for each candidate, the Pareto front of score and size, and the rules of choice."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tartree.search.sizes import Size
from tartree.search.spaces import Parameters

State = Literal["waiting", "running", "complete", "dropped", "failed", "unfinished"]
Rule = Literal["1se", "best"]
SizeName = Literal["leaves", "parameters"]


@dataclass(eq=False)
class Trial:
    """A candidate in one part, with its results so far.

    `state` is "complete" after all epochs, "dropped" if others were better before that, "failed" with its `reason`,
    or "unfinished" if the time was up.
    """

    number: int
    params: Parameters
    all_epochs: int
    kind: tuple[Any, ...] = ()  # trials of one kind learn about equally fast
    all_leaves: float = math.inf  # used or not
    state: State = "waiting"
    reason: str | None = None
    epochs: int = 0
    scores: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))  # of the folds
    size: Size | None = None
    most_leaves: float = math.nan
    history: list[tuple[int, float]] = field(default_factory=list)  # epochs and mean score after each rung

    @property
    def score(self) -> float:
        """Mean score of the folds."""
        return float(self.scores.mean()) if len(self.scores) else math.nan

    @property
    def error(self) -> float:
        """Standard error of the mean over the folds."""
        n = len(self.scores)
        return float(self.scores.std(ddof=1) / math.sqrt(n)) if n > 1 else 0.0

    @property
    def progress(self) -> float:
        """Share of the epochs that were trained."""
        return self.epochs / self.all_epochs if self.all_epochs else 0.0

    @property
    def is_scored(self) -> bool:
        """Whether it has a finite score and has not failed."""
        return len(self.scores) > 0 and self.state != "failed" and math.isfinite(self.score)

    def is_allowed(self, max_leaves: float | None) -> bool:
        """Whether it uses at most `max_leaves` in every fold."""
        return max_leaves is None or self.most_leaves <= max_leaves

    def measure(self, name: SizeName) -> float:
        """Return its size, leaves or parameters."""
        assert self.size is not None
        return float(getattr(self.size, name))

    def to_dict(self) -> dict[str, Any]:
        """Return the trial as one row of a table."""
        return {
            "number": self.number,
            "state": self.state,
            "score": self.score if self.is_scored else None,
            "error": self.error if self.is_scored else None,
            "leaves": self.size.leaves if self.size else None,
            "conditions": self.size.conditions if self.size else None,
            "features": self.size.features if self.size else None,
            "parameters": self.size.parameters if self.size else None,
            "epochs": self.epochs,
            "params": dict(self.params),
            "scores": [float(value) for value in self.scores],
            "history": [{"epochs": epochs, "score": value} for epochs, value in self.history],
            "reason": self.reason,
        }


def comparable(trials: Iterable[Trial]) -> list[Trial]:
    """Return the trials that may be chosen: those with the most progress."""
    scored = [trial for trial in trials if trial.is_scored]
    furthest = max((trial.progress for trial in scored), default=0.0)
    return [trial for trial in scored if trial.progress >= furthest - 1e-9]


def front_of(trials: Iterable[Trial], measure: SizeName = "leaves") -> list[Trial]:
    """Return the Pareto front of score and size, from small to large.

    Of trials with equally many leaves, those with fewer parameters are smaller: a linear model is easier to read than
    a perceptron.
    """
    return _front(comparable(trials), measure)


def _front(trials: Iterable[Trial], measure: SizeName, margin: float = 0.0) -> list[Trial]:
    """Return trials from small to large, each better than all smaller ones by more than a margin."""
    front: list[Trial] = []
    for trial in sorted(trials, key=lambda trial: _order(trial, measure)):
        if not front or trial.score > front[-1].score + margin:
            front.append(trial)
    return front


def _size(trial: Trial, measure: SizeName) -> tuple[float, int]:
    assert trial.size is not None
    return trial.measure(measure), trial.size.parameters


def _order(trial: Trial, measure: SizeName) -> tuple[float, float, float, int]:
    """Sort by size, trials of equal size by score."""
    return *_size(trial, measure), -trial.score, trial.number


def ranked(
    trials: Iterable[Trial], rule: Rule, measure: SizeName = "leaves", max_leaves: float | None = None
) -> list[Trial]:
    """Return the trials that may be chosen, in the order of a rule.

    "best": by score. "1se": first those within one standard error of the best, from small to large, then the others.
    Trials with more than `max_leaves` in some fold are left out.
    """
    allowed = comparable(trial for trial in trials if trial.is_allowed(max_leaves))
    by_score = sorted(allowed, key=lambda trial: (-trial.score, *_order(trial, measure)))
    if rule == "best" or not by_score:
        return by_score
    least = by_score[0].score - by_score[0].error
    near = [trial for trial in by_score if trial.score >= least]
    near.sort(key=lambda trial: _order(trial, measure))
    return near + [trial for trial in by_score if trial.score < least]


def promoted(
    trials: Sequence[Trial],
    factor: float,
    measure: SizeName,
    rule: Rule = "1se",
    *,
    least: int = 2,
    max_leaves: float | None = None,
) -> list[Trial]:
    """Return the trials that train on to the next rung: of each kind a share of ``1 / factor``, `least` at least.

    Linear leaves learn slower than perceptrons and may end as good, so each kind is ranked by itself: first the Pareto
    front, its best and its smallest ahead, then the front of the others, and so on.

    With the rule "1se", a larger trial must be better by half a standard error, which is the price of its size. Besides
    the share, smaller trials on the front within one standard error of the best are promoted: the rule may choose them,
    and they cost less than the first.

    With `max_leaves`, trials above it are not promoted, unless all are above it. Leaves may come into use later, and
    larger trees learn longer, so the largest trial that can never exceed it is promoted as well.
    """
    allowed = [trial for trial in trials if trial.is_allowed(max_leaves)] or trials
    kept: list[Trial] = []
    for kind in dict.fromkeys(trial.kind for trial in trials):
        number = max(least, math.ceil(sum(trial.kind == kind for trial in trials) / factor))
        of_kind = [trial for trial in allowed if trial.kind == kind]
        best = _successive_fronts(of_kind, measure, 0.5 if rule == "1se" else 0.0)[:number]
        near = _near(best[0], _front(of_kind, measure), measure) if best and rule == "1se" else []
        never_above = [trial for trial in of_kind if max_leaves is not None and trial.all_leaves <= max_leaves]
        largest = sorted(never_above, key=lambda trial: (trial.all_leaves, trial.score))[-1:]
        kept += dict.fromkeys(best + near + largest)  # each once
    return kept


def _near(first: Trial, front: list[Trial], measure: SizeName) -> list[Trial]:
    """Return the trials of a front that are smaller than `first` and within one standard error of the best."""
    least = front[-1].score - front[-1].error
    return [trial for trial in front if trial.score >= least and _size(trial, measure) < _size(first, measure)]


def _successive_fronts(trials: list[Trial], measure: SizeName, errors: float) -> list[Trial]:
    """Return front after front, in which a larger trial is better by a number of standard errors of the best."""
    ordered: list[Trial] = []
    while trials:
        margin = max(trials, key=lambda trial: trial.score).error * errors
        front = _front(trials, measure, margin)
        trials = [trial for trial in trials if trial not in front]
        ordered += [front[-1], *front[:-1][:1], *reversed(front[1:-1])]  # the best, the smallest, the others
    return ordered
