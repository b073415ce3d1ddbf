"""Illegal tables: the message says what is required, what came, and in which column."""

import datetime
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from tartree.table import TableEncoder

from ..optional import optional

pl = optional("polars")


FRAME = pd.DataFrame({"age": [1.0, 2.0, 4.0], "colour": ["red", "blue", "red"]})
DAYS = pl.DataFrame({"day": [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)]})


def fails(error, message, X):
    with pytest.raises(error, match=re.escape(message)):
        TableEncoder().fit(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"numeric": "robust"}, "numeric must be one of 'standard', 'curve', 'quantile', 'plain', got 'robust'"),
        ({"numeric": None}, "numeric must be one of 'standard', 'curve', 'quantile', 'plain', got None"),
        ({"n_quantiles": 1}, "n_quantiles must be an integer of at least 2, got 1"),
        ({"max_levels": 0}, "max_levels must be an integer of at least 1, got 0"),
        ({"max_levels": True}, "max_levels must be an integer of at least 1, got True"),
        ({"min_count": 1.5}, "min_count must be an integer of at least 1, got 1.5"),
    ],
)
def test_parameters(parameters, message):
    encoder = TableEncoder(**parameters)  # stored as given, checked in fit
    with pytest.raises(ValueError, match=re.escape(message)):
        encoder.fit(FRAME)


def test_infinity_is_named():
    fails(
        ValueError,
        "column 'age' must hold finite numbers or missing values, but row 2 contains infinity",
        pl.DataFrame({"age": [1.0, None, np.inf]}),
    )
    fails(
        ValueError,
        "column 1 must hold finite numbers or missing values, but row 0 contains infinity",
        np.array([[1.0, -np.inf]]),
    )
    fails(ValueError, "column 0 must hold numbers that fit into float64, but row 1", [[1], [10**400]])
    encoder = TableEncoder().fit(FRAME)
    with pytest.raises(ValueError, match=r"column 'age' .* row 1 contains infinity"):
        encoder.transform(FRAME.assign(age=[1.0, np.inf, 2.0]))


@pytest.mark.parametrize("make", [pl.DataFrame, pa.table, pd.DataFrame])
@pytest.mark.parametrize("values", [[[1], [2]], [{"a": 1}, {"a": 2}]])
def test_nested_columns_are_named(make, values):
    fails((ValueError, TypeError), "column 'b' must hold one value in every row", make({"a": [1, 2], "b": values}))


def test_bare_objects_are_named():
    fails(
        TypeError,
        "column 1 must hold one value in every row, and each argument must be a string, a number or a date, "
        "but row 1 holds set {2}",
        np.array([[1, "a"], [2, {2}]], dtype=object),
    )
    fails(TypeError, "row 0 holds object <object object", np.array([[object()]], dtype=object))


def test_complex_numbers():
    fails(ValueError, "column 0 must hold real numbers, but: Complex data not supported", np.array([[1j]]))
    fails(
        ValueError,
        "column 'a' must hold real numbers, but: Complex data not supported",
        pd.DataFrame({"a": [1j, 2]}, dtype=object),
    )


def test_repeated_names():
    fails(
        ValueError,
        "column names must be unique, got 'a' 2 times",
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
    )
    fails(
        ValueError,
        "column names must be unique, got 'a' 2 times",
        pa.table([pa.array([1])] * 2, names=["a", "a"]),
    )


def test_names_of_mixed_types():
    fails(
        TypeError,
        "Feature names are only supported if all input features have string names",
        pd.DataFrame([[1, 2]], columns=["a", 1]),
    )


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(3), "X must be a table of rows and columns, got ndarray with 1 dimension(s)"),
        (pd.Series([1, 2]), "X must be a table of rows and columns, got Series with 1 dimension(s)"),
        (np.ones((2, 2, 2)), "ndarray with 3 dimension(s)"),
        ({"a": [1]}, "dict with 0 dimension(s)"),
        ([[1, 2], [3]], "X must have rows of one length, got lengths from 1 to 2"),
        (np.zeros(2, dtype=[("a", int)])[:, None], "X must be an array of plain values, got dtype"),
        (np.ones((0, 2)), "Found array with 0 sample(s) (shape=(0, 2))"),
        (np.ones((2, 0)), "Found array with 0 feature(s) (shape=(2, 0))"),
    ],
)
def test_what_is_no_table(X, message):
    fails(ValueError, message, X)


