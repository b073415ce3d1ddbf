import numpy as np
import pytest
from sklearn import datasets, ensemble
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from tartree import load, zoo
from tartree.training import Recipe
from tartree.zoo.warming import TEMPERATURES

X, y = datasets.load_breast_cancer(return_X_y=True)
TRAIN = np.arange(len(X)) % 2 == 0


def test_a_cold_soft_tree_is_the_tree():
    cart = DecisionTreeClassifier(max_leaf_nodes=8, random_state=0).fit(X, y)
    soft = zoo.soften(cart, X, y, temperature=1e-4)
    far = np.abs(soft.predict_proba(X)[:, 1] - 0.5) > 0.1  # the prior of the leaves matters near an even vote
    np.testing.assert_array_equal(soft.predict(X)[far], cart.predict(X)[far])
    assert soft.structure_ == zoo.from_sklearn(cart).structure_
    assert far.mean() > 0.95


def test_gaps_go_the_way_that_the_tree_learnt():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(400, 1))
    labels = (values[:, 0] > 0.3).astype(int)
    values[::4] = np.nan
    labels[::4] = 1
    cart = DecisionTreeClassifier(max_depth=3, random_state=0).fit(values, labels)
    soft = zoo.soften(cart, values, labels, temperature=1e-3)
    assert cart.score(values, labels) == 1
    assert soft.score(values, labels) == 1


def test_training_on_beats_the_tree():
    cart = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X[TRAIN], y[TRAIN])
    model = zoo.warm_start(cart, X[TRAIN], y[TRAIN], random_state=0)
    assert model.temperature_ in TEMPERATURES
    assert model.score(X[~TRAIN], y[~TRAIN]) > cart.score(X[~TRAIN], y[~TRAIN]) + 0.02
    assert model.leaf_layers == 1
    again = zoo.warm_start(cart, X[TRAIN], y[TRAIN], temperature=model.temperature_, random_state=0)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_values_too(tmp_path):
    X, y = datasets.load_diabetes(return_X_y=True)
    cart = DecisionTreeRegressor(max_leaf_nodes=12, random_state=0).fit(X[::2], y[::2])
    soft = zoo.soften(cart, X[::2], y[::2], temperature=1e-4)
    n = np.bincount(cart.apply(X[::2]))[cart.apply(X[::2])]
    drawn = (n * cart.predict(X[::2]) + y[::2].mean()) / (n + 1)  # each leaf has one row of all beside its own
    np.testing.assert_allclose(soft.predict(X[::2]), drawn, rtol=1e-4)
    model = zoo.warm_start(cart, X[::2], y[::2], temperature=0.2, random_state=0)
    assert model.score(X[1::2], y[1::2]) > cart.score(X[1::2], y[1::2])
    low, high = model.predict_quantiles(X[1::2], [0.05, 0.95]).T
    assert 0.8 < np.mean((low <= y[1::2]) & (y[1::2] <= high)) < 1
    model.save(tmp_path / "m")  # it is a model like any other
    np.testing.assert_array_equal(load(tmp_path / "m").predict(X), model.predict(X))


def test_a_single_leaf():
    cart = DecisionTreeClassifier(max_depth=1, min_samples_split=1000).fit(X, y)
    model = zoo.warm_start(cart, X, y, temperature=0.1, recipe=Recipe(epochs=50), random_state=0)
    assert model.structure_.depth == 0
    assert model.score(X, y) > 0.95


def test_errors_say_what_is_needed():
    cart = DecisionTreeClassifier(max_depth=1).fit(X, y)
    with pytest.raises(ValueError, match="depth comes from the tree"):
        zoo.warm_start(cart, X, y, depth=3)
    with pytest.raises(ValueError, match="temperature must be a positive number, however: temperature=0"):
        zoo.soften(cart, X, y, temperature=0)
    with pytest.raises(ValueError, match="a temperature must be given for an imported tree"):
        zoo.soften(zoo.from_sklearn(cart), X, y)
    with pytest.raises(ValueError, match="needs one decision tree that compares numbers"):
        zoo.soften(ensemble.RandomForestClassifier(2).fit(X, y), X, y)
