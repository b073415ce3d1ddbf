"""What a user does on a machine with a GPU, which ``device="auto"`` takes by itself, from fit to report."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_diabetes, load_iris
from sklearn.tree import DecisionTreeClassifier

from tartree import StructureSearch, TartClassifier, TartRegressor, explain, load, zoo
from tartree.zoo.presets import PRESETS

from .pretend_device import auto_is

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")]

FLOWERS, SPECIES = load_iris(return_X_y=True)
PATIENTS, PROGRESS = load_diabetes(return_X_y=True)
TASKS = {TartClassifier: (FLOWERS, SPECIES), TartRegressor: (PATIENTS, PROGRESS)}

MODELS = {
    "classifier": TartClassifier(random_state=0),
    "regressor": TartRegressor(random_state=0),
    "soft tree": TartClassifier(readable=False, random_state=0),
    "soft tree of values": TartRegressor(readable=False, random_state=0),
    "forest of classes": TartClassifier(members=5, random_state=0),
    "forest of values": TartRegressor(members=5, selection="single", random_state=0),
    "early stopping": TartRegressor(early_stopping="refit", random_state=0),
    "perceptrons": TartRegressor(depth=2, leaf_layers=2, decision_layers=2, hidden=20, dropout=0.1, random_state=0),
    "tart-max": zoo.make("tart-max", epochs=20, random_state=0),
    "tart-max of values": zoo.make("tart-max", task="regression", epochs=20, random_state=0),
    "temperature and balance": zoo.make("sdt", epochs=20, random_state=0),
}


def predictions(model, X):
    if hasattr(model, "classes_"):
        return model.predict_proba(X)
    return np.stack([*model.predict(X, return_std=True), *model.predict_quantiles(X, [0.1, 0.9]).T], axis=1)


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    model = MODELS[request.param]
    X, y = TASKS[type(model)]
    return model.fit(X, y), X, y


def test_it_is_trained_on_the_gpu(fitted):
    model, X, y = fitted
    assert {p.device.type for p in model.tree_.parameters()} == {"cuda"}
    assert model.score(X, y) > (0.8 if hasattr(model, "classes_") else 0.3)


def test_predictions_after_load_on_a_cpu(fitted, tmp_path):
    model, X, _ = fitted
    model.save(tmp_path / "model.tart")
    with auto_is(torch.device("cpu")):
        restored = load(tmp_path / "model.tart")
    assert {p.device.type for p in restored.tree_.parameters()} == {"cpu"}
    result, wanted = predictions(model, X), predictions(restored, X)
    if not hasattr(model, "classes_"):  # in standard deviations of the target
        result, wanted = result / model.target_scale_, wanted / model.target_scale_
    if (
        model.selection == "single" or model.tree_.branching.activation.name == "hard"
    ):  # rows between two leaves may take the other one
        near = (np.abs(result - wanted) <= 1e-5).all(axis=1)
        assert near.mean() > 0.99
        result, wanted = result[near], wanted[near]
    np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-5)


def test_it_is_explained(fitted, tmp_path):
    model, X, y = fitted
    result = model.explain(X[:5])
    assert np.isfinite(result.contributions).all()
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert explain.view(model, X, y).n_leaves == model.get_n_leaves()
    assert "leaf 0" in explain.export_text(model)
    target = None if hasattr(model, "classes_") else float(np.quantile(model.predict(X), 0.6))
    assert str(explain.counterfactual(model, X[:1], X, target=target))
    assert model.harden(X).hardening_ is not None
    model.report(X, y, tmp_path / "page.html", rows=20, sizes=[])
    assert (tmp_path / "page.html").stat().st_size > 10_000


@pytest.mark.parametrize("name", ["classifier", "regressor"])
def test_it_is_simplified(name):
    model = MODELS[name]
    X, y = TASKS[type(model)]
    small = model.fit(X, y).simplify(X, max_leaves=4, max_boxes=16)
    assert next(small.tree_.parameters()).device.type == "cuda"
    assert small.get_n_leaves() <= 4
    assert small.certificate_.leaves_after <= 4
    assert np.isfinite(predictions(small, X)).all()


@pytest.mark.parametrize("cls", TASKS)
def test_a_search(cls):
    X, y = TASKS[cls]
    space = {"depth": [0, 1, 2], "leaf_layers": [0, 1], "selection": ["multi", "single"]}
    result = StructureSearch(cls(epochs=30), space, folds=3, random_state=0).fit(X, y)
    assert not [trial for trial in result.trials_ if trial["state"] == "failed"]
    assert next(result.best_estimator_.tree_.parameters()).device.type == "cuda"
    assert result.best_score_ > (0.8 if cls is TartClassifier else 0.2)
    assert result.explain(X[:2]).contributions.shape[0] == 2


def test_trees_of_other_libraries(tmp_path):
    cart = DecisionTreeClassifier(max_depth=3, random_state=0).fit(FLOWERS, SPECIES)
    warm = zoo.warm_start(cart, FLOWERS, SPECIES, random_state=0)
    assert next(warm.tree_.parameters()).device.type == "cuda"
    assert warm.score(FLOWERS, SPECIES) > 0.9
    hard = zoo.make("dt", epochs=50, random_state=0).fit(FLOWERS, SPECIES)
    assert (zoo.to_sklearn(hard).predict(FLOWERS) == hard.predict(FLOWERS)).mean() > 0.98


@pytest.mark.parametrize("name", PRESETS)
def test_every_name_of_the_zoo(name):
    from .zoo.test_contract import SMALL

    model = zoo.make(name, random_state=0, **SMALL[name])
    images = np.random.default_rng(0).random((60, 64))
    model.fit(images, np.arange(60) % 3)
    assert {p.device.type for p in model.tree_.parameters()} == {"cuda"}
    assert np.isfinite(predictions(model, images)).all()
