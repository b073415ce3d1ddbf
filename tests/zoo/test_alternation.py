import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris

from tartree import losses, zoo
from tartree.nn import Conv
from tartree.training import Recipe
from tartree.zoo import alternation
from tests.explain.models import double_tree, encode

X, y = load_iris(return_X_y=True)


def cost(model):
    leaves = double_tree(model)(encode(model, X))
    return float(losses.mixture(leaves, torch.from_numpy(y), model.tree_.output).sum())


def test_an_update_never_makes_the_likelihood_worse():
    model = zoo.make("tree-1", depth=3, epochs=3, members=2, random_state=0).fit(X, y)
    costs = [cost(model)]
    for _ in range(6):
        costs.append(cost(zoo.update_leaves(model, X, y, iterations=1)))
    assert (np.diff(costs) < 1e-6).all()
    assert costs[-1] < costs[0] - 0.1


def test_one_leaf_counts_the_classes():
    model = zoo.make("tree-1", depth=0, epochs=1).fit(X[:120], y[:120])
    zoo.update_leaves(model, X[:120], y[:120])
    np.testing.assert_allclose(model.predict_proba(X[:1])[0], [50 / 120, 50 / 120, 20 / 120], atol=1e-6)


def test_alternating_learns_and_leaves_the_parameters_alone():
    recipe = Recipe(epochs=80, decision_decay=0.1, jitter=0.0, loss="mixture")
    model = zoo.make("tree-1", recipe=recipe, members=2, depth=3, random_state=0)
    given = model.get_params()
    assert zoo.fit_alternating(model, X, y, rounds=4) is model
    assert model.get_params() == given
    assert model.score(X, y) > 0.95
    assert all(parameter.requires_grad for parameter in model.tree_.parameters())


def test_the_learning_rate_falls_from_round_to_round(monkeypatch):
    recipe, rates = Recipe(epochs=3, learning_rate=0.02), []
    model = zoo.make("tree-1", recipe=recipe, depth=1, random_state=0)
    fit = alternation.fit

    def noted(spec, *given, **options):
        rates.append(spec.recipe.learning_rate)
        return fit(spec, *given, **options)

    monkeypatch.setattr(alternation, "fit", noted)
    zoo.fit_alternating(model, X, y, rounds=3)
    assert rates == pytest.approx([recipe.rate(0), recipe.rate(1 / 3), recipe.rate(2 / 3)])
    assert rates[2] < 0.3 * rates[0]


@pytest.mark.parametrize(("epochs", "rounds"), [(5, 2), (5, 10), (24, 10)])
def test_epochs_are_shared_out_over_the_rounds(epochs, rounds):
    model = zoo.make("tree-1", depth=1, epochs=epochs, random_state=0)
    assert len(zoo.fit_alternating(model, X, y, rounds=rounds).history_) == epochs


def test_a_call_that_fails_leaves_the_history_alone():
    model = zoo.make("tree-1", depth=1, epochs=3, random_state=0).fit(X, y)
    before = model.history_
    with pytest.raises(ValueError, match="early_stopping must be 'auto' or False"):
        zoo.fit_alternating(model.set_params(early_stopping=True), X, y)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        zoo.fit_alternating(model.set_params(early_stopping="auto"), X, y[:-1])
    assert model.history_ is before


@pytest.mark.parametrize("loss", ["expected", "mixture"])
def test_leaves_that_need_no_gradient_stand_still(loss):
    model = zoo.make("tree-1", depth=2, recipe=Recipe(epochs=2, loss=loss), random_state=0).fit(X, y)
    model.tree_.leaf.values.requires_grad_(False)
    leaves, first = model.tree_.leaf.values.clone(), model.tree_.decision.mlp.weights[0].detach().clone()
    model.set_params(warm_start=True).fit(X, y)
    assert torch.equal(model.tree_.leaf.values, leaves)
    assert not torch.equal(model.tree_.decision.mlp.weights[0], first)


def test_above_a_network_that_is_shared():
    decision = Conv(shape=(1, 1, 4), channels=2, width=4)
    model = zoo.make("dndf", decision=decision, epochs=2, members=2, depth=2, random_state=0)
    probabilities = zoo.fit_alternating(model, X, y, rounds=2).predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


def test_errors():
    with pytest.raises(TypeError, match="alternating updates are for classes"):
        zoo.fit_alternating(zoo.make("nrf"), X, y)
    with pytest.raises(ValueError, match="leaves must be constant, leaf_layers=0, got MLPLeaf"):
        zoo.fit_alternating(zoo.make("tart-a", epochs=1), X, y)
    model = zoo.make("tree-1", depth=2, epochs=1, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="iterations must be an integer of at least 1, got 0"):
        zoo.update_leaves(model, X, y, iterations=0)
    with pytest.raises(ValueError, match="rounds must be an integer of at least 1, got 0"):
        zoo.fit_alternating(model, X, y, rounds=0)
    with pytest.raises(ValueError, match=r"y must hold the classes of fit, \[0, 1, 2\], got 3"):
        zoo.update_leaves(model, X, y + 3)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        zoo.update_leaves(model, X, y[:-1])
    with pytest.raises(TypeError, match="leaves that count classes need a TartClassifier, got TartRegressor"):
        zoo.update_leaves(zoo.make("nrf"), X, y)


def test_weights_of_rows_and_classes_count_in_leaves():
    weight = np.where(y == 0, 3.0, 1.0)
    model = zoo.make("tree-1", depth=0, epochs=1).fit(X, y)
    found = zoo.update_leaves(model, X, y, weight).predict_proba(X[:1])[0]
    np.testing.assert_allclose(found, [0.6, 0.2, 0.2], atol=1e-6)
    model.set_params(class_weight={0: 1, 1: 3, 2: 1})
    found = zoo.update_leaves(model, X, y, weight).predict_proba(X[:1])[0]
    np.testing.assert_allclose(found, [3 / 7, 3 / 7, 1 / 7], atol=1e-6)
    one = zoo.make("tree-1", depth=2, epochs=4, random_state=0)
    zoo.fit_alternating(one, X, y, weight, rounds=2)
    other = zoo.make("tree-1", depth=2, epochs=4, random_state=0, class_weight={0: 3, 1: 1, 2: 1})
    zoo.fit_alternating(other, X, y, rounds=2)
    plain = zoo.fit_alternating(zoo.make("tree-1", depth=2, epochs=4, random_state=0), X, y, rounds=2)
    np.testing.assert_allclose(other.predict_proba(X)[:, 0].mean(), one.predict_proba(X)[:, 0].mean(), atol=0.02)
    assert one.predict_proba(X)[:, 0].mean() > plain.predict_proba(X)[:, 0].mean() + 0.02


def test_the_history_has_all_rounds():
    model = zoo.make("tree-1", depth=2, epochs=9, random_state=0)
    zoo.fit_alternating(model, X, y, rounds=3)
    assert len(model.history_) == 9
    assert model.history_["loss"].shape[0] == 9
