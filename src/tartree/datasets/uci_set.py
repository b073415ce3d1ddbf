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
    """One of the UCI sets.

    Parameters
    ----------
    name : str
    X : ndarray of shape (rows, features), or pyarrow.Table
        Features, standardised over all rows of a file, test rows included.
    y : ndarray of shape (rows,)
        Indices of classes.
    labels : tuple of int or str
        Names of the classes in the file.
    columns : tuple of str
        Names of the features.
    splits : tuple of (ndarray, ndarray)
        Four splits into train and test rows. If train and test are fixed, the rows of the test file follow those of
        the train file, and all four are the same: runs differ by their seed only. Otherwise they are four overlapping
        splits, three quarters to train on, not a partition.
    tuning_split : (ndarray, ndarray) or None
        Split for tuning, of the training rows if those are fixed.
    fixed_test : bool
        Whether train and test are fixed.
    notes : tuple of str
        What is unusual about the set, for any table of scores.

    Examples
    --------
    >>> from tartree.datasets import load_uci
    >>> iris = load_uci("iris")  # doctest: +SKIP
    >>> train, test = iris.splits[0]  # doctest: +SKIP
    """

    name: str
    X: Any
    y: NDArray[np.int64]
    labels: tuple[int | str, ...]
    columns: tuple[str, ...]
    splits: tuple[Split, ...]
    tuning_split: Split | None
    fixed_test: bool
    notes: tuple[str, ...] = ()

    @property
    def group(self) -> str:
        """Return large, medium or small, by the number of rows."""
        return group(len(self.y))


def group(rows: int) -> str:
    """Return the group of a set: large from 10,000 rows, medium from 1,000, small below.

    Parameters
    ----------
    rows : int

    Returns
    -------
    {"small", "medium", "large"}

    Examples
    --------
    >>> group(999), group(1_000), group(10_000)
    ('small', 'medium', 'large')
    """
    return "large" if rows >= 10_000 else "medium" if rows >= 1_000 else "small"
