"""What scikit-learn's models reach on the folds of a search."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tartree.table import TableEncoder

NAMES = ("decision tree", "random forest", "boosting")


def baseline_scores(search: Any, X: Any, y: Any, names: tuple[str, ...] = NAMES) -> dict[str, NDArray[np.float64]]:
    """Scores of a decision tree, a random forest and gradient boosting, as they come, in the folds of a fitted search.

    The table is encoded once, as for the search. Scores are those of the search's `scoring`.

    Parameters
    ----------
    search : fitted StructureSearch
    X, y : what it was fitted to

    Returns
    -------
    dict of name to array of shape (folds,)
    """
    from sklearn.metrics import get_scorer

    x, target = TableEncoder().fit_transform(X), np.asarray(y)
    scorer = get_scorer(search.scoring_)
    found: dict[str, NDArray[np.float64]] = {}
    for name in names:
        scores = []
        for learnt, held in search.splits_:
            model = _make(name, hasattr(search, "classes_"), len(np.unique(target[learnt])) < 2)
            scores.append(float(scorer(model.fit(x[learnt], target[learnt]), x[held], target[held])))
        found[name] = np.array(scores)
    return found


def _make(name: str, classification: bool, one_class: bool) -> Any:
    from sklearn.dummy import DummyClassifier
    from sklearn.ensemble import (
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
    )
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    if classification and one_class:  # boosting would refuse it
        return DummyClassifier()
    kinds = {
        "decision tree": (DecisionTreeClassifier, DecisionTreeRegressor),
        "random forest": (RandomForestClassifier, RandomForestRegressor),
        "boosting": (HistGradientBoostingClassifier, HistGradientBoostingRegressor),
    }
    return kinds[name][0 if classification else 1](random_state=0)
