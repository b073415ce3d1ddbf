"""UciSet: one data set with its official splits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]
Split = tuple[Rows, Rows]


@dataclass(frozen=True, eq=False)
class UciSet:
    """One of the UCI sets, as `load_uci` gives it.

    Where train and test are fixed (`fixed_test`), the rows of the test file come after those of the train file, and all
    four splits are the same: runs differ by their seed only. Elsewhere they are four overlapping splits, three
    quarters to train on, not a partition. Features come standardised over all rows of a file, test rows included.
    """

    name: str
    X: Any  # float64 (rows, features), or a pyarrow.Table
    y: NDArray[np.int64]  # (rows,): 0 to classes - 1
    labels: tuple[int | str, ...]  # (classes,): what the file calls each class
    columns: tuple[str, ...]  # (features,)
    splits: tuple[Split, ...]  # four times (train rows, test rows)
    tuning_split: Split | None  # within the training rows where these are fixed
    fixed_test: bool
    notes: tuple[str, ...] = ()  # what to say beside any number

    @property
    def group(self) -> str:
        """large, medium or small, by the rows in all."""
        return group(len(self.y))


def group(rows: int) -> str:
    """The group whose mean a set counts in: large from 10,000 rows, medium from 1,000, small below.

    >>> group(999), group(1_000), group(10_000)
    ('small', 'medium', 'large')
    """
    return "large" if rows >= 10_000 else "medium" if rows >= 1_000 else "small"
