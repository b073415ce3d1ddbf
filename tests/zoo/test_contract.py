"""What every model of the zoo has to do, whatever it is."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_digits

from tartree import load, zoo
from tartree.nn import Conv

from ..tolerances import assert_same

#: Settings that make a model small. A name that is missing here fails the first test.
SMALL = {
    "dt": {"epochs": 10},
    "sdt": {"epochs": 4, "depth": 3},
    "ndf": {"epochs": 4, "members": 2, "depth": 2},
    "dndf": {"epochs": 2, "members": 2, "depth": 2, "decision": Conv(channels=2, width=8)},
    "nrf": {"epochs": 4, "members": 2, "depth": 2},
    "lr": {},
    "mlp": {"epochs": 4, "hidden": 8},
    "experts": {"epochs": 4, "hidden": 8},
    "tree-1": {"epochs": 4, "depth": 3},
    "tree-2": {"epochs": 4, "depth": 2, "hidden": 8},
    "tree-3": {"epochs": 4, "depth": 2, "hidden": 8},
    "tart-a": {"epochs": 4, "depth": 3},
    "tart-b": {"epochs": 4, "hidden": 8},
    "tart-c": {"epochs": 4, "hidden": 8},
    "tart-max": {"epochs": 4, "hidden": 8, "members": 2},
}
REQUIRED = {"dt", "sdt", "ndf", "dndf", "nrf", "lr", "mlp", "experts"}
REQUIRED |= {"tree-1", "tree-2", "tree-3", "tart-a", "tart-b", "tart-c"}

X, LABEL = load_digits(n_class=3, return_X_y=True)
X = X[::3] / 16  # (179, 64)
LABEL = np.array(["none", "one", "two"])[LABEL[::3]]
VALUE = X[:, :32].sum(axis=1)


def fitted(name):
    model = zoo.make(name, random_state=0, **SMALL[name])
    return model.fit(X, LABEL if is_classifier(model) else VALUE)


def test_no_model_is_missing():
    assert set(SMALL) == set(zoo.PRESETS)
    assert set(zoo.PRESETS) >= REQUIRED


@pytest.mark.parametrize("name", zoo.PRESETS)
def test_contract(name, tmp_path):
    model = fitted(name)
    predicted = model.predict(X)
    assert predicted.shape == (len(X),)
    if is_classifier(model):
        assert set(predicted) <= set(LABEL)
        probabilities = model.predict_proba(X)
        assert probabilities.shape == (len(X), 3)
        assert (probabilities >= 0).all()
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=0, atol=1e-12)
        numbers = probabilities
    else:
        mean, std = model.predict(X, return_std=True)
        low, high = model.predict_quantiles(X, [0.05, 0.95]).T
        assert (std > 0).all()
        assert (low < high).all()
        numbers = np.stack([mean, std, low, high], axis=1)
    assert np.isfinite(numbers).all()

    # The same parameters, not fitted; and the same seed gives the same model.
    again = clone(model)
    assert not hasattr(again, "tree_")
    assert again.get_params() == model.get_params()
    again.fit(X, LABEL if is_classifier(model) else VALUE)
    assert_same(again.predict(X), predicted)
    if is_classifier(model):
        assert_same(again.predict_proba(X), numbers)

    # Rows do not look at each other, and leaves are those of the structure.
    assert_same(model.predict(X[5:7]), predicted[5:7])
    assert model.apply(X).shape in ((len(X),), (len(X), model.members))
    assert model.get_n_leaves() == model.structure_.n_leaves

    path = tmp_path / "model.tart"
    model.save(path)
    restored = load(path)
    assert_same(restored.predict(X), predicted)
    if is_classifier(model):
        assert_same(restored.predict_proba(X), numbers)
    for part in ("decision", "leaf"):
        assert restored.get_params()[part] == model.get_params()[part]
    assert restored.structure_ == model.structure_


def test_members_that_share_a_network_cannot_stop_one_by_one():
    with pytest.raises(ValueError, match="members share weights"):
        zoo.make("dndf", early_stopping=True, **SMALL["dndf"]).fit(X, LABEL)
    alone = zoo.make("dndf", early_stopping=True, random_state=0, **{**SMALL["dndf"], "members": 1}).fit(X, LABEL)
    assert alone.history_.best_epoch is not None


def test_a_network_of_your_own_is_not_saved(tmp_path):
    import torch

    from tartree.nn import Backbone

    def make_network(n_features):
        return torch.nn.Sequential(torch.nn.Linear(n_features, 8), torch.nn.Tanh())

    model = zoo.make("dndf", decision=Backbone(make_network, 8), epochs=2, members=2, depth=2, random_state=0)
    model.fit(X, LABEL)
    assert model.predict_proba(X).shape == (len(X), 3)
    with pytest.raises(ValueError, match="must be given by name to be saved"):
        model.save(tmp_path / "m")


def test_any_module_below_the_decisions():
    import torch

    torch.manual_seed(0)
    own = torch.nn.Sequential(torch.nn.Linear(64, 8), torch.nn.Tanh())
    before = own[0].weight.detach().clone()
    model = zoo.make("dndf", decision=own, epochs=60, learning_rate=0.03, members=2, depth=2, random_state=0)
    model.fit(X, LABEL)
    assert model.score(X, LABEL) > 0.9
    assert torch.equal(own[0].weight, before)  # every fit trains a copy
    assert_same(clone(model).fit(X, LABEL).predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match=r"must take \(batch, 64\) rows"):
        zoo.make("dndf", decision=torch.nn.Linear(3, 8), epochs=1).fit(X, LABEL)


@pytest.mark.parametrize("setting", [{"decision_layers": 3}, {"hidden": 7}, {"dropout": 0.5}])
def test_settings_that_a_record_would_ignore_are_refused(setting):
    (name,) = setting
    with pytest.raises(ValueError, match=f"{name} has no effect beside decision"):
        zoo.make("sdt", epochs=1, **setting).fit(X, LABEL)
    if name != "decision_layers":  # leaves that are perceptrons use it
        zoo.make("sdt", epochs=1, leaf_layers=2, **setting).fit(X, LABEL)


def test_nrf_without_decisions():
    assert np.isfinite(zoo.make("nrf", depth=0, epochs=1, random_state=0).fit(X, VALUE).predict(X)).all()
