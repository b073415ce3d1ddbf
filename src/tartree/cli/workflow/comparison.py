"""Cross-validated scores of a model, a guess, a decision tree and a random forest."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tartree.cli.rendering.notes import Notes
from tartree.cli.workflow.target_column import Target

if TYPE_CHECKING:
    from tartree import TartClassifier, TartRegressor

MOST_ROWS = 20_000  # of a cross-validation; more take long and change little


@dataclass(frozen=True)
class Score:
    """Scores of a model in each fold, and the mean seconds of a fit."""

    name: str
    folds: tuple[float, ...]
    seconds: float

    @property
    def mean(self) -> float:
        """Mean score."""
        return float(np.mean(self.folds))

    @property
    def sd(self) -> float:
        """Standard deviation of the scores."""
        return float(np.std(self.folds))


@dataclass(frozen=True)
class Comparison:
    """Scores of all models in the same folds, with that of `tartree` first."""

    metric: str  # "accuracy" or "R2"
    n_folds: int
    n_rows: int
    scores: tuple[Score, ...]


def compare(
    table: Any,
    target: Target,
    estimator: TartClassifier | TartRegressor,
    *,
    folds: int,
    seed: int,
    notes: Notes,
) -> Comparison | None:
    """Cross-validate an estimator and other models; None, with a note, if there are too few rows."""
    from sklearn.base import clone

    rows = np.arange(len(target.values))
    if len(rows) > MOST_ROWS:
        rows = np.sort(np.random.default_rng(seed).permutation(len(rows))[:MOST_ROWS])
        notes.add(f"models are compared on {MOST_ROWS:,} of {len(target.values):,} rows, drawn at random")
    table, values = table.take(rows), target.values[rows]
    if len(np.unique(values)) < 2:
        notes.add("models are not compared: the rows drawn for it have one value of the target only")
        return None
    most = max(np.unique(values, return_counts=True)[1]) if target.is_classification else len(rows) // 2
    n_folds = min(folds, int(most))
    if n_folds < 2:
        notes.add("there are too few rows for a cross-validation")
        return None
    if n_folds < folds:
        notes.add(f"the cross-validation has {n_folds} folds, for there are few rows")
    splits = list(_splits(values, target.is_classification, n_folds, seed))
    candidate = clone(estimator)
    smallest = min(len(train) for train, _ in splits)
    spec = candidate.spec()
    depth = spec.resolve_depth(len(target.values))
    if candidate.depth == "auto" and spec.resolve_depth(smallest) != depth:
        candidate.depth = depth  # the tree that is compared must be the one that is fitted to all rows
    contenders = {"tartree": lambda: clone(candidate), **_baselines(target.is_classification, seed)}
    scores = []
    with notes.progress(n_folds * len(contenders)) as begin:
        for name, make in contenders.items():
            fold_scores, started = [], time.perf_counter()
            for number, (train, test) in enumerate(splits, start=1):
                begin(f"{name}, fold {number} of {n_folds}")
                fold_scores.append(_score(make(), table, values, train, test))
            scores.append(Score(name, tuple(fold_scores), (time.perf_counter() - started) / n_folds))
    return Comparison("accuracy" if target.is_classification else "R2", n_folds, len(rows), tuple(scores))


def _splits(
    values: NDArray[Any], stratified: bool, n_folds: int, seed: int
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Rows to learn from and to check with; a class of one row is always learnt, for there is nothing to check."""
    from sklearn.model_selection import KFold, StratifiedKFold

    kind = StratifiedKFold if stratified else KFold
    always = np.zeros(len(values), dtype=bool)
    if stratified:
        _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
        always = counts[place] == 1
    alone, others = np.flatnonzero(always), np.flatnonzero(~always)
    with warnings.catch_warnings():
        # A class with fewer rows than folds is missing from some of them, which is noted elsewhere.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        for train, test in kind(n_folds, shuffle=True, random_state=seed).split(others, values[others]):
            yield np.sort(np.concatenate([others[train], alone])), others[test]


def _baselines(classification: bool, seed: int) -> dict[str, Callable[[], Any]]:
    from sklearn.dummy import DummyClassifier, DummyRegressor
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    from tartree.table import TableEncoder

    tree, forest = (
        (DecisionTreeClassifier, RandomForestClassifier)
        if classification
        else (DecisionTreeRegressor, RandomForestRegressor)
    )
    guess = DummyClassifier(strategy="most_frequent") if classification else DummyRegressor()
    return {
        "random forest": lambda: make_pipeline(TableEncoder(), forest(random_state=seed)),
        "decision tree": lambda: make_pipeline(TableEncoder(), tree(random_state=seed)),
        "majority guess" if classification else "mean": lambda: make_pipeline(TableEncoder(), guess),
    }


def _score(model: Any, table: Any, values: NDArray[Any], train: NDArray[np.intp], test: NDArray[np.intp]) -> float:
    from sklearn.metrics import r2_score

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "fit was interrupted", UserWarning)  # raised below
        model.fit(table.take(train), values[train])
    history = getattr(model, "history_", None)
    if getattr(history, "interrupted", False):  # an estimator stops its fit, but the command must end
        raise KeyboardInterrupt
    predicted = model.predict(table.take(test))
    if values.dtype.kind == "f":
        return float(r2_score(values[test], predicted))
    return float(np.mean(predicted == values[test]))
