"""Folds of a cross-validation: rows to learn from and to hold out; and the rows of a large table that are looked at."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, check_cv

from tartree.search.problem import Fold, RowIndex


def make_folds(
    folds: Any,
    target: NDArray[Any],
    strata: NDArray[Any] | None,
    groups: RowIndex | None,
    rows: RowIndex,
    seed: int,
) -> list[Fold]:
    """Return folds of some rows of a table, from their number, a splitter or a list."""
    if isinstance(folds, int | np.integer) and not isinstance(folds, bool):
        if not 2 <= folds <= len(rows):
            raise ValueError(f"folds must be from 2 to the number of rows, {len(rows)}, got {folds}")
        if groups is not None:
            return list(_split_groups(strata, groups, int(folds), seed, rows))
        return list(split(len(target), strata, int(folds), seed, rows))
    try:
        splitter = check_cv(folds, target, classifier=strata is not None)
    except (TypeError, ValueError):
        raise ValueError(
            f"folds must be a number, a splitter of scikit-learn or a list of pairs of rows, got {folds!r}"
        ) from None
    is_kept = np.isin(np.arange(len(target)), rows)
    pairs = [
        (_kept_rows(learnt, is_kept), _kept_rows(held_out, is_kept))
        for learnt, held_out in splitter.split(np.zeros((len(target), 1)), target, groups)
    ]
    if not pairs or not all(len(side) for fold in pairs for side in fold):
        raise ValueError(
            f"folds must have rows to learn from and rows held out, got {[tuple(map(len, fold)) for fold in pairs]} "
            f"rows from {folds!r}"
        )
    return pairs


def read_groups(values: ArrayLike, n_rows: int) -> RowIndex:
    """Return the index of each row's group, or raise if a row has none."""
    groups = np.asarray(values)
    if groups.shape != (n_rows,):
        raise ValueError(f"groups must have one value for each of {n_rows} rows, got shape {groups.shape}")
    is_missing = np.array([_is_missing(value) for value in groups.tolist()])
    if is_missing.any():
        raise ValueError(
            f"groups must have no missing values, got one in row {int(is_missing.argmax())}; give it a group or leave "
            "the row out"
        )
    index: RowIndex = np.unique(groups.astype(str) if groups.dtype == object else groups, return_inverse=True)[1]
    return index


def _is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or a missing value of pandas."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")


def _split_groups(
    strata: NDArray[Any] | None, groups: RowIndex, folds: int, seed: int, rows: RowIndex
) -> Iterator[Fold]:
    """Yield folds that hold out whole groups, with about the same shares of classes."""
    if (n_groups := len(np.unique(groups[rows]))) < folds:
        raise ValueError(f"folds must be at most the number of groups, {n_groups}, got {folds}")
    kind = GroupKFold if strata is None else StratifiedGroupKFold
    labels = np.zeros(len(rows)) if strata is None else strata[rows]
    with warnings.catch_warnings():  # a class with fewer rows than folds is missing from some of them
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        splits = list(kind(folds, shuffle=True, random_state=seed).split(rows, labels, groups[rows]))
    for number, (learnt, held_out) in enumerate(splits):
        if not len(held_out):
            raise ValueError(f"folds must have rows held out, got none in fold {number} of {folds}; use fewer folds")
        yield rows[learnt], rows[held_out]


def split(
    n_rows: int, strata: NDArray[Any] | None, folds: int, seed: int, rows: RowIndex | None = None
) -> Iterator[Fold]:
    """Yield folds of some rows, with the same shares of classes; a class of one row is never held out."""
    rows = np.arange(n_rows) if rows is None else rows
    if strata is None:
        for learnt, held_out in KFold(folds, shuffle=True, random_state=seed).split(rows):
            yield rows[learnt], rows[held_out]
        return
    _, class_index, counts = np.unique(strata[rows], return_inverse=True, return_counts=True)
    single, others = rows[counts[class_index] == 1], rows[counts[class_index] > 1]
    if len(others) < folds or counts.max() < folds:
        raise ValueError(f"folds must be at most the rows of the largest class, {int(counts.max())}, got {folds}")
    with warnings.catch_warnings():  # a class with fewer rows than folds is missing from some of them
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        splits = list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(others, strata[others]))
    for learnt, held_out in splits:
        yield np.sort(np.concatenate([others[learnt], single])), others[held_out]


def draw_rows(n_rows: int, strata: NDArray[Any] | None, most: int, seed: int) -> RowIndex:
    """Return `most` rows at most, in order, with the same shares of classes."""
    if n_rows <= most:
        return np.arange(n_rows)
    order = np.random.default_rng(seed).permutation(n_rows)
    if strata is not None:  # sorted by class, of which every k-th is taken
        order = order[np.argsort(strata[order], kind="stable")]
    return np.sort(order[np.floor(np.arange(most) * n_rows / most).astype(np.intp)])


def _kept_rows(side: Any, is_kept: NDArray[np.bool_]) -> RowIndex:
    """Return the rows of one side of a fold, without those that the search does not look at."""
    rows = np.asarray(side)
    rows = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.intp)
    if len(rows) and not -len(is_kept) <= rows.min() <= rows.max() < len(is_kept):
        raise ValueError(f"folds must name rows from 0 to {len(is_kept) - 1}, got {rows.min()} to {rows.max()}")
    rows = rows % len(is_kept)
    return rows[is_kept[rows]]
