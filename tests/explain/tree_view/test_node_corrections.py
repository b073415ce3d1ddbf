"""What nodes change: the sum along the path to a leaf is the leaf."""

import numpy as np
import pytest

from tartree import TartClassifier, TartRegressor, explain
from tartree.explain.tree_view.path_sums import path_conditions, path_sum, path_to
from tests.explain.models import encode, fit, patients


def amounts(effects, model, x):
    """What effects add for encoded rows, from the encoder's values."""
    values = model.encoder_.inverse_transform(x)
    total = np.zeros(len(x))
    for effect in effects.values():
        column = model.encoder_.columns_[effect.column]
        own = values[effect.name]
        if effect.points:
            points, parts = np.array(effect.points).T
            numbers = np.array([np.nan if v is None else column.quantity.parse(v) for v in own])
            added = np.interp(numbers, points, parts)
        else:
            names = dict(effect.levels)
            added = np.array([names.get(str(value), 0.0) for value in own])
            numbers = np.array([np.nan if value is None else 0.0 for value in own])
        missing = np.isnan(numbers)
        total += np.where(missing, effect.missing or 0.0, added) if missing.any() else added
    return total


@pytest.mark.parametrize("task", ["two classes", "three classes", "values"])
def test_sums_along_paths_are_the_leaves(task):
    frame, labels, values = patients(300)
    kind = TartRegressor if task == "values" else TartClassifier
    y = {"values": values, "two classes": labels == "high"}.get(task, labels)
    model = kind(readable=True, epochs=40, random_state=0).fit(frame, y)
    tree = explain.view(model, max_terms=100)
    corrections = tree.members[0].corrections
    x = encode(model, frame).numpy()
    mix = model.model_.tree.output.functions()
    raw = x @ tree.members[0].leaf.weights[0].T + tree.members[0].leaf.biases[0]
    raw = raw.reshape(len(x), tree.n_leaves, -1) @ mix.T  # (rows, leaves, functions)
    if task == "values":
        raw = raw * tree.output.scale + tree.output.center
    for leaf in tree.leaves:
        for k in range(len(mix)):
            effects, constant = path_sum(corrections, path_to(tree, leaf.number), k)
            sums = constant + amounts(effects, model, x)
            np.testing.assert_allclose(sums, raw[:, leaf.leaf, k], atol=1e-4 * max(1.0, np.abs(raw).max()))


def test_conditions_of_a_path_name_the_rows_of_a_leaf():
    frame, labels, _ = patients(300)
    model = TartClassifier(readable=True, epochs=40, random_state=0).fit(frame, labels == "high")
    tree = explain.view(model)
    for leaf in tree.leaves:
        texts = path_conditions(tree, 0, leaf.number)
        assert 0 <= len(texts) <= len(path_to(tree, leaf.number)) - 1
    assert path_conditions(tree, 0, 0) == []


@pytest.mark.parametrize("kind", ["default", "constant leaves", "perceptron leaves", "shared children"])
def test_other_leaves_have_no_corrections(kind):
    model, _ = fit(kind)
    assert explain.view(model).members[0].corrections is None
