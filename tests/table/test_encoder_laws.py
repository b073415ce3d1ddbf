"""Laws that hold for every legal table."""

import datetime
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tartree.table import Constant, TableEncoder

from ..optional import given, optional, settings, st

pl = optional("polars")


PLAIN = {  # columns of one type, which every library can hold
    "float": st.floats(allow_infinity=False),
    "near": st.floats(-1e3, 1e3, width=16),
    "integer": st.integers(-(2**63), 2**63 - 1),
    "small": st.integers(0, 3),
    "boolean": st.booleans(),
    "text": st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=3),
    "letter": st.sampled_from("ab"),
    "date": st.dates(),
    "datetime": st.datetimes(),
    "instant": st.datetimes(timezones=st.just(datetime.UTC)),
    "duration": st.timedeltas(datetime.timedelta(days=-(10**8)), datetime.timedelta(days=10**8)),
    "time": st.times(),
    "nothing": st.none(),
    "same": st.just(3),
}
MIXED = st.one_of(
    st.integers(),
    st.floats(width=32).map(np.float32),
    st.booleans(),
    st.sampled_from(["a", "1", "1.0", "True", ""]),
    st.dates(),
    st.decimals(allow_nan=True),
    st.binary(max_size=2),
)


def columns(rows):
    kinds = st.lists(st.sampled_from(sorted(PLAIN)), min_size=1, max_size=4)
    cell = {
        kind: st.lists(st.one_of(value, value, value, st.none()), min_size=rows, max_size=rows)
        for kind, value in PLAIN.items()
    }
    return kinds.flatmap(lambda names: st.tuples(st.just(names), st.tuples(*(cell[name] for name in names))))


def as_rows(named):
    return [list(row) for row in zip(*named.values(), strict=True)]


def as_objects(named):
    array = np.empty((len(next(iter(named.values()))), len(named)), dtype=object)
    for place, values in enumerate(named.values()):
        array[:, place] = values
    return array


MAKERS = {
    "rows": as_rows,
    "objects": as_objects,
    "pandas": pd.DataFrame,
    "pandas objects": lambda named: pd.DataFrame(named, dtype=object),
    "polars": pl.DataFrame,
    "arrow": pa.table,
}


def pick(X, rows):
    """Some rows of a table of any kind."""
    if isinstance(X, pd.DataFrame):
        return X.iloc[rows]
    if isinstance(X, pa.Table):
        return X.take(rows)
    return [X[row] for row in rows] if isinstance(X, list) else X[rows]


def check_laws(X, rows, numeric):
    encoder = TableEncoder(numeric=numeric, n_quantiles=4, max_levels=2)
    encoded = encoder.fit_transform(X)
    assert encoded.shape == (rows, len(encoder.features_))
    assert encoded.dtype == np.float32
    assert encoded.flags.c_contiguous
    assert np.isfinite(encoded).all()

    one_by_one = [encoder.transform(pick(X, [row])) for row in range(rows)]
    np.testing.assert_array_equal(np.concatenate(one_by_one), encoded)

    state, arrays = encoder.get_state()
    state = json.loads(json.dumps(state, allow_nan=False))
    again = TableEncoder.from_state(state, arrays)
    np.testing.assert_array_equal(again.transform(X), encoded)
    assert again.features_ == encoder.features_
    assert again.columns_ == encoder.columns_

    names = encoder.get_feature_names_out()
    assert len(set(names)) == len(names) == len(encoder.features_)
    back = encoder.inverse_transform(encoded)
    assert all(len(values) == rows for values in back.values())
    for place in range(len(names)):
        encoder.inverse_value(place, 0.25)
    return encoder, encoded


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@given(st.integers(1, 8).flatmap(columns), st.sampled_from(["standard", "quantile"]))
@settings(max_examples=40)
def test_every_legal_table_is_encoded(make, kinds_and_columns, numeric):
    kinds, values = kinds_and_columns
    X = make({f"{kind} {place}": list(column) for place, (kind, column) in enumerate(zip(kinds, values, strict=True))})
    check_laws(X, len(values[0]), numeric)


@given(st.lists(st.one_of(MIXED, st.none()), min_size=1, max_size=8), st.sampled_from(["standard", "quantile"]))
@settings(max_examples=100)
def test_objects_of_any_type_are_encoded(column, numeric):
    finite = [value for value in column if not is_infinite(value)]
    if finite:
        check_laws(as_objects({"a": finite}), len(finite), numeric)


def is_infinite(value):
    try:
        return np.isinf(float(value)) if value is not None else False
    except OverflowError:
        return True
    except (TypeError, ValueError):
        return False


@given(st.data())
@settings(max_examples=40)
def test_any_level_is_legal_later(data):
    column = data.draw(st.lists(PLAIN["letter"], min_size=2, max_size=8))
    encoder = TableEncoder().fit(as_objects({"a": column}))
    later = data.draw(st.lists(st.one_of(MIXED, st.none()), min_size=1, max_size=5))
    encoded = encoder.transform(as_objects({"a": later}))
    assert set(np.unique(encoded)) <= {0, 1}


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=20),
    st.sampled_from(["standard", "quantile"]),
)
@settings(max_examples=150)
def test_numbers_keep_their_order_and_come_back(values, numeric):
    column = np.array(values)[:, None]
    encoder = TableEncoder(numeric=numeric).fit(column)
    if isinstance(encoder.columns_[0], Constant):
        return
    encoded = encoder.transform(column)[:, 0]
    order = np.argsort(column[:, 0], kind="stable")
    assert (np.diff(encoded[order]) >= 0).all()
    back = encoder.inverse_transform(encoded[:, None])["x0"]
    size = np.abs(column).max()
    scale = encoder.features_[0].scaling
    if numeric == "standard" or not scale.knots:
        np.testing.assert_allclose(back / size, column[:, 0] / size, atol=1e-5)
    else:
        assert np.isfinite(back).all()


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20), st.floats(-1e300, 1e300))
@settings(max_examples=60)
def test_the_order_of_rows_does_not_matter(values, unseen):
    forth = TableEncoder(numeric="quantile", n_quantiles=4).fit(np.array(values)[:, None])
    back = TableEncoder(numeric="quantile", n_quantiles=4).fit(np.array(values)[::-1, None])
    np.testing.assert_allclose(forth.transform([[unseen]]), back.transform([[unseen]]), rtol=1e-6)
