"""Smaller models that predict nearly the same: their limits are kept, their certificates true."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.model_selection import StratifiedKFold

from tartree import TartClassifier, explain, load
from tartree.explain.simplification import distillation
from tests.explain.models import KINDS, changes, fit, predictions


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_made_smaller(kind, tmp_path):
    model, X = fit(kind)
    before = predictions(model, X)
    small = model.simplify(X, max_leaves=2)
    assert small.get_n_leaves() == min(2, model.get_n_leaves())
    assert type(small) is type(model)
    assert small.get_params() == model.get_params()
    assert_allclose(predictions(model, X), before)  # the given model is as it was
    assert small.certificate_.leaves_after == small.get_n_leaves()
    assert_allclose(small.certificate_.measured, changes(model, small, X).max(), atol=1e-9)
    small.save(tmp_path / "small.tart")
    assert_allclose(predictions(load(tmp_path / "small.tart"), X), predictions(small, X))


@pytest.mark.parametrize("task", ["classes", "values"])
def test_tolerance_is_the_largest_change_on_the_rows(task):
    model, X = fit("default", task)
    sizes = []
    for tolerance in (0.5, 0.02):
        small = model.simplify(X, tolerance=tolerance)
        assert small.certificate_.within_tolerance
        assert changes(model, small, X).max() <= tolerance
        assert "leaves" in str(small.certificate_)
        sizes.append((small.get_n_leaves(), small.certificate_.terms_after))
    assert sizes[0] < sizes[1] <= (4, small.certificate_.terms_before)


def test_refits_of_small_trees_take_one_thread(monkeypatch):
    model, X = fit()
    descend, threads = distillation._descend, []

    def watched(*arguments):
        threads.append(torch.get_num_threads())
        descend(*arguments)

    monkeypatch.setattr(distillation, "_descend", watched)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        model.simplify(X, max_leaves=2)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert set(threads) == {1}


def test_terms_are_limited():
    model, X = fit("default", members=2)
    small = model.simplify(X, max_leaves=3, max_terms=2)
    for module, per in ((small.tree_.decision, 1), (small.tree_.leaf, 3)):
        used = (module.mlp.weights[0] != 0).unflatten(1, (-1, per)).any(2)  # (members, nodes, features)
        assert int(used.sum(-1).max()) <= 2
    assert small.certificate_.terms_after <= 2 * (2 * 2 + 3 * 3 * 2)
    with pytest.raises(ValueError, match="max_terms requires linear"):
        fit("shared, perceptrons")[0].simplify(X, max_terms=2)


def test_both_limits_that_cannot_be_had():
    model, X = fit("default", depth=3)
    small = model.simplify(X, tolerance=1e-6, max_leaves=1)
    assert small.get_n_leaves() == 1
    assert not small.certificate_.within_tolerance


def test_a_path_for_a_slider():
    model, X = fit("shared children")
    path = explain.simplification_path(model, X, [1, 3, 99])
    assert [small.get_n_leaves() for small in path] == [1, 3, model.get_n_leaves()]
    assert path[-1].certificate_.measured < 1e-6
    assert path[0].certificate_.measured >= path[1].certificate_.measured


def test_decisions_of_your_own_are_refused():
    class Own(torch.nn.Module):
        def __init__(self, structure, n_features, members):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(members, n_features, structure.n_logits))

        def forward(self, x):
            return x @ self.weight

    X = np.random.default_rng(0).normal(size=(30, 3))
    model = TartClassifier(depth=1, epochs=1, decision=Own, random_state=0).fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match="decisions must be linear"):
        model.simplify(X)
    with pytest.raises(ValueError, match="decisions must be"):
        model.harden(X)


@pytest.mark.parametrize(
    "limits", [{"tolerance": -1}, {"tolerance": float("nan")}, {"max_leaves": 0}, {"max_terms": 1.5}]
)
def test_wrong_limits(limits):
    model, X = fit()
    with pytest.raises(ValueError, match="must be"):
        model.simplify(X, **limits)


@pytest.mark.slow
@pytest.mark.parametrize("data", [load_iris, load_wine, load_breast_cancer])
def test_the_default_model_becomes_small(data):
    """At most 6 leaves for a change of 0.01. One fold; docs/benchmarks/simplify.md has all, with accuracies."""
    X, y = data(return_X_y=True)
    train, test = next(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    model = TartClassifier(random_state=0).fit(X[train], y[train])
    small = model.simplify(X[train], tolerance=0.01)
    assert small.get_n_leaves() <= 6
    assert small.certificate_.measured <= 0.01
    assert small.score(X[test], y[test]) >= model.score(X[test], y[test]) - 0.03
