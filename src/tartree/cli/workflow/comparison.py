"""Cross-validated scores of a model, a guess, a decision tree and a random forest."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

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
    table: Any, target: Target, estimator: TartClassifier | TartRegressor, *, folds: int, seed: int, notes: Notes
) -> Comparison | None:
    """Cross-validate an estimator and other models; None, with a note, if there are too few rows."""
    from sklearn.base import clone

    from tartree.search.fold_scores import fold_scores
    from tartree.search.folds import split
    from tartree.search.scores import find_metric

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
    splits = list(split(len(rows), values if target.is_classification else None, n_folds, seed))
    candidate = clone(estimator)
    smallest = min(len(train) for train, _ in splits)
    spec = candidate.spec()
    sizes = {n_rows: (spec.resolve_depth(n_rows), spec.limits(n_rows)) for n_rows in (len(target.values), smallest)}
    if len(set(sizes.values())) > 1:  # the tree that is compared must be the one that is fitted to all rows
        depth, limits = sizes[len(target.values)]
        candidate.set_params(depth=depth, max_features=limits.features, readable=spec.is_readable)
    metric, guess = find_metric(target.task), "majority guess" if target.is_classification else "mean"
    contenders: dict[str, Callable[[], Any]] = {"tartree": lambda: clone(candidate)}
    for label, name in (("random forest", "random forest"), ("decision tree", "decision tree"), (guess, "guess")):
        contenders[label] = partial(_encoded_baseline, name, target.is_classification, seed, candidate.columns)
    scores = []
    with notes.progress(n_folds * len(contenders)) as begin:
        for name, make in contenders.items():
            model_scores: list[float] = []
            started = time.perf_counter()
            for number, fold in enumerate(splits, start=1):
                begin(f"{name}, fold {number} of {n_folds}")
                model_scores += fold_scores(make, table, values, [fold], metric)
            scores.append(Score(name, tuple(model_scores), (time.perf_counter() - started) / n_folds))
    return Comparison(metric.label, n_folds, len(rows), tuple(scores))


def _encoded_baseline(name: str, classification: bool, seed: int, columns: dict[str, str] | None) -> Any:
    """Return a pipeline of an encoder and a model of scikit-learn."""
    from sklearn.pipeline import make_pipeline

    from tartree.search.baselines import make_baseline
    from tartree.table import TableEncoder

    return make_pipeline(
        TableEncoder(columns=columns), make_baseline(name, classification=classification, random_state=seed)
    )