def test_lazy_frames():
    fails(
        TypeError,
        "X must be a table in memory, got a lazy LazyFrame; call X.collect() before",
        pl.LazyFrame({"a": [1]}),
    )


def test_sparse_that_is_too_large():
    fails(
        ValueError,
        "must fit into 4 GiB once it is dense, but 1000000 x 50000 takes 186.3 GiB",
        sparse.csr_array((1_000_000, 50_000)),
    )


def test_not_fitted():
    for call in ("transform", "inverse_transform", "get_feature_names_out", "get_state"):
        with pytest.raises(NotFittedError):
            getattr(TableEncoder(), call)(*([FRAME] if "transform" in call else []))


def test_names_at_prediction():
    encoder = TableEncoder().fit(FRAME)
    with pytest.raises(ValueError, match=r"(?s)yet now missing:\n- colour\n.*'colour' may be 'color'"):
        encoder.transform(FRAME.rename(columns={"colour": "color"}))
    with pytest.raises(ValueError, match=r"(?s)yet now missing:\n- colour\nAdd or drop"):
        encoder.transform(FRAME[["age"]])
    with pytest.raises(ValueError, match="unseen at fit time:\n- more\n"):
        encoder.transform(FRAME.assign(more=1))
    with pytest.raises(ValueError, match="must be in the same order"):
        encoder.transform(pl.DataFrame(FRAME.to_dict("list")).select("colour", "age"))
    many = pl.DataFrame({f"c{place}": [0] for place in range(9)})
    with pytest.raises(ValueError, match=r"- c4\n- \.\.\.\n"):
        encoder.transform(many)
    with pytest.warns(UserWarning, match="X does not have valid feature names, but TableEncoder was fitted with"):
        encoder.transform(FRAME.to_numpy())
    with pytest.warns(UserWarning, match="X has feature names, but TableEncoder was fitted without"):
        TableEncoder().fit(FRAME.to_numpy()).transform(FRAME)


def test_numbers_that_do_not_parse_are_named():
    encoder = TableEncoder().fit(FRAME)
    message = "column 'age' must hold a number or a missing value in every row, but row 1 holds 'old'"
    with pytest.raises(ValueError, match=message):
        encoder.transform(FRAME.assign(age=["3", "old", None]))
    with pytest.raises(ValueError, match="column 'age' must hold a number in every row, as it did in fit, got a date"):
        encoder.transform(FRAME.assign(age=pd.to_datetime(["2020-01-01"] * 3)))


def test_dates_that_do_not_parse_are_named():
    encoder = TableEncoder().fit(DAYS)
    with pytest.raises(
        ValueError, match="column 'day' must hold a date or a missing value in every row, but row 0 holds 'soon'"
    ):
        encoder.transform(pl.DataFrame({"day": ["soon"]}))
    with pytest.raises(ValueError, match=r"column 'day' must hold a date in every row, .* got a number"):
        encoder.transform(pl.DataFrame({"day": [3]}))
    times = TableEncoder().fit(pl.DataFrame({"at": [datetime.time(1), datetime.time(2)]}))
    assert times.transform(pl.DataFrame({"at": ["02:00"]})).tolist() == [[1.0]]
    for wrong in ([datetime.date(2020, 1, 1)], [datetime.timedelta(1)], ["one"]):
        with pytest.raises(ValueError, match="column 'at' must hold a time"):
            times.transform(pd.DataFrame({"at": [*wrong, "01:00"]}, dtype=object))


def test_shape_of_inverse_transform():
    encoder = TableEncoder().fit(FRAME)
    with pytest.raises(
        ValueError, match=re.escape("X must have the shape (rows, 3), as transform returns it, got (1, 2)")
    ):
        encoder.inverse_transform(np.ones((1, 2)))


def test_constant_columns_are_not_read_later():
    encoder = TableEncoder().fit([[1.0, 2.0], [1.0, 3.0]])
    assert encoder.transform([[np.inf, 3.0]]).tolist() == [[1.0]]
