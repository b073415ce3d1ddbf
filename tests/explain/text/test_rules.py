"""Text, importances and leaves of a whole model."""

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose

from tartree import TartClassifier, explain, load
from tests.explain.models import KINDS, fit, patients


@pytest.mark.parametrize("kind", KINDS)
def test_text_has_every_leaf_once(kind):
    model, X = fit(kind)
    text = explain.export_text(model, X)
    for leaf in range(model.get_n_leaves()):
        assert text.count(f"leaf {leaf}:") == model.members
    assert "class: " in text
    assert text.endswith("\n")
    assert explain.export_text(model)  # without rows


def test_text_of_a_small_tree():
    X = np.linspace(0, 100, 60)[:, None]
    model = TartClassifier(depth=1, epochs=60, leaf_layers=0, random_state=0).fit(X, np.where(X[:, 0] > 51, "b", "a"))
    lines = explain.export_text(model, X).splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("|--- x0 ")
    assert lines[1].startswith("|   |--- leaf 0: class: ")
    assert "% arrive)" in lines[1]


def test_deep_text_is_cut():
    model, X = fit("default", depth=3)
    text = explain.export_text(model, X, max_depth=1)
    assert text.count("4 leaves") == 2
    with pytest.raises(ValueError, match="max_depth"):
        explain.export_text(model, max_depth=-1)


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


def test_text_of_arrow_is_explained():
    """Arrow's text comes as different values and codes."""
    frame, labels, _ = patients()
    arrow = pa.Table.from_pandas(frame[["age", "sex"]])
    model = TartClassifier(depth=1, epochs=1, random_state=0).fit(arrow, labels)
    found = model.explain(arrow)
    np.testing.assert_array_equal(found.gaps, frame[["age", "sex"]].isna())
    np.testing.assert_array_equal(found.contributions, model.explain(frame[["age", "sex"]]).contributions)
