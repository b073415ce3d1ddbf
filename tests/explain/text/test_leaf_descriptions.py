"""Descriptions of leaves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tartree import TartClassifier, explain
from tests.explain.models import fit, patients


@pytest.mark.parametrize("kind", ["default", "shared children", "members", "one leaf"])
def test_leaves_in_words(kind):
    model, X = fit(kind)
    _, labels, _ = patients()
    leaves = explain.describe_leaves(model, X, labels, typical=2)
    assert len(leaves) == model.get_n_leaves() * model.members
    for leaf in leaves:
        assert len(leaf.region) == model.get_depth()
        assert f"leaf {leaf.leaf}" in str(leaf)
        assert len(leaf.typical_rows) <= min(2, leaf.rows)
        first = np.reshape(model.apply(X), (len(X), -1)) - (sum(model.structure_.widths) - model.get_n_leaves())
        for row, values in zip(leaf.typical_rows, leaf.typical_values, strict=True):
            assert first[row, leaf.member] == leaf.leaf
            assert values["age"] == X["age"].iloc[row]
    assert_allclose(sum(leaf.arrival for leaf in leaves), model.members)


def test_special_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    model = TartClassifier(depth=1, leaf_layers=0, epochs=100, random_state=0).fit(X, X[:, 1] > 0)
    texts = [leaf.special[0] for leaf in explain.describe_leaves(model, X)]
    assert {text.split(":")[0] for text in texts} == {"x1 is higher", "x1 is lower"}


def test_bins_of_curves_are_not_described():
    model, X = fit("default", numeric="curve")
    for leaf in explain.describe_leaves(model, X, max_special=20):
        assert not any(" from " in text for text in leaf.special)
