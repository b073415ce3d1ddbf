"""Models of other libraries with default settings: each a function of a seed and a number of threads."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from uci.models import NO_MEANS, Means


@dataclass(frozen=True)
class Baseline:
    """A classifier with `fit` and `predict`."""

    name: str
    label: str
    make: Callable[[int, int], Any]  # seed, threads
    published: Means = NO_MEANS  # in the paper
    reference: Means = NO_MEANS  # an earlier measurement on these splits, without MiniBooNE
    package: str = "sklearn"

    @property
    def missing(self) -> str | None:
        """Message if the package is not installed, else None."""
        if importlib.util.find_spec(self.package) is None:
            return f"{self.name} is skipped: the package {self.package} is not installed; pip install {self.package}"
        return None


def _decision_tree(seed: int, threads: int) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(random_state=seed)


def _logistic_regression(seed: int, threads: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1000)


def _linear_machine(seed: int, threads: int) -> Any:
    from sklearn.svm import LinearSVC

    return LinearSVC(random_state=seed)


def _radial_machine(seed: int, threads: int) -> Any:
    from sklearn.svm import SVC

    return SVC(cache_size=1000)


def _random_forest(seed: int, threads: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(500, random_state=seed, n_jobs=threads)


def _extra_trees(seed: int, threads: int) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(500, random_state=seed, n_jobs=threads)


def _histogram_boosting(seed: int, threads: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=seed)


def _xgboost(seed: int, threads: int) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(random_state=seed, n_jobs=threads)


def _lightgbm(seed: int, threads: int) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(random_state=seed, n_jobs=threads, verbosity=-1)


def _catboost(seed: int, threads: int) -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(
        iterations=300, random_seed=seed, thread_count=threads, verbose=False, allow_writing_files=False
    )


def _ebm(seed: int, threads: int) -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(random_state=seed, n_jobs=threads)


BASELINES = {
    baseline.name: baseline
    for baseline in [
        Baseline("DT", "decision tree", _decision_tree, (88.3, 76.3, 71.9), (88.2, 76.3, 72.0)),
        Baseline("LR", "logistic regression", _logistic_regression, (79.1, 80.8, 75.8), (77.9, 80.8, 75.8)),
        Baseline("SVM-linear", "SVM, linear", _linear_machine, (77.7, 79.0, 74.9)),
        Baseline("SVM-RBF", "SVM, RBF", _radial_machine, (87.6, 81.1, 77.0), (None, 81.1, 77.0)),
        Baseline("random-forest", "random forest, 500 trees", _random_forest, reference=(91.8, 83.6, 77.9)),
        Baseline("extra-trees", "extra trees, 500 trees", _extra_trees),
        Baseline("hist-boosting", "HistGradientBoosting", _histogram_boosting),
        Baseline("XGBoost", "XGBoost", _xgboost, reference=(92.0, 82.8, 74.7), package="xgboost"),
        Baseline("LightGBM", "LightGBM", _lightgbm, reference=(88.6, 82.6, 76.0), package="lightgbm"),
        Baseline("CatBoost", "CatBoost, 300 rounds", _catboost, reference=(92.3, 83.7, 77.4), package="catboost"),
        Baseline("EBM", "EBM of interpret", _ebm, package="interpret"),
    ]
}
