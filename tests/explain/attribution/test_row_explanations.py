"""Contributions add up for every model, and have the form that their derivation gives them."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from tartree import Structure, TartClassifier, explain, load
from tartree.explain.attribution.contributions import contributions
from tartree.explain.attribution.likely_paths import likely_paths
from tartree.explain.attribution.row_explanations import reference_row
from tests.explain.models import KINDS, double_tree, encode, fit, patients, predictions, prune


@pytest.mark.parametrize("task", ["classes", "two classes", "two values"])
@pytest.mark.parametrize("kind", KINDS)
def test_contributions_add_up(kind, task):
    model, X = fit(kind, task)
    X = X[:12]
    explained = model.explain(X, background=X)
    scale = np.abs(predictions(model, X)).max()
    assert_allclose(explained.base + explained.contributions.sum(axis=1), predictions(model, X), atol=1e-9 * scale)
    assert_allclose(explained.predictions, predictions(model, X), atol=1e-9 * scale)


@pytest.mark.parametrize(("kind", "gone"), [("default", [1]), ("window 3", [0, 4, 8]), ("shared children", [2, 3])])
@pytest.mark.parametrize("selection", ["multi", "single"])
def test_they_add_up_in_irregular_structures(kind, gone, selection):
    model, X = fit(kind, selection=selection)
    model = prune(model, gone)
    explained = explain.explain_rows(model, X[:12])
    assert_allclose(explained.base + explained.contributions.sum(axis=1), predictions(model, X[:12]), atol=1e-9)


def test_they_add_up_with_decisions_of_your_own():
    class Rounded(torch.nn.Module):
        """A decision without a gradient."""

        def __init__(self, structure, n_features, members):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(members, n_features, structure.n_logits))

        def forward(self, x):
            return torch.sign(x @ self.weight)

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    model = TartClassifier(depth=2, epochs=1, decision=Rounded, random_state=0).fit(X, X[:, 0] > 0)
    explained = model.explain(X)
    assert_allclose(explained.base + explained.contributions.sum(axis=1), predictions(model, X), atol=1e-9)


@pytest.mark.parametrize("selection", ["multi", "single"])
def test_a_step_belongs_to_its_column(selection):
    """Decisions that compare one feature with a threshold: other columns have no path part, and conditions say it."""

    class Steps(torch.nn.Module):
        def __init__(self, structure, n_features, members):
            super().__init__()
            self.register_buffer("feature", torch.ones(members, structure.n_logits, dtype=torch.long))
            self.register_buffer("threshold", torch.linspace(-1, 1, structure.n_logits).repeat(members, 1))

        def forward(self, x):
            first = x[..., self.feature[0]] <= self.threshold[0]
            return torch.where(first, 1000.0, -1000.0).to(x.dtype).expand(len(self.feature), -1, -1)

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    model = TartClassifier(depth=2, epochs=5, decision=Steps, selection=selection, random_state=0).fit(X, X[:, 1] > 0)
    explained = model.explain(X, background=X)
    assert_allclose(explained.base + explained.contributions.sum(axis=1), predictions(model, X), atol=1e-9)
    assert_allclose(explained.path_part[:, [0, 2]], 0)
    assert np.abs(explained.path_part[:, 1]).max() > 0
    text = explained.tree.members[0].conditions[0].texts[0]
    feature, sign, threshold = text.split()
    assert (feature, sign) == ("x1", "<=")
    assert float(threshold) == pytest.approx(X[:, 1].mean() - X[:, 1].std(), abs=1e-3)


def test_the_reference_itself_has_no_contributions():
    model, X = fit("shared children")
    tree, reference = double_tree(model), reference_row(model.model_, X)
    parts = contributions(tree, reference[None], reference, "multi")
    assert_allclose(parts.path.numpy(), 0, atol=1e-12)
    assert_allclose(parts.leaf.numpy(), 0, atol=1e-12)


def test_linear_leaves_have_their_terms():
    """Of a linear regression, depth 0, a column's contribution is its weight times its distance from the reference."""
    model, X = fit("one leaf", "values", extrapolation=None)
    explained = model.explain(X, background=X)
    x = model.encoder_.transform(X).astype(float)
    weight = model.tree_.leaf.mlp.weights[0][0, 0].detach().cpu().double().numpy() * model.target_scale_[0]
    expected = weight * (x - x.mean(axis=0))
    owner = [feature.column for feature in model.encoder_.features_]
    by_column = np.zeros((len(X), 5))
    np.add.at(by_column.T, owner, expected.T)
    assert_allclose(explained.contributions[:, :, 0], by_column, atol=1e-6 * np.abs(by_column).max())
    assert_allclose(explained.path_part, 0)


