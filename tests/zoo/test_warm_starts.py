import numpy as np
import pytest
from scipy import sparse
from sklearn import datasets, ensemble
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from tartree import load, zoo
from tartree.training import Recipe
from tartree.zoo import warm_starts
from tartree.zoo.temperature import TEMPERATURES

from ..tolerances import assert_same

X, y = datasets.load_breast_cancer(return_X_y=True)
TRAIN = np.arange(len(X)) % 2 == 0


def test_a_cold_soft_tree_is_the_tree():
    cart = DecisionTreeClassifier(max_leaf_nodes=8, random_state=0).fit(X, y)
    soft = zoo.soften(cart, X, y, temperature=1e-4)
    far = np.abs(soft.predict_proba(X)[:, 1] - 0.5) > 0.1  # the prior of the leaves matters near an even vote
    assert_same(soft.predict(X)[far], cart.predict(X)[far])
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
    assert_same(again.predict_proba(X), model.predict_proba(X))


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
    assert_same(load(tmp_path / "m").predict(X), model.predict(X))


def test_a_single_leaf():
    cart = DecisionTreeClassifier(max_depth=1, min_samples_split=1000).fit(X, y)
    model = zoo.warm_start(cart, X, y, temperature=0.1, recipe=Recipe(epochs=50), random_state=0)
    assert model.structure_.depth == 0
    assert model.score(X, y) > 0.95


def test_an_imported_tree_has_its_temperature_fitted_too():
    cart = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    imported = zoo.from_sklearn(cart)
    soft = zoo.soften(imported, X, y)
    assert soft.temperature_ in TEMPERATURES
    wanted = zoo.soften(cart, X, y, temperature=soft.temperature_).predict_proba(X)
    assert_same(soft.predict_proba(X), wanted)
    assert zoo.warm_start(imported, X, y, random_state=0).score(X, y) >= cart.score(X, y) - 0.02


def test_errors_say_what_is_needed():
    cart = DecisionTreeClassifier(max_depth=1).fit(X, y)
    with pytest.raises(ValueError, match="depth comes from the tree"):
        zoo.warm_start(cart, X, y, depth=3)
    with pytest.raises(ValueError, match="temperature must be a positive number, got 0"):
        zoo.soften(cart, X, y, temperature=0)
    with pytest.raises(ValueError, match="temperature must be a positive number, got 'a'"):
        zoo.soften(cart, X, y, temperature="a")
    with pytest.raises(ValueError, match="compares numbers, got RandomForestClassifier, which has 2 trees"):
        zoo.soften(ensemble.RandomForestClassifier(2).fit(X, y), X, y)
    boosted = ensemble.HistGradientBoostingClassifier(max_iter=1).fit(X, y == 1)
    with pytest.raises(ValueError, match="HistGradientBoostingClassifier, which sums trees, for a link function"):
        zoo.soften(boosted, X, y == 1)


def test_weights_count_like_repeated_rows():
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    repeated = np.repeat(np.arange(len(X)), weight)
    cart = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y, sample_weight=weight)
    for make in (zoo.soften, lambda *args, **options: zoo.warm_start(*args, recipe=Recipe(epochs=5), **options)):
        weighted = make(cart, X, y, sample_weight=weight, temperature=0.1, random_state=0)
        longer = make(cart, X[repeated], y[repeated], temperature=0.1, random_state=0)
        plain = make(cart, X, y, temperature=0.1, random_state=0)
        # Not equal: the row of all that each leaf has beside its own counts for less where rows are many.
        apart = np.abs(weighted.predict_proba(X) - longer.predict_proba(X)).mean()
        assert apart < 0.3 * np.abs(plain.predict_proba(X) - longer.predict_proba(X)).mean()


