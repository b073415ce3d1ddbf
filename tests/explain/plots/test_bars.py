"""Bars are the strengths of the view."""

import numpy as np
import pytest

from tartree.explain import view

matplotlib = pytest.importorskip("matplotlib", reason="pictures need the extra plot")
matplotlib.use("Agg")


from tartree.explain.plots.bars import condition_bars, condition_effects, feature_value, leaf_bars, leaf_effects  # noqa: E402
from tests.explain.plots.figures import LONG  # noqa: E402


def test_bars_are_the_weights_times_the_spread(trees):
    tree, row = trees["8 leaves"]
    member, spread = tree.members[0], np.array([feature.spread for feature in tree.features])
    effects = condition_effects(tree, member, 2)
    np.testing.assert_allclose(effects, member.decision.weights[0][[2]] * spread)
    bars = condition_bars(tree, 2, max_terms=4)
    assert [bar.feature for bar in bars.bars] == np.argsort(-np.abs(effects[0]), kind="stable")[:4].tolist()
    for bar in bars.bars:  # a positive logit leads to the first child, on the left
        assert bar.parts[0][0] == pytest.approx(-effects[0, bar.feature])
    own = condition_bars(tree, 2, max_terms=3, row=row)
    encoded = np.array([feature.mean for feature in row.features])
    for bar in own.bars:
        assert bar.parts[0][0] == pytest.approx(-(member.decision.weights[0][2] * encoded)[bar.feature])


def test_bars_of_several_children_and_classes_are_taken_less_their_mean(trees):
    tree, _ = trees["shared"]
    member = tree.members[0]
    for effects in (condition_effects(tree, member, 1), leaf_effects(tree, member, tree.leaves[2].number)):
        assert effects.shape == (3, len(tree.features))
        np.testing.assert_allclose(effects.sum(axis=0), 0, atol=1e-12)
    logits = list(tree.nodes[1].logits)
    weights = member.decision.weights[0][logits]
    np.testing.assert_allclose(
        condition_effects(tree, member, 1),
        (weights - weights.mean(axis=0)) * np.array([feature.spread for feature in tree.features]),
    )
    model = member.leaf_models[2]
    terms = {term.feature: np.copysign(term.strength, term.encoded_weight) for term in model.functions[1].terms}
    effects = leaf_effects(tree, member, tree.leaves[2].number)[1]
    np.testing.assert_allclose([effects[k] for k in terms], list(terms.values()))


def test_values_are_written_in_the_units_of_their_column(table, trees):
    X, _ = table
    tree, row = trees["2 leaves"]
    by_name = {feature.label: k for k, feature in enumerate(tree.features)}
    date = by_name["admitted"]
    assert feature_value(tree, tree.features[date], row.features[date].mean) == str(X["admitted"][3].date())
    level = by_name["ward = surgery"]
    assert feature_value(tree, tree.features[level], 1.0) == "yes"
    number = by_name[LONG.format(0)]
    assert float(feature_value(tree, tree.features[number], row.features[number].mean)) == pytest.approx(
        X.iloc[3, 0], rel=1e-2
    )


def test_regression_bars_are_in_units_of_the_target(regression):
    model, X, y = regression
    tree = view(model, X, y)
    terms = tree.members[0].leaf_models[0].functions[0].terms
    bars = leaf_bars(tree, tree.leaves[0].number, max_terms=2)
    for bar, term in zip(bars.bars, terms, strict=False):
        assert abs(bar.parts[0][0]) == pytest.approx(term.strength)
