"""Baselines: models of scikit-learn with default settings, scored in the folds of a search."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tartree.search.fold_scores import fold_scores
from tartree.search.scores import METRICS
from tartree.table import TableEncoder

if TYPE_CHECKING:
    from tartree.search.structure_search import StructureSearch

NAMES = ("decision tree", "random forest", "boosting")


def baseline_scores(
    search: StructureSearch, X: Any, y: Any, names: tuple[str, ...] = NAMES
) -> dict[str, NDArray[np.float64]]:
    """Score a decision tree, a random forest and gradient boosting in the folds of a fitted search.

    The table is encoded once, as for the search. Scores are those of the search's `scoring`.

    Parameters
    ----------
    search : StructureSearch
        A fitted search.
    X, y : table and target
        Those of its fit.
    names : tuple of str
        Some of "decision tree", "random forest", "boosting" and "guess".

    Returns
    -------
    dict of str to ndarray of shape (folds,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import StructureSearch, TartClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> search = StructureSearch(TartClassifier(epochs=2), {"depth": [1]}, refit=False, random_state=0).fit(X, y)
    >>> baseline_scores(search, X, y, ("decision tree",))["decision tree"].shape
    (4,)
    """
    x, target = TableEncoder().fit_transform(X), np.asarray(y)
    metric = METRICS[search.scoring_]
    has_classes = metric.task == "classification"
    scores: dict[str, NDArray[np.float64]] = {}
    for name in names:
        of_folds: list[float] = []
        for fold in search.splits_:
            # Boosting refuses a target of one class.
            has_one_class = has_classes and len(np.unique(target[fold[0]])) < 2
            make = partial(make_baseline, "guess" if has_one_class else name, classification=has_classes)
            of_folds += fold_scores(make, x, target, [fold], metric)
        scores[name] = np.array(of_folds)
    return scores


def make_baseline(name: str, *, classification: bool, random_state: int = 0) -> Any:
    """Return an unfitted model of scikit-learn with default settings.

    Parameters
    ----------
    name : {"decision tree", "random forest", "boosting", "guess"}
        "guess" predicts the most frequent class, or the mean.
    classification : bool
    random_state : int

    Returns
    -------
    estimator

    Examples
    --------
    >>> make_baseline("decision tree", classification=True)
    DecisionTreeClassifier(random_state=0)
    """
    from sklearn.dummy import DummyClassifier, DummyRegressor
    from sklearn.ensemble import (
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
    )
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    if name == "guess":
        return DummyClassifier(strategy="most_frequent") if classification else DummyRegressor()
    kinds = {
        "decision tree": (DecisionTreeClassifier, DecisionTreeRegressor),
        "random forest": (RandomForestClassifier, RandomForestRegressor),
        "boosting": (HistGradientBoostingClassifier, HistGradientBoostingRegressor),
    }
    return kinds[name][0 if classification else 1](random_state=random_state)