def test_a_binary_node_shares_by_its_terms():
    """Constant leaves, depth 1: the path part is the change of the sigmoid, in proportion to the terms of the logit."""
    model, X = fit("constant leaves", "two classes", depth=1)
    tree, x = double_tree(model), encode(model, X)
    reference = x.mean(0)
    parts = contributions(tree, x, reference, "multi")
    terms = tree.decision.mlp.weights[0][0, 0] * (x - reference)  # (rows, features)
    change = parts.prediction - parts.base
    expected = terms.unsqueeze(-1) / terms.sum(1)[:, None, None] * change.unsqueeze(1)
    assert_allclose(parts.path.numpy(), expected.numpy(), atol=1e-9)


def test_gauss_legendre_agrees_with_the_closed_form():
    """Two classes by the log odds, and the same leaf as three classes with one that nobody gets."""
    model, X = fit("default", "two classes")
    tree, x = double_tree(model), encode(model, X)
    closed = contributions(tree, x, x.mean(0), "multi").leaf
    from tartree.nn import Classes, MLPLeaf

    wide = MLPLeaf(tree.structure, x.shape[1], 3).double()
    with torch.no_grad():
        for old, new in (
            (tree.leaf.mlp.weights[0], wide.mlp.weights[0]),
            (tree.leaf.mlp.biases[0], wide.mlp.biases[0]),
        ):
            new.zero_()
            new.unflatten(1, (-1, 3))[:, :, :2] = old.unflatten(1, (-1, 2))
        wide.mlp.biases[0].unflatten(1, (-1, 3))[:, :, 2] = -80.0
    tree.leaf, tree.output = wide.requires_grad_(False), Classes(3)
    assert_allclose(contributions(tree, x, x.mean(0), "multi").leaf[..., :2].numpy(), closed.numpy(), atol=1e-6)


def test_paths_of_a_graph():
    model, X = fit("shared children", members=2)
    explained = model.explain(X[:5], share=1.0, max_paths=100)
    for row in explained:
        for m in range(2):
            own = [path for path in row.paths if path.member == m]
            assert_allclose(sum(path.probability for path in own), 1)
            assert [p.probability for p in own] == sorted((p.probability for p in own), reverse=True)
            for leaf in range(model.get_n_leaves()):
                into = sum(path.probability for path in own if path.leaf == leaf)
                assert_allclose(into, row.arrival[m, leaf], atol=1e-12)
            for path in own:
                assert_allclose(np.prod([step.probability for step in path.steps]), path.probability)
                assert all(np.isclose(sum(step.branches), 1) for step in path.steps)


def test_the_first_path_is_that_of_decision_path():
    model, X = fit("default")
    explained = model.explain(X)
    assert explained[0].paths[0].leaf + 3 == model.apply(X)[0]
    assert len(explained[0].paths) <= 5
    text = explained[3].text()
    assert "path to leaf" in text
    assert "contributions" in text


def test_ways_stop_at_the_share():
    structure = Structure(2)
    shares = [np.array([0.9, 0.1]), np.array([0.8, 0.2, 0.5, 0.5])]
    ways = likely_paths(structure, shares, share=0.8, max_paths=10)
    assert [way.nodes[-1] for way in ways] == [0, 1]
    assert_allclose([way.probability for way in ways], [0.72, 0.18])


