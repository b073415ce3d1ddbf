"""Explanations of imported trees speak of what the trees do; a sum of trees is refused, one of them is not."""

import numpy as np
import pytest
from sklearn import datasets, ensemble, tree

from tartree import explain, zoo

X, y = datasets.load_iris(return_X_y=True, as_frame=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[y]


def test_rules_read_as_scikit_learn_writes_them():
    source = tree.DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, NAMES)
    text = explain.export_text(zoo.from_sklearn(source))
    expected = tree.export_text(source, feature_names=list(X.columns), decimals=2)
    conditions = [line.split("--- ")[1].split() for line in expected.splitlines() if "class:" not in line]
    found = [line.split("--- ")[1].split() for line in text.splitlines() if "--- " in line and "leaf" not in line]
    assert [words[:-1] for words in found] == [words[:-1] for words in conditions]
    np.testing.assert_allclose([float(w[-1]) for w in found], [float(w[-1]) for w in conditions], atol=0.006)
    assert "nan" not in text
    assert "inf" not in text
    assert "probability of setosa = 1" in text
    assert "probability of versicolor = 0.9792" in text


def test_a_row_on_the_threshold_is_told_to_go_where_it_goes():
    X = np.array([[0.0], [1.0]])
    for model in (
        zoo.from_sklearn(tree.DecisionTreeClassifier().fit(X, [0, 1])),
        zoo.make("dt", depth=1, epochs=5, random_state=0).fit(X, [0, 1]),
    ):
        first, second = explain.view(model).members[0].conditions[0].texts
        assert first.startswith("x0 <= ")
        assert second.startswith("x0 > ")
    on = np.array([[0.5]])
    (path,) = explain.explain_rows(zoo.from_sklearn(tree.DecisionTreeClassifier().fit(X, [0, 1])), on)[0].paths
    assert path.steps[0].condition == "x0 <= 0.5"


@pytest.mark.parametrize("gaps", [False, True])
def test_rows_and_leaves(gaps):
    table = X.mask(np.random.default_rng(0).random(X.shape) < 0.1) if gaps else X
    source = tree.DecisionTreeClassifier(max_depth=3, random_state=0).fit(table, NAMES)
    model = zoo.from_sklearn(source)
    told = explain.explain_rows(model, table[:20], background=table)
    total = told.base + told.contributions.sum(axis=1)
    np.testing.assert_allclose(total, source.predict_proba(table[:20]), atol=1e-9)
    for name in X.columns:
        np.testing.assert_allclose(told.values[name], table[name][:20], rtol=1e-6)
    leaves = explain.describe_leaves(model, table)
    assert len(leaves) == source.get_n_leaves()
    assert sum(leaf.rows for leaf in leaves) == len(table)


def test_importances_are_those_of_the_source():
    source = tree.DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    np.testing.assert_allclose(
        explain.importances(zoo.from_sklearn(source), X, y), source.feature_importances_, atol=1e-6
    )


@pytest.mark.parametrize(
    "source",
    [
        ensemble.RandomForestClassifier(3, random_state=0),
        ensemble.GradientBoostingClassifier(n_estimators=2),
        ensemble.GradientBoostingRegressor(n_estimators=1),
        ensemble.HistGradientBoostingRegressor(max_iter=2),
    ],
    ids=lambda source: type(source).__name__,
)
def test_a_sum_of_trees_is_refused_and_one_of_them_explained(source):
    model = zoo.from_sklearn(source.fit(X, y))
    for call in (explain.view, explain.export_text):
        with pytest.raises(ValueError, match=r"explanations are of one tree, got .*model\.one_tree\(0\)"):
            call(model)
    for call in (explain.explain_rows, explain.importances, explain.describe_leaves):
        with pytest.raises(ValueError, match="explanations are of one tree"):
            call(model, X)
    one = model.one_tree(0)
    assert "<=" in explain.export_text(one)
    assert explain.view(one).task == ("classification" if isinstance(one, zoo.ImportedClassifier) else "regression")
    assert explain.importances(one, X).sum() == pytest.approx(1)


def test_what_boosted_trees_add():
    source = ensemble.GradientBoostingRegressor(n_estimators=3, random_state=0).fit(X, y)
    model = zoo.from_sklearn(source)
    total = sum(model.one_tree(place).predict(X) for place in range(3))
    np.testing.assert_allclose(model.sum_.base + total, source.predict(X))
