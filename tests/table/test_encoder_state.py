"""The fitted encoder as plain data: nothing is lost, and nothing wrong is let in."""

import copy
import datetime
import json
import pickle

import numpy as np
import pytest

from tartree.table import TableEncoder

from ..optional import optional

pl = optional("polars")


FRAME = pl.DataFrame(
    {
        "age": [35.0, 41.5, None, 52.0, 60.0],
        "colour": ["red", "blue", "red", "blue", None],
        "smoker": [True, False, None, True, True],
        "day": [datetime.date(2020, 1, day) for day in range(1, 6)],
        "same": ["x"] * 5,
    }
)


def state_of(numeric="quantile"):
    state, arrays = TableEncoder(numeric=numeric).fit(FRAME).get_state()
    return json.loads(json.dumps(state, allow_nan=False)), arrays


@pytest.mark.parametrize("numeric", ["standard", "quantile"])
def test_round_trip(numeric):
    encoder = TableEncoder(numeric=numeric, max_levels=np.int64(5)).fit(FRAME)
    state, arrays = encoder.get_state()
    again = TableEncoder.from_state(json.loads(json.dumps(state, allow_nan=False)), arrays)
    np.testing.assert_array_equal(again.transform(FRAME), encoder.transform(FRAME))
    assert again.get_params() == encoder.get_params()
    assert again.feature_names_in_.tolist() == FRAME.columns
    assert again.n_features_in_ == 5
    assert again.columns_ == encoder.columns_
    assert again.features_ == encoder.features_
    assert all(array.dtype == np.float64 for array in arrays.values())
    assert len(arrays) == (2 if numeric == "quantile" else 0)


def test_round_trip_without_names():
    encoder = TableEncoder().fit([[1, "a"], [2, "b"]])
    again = TableEncoder.from_state(*encoder.get_state())
    assert not hasattr(again, "feature_names_in_")
    assert again.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()


def test_pickle():
    encoder = TableEncoder().fit(FRAME)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(encoder)).transform(FRAME), encoder.transform(FRAME))


WRONG = [
    (["format"], 5),
    (["format"], 0),
    (["format"], True),
    (["more"], 1),
    (["parameters"], None),
    (["parameters", "numeric"], "robust"),
    (["parameters", "numeric"], ["standard"]),
    (["parameters", "min_count"], "2"),
    (["parameters", "more"], 1),
    (["parameters", "extrapolation"], -0.5),
    (["parameters", "extrapolation"], "far"),
    (["columns"], []),
    (["columns"], {"kind": "numeric"}),
    (["columns", 0], None),
    (["columns", 0, "kind"], "magic"),
    (["columns", 0, "kind"], ["numeric"]),
    (["columns", 0, "kind"], "category"),
    (["columns", 0, "unit"], "metres"),
    (["columns", 0, "unit"], []),
    (["columns", 0, "center"], float("nan")),
    (["columns", 0, "center"], 10**400),
    (["columns", 0, "center"], "0"),
    (["columns", 0, "center"], True),
    (["columns", 0, "center"], 1e308),
    (["columns", 0, "scale"], 0.0),
    (["columns", 0, "scale"], -1.0),
    (["columns", 0, "scale"], 1e-320),
    (["columns", 0, "fill"], 1e9),
    (["columns", 0, "low"], 1e9),
    (["columns", 0, "whole"], 1),
    (["columns", 0, "gaps"], None),
    (["columns", 0, "knots"], 3),
    (["columns", 0, "knots"], -1),
    (["columns", 0, "knots"], 0),
    (["columns", 0, "knots"], 6.0),
    (["columns", 0, "more"], 1),
    (["columns", 1, "levels"], "ab"),
    (["columns", 1, "levels"], ["red", "red"]),
    (["columns", 1, "levels"], ["red", 1]),
    (["columns", 1, "levels"], [True]),
    (["columns", 1, "levels"], [None]),
    (["columns", 1, "levels"], [["red"]]),
    (["columns", 1, "levels"], [float("inf")]),
    (["columns", 1, "other"], "no"),
    (["columns", 2, "fill"], 0),
    (["columns", 4, "value"], ["x"]),
    (["columns", 4, "value"], float("nan")),
    (["feature_names_in"], "abcde"),
    (["feature_names_in"], ["a", "b"]),
    (["feature_names_in"], ["a", "a", "b", "c", "d"]),
    (["feature_names_in"], [1, 2, 3, 4, 5]),
]


@pytest.mark.parametrize(("path", "value"), WRONG)
def test_wrong_states_are_refused(path, value):
    state, arrays = state_of()
    place = state
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(ValueError, match=", got "):
        TableEncoder.from_state(state, arrays)


def test_a_column_that_says_nothing_is_refused():
    state, arrays = state_of("standard")
    state["columns"][3] |= {"low": 1.0, "fill": 1.0, "high": 1.0}
    with pytest.raises(ValueError, match="a numeric column that varies or has gaps"):
        TableEncoder.from_state(state, arrays)


@pytest.mark.parametrize("missing", ["format", "parameters", "feature_names_in", "columns"])
def test_incomplete_states_are_refused(missing):
    state, arrays = state_of()
    del state[missing]
    with pytest.raises(ValueError, match="exactly the fields"):
        TableEncoder.from_state(state, arrays)


def test_wrong_arrays_are_refused():
    state, arrays = state_of()
    (key, *_) = arrays
    good = arrays[key]
    descending, infinite, steep, close = good[:, ::-1].copy(), good.copy(), good.copy(), good.copy()
    infinite[0, -1] = np.inf
    steep[1, -1] = 1e300
    close[0] = np.arange(good.shape[1]) * 1e-300
    wrong = [None, good.tolist(), good[:, 1:], good.astype(np.float32), good[None], descending, infinite, steep, close]
    for array in wrong:
        with pytest.raises(ValueError, match="knots"):
            TableEncoder.from_state(state, arrays | {key: array})
    for bad in ({}, arrays | {"more": good}, None, [good]):
        with pytest.raises(ValueError, match=", got "):
            TableEncoder.from_state(copy.deepcopy(state), bad)


@pytest.mark.parametrize("state", [None, [], "state", 3, {}, {1: 2}])
def test_what_is_no_state(state):
    with pytest.raises(ValueError, match="the state of a TableEncoder must have exactly the fields"):
        TableEncoder.from_state(state, {})