def test_effects_of_terms():
    """Effects of all terms of a linear condition are the logit less that of the reference."""
    model, X = fit("default")
    explained = model.explain(X[:3], background=X, max_terms=100)
    step = explained[0].paths[0].steps[0]
    tree, x = double_tree(model), encode(model, X)
    logits = tree.decision(torch.stack([x[0], x.mean(0)]))[0, :, 0]
    first = explained.tree.nodes[0].children[0]
    sign = 1 if step.child == first else -1
    assert_allclose(sum(term.effect for term in step.terms), sign * float(logits[0] - logits[1]), atol=1e-9)


@pytest.mark.parametrize("kind", ["default", "perceptron decisions"])
@pytest.mark.parametrize("loaded", [False, True])
def test_conditions_do_not_depend_on_the_rows_explained(kind, loaded, tmp_path):
    model, X = fit(kind)
    if loaded:
        model.save(tmp_path / "model.tart")
        model = load(tmp_path / "model.tart")
    one, many = (model.explain(rows).tree.members[0].conditions[0] for rows in (X[:1], X))
    assert one.texts == many.texts
    strength = [term.strength for term in one.functions[0].terms]
    assert strength == sorted(strength, reverse=True)
    assert min(strength) > 0  # one row has no spread of its own


def test_the_spread_of_training_orders_the_terms():
    """The widest column comes first, although its weight is not the largest and the one row has no spread."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) * [1, 1, 100]
    model = TartClassifier(depth=1, epochs=1, numeric="plain", random_state=0).fit(X, X[:, 0] > 0)
    with torch.no_grad():
        model.tree_.decision.mlp.weights[0][:] = torch.tensor([2.0, 1.0, 0.5])
    for rows in (X[:1], X[:9], X):
        first, second, third = model.explain(rows).tree.members[0].conditions[0].functions[0].terms
        assert (first.name, second.name, third.name) == ("x2", "x0", "x1")
        assert_allclose(first.strength, 0.5 * X[:, 2].std(), rtol=1e-5)
    assert explain.view(model, X[:1]).members[0].conditions[0].functions[0].terms[0].name == "x2"
    assert explain.view(model).members[0].conditions[0].functions[0].terms[0].name == "x2"


@pytest.mark.parametrize("kind", ["default", "perceptron decisions", "window 3"])
def test_a_step_lists_the_strongest_effects_of_all_terms(kind):
    model, X = fit(kind)
    for row in range(5):
        every, some = (model.explain(X[row : row + 1], max_terms=n)[0].paths[0].steps[0].terms for n in (100, 2))
        assert some == every[:2]
        assert abs(some[0].effect) == max(abs(term.effect) for term in every)


def test_gaps_are_said():
    frame = patients()[0][["age", "smoker", "bmi", "sex"]]
    labels = patients()[1]
    model = TartClassifier(depth=1, epochs=2, random_state=0).fit(frame, labels)
    row = frame[:1].astype(object)
    row[:] = np.nan
    explained = model.explain(row)[0]
    age = explained.values["age"]
    assert age == frame["age"].median()
    assert explained.value_text("age") == f"missing, read as {age:g}"
    assert explained.value_text("bmi") == explained.value_text("sex") == "missing"
    assert explained.value_text("smoker") == "missing, read as False"
    assert f"age = missing, read as {age:g}" in explained.text(most=4)
    said = {term.value for path in explained.paths for step in path.steps for term in step.terms}
    assert f"missing, read as {age:g}" in said
    assert model.explain(frame[:1])[0].gaps == {"bmi", "sex"} & set(frame.columns[frame[:1].isna().all()])


def test_it_is_printed_in_one_line():
    model, X = fit()
    assert repr(model.explain(X[:3])) == "Explanation(3 rows, 5 columns, 3 outputs)"


def test_errors():
    model, X = fit()
    with pytest.raises(ValueError, match="share must be"):
        model.explain(X, share=0)
    with pytest.raises(IndexError):
        model.explain(X[:2])[2]