def test_leaves_and_training_take_the_class_weights_of_the_tree():
    rare = np.concatenate([np.flatnonzero(y == 1), np.flatnonzero(y == 0)[:20]])
    cart = DecisionTreeClassifier(max_depth=2, class_weight="balanced", random_state=0).fit(X[rare], y[rare])
    model = zoo.soften(cart, X[rare], y[rare], temperature=1e-4)
    assert model.class_weight == "balanced"
    assert np.abs(model.predict_proba(X[rare]) - cart.predict_proba(X[rare])).mean() < 0.01
    plain = zoo.soften(cart, X[rare], y[rare], temperature=1e-4, class_weight=None)
    assert np.abs(model.predict_proba(X[rare]) - plain.predict_proba(X[rare])).max() > 0.1
    trained = zoo.warm_start(cart, X[rare], y[rare], temperature=0.1, recipe=Recipe(epochs=20), random_state=0)
    unweighted = zoo.warm_start(
        cart, X[rare], y[rare], temperature=0.1, recipe=Recipe(epochs=20), class_weight=None, random_state=0
    )
    assert trained.predict_proba(X)[:, 0].mean() > unweighted.predict_proba(X)[:, 0].mean()


def test_early_stopping_holds_rows_out_or_is_refused():
    cart = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    model = zoo.warm_start(cart, X, y, temperature=0.1, early_stopping=True, random_state=0)
    assert model.history_.best_epoch is not None
    assert zoo.warm_start(cart, X, y, temperature=0.1, recipe=Recipe(epochs=1)).history_.best_epoch is None
    with pytest.raises(ValueError, match="early_stopping must be True, False or 'auto' for a warm start"):
        zoo.warm_start(cart, X, y, temperature=0.1, early_stopping="refit")


def test_training_goes_on_and_does_not_begin_anew(tmp_path):
    cart = DecisionTreeClassifier(max_leaf_nodes=5, random_state=0).fit(X, y)
    model = zoo.warm_start(cart, X, y, temperature=0.2, recipe=Recipe(epochs=2), random_state=0)
    structure, before = model.structure_, model.predict_proba(X)
    model.save(tmp_path / "m")
    for own in (model, load(tmp_path / "m")):
        assert own.temperature_ == 0.2
        assert own.feature_importances_.sum() > 0.99
        with pytest.raises(ValueError, match="structure of a grown tree cannot be fitted again"):
            own.fit(X, y)
        assert_same(own.predict_proba(X), before)
        own.set_params(warm_start=True).fit(X, y)
        assert own.structure_ == structure
        assert not np.array_equal(own.predict_proba(X), before)
    assert clone(model).depth == "auto"  # deep trees of CART are narrow; a regular one of their depth would not be


def test_large_tables_get_fewer_epochs(monkeypatch):
    assert [warm_starts._default_epochs(n_batches) for n_batches in (1, 10, 11, 50, 5000)] == [100, 100, 90, 20, 1]
    monkeypatch.setattr(warm_starts, "STEPS", 7)
    cart = DecisionTreeClassifier(max_depth=1).fit(X, y)
    by_default = zoo.warm_start(cart, X, y, temperature=0.1, batch_size=200)  # three batches
    assert len(by_default.history_.epochs) == 2
    assert len(zoo.warm_start(cart, X, y, temperature=0.1, epochs=9).history_.epochs) == 9
    assert len(zoo.warm_start(cart, X, y, temperature=0.1, recipe=Recipe(epochs=8)).history_.epochs) == 8


def test_sparse_tables():
    table = sparse.csr_matrix(np.where(np.median(X, axis=0) < X, X, 0.0))
    cart = DecisionTreeClassifier(max_depth=2, random_state=0).fit(table, y)
    model = zoo.warm_start(cart, table, y, recipe=Recipe(epochs=3), random_state=0)
    dense = zoo.warm_start(cart, table.toarray(), y, recipe=Recipe(epochs=3), random_state=0)
    np.testing.assert_allclose(model.predict_proba(table), dense.predict_proba(table.toarray()), atol=1e-6)


def test_the_target_must_fit():
    cart = DecisionTreeClassifier(max_depth=1).fit(X, y)
    with pytest.raises(ValueError, match=r"y must hold classes of the tree, \[0, 1\], got 7"):
        zoo.soften(cart, X, np.where(y == 1, 7, 0), temperature=0.1)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        zoo.soften(cart, X, y[:-1])
