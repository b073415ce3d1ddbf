"""Metrics: those of scikit-learn, for members side by side."""

import numpy as np
import pytest
import sklearn.metrics
import torch
from sklearn.metrics import get_scorer

from tartree import StructureSearch, TartClassifier, TartRegressor
from tartree.search import baseline_scores, plot_front
from tartree.search.scores import METRICS, find_metric

SCIKIT_LEARN = {
    "accuracy": lambda y, p, w: sklearn.metrics.accuracy_score(y, p.argmax(-1), sample_weight=w),
    "balanced_accuracy": lambda y, p, w: sklearn.metrics.balanced_accuracy_score(y, p.argmax(-1), sample_weight=w),
    "neg_log_loss": lambda y, p, w: -sklearn.metrics.log_loss(y, p, sample_weight=w, labels=[0, 1, 2]),
    "r2": lambda y, p, w: sklearn.metrics.r2_score(y, p, sample_weight=w),
}


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_metrics_are_those_of_scikit_learn(metric):
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 2.0, (2, 30))
    if metric.task == "classification":
        target, predicted = rng.integers(0, 3, (2, 30)), rng.dirichlet([1, 1, 1], (2, 30))
    else:
        target, predicted = rng.normal(size=(2, 30, 2)), rng.normal(size=(2, 30, 2))
    scores = metric.score(*map(torch.from_numpy, (predicted, target, weight)))
    expected = [SCIKIT_LEARN[metric.name](*member) for member in zip(target, predicted, weight, strict=True)]
    assert scores.tolist() == pytest.approx(expected)
    get_scorer(metric.name)  # by which other models are scored


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_a_search_by_each_metric(metric, iris):
    pytest.importorskip("matplotlib")
    estimator = (TartClassifier if metric.task == "classification" else TartRegressor)(epochs=2)
    search = StructureSearch(estimator, {"depth": [0, 1]}, scoring=metric.name, refit=False, random_state=0).fit(*iris)
    assert search.scoring_ == metric.name
    scores = baseline_scores(search, *iris)
    assert plot_front(search, baselines=scores).get_ylabel() == f"{metric.label}, 4 folds"


def test_the_first_metric_of_a_task_is_its_default():
    assert find_metric("classification").name == "accuracy"
    assert find_metric("regression").name == "r2"
    with pytest.raises(ValueError, match="scoring must be one of r2, got 'accuracy'"):
        find_metric("regression", "accuracy")
