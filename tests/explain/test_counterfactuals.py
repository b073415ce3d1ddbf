"""Every counterfactual that is returned changes the prediction within the data's ranges; otherwise it says so."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tartree import TartClassifier, explain
from tests.explain.models import fit, patients


@pytest.fixture(scope="module")
def model():
    frame, labels, _ = patients(150)
    return TartClassifier(depth=2, random_state=0).fit(frame, labels), frame


def in_range(value, column):
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        return column.min() - 1e-4 <= value <= column.max() + 1e-4
    if pd.api.types.is_datetime64_any_dtype(column):
        return column.min() <= pd.Timestamp(value) <= column.max()
    return value in set(column.dropna())


def test_it_flips_within_range(model):
    model, frame = model
    found = 0
    for i in range(0, 150, 10):
        row = frame[i : i + 1]
        other = explain.counterfactual(model, row, frame)
        if not other:
            assert "no change" in str(other)
            continue
        found += 1
        assert 1 <= len(other.changes) <= 2
        assert model.predict(other.row)[0] == other.after
        assert other.after != model.predict(row)[0] == other.before
        changed = {change.column for change in other.changes}
        for name in frame.columns:
            value = other.row[name].iloc[0]
            if name in changed:
                assert in_range(value, frame[name]), (name, value)
            else:
                assert value == row[name].iloc[0] or (pd.isna(value) and pd.isna(row[name].iloc[0]))
        assert np.isclose(other.size, sum(change.size for change in other.changes))
    assert found > 8


def test_a_class_of_ones_choice(model):
    model, frame = model
    row = frame[:1]
    now = model.predict(row)[0]
    wanted = next(label for label in model.classes_ if label != now)
    other = explain.counterfactual(model, row, frame, target=wanted)
    assert not other or other.after == wanted
    with pytest.raises(ValueError, match="already"):
        explain.counterfactual(model, row, frame, target=now)
    with pytest.raises(ValueError, match="one of the classes"):
        explain.counterfactual(model, row, frame, target="?")


def test_nothing_helps(model):
    model, frame = model
    other = explain.counterfactual(model, frame[:1], frame, fixed=list(frame.columns))
    assert not other
    assert other.changes == ()
    assert str(other) == "no change of one or two columns within range leads to another class"
    with pytest.raises(ValueError, match="fixed must name columns"):
        explain.counterfactual(model, frame[:1], frame, fixed=["?"])


def test_one_number_is_found_where_it_is():
    """One column decides at a known threshold: the change is the distance to it, in standard deviations."""
    rng = np.random.default_rng(0)
    X = np.stack([np.linspace(0, 10, 101), rng.normal(size=101)], axis=1)
    model = TartClassifier(depth=1, random_state=0).fit(X, X[:, 0] > 5)
    row = np.array([[2.0, 0.0]])
    other = explain.counterfactual(model, row, X, max_columns=1)
    grid = np.linspace(2, 10, 8001)
    rows = np.stack([grid, np.zeros_like(grid)], axis=1)
    threshold = grid[model.predict(rows).argmax()]
    assert other.changes[0].column == "x0"
    assert other.row[0, 0] == pytest.approx(threshold, abs=2e-3)
    assert other.size == pytest.approx((threshold - 2) / X[:, 0].std(), abs=1e-2)
    assert explain.counterfactual(model, row[0], X, max_columns=1).size == pytest.approx(other.size)


def test_whole_numbers_stay_whole(model):
    model, frame = model
    for i in range(0, 60, 20):
        other = explain.counterfactual(model, frame[i : i + 1], frame)
        for change in other.changes:
            if change.column == "age":
                assert float(change.after).is_integer()


def test_polars_and_lists():
    frame, labels, _ = patients(100)
    table = pl.from_pandas(frame.astype({"sex": object}))
    model = TartClassifier(depth=1, random_state=0).fit(table, labels)
    other = explain.counterfactual(model, table[:1], table)
    assert isinstance(other.row, pl.DataFrame)
    assert model.predict(other.row)[0] == other.after
    rows = [[float(a), s] for a, s in zip(frame["age"], frame["smoker"].map(str), strict=True)]
    model = TartClassifier(depth=1, random_state=0).fit(rows, labels)
    other = explain.counterfactual(model, rows[:1], rows)
    assert model.predict(other.row)[0] == other.after


def test_regression_reaches_a_value():
    model, frame = fit("default", "values")
    row = frame[:1]
    now = model.predict(row)[0]
    for step in (-20, 20):
        other = explain.counterfactual(model, row, frame, target=now + step)
        assert other
        assert (other.after - (now + step)) * np.sign(step) >= -1e-6
    assert not explain.counterfactual(model, row, frame, target=now + 1e9)
    with pytest.raises(ValueError, match="target must be the value"):
        explain.counterfactual(model, row, frame)


def test_errors(model):
    model, frame = model
    with pytest.raises(ValueError, match="one row"):
        explain.counterfactual(model, frame[:2], frame)
    with pytest.raises(ValueError, match="max_columns"):
        explain.counterfactual(model, frame[:1], frame, max_columns=3)
