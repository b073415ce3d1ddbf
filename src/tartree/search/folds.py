"""Folds of a search: which rows are learnt from and held out, and which of a large table are looked at."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, check_cv

from tartree.search.problem import Fold, Rows


def make_folds(
    folds: Any,
    target: NDArray[Any],
    strata: NDArray[Any] | None,
    groups: Rows | None,
    rows: Rows,
    seed: int,
) -> list[Fold]:
    """Folds of some rows of a table: so many of them, or those of a splitter or a list."""
    if isinstance(folds, int | np.integer) and not isinstance(folds, bool):
        if not 2 <= folds <= len(rows):
            raise ValueError(f"folds must be from 2 to the number of rows, {len(rows)}, however: {folds=}")
        if groups is not None:
            return list(_split_groups(strata, groups, int(folds), seed, rows))
        return list(split(len(target), strata, int(folds), seed, rows))
    try:
        splitter = check_cv(folds, target, classifier=strata is not None)
    except (TypeError, ValueError):
        raise ValueError(
            f"folds must be a number, a splitter of scikit-learn or a list of pairs of rows, however: {folds=}"
        ) from None
    kept = np.isin(np.arange(len(target)), rows)
    found = [
        (_kept(learnt, kept), _kept(held, kept))
        for learnt, held in splitter.split(np.zeros((len(target), 1)), target, groups)
    ]
    if not found or not all(len(side) for fold in found for side in fold):
        raise ValueError(
            f"folds must have rows to learn from and rows held out, however: {folds!r} gives "
            f"{[tuple(map(len, fold)) for fold in found]} of them"
        )
    return found


def read_groups(given: ArrayLike, n_rows: int) -> Rows:
    """The number of each row's group; raises where a row has none."""
    groups = np.asarray(given)
    if groups.shape != (n_rows,):
        raise ValueError(f"groups must have one value for each of {n_rows} rows, however: shape {groups.shape}")
    missing = np.array([_is_gap(value) for value in groups.tolist()])
    if missing.any():
        raise ValueError(
            f"groups must say what each row belongs to, however: row {int(missing.argmax())} has no value; give it one "
            "of its own, or leave the row out"
        )
    numbers: Rows = np.unique(groups.astype(str) if groups.dtype == object else groups, return_inverse=True)[1]
    return numbers


def _is_gap(value: Any) -> bool:
    """None, NaN, and what pandas has for a value that is missing."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")


def _split_groups(strata: NDArray[Any] | None, groups: Rows, folds: int, seed: int, rows: Rows) -> Iterator[Fold]:
    """Folds that hold out whole groups, with about the same shares of classes."""
    if (n_groups := len(np.unique(groups[rows]))) < folds:
        raise ValueError(f"folds must be at most the number of groups, {n_groups}, however: {folds=}")
    kind = GroupKFold if strata is None else StratifiedGroupKFold
    labels = np.zeros(len(rows)) if strata is None else strata[rows]
    with warnings.catch_warnings():  # a class with fewer rows than folds is missing from some of them
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        splits = list(kind(folds, shuffle=True, random_state=seed).split(rows, labels, groups[rows]))
    for number, (train, held) in enumerate(splits):
        if not len(held):
            raise ValueError(f"folds must have rows held out, however: fold {number} of {folds} has none; use fewer")
        yield rows[train], rows[held]


def split(n_rows: int, strata: NDArray[Any] | None, folds: int, seed: int, rows: Rows | None = None) -> Iterator[Fold]:
    """Folds of some rows, with the same shares of classes; a class of one row is learnt in each, and never held out."""
    rows = np.arange(n_rows) if rows is None else rows
    if strata is None:
        for train, held in KFold(folds, shuffle=True, random_state=seed).split(rows):
            yield rows[train], rows[held]
        return
    labels = strata[rows]
    _, place, counts = np.unique(labels, return_inverse=True, return_counts=True)
    alone, others = rows[counts[place] == 1], rows[counts[place] > 1]
    if len(others) < folds or counts.max() < folds:
        raise ValueError(f"folds must be at most the rows of the largest class, {int(counts.max())}, however: {folds=}")
    with warnings.catch_warnings():  # a class with fewer rows than folds is missing from some of them
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        splits = list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(others, strata[others]))
    for train, held in splits:
        yield np.sort(np.concatenate([others[train], alone])), others[held]


def draw_rows(n_rows: int, strata: NDArray[Any] | None, most: int, seed: int) -> Rows:
    """So many rows at most, in order, with the same shares of classes."""
    if n_rows <= most:
        return np.arange(n_rows)
    order = np.random.default_rng(seed).permutation(n_rows)
    if strata is not None:  # sorted by class, of which every k-th is taken
        order = order[np.argsort(strata[order], kind="stable")]
    return np.sort(order[np.floor(np.arange(most) * n_rows / most).astype(np.intp)])


def _kept(given: Any, kept: NDArray[np.bool_]) -> Rows:
    """Rows of a fold, less those that the search does not look at."""
    side = np.asarray(given)
    side = np.flatnonzero(side) if side.dtype == bool else side.astype(np.intp)
    if len(side) and not -len(kept) <= side.min() <= side.max() < len(kept):
        raise ValueError(f"folds must name rows from 0 to {len(kept) - 1}, however: {side.min()} to {side.max()}")
    side = side % len(kept)
    return side[kept[side]]
