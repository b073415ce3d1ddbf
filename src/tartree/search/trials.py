"""What a search has found out: one record a candidate, the front of score against size, and the rules of choice."""

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


@dataclass(eq=False)
class Trial:
    """A candidate in one part, as far as it is known.

    `state` is "complete" after all epochs, "dropped" where others were better before that, "failed" with its `reason`,
    or "unfinished" where the time was up.
    """

    number: int
    params: Parameters
    all_epochs: int
    kind: tuple[Any, ...] = ()  # those of one kind learn about equally fast
    all_leaves: float = math.inf  # used or not: it can never use more
    state: State = "waiting"
    reason: str | None = None
    epochs: int = 0
    scores: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))  # of the folds
    size: Size | None = None
    most_leaves: float = math.nan
    history: list[tuple[int, float]] = field(default_factory=list)  # epochs and mean score, at each look

    @property
    def score(self) -> float:
        return float(self.scores.mean()) if len(self.scores) else math.nan

    @property
    def error(self) -> float:
        """Standard error of the mean over the folds."""
        n = len(self.scores)
        return float(self.scores.std(ddof=1) / math.sqrt(n)) if n > 1 else 0.0

    @property
    def progress(self) -> float:
        return self.epochs / self.all_epochs if self.all_epochs else 0.0

    @property
    def is_scored(self) -> bool:
        return len(self.scores) > 0 and self.state != "failed" and math.isfinite(self.score)

    def is_allowed(self, max_leaves: float | None) -> bool:
        """Whether it uses at most so many leaves in every fold."""
        return max_leaves is None or self.most_leaves <= max_leaves

    def measure(self, name: str) -> float:
        """How large it is: "leaves" or "parameters"."""
        assert self.size is not None
        return float(getattr(self.size, name))

    def to_dict(self) -> dict[str, Any]:
        """One row of a table."""
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
    """Those that may be chosen: trained to the end, or where none was, as far as any."""
    scored = [trial for trial in trials if trial.is_scored]
    furthest = max((trial.progress for trial in scored), default=0.0)
    return [trial for trial in scored if trial.progress >= furthest - 1e-9]


def front_of(trials: Iterable[Trial], measure: str = "leaves") -> list[Trial]:
    """Those that no other one beats in score without being larger, from small to large.

    Of equally many leaves, those with fewer parameters are smaller: a linear model is easier to read than a perceptron.
    """
    return _front(comparable(trials), measure)


def _front(trials: Iterable[Trial], measure: str, margin: float = 0.0) -> list[Trial]:
    """From small to large, each better than all smaller ones by more than a margin."""
    found: list[Trial] = []
    for trial in sorted(trials, key=lambda one: _order(one, measure)):
        if not found or trial.score > found[-1].score + margin:
            found.append(trial)
    return found


def _size(trial: Trial, measure: str) -> tuple[float, int]:
    assert trial.size is not None
    return trial.measure(measure), trial.size.parameters


def _order(trial: Trial, measure: str) -> tuple[float, float, float, int]:
    """Small ones first, of equally large ones the best."""
    return *_size(trial, measure), -trial.score, trial.number


def ranked(
    trials: Iterable[Trial], rule: Rule, measure: str = "leaves", max_leaves: float | None = None
) -> list[Trial]:
    """Those that a rule allows, the one it chooses first.

    "best": by score. "1se": those within one standard error of the best first, the smallest of them at the head.
    `max_leaves` leaves out what has more of them in some fold.
    """
    allowed = comparable(trial for trial in trials if trial.is_allowed(max_leaves))
    by_score = sorted(allowed, key=lambda one: (-one.score, *_order(one, measure)))
    if rule == "best" or not by_score:
        return by_score
    least = by_score[0].score - by_score[0].error
    near = [trial for trial in by_score if trial.score >= least]
    near.sort(key=lambda one: _order(one, measure))
    return near + [trial for trial in by_score if trial.score < least]


def who_goes_on(
    trials: Sequence[Trial],
    factor: float,
    measure: str,
    rule: Rule = "1se",
    *,
    least: int = 2,
    max_leaves: float | None = None,
) -> list[Trial]:
    """Of each kind, the share ``1 / factor`` that goes on to the next rung, `least` of them at least.

    Leaves of one layer learn slower than perceptrons and may end as good, so each kind is ranked by itself. First come
    those that no smaller one equals, the best and the smallest of them first, then those that only the first beat, and
    so on.

    Where the rule is "1se", a larger one must be better by half a standard error: it has to pay for its size. And
    whatever their number, those smaller ones go on that are on the front within one standard error of the best: the
    rule may choose them, and they cost less than the first.

    With `max_leaves`, those above it leave their places to the others, unless all are above it. Leaves
    may come into use later, and larger trees learn longer: the largest that can never come above it goes on as well.
    """
    allowed = [trial for trial in trials if trial.is_allowed(max_leaves)] or trials
    kept: list[Trial] = []
    for kind in dict.fromkeys(trial.kind for trial in trials):
        places = max(least, math.ceil(sum(trial.kind == kind for trial in trials) / factor))
        own = [trial for trial in allowed if trial.kind == kind]
        going = _rounds(own, measure, 0.5 if rule == "1se" else 0.0)[:places]
        going += _near(going[0], _front(own, measure), measure) if going and rule == "1se" else []
        never_above = [trial for trial in own if max_leaves is not None and trial.all_leaves <= max_leaves]
        going += sorted(never_above, key=lambda one: (one.all_leaves, one.score))[-1:]
        kept += dict.fromkeys(going)  # each once
    return kept


def _near(first: Trial, front: list[Trial], measure: str) -> list[Trial]:
    """Those of a front that are smaller than the first to go on, and within one standard error of the best."""
    least = front[-1].score - front[-1].error
    return [one for one in front if one.score >= least and _size(one, measure) < _size(first, measure)]


def _rounds(left: list[Trial], measure: str, errors: float) -> list[Trial]:
    """Front after front, where a larger one is better by so many standard errors of the best."""
    ordered: list[Trial] = []
    while left:
        margin = max(left, key=lambda one: one.score).error * errors
        front = _front(left, measure, margin)
        left = [trial for trial in left if trial not in front]
        ordered += [front[-1], *front[:-1][:1], *reversed(front[1:-1])]  # the best, the smallest, the others
    return ordered
