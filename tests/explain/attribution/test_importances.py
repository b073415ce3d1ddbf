"""Importances: shares of the impurity removed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tartree import TartClassifier, explain, load
from tests.explain.models import KINDS, fit, patients


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", ["classes", "two values"])
def test_importances_sum_to_one(kind, task, tmp_path):
    model, _ = fit(kind, task, noise=0.0, epochs=30)
    found = model.feature_importances_
    assert found.shape == (5,)
    assert (found >= 0).all()
    assert_allclose(found.sum(), 1)
    model.save(tmp_path / "model.tart")
    assert_allclose(load(tmp_path / "model.tart").feature_importances_, found)


def test_importances_of_a_table_with_dates_as_it_is():
    frame, labels, _ = patients()
    model = TartClassifier(depth=2, numeric="plain", random_state=0).fit(frame, labels)
    assert_allclose(model.feature_importances_.sum(), 1)


def test_importances_of_a_split_that_matters():
    """One column decides, the others are noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    for leaf_layers in (0, 1):
        model = TartClassifier(depth=2, leaf_layers=leaf_layers, random_state=0).fit(X, X[:, 2] > 0)
        assert model.feature_importances_.argmax() == 2
        assert model.feature_importances_[2] > 0.5


def test_importances_by_hand():
    """One node, constant leaves, one column: what is removed is Gini's impurity of all less that of the branches."""
    import torch

    from tartree.explain.attribution.importances import _removed
    from tests.explain.models import double_tree, encode

    X = np.linspace(-1, 1, 50)[:, None]
    model = TartClassifier(depth=1, leaf_layers=0, random_state=0, epochs=30).fit(X, X[:, 0] > 0)
    tree, x = double_tree(model), encode(model, X)
    truth = torch.from_numpy(np.stack([X[:, 0] <= 0, X[:, 0] > 0], axis=1).astype(float))
    arrival = tree(x).arrival[0].numpy()  # (rows, 2)
    expected = 0.5
    for branch in arrival.T:
        mix = (branch[:, None] * truth.numpy()).sum(0) / branch.sum()
        expected -= branch.mean() * (1 - (mix**2).sum())
    share = torch.full((50, 1), 1 / 50, dtype=torch.float64)
    assert_allclose(_removed(tree, x, truth, share).numpy(), [[expected, 0, 0]], atol=1e-12)
    assert_allclose(model.feature_importances_, [1.0])


def test_importances_follow_weights_of_rows():
    model, X = fit("default")
    _, labels, _ = patients()
    weight = np.repeat([1.0, 0.0], 40)
    assert_allclose(
        explain.importances(model, X, labels, weight), explain.importances(model, X[:40], labels[:40]), atol=1e-9
    )


def test_a_smaller_model_has_its_own():
    model, X = fit("default")
    before = model.feature_importances_
    small = model.simplify(X, max_leaves=2, max_terms=1)
    assert not np.allclose(small.feature_importances_, before)
    assert_allclose(small.feature_importances_.sum(), 1)
