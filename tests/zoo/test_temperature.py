import numpy as np
import pytest
import torch
from sklearn import datasets
from sklearn.tree import DecisionTreeClassifier

from tartree import zoo
from tartree.zoo import temperature as temperatures
from tartree.zoo.temperature import TEMPERATURES

X, y = datasets.load_breast_cancer(return_X_y=True)
TRAIN = np.arange(len(X)) % 2 == 0


def test_the_best_temperature_is_taken(monkeypatch):
    cart = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    for best in range(len(TEMPERATURES)):
        costs = np.abs(np.arange(len(TEMPERATURES)) - best).astype(float)
        monkeypatch.setattr(temperatures, "costs", lambda *given, costs=costs: costs)
        assert zoo.soften(cart, X, y).temperature_ == TEMPERATURES[best]


def test_smooth_data_want_a_warmer_tree_than_steps():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 1))
    step = (values[:, 0] > 0).astype(int)
    smooth = (rng.random(300) < 1 / (1 + np.exp(-3 * values[:, 0]))).astype(int)
    stump = DecisionTreeClassifier(max_depth=1)
    cold, warm = (zoo.soften(stump.fit(values, own), values, own).temperature_ for own in (step, smooth))
    assert cold < warm


def test_costs_are_those_of_the_mixture_in_parts_too(monkeypatch):
    cart = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X[TRAIN], y[TRAIN])
    first = zoo.soften(cart, X[TRAIN], y[TRAIN], temperature=1.0, device="cpu")
    x, target = torch.from_numpy(first.encoder_.transform(X[~TRAIN])), first.model_.codec.encode(y[~TRAIN])
    weight = np.random.default_rng(0).random((~TRAIN).sum())
    whole = temperatures.costs(first.tree_, x, target, weight)
    monkeypatch.setattr(temperatures, "COST_SIZE", 7 * 2 * cart.get_n_leaves())  # seven rows at a time
    np.testing.assert_allclose(temperatures.costs(first.tree_, x, target, weight), whole, rtol=1e-5)
    for temperature, cost in zip(TEMPERATURES, whole, strict=True):
        soft = zoo.soften(cart, X[TRAIN], y[TRAIN], temperature=temperature, device="cpu")
        said = soft.predict_proba(X[~TRAIN])[np.arange(len(weight)), y[~TRAIN]]
        assert cost == pytest.approx(-(weight * np.log(said)).sum(), rel=1e-3)
