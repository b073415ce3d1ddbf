"""Wrong arguments and unfitted models give an error that says what is required; parameters can be seen."""

import inspect

import pytest
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier

from tartree import TartClassifier, TartRegressor, explain
from tartree.explain import plots
from tartree.explain.page import write_report
from tartree.explain.simplification.simplifier import _Work
from tests.explain.models import fit


@pytest.fixture(scope="module")
def model():
    return fit()


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "3"])
def test_a_number_of_terms(model, wrong):
    model, X = model
    calls = [
        lambda: model.explain(X, max_terms=wrong),
        lambda: model.explain(X, max_paths=wrong),
        lambda: explain.view(model, X, max_terms=wrong),
        lambda: explain.export_text(model, max_terms=wrong),
        lambda: explain.export_text(explain.view(model), max_terms=wrong),
        lambda: explain.export_dot(model, max_terms=wrong),
        lambda: explain.export_mermaid(model, max_terms=wrong),
        lambda: plots.plot_tree(model, X, max_terms=wrong),
        lambda: plots.plot_condition(model, X, node=0, max_terms=wrong),
        lambda: model.simplify(X, max_terms=wrong),
        lambda: model.simplify(X, max_leaves=wrong),
        lambda: model.simplify(X, max_boxes=wrong),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=f"max_[a-z]+ must be an integer of at least 1, got .*{wrong}"):
            call()


@pytest.mark.parametrize("wrong", [True, False, -0.1, float("inf"), "0.1"])
def test_a_tolerance(model, wrong):
    with pytest.raises(ValueError, match="tolerance must be a number"):
        model[0].simplify(model[1], tolerance=wrong)


CALLS = [
    lambda model, X, y, path: explain.explain_rows(model, X),
    lambda model, X, y, path: explain.simplify(model, X),
    lambda model, X, y, path: explain.simplification_path(model, X, [1]),
    lambda model, X, y, path: explain.harden(model, X),
    lambda model, X, y, path: explain.counterfactual(model, X[:1], X),
    lambda model, X, y, path: explain.importances(model, X, y),
    lambda model, X, y, path: explain.describe_leaves(model, X),
    lambda model, X, y, path: explain.export_text(model),
    lambda model, X, y, path: explain.export_dot(model),
    lambda model, X, y, path: explain.view(model, X, y),
    lambda model, X, y, path: plots.plot_tree(model, X, y),
    lambda model, X, y, path: write_report(model, X, y, path),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("estimator", [TartClassifier, TartRegressor])
def test_not_fitted(call, estimator, model, tmp_path):
    X = model[1]
    y = X["age"]
    with pytest.raises(NotFittedError, match="call fit first"):
        call(estimator(), X, y, tmp_path / "page.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("call", CALLS)
def test_another_library(call, model, tmp_path):
    X = model[1][["age"]]
    y = model[1]["smoker"]
    with pytest.raises(TypeError, match="DecisionTreeClassifier, which is no tartree model"):
        call(DecisionTreeClassifier().fit(X, y), X, y, tmp_path / "page.html")


@pytest.mark.parametrize(
    ("method", "function"),
    [
        ("explain", explain.explain_rows),
        ("simplify", explain.simplify),
        ("harden", explain.harden),
        ("report", write_report),
    ],
)
def test_methods_show_the_parameters_of_their_functions(method, function):
    own = inspect.signature(getattr(TartClassifier, method)).parameters
    theirs = inspect.signature(function).parameters
    defaults = [{name: p.default for name, p in found.items()} for found in (own, theirs)]
    defaults[0].pop("self")
    defaults[1].pop("estimator")
    assert defaults[0] == defaults[1]
    assert all(parameter.kind is not inspect.Parameter.VAR_KEYWORD for parameter in own.values())


@pytest.mark.parametrize("needed", [1, 3, 8, 9, 11, 14, 17, 31, 32])
def test_sizes_beyond_eight_are_bisected(needed, monkeypatch):
    """Where trees of so many leaves, and all larger ones, keep the tolerance, no larger one is taken."""
    model, X = fit(depth=5)
    tried = []

    def fitted(self, size, *_, **__):
        tried.append(size)
        return size, size, 0.0 if size >= needed else 1.0

    monkeypatch.setattr(_Work, "fitted", fitted)
    assert _Work(model.model_, X).smallest(32, 0.01, None) == (needed, needed)
    assert len(tried) < 20
    assert _Work(model.model_, X).smallest(min(needed, 5), 0.01, None)[0] == min(needed, 5)
