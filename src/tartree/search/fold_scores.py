"""Scores of an estimator in the folds of a cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

from sklearn.metrics import get_scorer

from tartree.model.memory_source import take_rows
from tartree.search.problem import Fold
from tartree.search.scores import Metric


class HasFit(Protocol):
    """An estimator that follows the scikit-learn API."""

    def fit(self, X: Any, y: Any) -> Any: ...


def fold_scores(
    make_estimator: Callable[[], HasFit], X: Any, y: Any, folds: Iterable[Fold], metric: Metric
) -> Iterator[float]:
    """Yield the score of a new estimator in each fold, fitted to its rows to learn from.

    Parameters
    ----------
    make_estimator : callable
        Returns an unfitted estimator.
    X : table of shape (rows, columns)
    y : ndarray of shape (rows,) or (rows, targets)
    folds : iterable of pairs of arrays
        Rows to learn from, and rows held out.
    metric : Metric

    Yields
    ------
    float

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from tartree.search.folds import split
    >>> from tartree.search.scores import find_metric
    >>> X, y = load_iris(return_X_y=True)
    >>> folds = list(split(len(y), y, 3, seed=0))
    >>> scores = fold_scores(lambda: DecisionTreeClassifier(random_state=0), X, y, folds, find_metric("classification"))
    >>> all(score > 0.9 for score in scores)
    True
    """
    scorer = get_scorer(metric.name)
    for learnt, held_out in folds:
        model = fit_completely(make_estimator(), take_rows(X, learnt), y[learnt])
        yield float(scorer(model, take_rows(X, held_out), y[held_out]))


Predictor = TypeVar("Predictor", bound=HasFit)


def fit_completely(model: Predictor, X: Any, y: Any, *sample_weight: Any) -> Predictor:
    """Fit an estimator, and raise KeyboardInterrupt if Ctrl-C ended its training, whose weights are then not kept."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "fit was interrupted", UserWarning)
        model.fit(X, y, *sample_weight)
    if getattr(getattr(model, "history_", None), "interrupted", False):
        raise KeyboardInterrupt
    return model
