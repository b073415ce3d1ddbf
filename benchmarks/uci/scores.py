"""Results as a table of scores: what there is for each model and set, and means of groups where nothing is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tartree.datasets import UciSummary
from uci.results import Line, Results
from uci.sets import summaries

#: The archive that the results come from lacks it: until a model has been run on it, no mean waits for it.
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
        """Results with the recipe's own number of epochs; those with another are trials."""
        lines = results.read()
        known = {name for _, name in lines}
        return cls(lines, {name: one for name, one in summaries().items() if name != LACKING or name in known})

    def group(self, name: str) -> list[str]:
        """Names of the sets of a group, or of all."""
        return [one for one, summary in self.sets.items() if name in ("all", summary.group)]

    def accuracy(self, model: str, name: str) -> NDArray[Any] | None:
        """Percent, (runs,), or None where there is none."""
        line = self.lines.get((model, name))
        if line is None or line["failure"]:
            return None
        return 100 * np.array(line["accuracy"])

    def missing(self, model: str, group: str = "all") -> list[str]:
        return [name for name in self.group(group) if self.accuracy(model, name) is None]

    def has(self, model: str, group: str = "all") -> bool:
        """Whether a model was run on all sets of a group."""
        return bool(self.group(group)) and not self.missing(model, group)

    def by_set(self, model: str, names: list[str]) -> NDArray[Any]:
        """Mean accuracy over the runs, (sets,)."""
        found = [self.accuracy(model, name) for name in names]
        return np.array([np.nan if one is None else one.mean() for one in found])

    def mean(self, model: str, group: str) -> Mean | None:
        """Mean over the sets of a group, only when all of them are there."""
        if not self.has(model, group):
            return None
        runs = np.mean([self.accuracy(model, name) for name in self.group(group)], axis=0)  # (runs,)
        return Mean(float(runs.mean()), float(runs.std()))

    def models(self) -> list[str]:
        return list(dict.fromkeys(model for model, _ in self.lines))

    def seconds(self, models: list[str], group: str = "all") -> float:
        """Time of all trainings; what several models share is counted once."""
        names = set(self.group(group))
        own = {
            (line["training"], name): line["seconds"]
            for (model, name), line in self.lines.items()
            if model in models and name in names
        }
        return float(sum(own.values()))


def mix_means(results: Results) -> dict[str, dict[str, tuple[float, int]]]:
    """What was tried for tart-max, by mix of members and group: the mean over sets in percent, and their number."""
    lines = [line for line in results.read().values() if not line["failure"]]
    mixes = dict.fromkeys(mix for line in lines for mix in line["accuracy"])
    found: dict[str, dict[str, tuple[float, int]]] = {mix: {} for mix in mixes}
    for mix in mixes:
        for group in dict.fromkeys(line["group"] for line in lines):
            own = [100 * np.mean(line["accuracy"][mix]) for line in lines if line["group"] == group]
            found[mix][group] = float(np.mean(own)), len(own)
    return found
