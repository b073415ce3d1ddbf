"""Every counterfactual that is returned changes the prediction within the data's ranges; otherwise it says so."""

import numpy as np
import pandas as pd
import pytest
import torch

from tartree import TartClassifier, TartRegressor, explain
from tests.explain.models import fit, patients
from tests.optional import optional

pl = optional("polars")


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
            assert "none was found" in str(other)
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
    with pytest.raises(ValueError, match="another class than the predicted one"):
        explain.counterfactual(model, row, frame, target=now)
    with pytest.raises(ValueError, match="one of the classes"):
        explain.counterfactual(model, row, frame, target="?")


def test_nothing_helps(model):
    model, frame = model
    other = explain.counterfactual(model, frame[:1], frame, fixed=list(frame.columns))
    assert not other
    assert other.changes == ()
    assert str(other) == "none exists: no column may change, so that nothing leads to another class"
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


def band(low, high):
    """A sharp tree that says True only for x0 between two values, which no row has; x1 says nothing."""
    X = np.stack([np.append(np.linspace(0, 5, 50), np.linspace(5.2, 10, 50)), np.linspace(-1, 1, 100)], axis=1)
    model = TartClassifier(depth=2, leaf_layers=0, numeric="plain", epochs=1, random_state=0).fit(X, X[:, 0] > 5)
    mlp = model.tree_.decision.mlp
    with torch.no_grad():
        mlp.weights[0][:] = torch.tensor([[1e4, 0.0], [-1e4, 0.0], [0.0, 0.0]])
        mlp.biases[0][:] = torch.tensor([-1e4 * low, 1e4 * high, 0.0])
        model.tree_.leaf.values[:] = torch.tensor([[-5.0, 5.0], [5.0, -5.0], [5.0, -5.0], [5.0, -5.0]])
    return model, X


def test_a_narrow_band_is_found():
    """The grid steps over it; the turns of the decisions do not."""
    model, X = band(5.07, 5.08)
    row = np.array([[2.0, 0.0]])
    for max_columns in (1, 2):
        other = explain.counterfactual(model, row, X, max_columns=max_columns)
        assert other
        assert len(other.changes) == 1
        assert 5.069 < other.row[0, 0] < 5.081


def test_a_pair_in_a_narrow_band_is_found():
    """Both columns have to move, the second to one side, the first into a band whose place depends on the second."""
    model, X = band(5.07, 5.08)
    with torch.no_grad():  # x0 + 10 x1 in the band below 15.08, which x0 = 2 reaches with no x1 and x1 = -1 with no x0
        model.tree_.decision.mlp.weights[0][:, :2] = torch.tensor([[1e4, 1e5], [-1e4, -1e5]])
        model.tree_.decision.mlp.biases[0][:, :2] = torch.tensor([-15.07e4, 15.08e4])
    row = np.array([[2.0, -1.0]])
    assert not explain.counterfactual(model, row, X, max_columns=1)
    other = explain.counterfactual(model, row, X)
    assert len(other.changes) == 2
    assert 15.069 < other.row[0] @ [1, 10] < 15.081


def test_that_none_exists_is_said_where_it_is_proven(monkeypatch):
    model, X = band(5.07, 5.08)
    row = np.array([[2.0, 0.0]])
    for max_columns in (1, 2):
        other = explain.counterfactual(model, row, X, fixed="x0", max_columns=max_columns)
        assert other.proven
        assert str(other) == "none exists: no change of one column within range leads to another class"
    frame, labels, _ = patients(100)
    soft = TartClassifier(depth=2, random_state=0).fit(frame, labels)
    fixed = ["age", "smoker"]
    others = [explain.counterfactual(soft, frame[i : i + 1], frame, max_columns=1, fixed=fixed) for i in range(8)]
    assert 0 < sum(other.proven for other in others) < sum(not other.proven for other in others)
    model, X = band(7.0, 7.0)
    monkeypatch.setattr("tartree.explain.counterfactuals.goals.MOST_PARTS", 0)
    other = explain.counterfactual(model, row, X, max_columns=1)
    assert not other.proven
    assert "none was found: of " in str(other)
    assert "changes of one column within range that were tried" in str(other)
    assert str(explain.counterfactual(model, row, X)).count(" of two columns within range") == 1


