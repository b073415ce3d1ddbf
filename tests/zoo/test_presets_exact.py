"""Models that are special cases of a tree equal what they are special cases of."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from tartree import zoo
from tests.explain.models import double_tree

from ..tolerances import within

X, y = load_iris(return_X_y=True)


@pytest.mark.parametrize("C", [1.0, 0.05])
@pytest.mark.parametrize("load_set", [load_iris, load_wine, load_breast_cancer])
def test_lr_is_logistic_regression(load_set, C):
    X, y = load_set(return_X_y=True)
    model = zoo.make("lr", C=C, random_state=0).fit(X, y)
    peer = make_pipeline(StandardScaler(), LogisticRegression(C=C, tol=1e-8, max_iter=10_000)).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), rtol=0, atol=1e-5)


@pytest.mark.parametrize("load_set", [load_iris, load_wine, load_breast_cancer])
def test_lr_of_plain_columns_is_logistic_regression_as_is(load_set):
    X, y = load_set(return_X_y=True)
    X = X / np.abs(X).max(axis=0)  # not standardised, and well enough conditioned to compare optima
    model = zoo.make("lr", numeric="plain").fit(X, y)
    peer = LogisticRegression(tol=1e-8, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), rtol=0, atol=1e-4)


def test_lr_of_raw_columns_goes_to_the_optimum_or_says_that_it_did_not():
    X, y = load_wine(return_X_y=True)  # spreads from 0.1 to 300
    model = zoo.make("lr", numeric="plain", random_state=0).fit(X, y)
    peer = LogisticRegression(solver="newton-cg", tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), rtol=0, atol=1e-3)
    with pytest.warns(ConvergenceWarning, match="L-BFGS ended before the optimum, after 5 iterations"):
        zoo.make("lr", numeric="plain", epochs=5, random_state=0).fit(X, y)


def test_lr_with_weights_and_equal_rows():
    weight = np.random.default_rng(0).integers(0, 4, len(X)).astype(float)
    model = zoo.make("lr", random_state=0).fit(X, y, sample_weight=weight)
    peer = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-8, max_iter=10_000))
    peer.fit(X, y, logisticregression__sample_weight=weight, standardscaler__sample_weight=weight)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), rtol=0, atol=1e-5)
    repeated = np.repeat(np.arange(len(X)), weight.astype(int))
    again = zoo.make("lr", random_state=0).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), rtol=0, atol=1e-5)


def test_mlp_is_a_sequence_of_layers():
    model = zoo.make("mlp", hidden=7, leaf_layers=4, epochs=3, random_state=0).fit(X, y)
    plain = []
    weights = list(zip(model.tree_.leaf.mlp.weights, model.tree_.leaf.mlp.biases, strict=True))
    for number, (weight, bias) in enumerate(weights):
        weight, bias = weight[0].reshape(-1, weight.shape[-1]), bias[0].reshape(-1)
        layer = nn.Linear(weight.shape[1], weight.shape[0], dtype=torch.float64)
        layer.load_state_dict({"weight": weight.double(), "bias": bias.double()})
        plain += [layer] if number == len(weights) - 1 else [layer, nn.ELU(), nn.Dropout(0.15)]
    network = nn.Sequential(*plain, nn.Softmax(-1)).eval()
    expected = network(torch.from_numpy(model.encoder_.transform(X)).double()).detach().numpy()
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=0, atol=within(1e-12))


def test_experts_are_the_mean_of_their_leaves():
    model = zoo.make("experts", hidden=5, epochs=3, random_state=0).fit(X, y)
    x = torch.from_numpy(model.encoder_.transform(X)).double()
    leaf = double_tree(model).leaf
    each = [torch.softmax(leaf(x)[0, :, u], -1) for u in range(model.get_n_leaves())]
    expected = torch.stack(each).mean(0).detach().numpy()
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=0, atol=within(1e-12))


@pytest.mark.parametrize("selection", ["multi", "single"])
def test_sdt_is_a_recursion(selection):
    model = zoo.make("sdt", depth=3, epochs=5, selection=selection, random_state=0).fit(X, y)
    decision, values = double_tree(model).decision, double_tree(model).leaf.values[0]
    weight, bias = (own[0][0].numpy() for own in (decision.linear.mlp.weights, decision.linear.mlp.biases))
    beta = decision.inverse_temperature[0].numpy()
    assert not np.allclose(beta, 1)
    probabilities = torch.softmax(values, -1).numpy()

    def descend(x, layer, node, arrival):
        if layer == 3:
            return [(arrival, probabilities[node])]
        number = 2**layer - 1 + node
        go = 1 / (1 + np.exp(-beta[number] * (weight[number] @ x + bias[number])))
        first = descend(x, layer + 1, 2 * node, arrival * go)
        return first + descend(x, layer + 1, 2 * node + 1, arrival * (1 - go))

    for x, predicted in zip(model.encoder_.transform(X).astype(float), model.predict_proba(X), strict=True):
        leaves = descend(x, 0, 0, 1.0)
        expected = sum(p * q for p, q in leaves) if selection == "multi" else max(leaves, key=lambda leaf: leaf[0])[1]
        np.testing.assert_allclose(predicted, expected, rtol=0, atol=1e-6)
