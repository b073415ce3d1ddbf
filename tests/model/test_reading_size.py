"""What there is to read in a model."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from tartree import TartClassifier, TartRegressor
from tartree.model import ReadingSize
from tartree.nn import Path
from tartree.training import RECIPES


def table(n_rows=120):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=n_rows), "b": rng.normal(size=n_rows), "c": rng.choice(["x", "y"], n_rows)})
    return X, (X["a"].abs() + (X["c"] == "x") > 1).to_numpy()


def test_linear_model():
    X, y = table()
    size = TartClassifier(depth=0, epochs=2, device="cpu", random_state=0).fit(X, y).reading_size_
    # A bias, two weights and two levels; of two classes the difference is printed.
    assert size == ReadingSize(leaves=1, columns=0, numbers=5)
    three = np.where(X["a"] > 1, 2, y)
    assert TartClassifier(depth=0, epochs=2, device="cpu", random_state=0).fit(X, three).reading_size_.numbers == 15


def test_curves():
    X, y = table()
    size = (
        TartClassifier(depth=0, numeric="curve", epochs=2, device="cpu", random_state=0).fit(X[["a"]], y).reading_size_
    )
    assert size.numbers == 1 + 2 * 7  # seven points of a curve of six bins, with 20 of 120 rows each


def test_constant_leaves():
    X, y = table()
    size = TartClassifier(depth=2, leaf_layers=0, max_features=1, epochs=2, device="cpu", random_state=0).fit(
        X[["a", "b"]], y
    )
    assert size.reading_size_ == ReadingSize(leaves=4, columns=1, numbers=3 * 2 + 4)


def test_perceptrons_cannot_be_counted():
    X, y = table()
    size = TartClassifier(depth=1, leaf_layers=2, epochs=2, device="cpu", random_state=0).fit(X, y).reading_size_
    assert size.numbers is None
    assert size.leaves == 2


@pytest.mark.parametrize("estimator", [TartClassifier, TartRegressor])
def test_the_budget_holds(estimator):
    X, y = table()
    model = estimator(readable=True, epochs=10, random_state=0, device="cpu").fit(X, y.astype(int))
    assert model.reading_size_.leaves <= 8
    assert model.reading_size_.columns <= 1
    larger = estimator(readable=True, depth=2, max_features=2, members=2, epochs=10, device="cpu", random_state=0)
    assert larger.fit(X, y.astype(int)).reading_size_.leaves <= 8
    assert larger.reading_size_.columns <= 2


@pytest.mark.parametrize("estimator", [TartClassifier, TartRegressor])
def test_columns_without_effect_are_left_out(estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 12))
    y = (2 * X[:, 0] + np.abs(X[:, 1]) + 0.5 * rng.normal(size=400) > 0.8).astype(int)
    sizes = {}
    for sparsity in (0.0, 0.25, 2.0):
        recipe = replace(RECIPES["readable"], sparsity=sparsity)
        model = estimator(readable=True, recipe=recipe, random_state=0, device="cpu").fit(X, y)
        weights = model.tree_.leaf.mlp.weights[0].detach()[0]  # (leaves * numbers, features)
        columns = np.array([feature.column for feature in model.encoder_.features_])
        used = {int(column) for column in columns[(weights != 0).any(0).numpy()]}
        assert {0, 1} <= used
        sizes[sparsity] = (len(used), model.reading_size_.numbers)
    assert sizes[0.0][0] == 12
    assert sizes[2.0][0] <= 4
    assert sizes[0.0] > sizes[0.25] > sizes[2.0]


def test_decisions_that_change_nothing_are_removed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=300) > 0).astype(int)  # a linear function of one column
    recipe = replace(RECIPES["readable"], sparsity=4.0)
    model = TartClassifier(readable=True, recipe=recipe, random_state=0, device="cpu").fit(X, y)
    assert model.get_n_leaves() == 1
    assert model.score(X, y) > 0.85
    rows = X[:20]
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(rows), model.predict_proba(rows))
    model.set_params(warm_start=True, epochs=2).fit(X, y)  # goes on with the smaller tree
    assert model.get_n_leaves() == 1


@pytest.mark.parametrize("estimator", [TartClassifier, TartRegressor])
def test_terms_are_limited(estimator):
    X, y = table()
    sizes = []
    for max_terms in (0, 1, 3, 8):
        model = estimator(readable=True, max_terms=max_terms, epochs=20, random_state=0, device="cpu").fit(X, y * 1)
        sizes.append(model.reading_size_.numbers)
        without_leaves = model.predict(X).tolist() if max_terms == 0 else []
        assert len(set(without_leaves)) <= 8  # constants
    assert sizes == sorted(sizes)
    assert (
        sizes[-1]
        < estimator(readable=True, epochs=20, device="cpu", random_state=0).fit(X, y * 1).reading_size_.numbers
    )


def test_shared_terms_count_once():
    X, y = table()
    model = TartClassifier(
        readable=True, depth=1, max_terms=1, numeric="standard", epochs=20, device="cpu", random_state=0
    )
    model.set_params(recipe=model.spec().recipe, max_features=1, random_state=0).fit(X, y)
    weights = model.tree_.leaf.mlp.weights[0].detach()[0].unflatten(0, (-1, 2))  # (leaves, classes, features)
    used = (weights[:, 0] != weights[:, 1]).any(0)
    assert used.any()


def test_one_path_a_row():
    X, y = table()
    model = TartClassifier(readable=True, epochs=20, random_state=0, device="cpu").fit(X, y)
    arrivals = model.model_.tree.arrivals(torch.from_numpy(model.encoder_.transform(X)))
    for layer in arrivals:
        assert set(layer.unique().tolist()) <= {0.0, 1.0}
    one = model.set_params(selection="single").predict_proba(X)
    assert np.array_equal(one, model.set_params(selection="multi").predict_proba(X))


def test_readable_leaves_what_is_set():
    X, y = table()
    model = TartClassifier(
        readable=True, leaf_layers=0, numeric="standard", depth=1, epochs=2, device="cpu", random_state=0
    ).fit(X, y)
    assert model.structure_.n_leaves <= 2
    assert model.encoder_.numeric == "standard"
    assert TartClassifier(readable=True).spec().numeric == "curve"
    assert TartClassifier(depth=2).spec().numeric == "standard"
    assert TartClassifier(readable=True, leaf=Path(scale=0.5)).spec().leaf == Path(scale=0.5)


@pytest.mark.parametrize("parameters", [{"decision_layers": 2}, {"max_features": 0}, {"max_features": 1.5}])
def test_limits_that_cannot_hold(parameters):
    X, y = table()
    with pytest.raises(ValueError, match="max_features"):
        TartClassifier(**{"max_features": 2, **parameters}, device="cpu", random_state=0).fit(X, y)
