"""Text, importances and leaves of a whole model."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from tartree import TartClassifier, TartRegressor, explain
from tartree.explain.text.terms import linear_view
from tartree.explain.tree_view.node_models import negated
from tartree.table import TableEncoder
from tests.explain.models import KINDS, fit, patients
from tests.explain.text.followed_text import FollowedText, follow


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


def test_text_of_arrow_is_explained():
    """Arrow's text comes as different values and codes."""
    frame, labels, _ = patients()
    arrow = pa.Table.from_pandas(frame[["age", "sex"]])
    model = TartClassifier(depth=1, epochs=1, random_state=0).fit(arrow, labels)
    found = model.explain(arrow)
    np.testing.assert_array_equal(found.gaps, frame[["age", "sex"]].isna())
    np.testing.assert_array_equal(found.contributions, model.explain(frame[["age", "sex"]]).contributions)


def labels_of(text, sums, names):
    """Labels that the last lines of a text give to sums along paths."""
    if sums.shape[1] > 1:
        return np.array([name.removeprefix("logit of ") for name in sums.columns])[sums.to_numpy().argmax(axis=1)]
    assert f"The prediction is {names[1]} where the sum along the path is above 0, otherwise {names[0]}." in text
    return np.where(sums.to_numpy()[:, 0] > 0, names[1], names[0])


def bunch(load, **options):
    data = load(as_frame=True, **options)
    return data.data, data.target if load is load_diabetes else data.target_names[data.target]


def risky(n=300):
    frame, labels, values = patients(n)
    return frame, np.where(labels == "high", "yes", "no"), values


CLASSIFIED = {
    "numbers": lambda: bunch(load_breast_cancer),
    "three classes": lambda: bunch(load_iris),
    "mixed, with missing values": lambda: risky()[:2],
    "mixed, three classes": lambda: patients(300)[:2],
}


@pytest.mark.parametrize(
    ("name", "max_features"), [*((name, 1) for name in CLASSIFIED), ("mixed, with missing values", 2)]
)
def test_text_of_a_readable_model_can_be_followed(name, max_features):
    X, y = CLASSIFIED[name]()
    model = TartClassifier(readable=True, max_features=max_features, epochs=40, random_state=0).fit(X, y)
    text = explain.export_text(model, X, max_terms=1000)
    predicted = labels_of(text, follow(text, X), list(map(str, model.classes_)))
    assert (predicted == model.predict(X)).mean() >= 0.99
    assert "smaller term" not in text
    assert text.count("all rows: ") == (1 if len(model.classes_) == 2 else 3)


def test_sums_of_a_followed_text_are_those_of_the_model():
    """Also of rows beyond the range of training, whose sums are limited."""
    X, y = bunch(load_breast_cancer)
    model = TartClassifier(readable=True, epochs=40, random_state=0).fit(X, y)
    far = pd.concat([X, X * 1.5, X * 0.5 - 1], ignore_index=True)
    sums = follow(explain.export_text(model, max_terms=1000), far).to_numpy()[:, 0]
    with np.errstate(divide="ignore"):
        odds = np.log(model.predict_proba(far)) @ [-1, 1]
    np.testing.assert_allclose(np.clip(sums, -15, 15), np.clip(odds, -15, 15), atol=0.05)


@pytest.mark.parametrize("table", ["diabetes", "patients"])
def test_followed_text_of_a_regression(table):
    X, y = bunch(load_diabetes, scaled=False) if table == "diabetes" else risky()[::2]
    model = TartRegressor(readable=True, epochs=40, random_state=0).fit(X, y)
    text = explain.export_text(model, max_terms=1000)
    low, high = map(float, re.search(r"within (\S+) to (\S+)\.", text).groups())
    values = np.clip(follow(text, X).to_numpy()[:, 0], low, high)
    error = np.abs(values - model.predict(X))
    # A row between a threshold and its printed digits goes the other way.
    assert (error <= 0.01 * y.std()).mean() >= 0.99
    assert error.max() <= 0.1 * y.std()


def test_followed_text_of_numbers_that_are_scaled_by_ranks():
    rng = np.random.default_rng(0)
    x = np.where(rng.random(400) < 0.03, 999999.0, rng.lognormal(3, 1, 400))
    y = np.sin(np.log(x)) + 0.1 * rng.normal(size=400)
    X = pd.DataFrame({"income": x})
    model = TartRegressor(readable=True, depth=1, epochs=40, random_state=0).fit(X, y)
    values = follow(explain.export_text(model, max_terms=1000), X).to_numpy()[:, 0]
    assert np.abs(values - model.predict(X)).max() <= 0.05 * y.std()


