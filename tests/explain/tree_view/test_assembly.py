"""A tree as plain data says everything that a prediction needs, and counts rows as scikit-learn would."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose

from tartree import TartClassifier, TartRegressor, explain
from tartree.explain.attribution.gradients import jacobians, mean_gradients
from tests.explain.models import KINDS, double_tree, encode, fit, patients, predictions, prune


def elu(z):
    return np.where(z > 0, z, np.expm1(np.minimum(z, 0)))


def outputs_of(function, x, n_outputs):
    """f or g from a FunctionView alone: (rows, outputs)."""
    if function.kind == "uniform":
        return np.zeros((len(x), n_outputs))
    if function.kind == "constant":
        return np.tile(function.biases[0], (len(x), 1))
    z = x @ function.weights[0].T + function.biases[0]
    if function.kind == "linear":
        return z
    z = z.reshape(len(x), len(function.sizes), function.hidden)
    for weight, bias in zip(function.weights[1:-1], function.biases[1:-1], strict=True):
        z = np.einsum("rgh,gkh->rgk", elu(z), weight) + bias
    owner = np.repeat(np.arange(len(function.sizes)), function.sizes)
    return np.einsum("roh,oh->ro", elu(z)[:, owner], function.weights[-1]) + function.biases[-1]


def softmax(z):
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def spherical(z):
    squares = ((1 + z) / np.abs(1 + z).max(axis=-1, keepdims=True)) ** 2 + np.finfo(float).eps
    return squares / squares.sum(axis=-1, keepdims=True)


def sigsoftmax(z):
    return softmax(z - np.logaddexp(0, -z))


ACTIVATIONS = {"softmax": softmax, "spherical": spherical, "sigsoftmax": sigsoftmax}


def predict_from(view, x):
    """The prediction from the plain data alone, as a browser would make it."""
    total = 0
    for member in view.members:
        z = outputs_of(member.decision, x, len(member.logit_scales)) * member.logit_scales
        arrival = np.zeros((len(x), len(view.nodes)))
        arrival[:, 0] = 1
        for node in view.nodes:
            if len(node.children) == 1:
                arrival[:, node.children[0]] += arrival[:, node.number]
            elif node.children:
                own = z[:, list(node.logits)]
                own = np.concatenate([own / 2, -own / 2], axis=1) if len(node.logits) == 1 else own
                share = ACTIVATIONS[view.activation](own)
                for j, child in enumerate(node.children):
                    arrival[:, child] += arrival[:, node.number] * share[:, j]
        at_leaves = arrival[:, -view.n_leaves :]
        numbers = outputs_of(member.leaf, x, 0).reshape(len(x), view.n_leaves, view.output.n_numbers)
        values = softmax(numbers) if view.output.kind == "classes" else numbers[..., : view.output.n_targets]
        if view.output.limits is not None:
            values = np.clip(values, *np.array(view.output.limits).T)
        if view.selection == "single":
            at_leaves = np.eye(view.n_leaves)[at_leaves.argmax(axis=1)]
        total = total + np.einsum("ru,ruo->ro", at_leaves, values)
    return view.output.center + view.output.scale * total / len(view.members)


@pytest.mark.parametrize("task", ["classes", "two classes", "two values"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("sparsemax", "entmax15")])
def test_plain_data_is_enough_to_predict(kind, task):
    model, X = fit(kind, task)
    view = explain.view(model)
    assert view.recomputable
    x = model.encoder_.transform(X).astype(np.float64)
    assert_allclose(predict_from(view, x), predictions(model, X), atol=1e-9)


def test_an_irregular_structure_too():
    model, X = fit("window 3")
    model = prune(model, [0, 4, 5])
    view = explain.view(model, X)
    x = model.encoder_.transform(X).astype(np.float64)
    assert_allclose(predict_from(view, x), predictions(model, X), atol=1e-9)
    chains = {node.chain for node in view.nodes}
    assert all(view.nodes[number].chain == number for number in chains)


@pytest.mark.parametrize("kind", ["default", "shared children", "members", "perceptron leaves", "quantile"])
@pytest.mark.parametrize("task", ["classes", "values"])
def test_it_is_json(kind, task):
    model, X = fit(kind, task)
    _, labels, values = patients()
    view = explain.view(model, X, labels if task == "classes" else values)
    text = json.dumps(view.to_dict(), allow_nan=False)
    assert json.loads(text)["columns"][0]["name"] == "age"
    assert len(json.dumps(view.to_dict(digits=4))) < len(text)


def test_what_rows_say():
    model, X = fit("shared children")
    _, labels, _ = patients()
    weight = np.arange(len(X)) % 3
    view = explain.view(model, X, labels, sample_weight=weight)
    member = view.members[0]
    root = member.nodes[0]
    assert_allclose(root.arrival, 1)
    assert root.rows == len(X)
    shares = [np.average(labels == label, weights=weight) for label in view.labels]
    assert_allclose(root.classes, shares)
    assert_allclose(root.predicted, np.average(predictions(model, X), axis=0, weights=weight))
    for layer in range(view.depth + 1):
        own = [node.number for node in view.nodes if node.layer == layer]
        assert_allclose(sum(member.nodes[n].arrival for n in own), 1)
        assert sum(member.nodes[n].rows for n in own) == len(X)
        mix = sum(member.nodes[n].arrival * member.nodes[n].classes for n in own)
        assert_allclose(mix, shares)
    for node in view.nodes[1:]:  # what flows in is what is there
        into = sum(member.flows[e.number] for e in view.edges if e.child == node.number)
        assert_allclose(into, member.nodes[node.number].arrival)
    path = model.decision_path(X).toarray().sum(axis=0)
    assert [member.nodes[n].rows for n in range(len(view.nodes))] == path.tolist()


def test_target_moments():
    model, X = fit("default", "values")
    _, _, values = patients()
    root = explain.view(model, X, values).members[0].nodes[0]
    assert_allclose(root.target_mean, [values.mean()])
    assert_allclose(root.target_spread, [values.std()])


def test_terms_are_in_original_units():
    """Each linear condition is the logit, from original numbers alone."""
    model, X = fit("default", "values")
    view = explain.view(model, X, max_terms=100)
    x = model.encoder_.transform(X)
    logits = x @ view.members[0].decision.weights[0].T + view.members[0].decision.biases[0]
    seconds = X["seen"].to_numpy().astype("M8[s]").astype(float)
    original = {"age": X["age"].to_numpy(float), "bmi": X["bmi"].fillna(X["bmi"].median()).to_numpy(), "seen": seconds}
    filled = np.sort(X["bmi"].dropna())[(X["bmi"].notna().sum() - 1) // 2]
    original["bmi"] = X["bmi"].fillna(filled).to_numpy()

    def part(term):
        if term.kind == "value":
            return term.weight * (original[term.name] - term.origin) / term.per
        if term.kind == "missing":
            return term.weight * X[term.name].isna().to_numpy()
        level = True if term.name == "smoker" else term.label.split(" = ")[1]
        return term.weight * (X[term.name] == level).to_numpy()

    for node in view.nodes[:3]:
        function = view.members[0].conditions[node.number].functions[0]
        assert function.n_terms == len(function.terms)
        assert [t.strength for t in function.terms] == sorted((t.strength for t in function.terms), reverse=True)
        total = sum(part(term) for term in function.terms) + function.bias
        assert_allclose(total, logits[:, node.logits[0]], atol=1e-4)


def test_one_term_is_a_threshold():
    X = np.linspace(0, 100, 60)[:, None]
    model = TartClassifier(depth=1, epochs=60, random_state=0).fit(X, X[:, 0] > 51)
    first, second = explain.view(model).members[0].conditions[0].texts
    sign, threshold = first.removeprefix("x0 ").split()
    at_threshold = torch.tensor(model.encoder_.transform([[float(threshold)]])).double()
    logit = double_tree(model).decision(at_threshold)
    assert abs(float(logit)) < 1e-2
    assert second == f"x0 {'<=' if sign == '>' else '>='} {threshold}"


def test_gradients_are_called_so():
    model, X = fit("perceptron decisions")
    condition = explain.view(model, X).members[0].conditions[0]
    assert condition.kind == "gradient"
    assert condition.functions[0].method == "gradient"
    assert condition.functions[0].bias is None
    assert explain.view(model).members[0].conditions[0].functions == ()


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_gradients_are_those_of_autograd(layers):
    model, X = fit("window 3", decision_layers=layers, leaf_layers=layers, hidden=4, members=2)
    tree, x = double_tree(model), encode(model, X)[:6]
    for module in (tree.decision, tree.leaf):
        expected = torch.autograd.functional.jacobian(lambda rows: module(rows)[1].flatten(1).sum(0), x)  # noqa: B023
        found = torch.cat(list(jacobians(module, 1, x)))
        assert_allclose(found.numpy(), expected.movedim(1, 0).numpy(), atol=1e-9)
        mean, size = mean_gradients(module, 1, x)
        assert_allclose(mean.numpy(), found.mean(0).numpy(), atol=1e-9)
        assert_allclose(size.numpy(), found.square().mean(0).sqrt().numpy(), atol=1e-9)


@pytest.mark.parametrize("readable", [True, False])
@pytest.mark.parametrize("estimator", [TartClassifier, TartRegressor])
def test_a_table_whose_columns_are_all_constant(estimator, readable):
    X = pd.DataFrame({"a": np.ones(30), "b": ["x"] * 30})
    y = np.arange(30) % 3 > 0
    model = estimator(readable=readable, epochs=5, random_state=0).fit(X, y if estimator is TartClassifier else y * 2.0)
    assert explain.view(model, X, y).features == ()
    for background in (None, X):
        explained = model.explain(X[:4], background=background)
        assert_allclose(explained.predictions, predictions(model, X[:4]), atol=1e-5)
        assert_allclose(explained.base, explained.predictions[0])
        assert not explained.contributions.any()
        assert "+0.0000  a = 1" in explained[0].text()
    assert "leaf 0" in explain.export_text(model, X, y)


def test_errors():
    model, X = fit()
    with pytest.raises(ValueError, match="call fit first"):
        explain.view(TartClassifier())
    with pytest.raises(ValueError, match="one row each"):
        explain.view(model, X, [1, 2])
    with pytest.raises(ValueError, match="classes of fit"):
        explain.view(model, X, ["?"] * len(X))
    with pytest.raises(ValueError, match="X must be given"):
        explain.view(model, y=[1])
