"""A UCI set as tensors, with the rows of each of its four runs."""

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
    """Features as in the file, standardised; with fixed train and test rows, runs differ only by their seed."""

    name: str
    group: str
    x: Tensor  # (rows, features)
    y: Tensor  # (rows,)
    train: tuple[Tensor, ...]  # training rows of each run
    test: tuple[Tensor, ...]  # test rows of each run
    n_classes: int
    fixed_test: bool

    @property
    def runs(self) -> int:
        return len(self.train)

    def to(self, device: torch.device) -> StudySet:
        """Return the set with its table on a device; row indices stay on the CPU."""
        return replace(self, x=self.x.to(device), y=self.y.to(device))

    def encoded(self) -> StudySet:
        """Return the set as `TartClassifier` sees it, with each run's table encoded by its training rows.

        The tables are concatenated and rows are renumbered; runs with the same training rows share a table. A column
        that is constant in the training rows of a run has no feature in an estimator; here it is 0 in that run.
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
    """Encode all rows by an encoder fitted to some, (rows, features), with zeros for columns that it leaves out."""
    encoder = TableEncoder().fit(x[rows].numpy())
    kept = [not isinstance(column, Constant) for column in encoder.columns_]
    encoded = torch.zeros_like(x)
    encoded[:, torch.tensor(kept)] = torch.from_numpy(encoder.transform(x.numpy()))
    return encoded


@lru_cache(maxsize=1)
def summaries() -> dict[str, UciSummary]:
    """Return the summary of each set in the index of the cache."""
    return dict(uci_index().sets)


@lru_cache(maxsize=256)
def load_set(name: str) -> StudySet:
    """Load a set from the cache of `tartree data uci`."""
    data = load_uci(name)
    return StudySet(
        name,
        data.group,
        torch.from_numpy(np.ascontiguousarray(data.X, dtype=np.float32)),
        torch.from_numpy(data.y.astype(np.int64)),
        tuple(torch.from_numpy(train) for train, _ in data.splits),
        tuple(torch.from_numpy(test) for _, test in data.splits),
        len(data.labels),
        data.fixed_test,
    )


def list_sets(groups: list[str], only: list[str] | None = None) -> list[str]:
    """Return names of the sets of some groups, small groups first, and by number of rows within a group."""
    sets = summaries()
    if unknown := sorted(set(only or ()) - set(sets)):
        raise ValueError(f"sets must be some of those in `tartree data uci --list`, got {', '.join(unknown)}")
    chosen = [name for name, summary in sets.items() if summary.group in groups and (not only or name in only)]
    return sorted(chosen, key=lambda name: (ORDER.index(sets[name].group), sets[name].rows, name))
