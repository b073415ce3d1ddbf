import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris

from tartree import losses, zoo
from tartree.nn import Conv
from tartree.training import Recipe

X, y = load_iris(return_X_y=True)


def cost(model):
    x = torch.from_numpy(model.encoder_.transform(X))
    with torch.no_grad():
        return float(losses.mixture(model.tree_(x), torch.from_numpy(y), model.tree_.output).sum())


def test_an_update_never_makes_the_likelihood_worse():
    model = zoo.make("tree-1", depth=3, epochs=3, members=2, random_state=0).fit(X, y)
    costs = [cost(model)]
    for _ in range(6):
        costs.append(cost(zoo.update_leaves(model, X, y, iterations=1)))
    assert (np.diff(costs) < 1e-6).all()
    assert costs[-1] < costs[0] - 0.1


def test_one_leaf_counts_the_classes():
    model = zoo.make("lr", leaf_layers=0, epochs=1).fit(X[:120], y[:120])
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
    with pytest.raises(ValueError, match="leaves must be constant, leaf_layers=0, however: MLPLeaf"):
        zoo.fit_alternating(zoo.make("tart-a", epochs=1), X, y)