@pytest.mark.parametrize("kind", ["default", "single", "shared children", "perceptron decisions", "members"])
@pytest.mark.parametrize("task", ["classes", "values"])
def test_what_is_proven_is_true(kind, task):
    """No value of one column on a fine grid reaches what is said to be out of reach."""
    model, frame = fit(kind, task)
    proven = 0
    for i in range(12):
        row = frame[i : i + 1]
        target = None if task == "classes" else float(model.predict(row)[0]) + 300
        other = explain.counterfactual(model, row, frame, target=target, max_columns=1)
        if not other.proven:
            continue
        proven += 1
        for name in ("age", "bmi"):
            rows = pd.concat([row] * 500, ignore_index=True)
            rows[name] = np.linspace(frame[name].min(), frame[name].max(), 500)
            said = model.predict(rows)
            assert (said == other.before).all() if target is None else (said < target).all()
    assert proven or kind == "members" or task == "classes"


def test_a_gap_is_said(model):
    model, frame = model
    row = frame[:1].astype({"age": float})
    row["age"] = np.nan
    other = explain.counterfactual(model, row, frame, fixed=["bmi", "sex", "smoker", "seen"])
    assert other.changes[0].missing
    assert str(other).endswith(f"instead of missing, read as {frame['age'].median():g}")


def test_names_and_labels_as_they_are(model):
    model, frame = model
    row = frame[:1]
    one = explain.counterfactual(model, row, frame, fixed="age")
    assert "age" not in {change.column for change in one.changes}
    assert str(one) == str(explain.counterfactual(model, row, frame, fixed=["age"]))
    now = model.predict(row)[0]
    with pytest.raises(ValueError, match=f"another class|{now}") as caught:
        explain.counterfactual(model, row, frame, target=now)
    assert "np.str_" not in str(caught.value)
    assert "np.str_" not in repr(one)


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


@pytest.mark.parametrize("kind", [TartClassifier, TartRegressor])
def test_curves_are_searched_as_well_as_a_grid(kind):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=300), rng.gamma(2.0, size=300), rng.integers(0, 9, 300)])
    X[rng.random(300) < 0.1, 1] = np.nan
    risk = np.abs(X[:, 0]) + np.nan_to_num(np.sin(2 * X[:, 1])) + 0.3 * rng.normal(size=300)
    y = (risk > 1).astype(int) if kind is TartClassifier else risk
    model = kind(epochs=60, random_state=0, device="cpu").fit(X, y)
    assert any(feature.bin is not None for feature in model.encoder_.features_)
    certainty = np.abs(model.predict_proba(X)[:, 1] - 0.5) if kind is TartClassifier else np.abs(model.predict(X) - 1)
    n_found = 0
    for row in X[np.argsort(certainty)[:150:15]]:
        now = model.predict(row[None])[0]
        target = None if kind is TartClassifier else 1.0
        result = explain.counterfactual(model, row[None], X, target=target, max_columns=1)
        n_found += bool(result)
        if result:
            after = model.predict(result.row)[0]
            assert after != now if target is None else (after >= 1.0 - 1e-9) == (now < 1.0)
        for column in range(3):
            values = np.linspace(np.nanmin(X[:, column]), np.nanmax(X[:, column]), 401)
            values = np.unique(np.round(values)) if column == 2 else values
            rows = np.repeat(row[None], len(values), axis=0)
            rows[:, column] = values
            predicted = model.predict(rows)
            reached = predicted != now if target is None else (predicted >= 1.0) == (now < 1.0)
            if not reached.any():
                continue
            assert result
            assert not result.proven
            feature = next(f for f in model.encoder_.features_ if f.column == column)
            spread = model.encoder_.transform(X)[:, model.encoder_.features_.index(feature)].std()
            moves = np.abs(feature.scaling.encode(values) - feature.scaling.encode(row[column : column + 1])) / spread
            if not np.isnan(row[column]):
                assert result.size <= moves[reached].min() + 0.02
    assert n_found >= 5
