"""Folds that hold out whole groups of rows."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sklearn
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tartree import StructureSearch, TartClassifier, TartRegressor
from tartree.search.folds import draw_rows, read_groups, split
from tartree.search.problem import pad_rows

from ..optional import optional

polars = optional("polars")


QUICK = TartClassifier(epochs=20)
SPACE = {"depth": [0, 2], "leaf_layers": 1}


@pytest.fixture(scope="module")
def visits():
    """Four visits each of thirty patients; what is measured says who it is, and nothing of what they have."""
    rng = np.random.default_rng(0)
    patients = np.repeat(np.arange(30), 4)
    X = rng.normal(size=(30, 40))[patients] + 0.01 * rng.normal(size=(120, 40))
    return X, rng.integers(0, 2, 30)[patients], patients


def held_together(search, groups):
    return all(not set(groups[learnt]) & set(groups[held]) for learnt, held in search.splits_)


def test_rows_of_a_group_are_held_out_together(visits):
    X, y, patients = visits
    known = StructureSearch(QUICK, SPACE, random_state=0, refit=False).fit(X, y)
    new = StructureSearch(QUICK, SPACE, random_state=0, refit=False).fit(X, y, groups=patients)
    assert not held_together(known, patients)
    assert held_together(new, patients)
    assert sorted(np.concatenate([held for _, held in new.splits_])) == list(range(120))
    assert known.best_score_ > 0.9  # patients were recognised
    assert new.best_score_ < 0.7


@pytest.mark.parametrize("folds", [3, GroupKFold(3), LeaveOneGroupOut()], ids=["number", "splitter", "one group"])
def test_regression_and_splitters(visits, folds):
    X, y, patients = visits
    groups = patients // 5
    search = StructureSearch(TartRegressor(epochs=3), {"depth": [1]}, folds=folds, random_state=0, refit=False)
    assert held_together(search.fit(X, y + 0.5, groups=groups), groups)
    assert len(search.splits_) == (6 if isinstance(folds, LeaveOneGroupOut) else 3)


def test_rows_that_are_not_looked_at(visits):
    X, y, patients = visits
    search = StructureSearch(QUICK, {"depth": [1]}, max_rows=60, random_state=0, refit=False)
    search.fit(X, y, groups=patients)
    assert held_together(search, patients)
    assert len(np.concatenate([held for _, held in search.splits_])) == 60


@pytest.mark.parametrize(
    "given",
    [
        ["b", "a", "b"],
        np.array(["b", "a", "b"], dtype=object),
        pd.Series(["b", "a", "b"], dtype="category"),
        polars.Series(["b", "a", "b"]),
        pa.chunked_array([["b"], ["a", "b"]]),
        [2.5, 1.0, 2.5],
        pd.to_datetime(["2020-01-02", "2020-01-01", "2020-01-02"]),
    ],
    ids=lambda one: type(one).__name__,
)
def test_any_values_name_groups(given):
    assert read_groups(given, 3).tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1, 2], r"one value for each of 3 rows, got shape \(2,\)"),
        ([[1], [2], [3]], r"shape \(3, 1\)"),
        (["a", None, "b"], "got one in row 1"),
        ([1.0, 2.0, np.nan], "got one in row 2"),
        (pd.Series(["a", pd.NA, "b"], dtype="string"), "got one in row 1"),
        (pd.to_datetime(["2020-01-01", None, None]), "got one in row 1"),
    ],
)
def test_groups_must_be_known(given, message):
    with pytest.raises(ValueError, match=message):
        read_groups(given, 3)


def test_there_must_be_enough_groups(visits):
    X, y, _ = visits
    with pytest.raises(ValueError, match="at most the number of groups, 3, got 4"):
        StructureSearch(QUICK, SPACE).fit(X, y, groups=np.arange(120) % 3)


def test_groups_are_routed(visits):
    X, y, patients = visits
    with sklearn.config_context(enable_metadata_routing=True):
        search = StructureSearch(QUICK, {"depth": [1]}, random_state=0).set_fit_request(groups=True)
        pipeline = make_pipeline(StandardScaler(), search).fit(X, y, groups=patients)
    assert held_together(pipeline[-1], patients)


def test_rows():
    y = np.array([0] * 50 + [1] * 30 + [2])
    for learnt, held in split(81, y, 4, 0):
        assert 80 in learnt  # the only one of its class
        assert not set(learnt) & set(held)
    drawn = draw_rows(81, y, 16, 0)
    assert np.bincount(y[drawn])[:2].tolist() == [10, 6]
    index, weight = pad_rows([np.array([3, 4]), np.array([5])])
    assert index.tolist() == [[3, 4], [5, 0]]
    assert weight.tolist() == [[1, 1], [1, 0]]
