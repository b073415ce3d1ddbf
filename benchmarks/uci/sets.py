"""One UCI set as tensors, with the rows of each of its four runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from tartree.datasets import UciSummary, load_uci, uci_index
from tartree.table import Constant, TableEncoder

ORDER = ("small", "medium", "large")


@dataclass(frozen=True, eq=False)
class StudySet:
    """Features as they come, standardised; where train and test are fixed, the four runs differ by their seed alone."""

    name: str
    group: str
    x: Tensor  # (rows, features)
    y: Tensor  # (rows,)
    train: tuple[Tensor, ...]  # of each run, rows to learn from
    test: tuple[Tensor, ...]  # of each run, rows to score
    n_classes: int
    fixed_test: bool

    @property
    def runs(self) -> int:
        return len(self.train)

    def to(self, device: torch.device) -> StudySet:
        """The same with its table on a device; numbers of rows stay where they are."""
        return replace(self, x=self.x.to(device), y=self.y.to(device))

    def encoded(self) -> StudySet:
        """The same as `TartClassifier` sees it: each run's table by an encoder that knows its training rows alone.

        The tables stand one below the other, and rows are numbered anew; runs with the same training rows share one. A
        column that is constant in the training rows of a run has no feature in an estimator; here it is 0 in that run.
        """
        is_shared = all(torch.equal(rows, self.train[0]) for rows in self.train)
        parts = self.train[:1] if is_shared else self.train
        tables = torch.stack([_encode(self.x, rows) for rows in parts])  # (tables, rows, features)
        tables = tables[..., tables.any(dim=(0, 1))]
        first = [0 if is_shared else run * len(self.x) for run in range(self.runs)]
        return replace(
            self,
            x=tables.flatten(0, 1),
            y=self.y.repeat(len(tables)),
            train=tuple(rows + start for rows, start in zip(self.train, first, strict=True)),
            test=tuple(rows + start for rows, start in zip(self.test, first, strict=True)),
        )


def _encode(x: Tensor, rows: Tensor) -> Tensor:
    """All rows by an encoder of some of them, (rows, features), with zeros for columns that it leaves out."""
    encoder = TableEncoder().fit(x[rows].numpy())
    kept = [not isinstance(column, Constant) for column in encoder.columns_]
    found = torch.zeros_like(x)
    found[:, torch.tensor(kept)] = torch.from_numpy(encoder.transform(x.numpy()))
    return found


@lru_cache(maxsize=1)
def summaries() -> dict[str, UciSummary]:
    """What the index of the cache says about each set."""
    return dict(uci_index().sets)


@lru_cache(maxsize=256)
def load_set(name: str) -> StudySet:
    """One set from the cache of `tartree data uci`."""
    found = load_uci(name)
    return StudySet(
        name,
        found.group,
        torch.from_numpy(np.ascontiguousarray(found.X, dtype=np.float32)),
        torch.from_numpy(found.y.astype(np.int64)),
        tuple(torch.from_numpy(train) for train, _ in found.splits),
        tuple(torch.from_numpy(test) for _, test in found.splits),
        len(found.labels),
        found.fixed_test,
    )


def list_sets(groups: list[str], only: list[str] | None = None) -> list[str]:
    """Names of the sets of some groups: small groups first, and within a group the sets with fewest rows."""
    sets = summaries()
    if unknown := sorted(set(only or ()) - set(sets)):
        raise ValueError(f"sets must be those that `tartree data uci --list` shows, however: {', '.join(unknown)}")
    chosen = [name for name, one in sets.items() if one.group in groups and (not only or name in only)]
    return sorted(chosen, key=lambda name: (ORDER.index(sets[name].group), sets[name].rows, name))
