"""Metrics: those of scikit-learn, for members side by side."""

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer

from tartree import StructureSearch, TartClassifier, TartRegressor
from tartree.search import baseline_scores, plot_front
from tartree.search.scores import METRICS, Metric, find_metric


class FixedClassifier(ClassifierMixin, BaseEstimator):
    """Predicts the probabilities of the rows that it is asked about."""

    classes_ = np.arange(3)

    def predict(self, X):
        return X.argmax(-1)

    def predict_proba(self, X):
        return X


class FixedRegressor(RegressorMixin, BaseEstimator):
    """Predicts the rows that it is asked about."""

    def predict(self, X):
        return X


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_metrics_are_those_of_scikit_learn(metric):
    models = {"classification": FixedClassifier(), "regression": FixedRegressor()}
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 2.0, (2, 30))
    if metric.task == "classification":
        target, predicted = rng.integers(0, 3, (2, 30)), rng.dirichlet([1, 1, 1], (2, 30))
    else:
        target, predicted = rng.normal(size=(2, 30, 2)), rng.normal(size=(2, 30, 2))
    scores = metric.score(*map(torch.from_numpy, (predicted, target, weight)))
    model, scorer = models[metric.task], get_scorer(metric.name)  # by which other models are scored
    expected = [scorer(model, p, y, sample_weight=w) for p, y, w in zip(predicted, target, weight, strict=True)]
    assert scores.tolist() == pytest.approx(expected)


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
    with pytest.raises(ValueError, match=r"scoring must be one of r2.*, got 'accuracy'"):
        find_metric("regression", "accuracy")


def mean_absolute_error(predicted, target, weight):
    return ((predicted - target).abs().mean(-1) * weight).sum(-1) / weight.sum(-1)


def test_a_new_metric_is_one_record_and_sees_values_in_units_of_the_target(monkeypatch):
    metric = Metric("neg_mean_absolute_error", "regression", mean_absolute_error, "error", greater_is_better=False)
    monkeypatch.setitem(METRICS, metric.name, metric)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = 500 + 100 * np.sign(X[:, 0])
    search = StructureSearch(TartRegressor(epochs=1), {"depth": [0]}, scoring=metric.name, random_state=0).fit(X, y)
    guess = baseline_scores(search, X, y, ("guess",))["guess"].mean()
    assert 1.5 * guess < search.trials_[0]["score"] < 0.1 * guess  # not in standard deviations
