"""Results as a table of scores by model and set, and means of complete groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tartree.datasets import UciSummary
from uci.results import Line, Results
from uci.sets import summaries

#: The archive of the results lacks this set: it is left out until a model has been run on it.
LACKING = "miniboone"


@dataclass(frozen=True)
class Mean:
    """Percent: the mean of a group over its sets and runs, and the standard deviation over the runs."""

    value: float
    deviation: float


@dataclass(frozen=True)
class Scores:
    """Lines by model and set, of the sets that the cache holds."""

    lines: dict[tuple[str, str], Line]
    sets: dict[str, UciSummary]

    @classmethod
    def read(cls, results: Results) -> Scores:
        """Read results with the number of epochs of the recipe; others are trials."""
        lines = results.read()
        measured = {name for _, name in lines}
        sets = {name: summary for name, summary in summaries().items() if name != LACKING or name in measured}
        return cls(lines, sets)

    def group(self, name: str) -> list[str]:
        """Return the names of the sets of a group, or of all."""
        return [member for member, summary in self.sets.items() if name in ("all", summary.group)]

    def accuracy(self, model: str, name: str) -> NDArray[Any] | None:
        """Return percent of each run, (runs,), or None if not measured."""
        line = self.lines.get((model, name))
        if line is None or line["failure"]:
            return None
        return 100 * np.array(line["accuracy"])

    def missing(self, model: str, group: str = "all") -> list[str]:
        return [name for name in self.group(group) if self.accuracy(model, name) is None]

    def has(self, model: str, group: str = "all") -> bool:
        """Return whether a model was run on all sets of a group."""
        return bool(self.group(group)) and not self.missing(model, group)

    def by_set(self, model: str, names: list[str]) -> NDArray[Any]:
        """Return mean accuracy over the runs, (sets,), NaN where not measured."""
        accuracies = [self.accuracy(model, name) for name in names]
        return np.array([np.nan if runs is None else runs.mean() for runs in accuracies])

    def mean(self, model: str, group: str) -> Mean | None:
        """Return the mean over the sets of a group, or None if some are missing."""
        if not self.has(model, group):
            return None
        runs = np.mean([self.accuracy(model, name) for name in self.group(group)], axis=0)  # (runs,)
        return Mean(float(runs.mean()), float(runs.std()))

    def models(self) -> list[str]:
        return list(dict.fromkeys(model for model, _ in self.lines))

    def seconds(self, models: list[str], group: str = "all") -> float:
        """Return the time of all trainings; a training that several models share is counted once."""
        names = set(self.group(group))
        by_training = {
            (line["training"], name): line["seconds"]
            for (model, name), line in self.lines.items()
            if model in models and name in names
        }
        return float(sum(by_training.values()))


def mix_means(results: Results) -> dict[str, dict[str, tuple[float, int]]]:
    """Return mean percent and number of sets by mix of members and group, of the comparison for tart-max."""
    lines = [line for line in results.read().values() if not line["failure"]]
    mixes = dict.fromkeys(mix for line in lines for mix in line["accuracy"])
    means: dict[str, dict[str, tuple[float, int]]] = {mix: {} for mix in mixes}
    for mix in mixes:
        for group in dict.fromkeys(line["group"] for line in lines):
            percents = [100 * np.mean(line["accuracy"][mix]) for line in lines if line["group"] == group]
            means[mix][group] = float(np.mean(percents)), len(percents)
    return means