def test_followed_text_of_whole_numbers():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"count": rng.poisson(2, 400), "hour": rng.integers(0, 24, 400).astype(float)})
    X.loc[:30, "hour"] = np.nan
    y = (X["count"] > 0) * 3 + ((X["hour"] > 6) & (X["hour"] < 20)) * 2 + 0.1 * rng.normal(size=400)
    model = TartRegressor(readable=True, depth=2, epochs=100, random_state=0).fit(X, y)
    text = explain.export_text(model, max_terms=1000)
    conditions = re.findall(r"\|--- ((?:count|hour).*|.*(?:count|hour)) *$", text, re.MULTILINE)
    assert conditions
    assert not any("." in condition for condition in conditions), conditions
    assert re.search(r"^Thresholds of .* are for whole numbers\.$", text, re.MULTILINE)
    assert np.abs(follow(text, X).to_numpy()[:, 0] - model.predict(X)).max() <= 0.01 * y.std()


def test_missing_values_and_levels_that_training_did_not_see():
    X, y = risky()[:2]
    whole = X.dropna().reset_index(drop=True)
    model = TartClassifier(readable=True, epochs=40, random_state=0).fit(whole, y[: len(whole)])
    text = explain.export_text(model, max_terms=1000)
    known = {"sex": {"f", "m"}, "smoker": {"True", "False"}}
    followed = FollowedText(text, list(whole.columns), known, gaps=set())
    rows = X.head(50).astype({"smoker": object})
    rows.loc[3, "sex"] = "x"
    rows.loc[4, "age"] = np.nan
    rows.loc[5, "smoker"] = None
    predicted = labels_of(text, followed.sums(rows), ["no", "yes"])
    assert (predicted == model.predict(rows)).mean() >= 0.99


def test_corrections_are_written_at_their_nodes():
    """A model for all rows first; a leaf that changes nothing has its name alone."""
    X, y = risky()[:2]
    model = TartClassifier(readable=True, epochs=40, random_state=0).fit(X, y)
    tree = explain.view(model, max_terms=100)
    corrections = tree.members[0].corrections
    lines = explain.export_text(model, max_terms=1).splitlines()
    assert lines[0].startswith("all rows: log odds of yes = ")
    assert lines[2] == f"    and {corrections[0][0].n_effects - 1} smaller terms"
    for leaf in tree.leaves:
        at = next(k for k, line in enumerate(lines) if line.endswith(f"|--- leaf {leaf.leaf}"))
        (own,) = corrections[leaf.number]
        changes = own.n_effects > 0 or abs(own.constant) >= 0.0005
        assert ("changes" in lines[min(at + 1, len(lines) - 1)] and "|--- " not in lines[at + 1]) == changes


def test_leaves_with_nothing_in_common_are_written_one_by_one():
    model, X = fit("default")
    text = explain.export_text(model, X)
    assert "all rows" not in text
    assert text.count("logit of high = ") == 4


@pytest.mark.parametrize(("bias", "weights", "texts"), [
    (-0.5, [1.0, 1.0, -1.0, 0.0], ("colour in {red, blue}", "colour not in {red, blue}")),
    (-0.5, [1.0, -1.0, -1.0, 2.0], ("colour in {red, missing}", "colour not in {red, missing}")),
    (0.5, [-1.0, 1.0, 1.0, 1.0], ("not (colour = red)", "colour = red")),
])  # fmt: skip
def test_conditions_of_one_categorical_column_are_sets(bias, weights, texts):
    colours = ["red"] * 9 + ["blue"] * 8 + ["green"] * 7 + [None] * 6
    encoder = TableEncoder(min_count=1).fit(pd.DataFrame({"colour": colours}))
    function = linear_view(encoder.features_, np.array(weights), bias, np.ones(4), columns=encoder.columns_)
    assert (function.condition, negated(function)) == texts


def test_conditions_of_one_column_say_where_missing_values_go():
    encoder = TableEncoder().fit(pd.DataFrame({"age": [20.0, 30.0, 40.0, np.nan]}))
    for missing, texts in (
        (9.0, ("age > 30 or age is missing", "age <= 30")),
        (-9.0, ("age > 30", "age <= 30 or age is missing")),
    ):
        function = linear_view(encoder.features_, np.array([1.0, missing]), 0.0, np.ones(2), columns=encoder.columns_)
        assert (function.condition, negated(function)) == texts
