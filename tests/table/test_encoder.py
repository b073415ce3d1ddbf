"""The encoder on real tables: what comes out, and what comes back."""

import datetime
import doctest
import itertools
from decimal import Decimal
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from tartree.table import (
    OTHER,
    Boolean,
    Category,
    ColumnWarning,
    Constant,
    Feature,
    Numeric,
    Scaling,
    TableEncoder,
    encoder,
)

from ..optional import optional

pl = optional("polars")


UTC = datetime.UTC
DAYS = [datetime.date(2020, 1, 1), datetime.date(2021, 6, 30), None, datetime.date(2022, 3, 1)]
MIXED = {
    "age": [35, 41, None, 52],
    "income": [1.5, 2.5, 3.5, 4.5],
    "colour": ["red", "blue", "red", "blue"],
    "town": ["Ulm", None, "Ulm", "Bonn"],
    "smoker": [True, False, None, True],
    "member": [True, False, True, True],
    "price": [Decimal("1.50"), Decimal("2.50"), None, Decimal("9.00")],
    "opened": DAYS,
    "seen": [datetime.datetime(2020, 1, 1, 8, 30, hour) for hour in range(4)],
    "zoned": [datetime.datetime(2020, 1, day, 8, 30, tzinfo=UTC) for day in range(1, 5)],
    "spent": [datetime.timedelta(hours=1), None, datetime.timedelta(hours=3), datetime.timedelta(hours=2)],
    "at": [datetime.time(8), datetime.time(9, 30), datetime.time(10), datetime.time(11)],
    "nothing": [None, None, None, None],
    "same": [7, 7, 7, 7],
}
FRAMES = {"pandas": pd.DataFrame, "polars": lambda data: pl.DataFrame(data), "arrow": pa.table}
NAMES = [
    "age",
    "age=(missing)",
    "income",
    "colour=blue",
    "colour=red",
    "town=Ulm",
    "town=(other)",
    "town=(missing)",
    "smoker=True",
    "smoker=(missing)",
    "member=True",
    "price",
    "price=(missing)",
    "opened",
    "opened=(missing)",
    "seen",
    "zoned",
    "spent",
    "spent=(missing)",
    "at",
]


@parametrize_with_checks([TableEncoder(), TableEncoder(numeric="quantile", n_quantiles=16)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_example_of_the_docstring():
    assert doctest.testmod(encoder).failed == 0


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("numeric", ["standard", "quantile"])
def test_mixed_frame(make, numeric):
    frame = make(MIXED)
    encoded = TableEncoder(numeric=numeric).fit_transform(frame)
    assert encoded.dtype == np.float32
    assert encoded.flags.c_contiguous
    assert np.isfinite(encoded).all()
    assert TableEncoder().fit(frame).get_feature_names_out().tolist() == NAMES


@pytest.mark.parametrize("numeric", ["standard", "quantile"])
def test_frames_of_all_libraries_are_encoded_alike(numeric):
    matrices = [TableEncoder(numeric=numeric).fit_transform(make(MIXED)) for make in FRAMES.values()]
    matrices.append(
        TableEncoder(numeric=numeric).fit_transform([list(row) for row in zip(*MIXED.values(), strict=True)])
    )
    matrices.append(TableEncoder(numeric=numeric).fit_transform(pa.table(MIXED).to_batches()[0]))
    for one, other in itertools.pairwise(matrices):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_fit_on_one_library_and_transform_another(make):
    fitted = TableEncoder().fit(pl.DataFrame(MIXED))
    np.testing.assert_array_equal(fitted.transform(make(MIXED)), fitted.transform(pl.DataFrame(MIXED)))


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("numeric", ["standard", "quantile"])
def test_inverse_transform_gives_the_table_back(make, numeric):
    fitted = TableEncoder(min_count=1, numeric=numeric).fit(make(MIXED))
    back = fitted.inverse_transform(fitted.transform(make(MIXED)))
    assert list(back) == list(MIXED)
    np.testing.assert_array_equal(back["age"], [35, 41, np.nan, 52])
    np.testing.assert_allclose(back["income"], MIXED["income"], rtol=1e-6)
    np.testing.assert_allclose(back["price"], [1.5, 2.5, np.nan, 9.0], rtol=1e-6)
    np.testing.assert_allclose(back["spent"], [3600, np.nan, 10800, 7200], rtol=1e-6)
    for name in ("colour", "town", "smoker", "member", "nothing"):
        assert back[name].tolist() == MIXED[name]
    assert back["opened"].tolist() == ["2020-01-01", "2021-06-30", None, "2022-03-01"]
    assert back["zoned"].tolist() == [f"2020-01-0{day}T08:30:00+00:00" for day in range(1, 5)]
    seen = [datetime.datetime.fromisoformat(text) for text in back["seen"]]
    assert all(
        abs(found - given) < datetime.timedelta(milliseconds=1)
        for found, given in zip(seen, MIXED["seen"], strict=True)
    )
    assert back["at"].tolist() == ["08:00:00", "09:30:00", "10:00:00", "11:00:00"]
    assert back["same"].tolist() == [7, 7, 7, 7]


def test_columns_and_features_are_plain_records():
    frame = pl.DataFrame(MIXED)
    fitted = TableEncoder().fit(frame)
    kinds = dict(zip(frame.columns, fitted.columns_, strict=True))
    assert kinds["colour"] == Category(("blue", "red"), other=False, gaps=False)
    assert kinds["town"] == Category(("Ulm",), other=True, gaps=True)
    assert kinds["smoker"] == Boolean(fill=True, gaps=True)
    assert kinds["same"] == Constant(7.0)
    assert kinds["nothing"] == Constant(None)
    assert isinstance(kinds["age"], Numeric)
    assert (kinds["age"].low, kinds["age"].high, kinds["age"].fill, kinds["age"].whole) == (35, 52, 41, True)
    assert fitted.features_[0].scaling.center == pytest.approx(128 / 3)
    assert fitted.features_[4] == Feature(2, "colour", "level", level="red")
    assert hash(fitted.features_[0]) == hash(clone(fitted).fit(frame).features_[0])


def test_inverse_value_in_original_units():
    fitted = TableEncoder().fit(pl.DataFrame(MIXED))
    names = fitted.get_feature_names_out().tolist()
    assert fitted.inverse_value(names.index("income"), 0.0) == pytest.approx(3.0)
    assert fitted.inverse_value(names.index("colour=red"), 0.7) is True
    assert fitted.inverse_value(names.index("age=(missing)"), 0.2) is False
    opened = TableEncoder().fit(pl.DataFrame({"opened": [datetime.date(2020, 5, 3), datetime.date(2020, 5, 4)]}))
    assert opened.inverse_value(0, -1.0) == "2020-05-03"
    assert opened.inverse_value(0, 0.0) == "2020-05-03T12:00:00"  # a threshold between two days is not one of them
    with pytest.raises(ValueError, match="feature must be below 1, got 1"):
        opened.inverse_value(1, 0.0)


def test_midnights_are_dates_and_huge_dates_are_written():
    frame = pd.DataFrame({"day": pd.to_datetime(["2020-01-01", "2020-01-05", "2020-02-01"])})
    fitted = TableEncoder().fit(frame)
    assert fitted.columns_[0].unit == "date"
    assert fitted.inverse_transform(fitted.transform(frame))["day"].tolist() == [
        "2020-01-01",
        "2020-01-05",
        "2020-02-01",
    ]
    assert fitted.inverse_value(0, 1e6).startswith("39715-")
    assert isinstance(fitted.inverse_value(0, 1e30), str)


def test_numbers_of_every_type():
    values = [0, 1, 2, 3, 100]
    expected = TableEncoder().fit_transform(np.array(values, dtype=np.float64)[:, None])
    arrays = [np.array(values, dtype=kind)[:, None] for kind in "bhilqBHILQefdgO"]
    arrays.append(np.array([Decimal(value) for value in values], dtype=object)[:, None])
    arrays.append(np.ma.masked_array(np.array(values)[:, None], mask=False))
    arrays += [sparse.csr_array(arrays[0]), sparse.coo_matrix(arrays[3])]
    for array in arrays:
        np.testing.assert_allclose(TableEncoder().fit_transform(array), expected, rtol=1e-6)
    for series in (
        pd.array(values, dtype="Int64"),
        pd.array(values, dtype="float64[pyarrow]"),
        pd.arrays.SparseArray(values),
        pd.array([Decimal(value) for value in values], dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
    ):
        np.testing.assert_array_equal(TableEncoder().fit_transform(pd.DataFrame({"a": series})), expected)
    wide = [pl.Int128] if hasattr(pl, "Int128") else []  # polars before 1.18
    for dtype in (pl.Int8, pl.UInt64, pl.Float32, pl.Decimal(10, 2), *wide):
        frame = pl.DataFrame({"a": pl.Series(values, dtype=dtype)})
        np.testing.assert_array_equal(TableEncoder().fit_transform(frame), expected)


def test_dates_of_numpy_and_of_objects():
    days = np.array(["2020-01-01", "NaT", "2020-01-11"], dtype="M8[D]")[:, None]
    objects = np.array([[datetime.date(2020, 1, 1)], [pd.NaT], [pd.Timestamp("2020-01-11")]], dtype=object)
    expected = TableEncoder().fit_transform(days)
    assert expected.tolist() == [[-1, 0], [-1, 1], [1, 0]]
    for array in (days.astype("M8[ns]"), days.astype("M8[s]"), objects, np.ma.masked_array(days, mask=np.isnat(days))):
        np.testing.assert_array_equal(TableEncoder().fit_transform(array), expected)
    far = np.array([["0001-01-01"], ["200000-01-01"]], dtype="M8[D]")
    assert np.isfinite(TableEncoder().fit_transform(far)).all()
    text = np.array([["2020-01-01"], [None], ["2020-01-11T00:00:00Z"]], dtype=object)
    np.testing.assert_array_equal(TableEncoder().fit(days).transform(text), expected)


def test_large_offset_with_small_spread():
    values = 1e9 + np.array([0.0, 1e-3, 2e-3, 3e-3])
    encoded = TableEncoder().fit_transform(values[:, None])[:, 0]
    np.testing.assert_allclose(encoded, (np.arange(4) - 1.5) / np.sqrt(1.25), atol=1e-3)


@pytest.mark.parametrize("numeric", ["standard", "quantile"])
@pytest.mark.parametrize("size", [1e308, 1.7976931348623157e308, 1e300, 1e-300, 1e-310, 5e-324])
def test_extreme_sizes_stay_finite_and_ordered(numeric, size):
    values = np.array([-1.0, -0.5, 0.0, 0.5, 1.0]) * size
    fitted = TableEncoder(numeric=numeric).fit(values[:, None])
    encoded = fitted.transform(values[:, None])
    beyond = fitted.transform(np.array([[-1.7e308], [1.7e308], [0.0]]))
    assert np.isfinite(encoded).all()
    assert np.isfinite(beyond).all()
    assert (np.diff(encoded[:, 0]) >= 0).all()
    assert np.isfinite(fitted.inverse_transform(encoded)["x0"]).all()
    if size >= 1e-300:
        assert encoded[-1] > encoded[0] + 1
        back = fitted.inverse_transform(encoded)["x0"]
        np.testing.assert_allclose(back / size, values / size, atol=1e-6)


def test_unseen_numbers_are_clipped():
    fitted = TableEncoder(extrapolation=None).fit([[0.0], [1.0]])
    assert fitted.transform([[1e300], [-1e300]]).tolist() == [[1e6], [-1e6]]


@pytest.mark.parametrize("share", [0.0, 0.1, 2.0])
def test_numbers_beyond_the_range_are_limited_smoothly(share):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(50, 3, 200), rng.exponential(size=200)])
    fitted = TableEncoder(extrapolation=share).fit(X)
    free = TableEncoder(extrapolation=None).fit(X)
    np.testing.assert_array_equal(fitted.transform(X), free.transform(X))  # inside nothing changes
    for column in range(2):
        low, high = X[:, column].min(), X[:, column].max()
        beyond = np.concatenate([low - np.geomspace(1e9, 1e-9, 99), high + np.geomspace(1e-9, 1e9, 99)])
        rows = np.tile(X[0], (len(beyond), 1))
        rows[:, column] = beyond
        read = fitted.columns_[column].scaling.encode(beyond)
        np.testing.assert_array_equal(fitted.transform(rows)[:, column], read.astype(np.float32))  # matrix and columns
        assert (np.diff(read) >= 0).all()
        bottom, top = free.columns_[column].scaling.encode(np.array([low, high]))
        reach = share * (top - bottom)
        assert bottom - reach - 1e-9 <= read[0]
        assert read[-1] <= top + reach + 1e-9
        if share:  # it leaves the range with the slope that it has inside, and can be read back
            near = high + 1e-6 * (high - low)
            slope = (fitted.columns_[column].scaling.encode(np.array([near]))[0] - top) / (near - high)
            assert slope * free.columns_[column].scaling.scale == pytest.approx(1, rel=1e-3)
            back = fitted.columns_[column].scaling.decode(read)
            here = np.abs(beyond - np.clip(beyond, low, high)) < 1e3 * (high - low)
            np.testing.assert_allclose(back[here], beyond[here], rtol=1e-6)


def test_an_encoder_of_a_file_before_limits_has_none():
    fitted = TableEncoder().fit([[0.0], [1.0]])
    state, arrays = fitted.get_state()
    del state["parameters"]["extrapolation"]
    state["format"] = 1
    before = TableEncoder.from_state(state, arrays)
    assert before.transform([[1e300], [-1e300]]).tolist() == [[1e6], [-1e6]]


@pytest.mark.parametrize("share", [-1, float("nan"), float("inf"), "far", True])
def test_extrapolation_must_be_a_share(share):
    with pytest.raises(ValueError, match="extrapolation must be a number of at least 0 or None, got"):
        TableEncoder(extrapolation=share).fit([[0.0], [1.0]])


@pytest.mark.parametrize("code", [666.0, -999.0, 1e300])
def test_far_codes_do_not_squeeze_the_other_numbers(code):
    values = np.array([0.0, 1.0] * 100 + [code] * 3)
    encoded = TableEncoder().fit_transform(values[:, None])[:, 0]
    assert abs(encoded[1] - encoded[0]) > 0.5  # 1e-3 if it were standardised
    skewed = np.random.default_rng(0).lognormal(sigma=1.5, size=500)
    assert not TableEncoder().fit(skewed[:, None]).columns_[0].scaling.knots


def test_quantile_map():
    values = np.random.default_rng(0).lognormal(sigma=2, size=5000)
    fitted = TableEncoder(numeric="quantile", n_quantiles=100).fit(values[:, None])
    encoded = fitted.transform(values[:, None])[:, 0]
    assert encoded.mean() == pytest.approx(0, abs=0.02)
    assert encoded.std() == pytest.approx(1, abs=0.05)
    assert (np.argsort(encoded, kind="stable") == np.argsort(values, kind="stable")).mean() > 0.99
    scaling = fitted.features_[0].scaling
    assert len(scaling.knots) == 102  # one more on either side, one range further
    low, high = values.min(), values.max()
    outside = fitted.transform([[high], [high + (high - low) / 2], [high + 2 * (high - low)], [1e300]])[:, 0]
    assert outside[0] < outside[1] < outside[2] == outside[3] < 12
    assert fitted.inverse_value(0, float(outside[1])) == pytest.approx(high + (high - low) / 2)


def test_quantile_map_of_mostly_one_value():
    values = np.zeros(1000)
    values[:3] = 1.0, 2.0, 1e6
    fitted = TableEncoder(numeric="quantile", n_quantiles=10).fit(values[:, None])
    encoded = fitted.transform(np.array([[0.0], [1.0], [1e6]]))[:, 0]
    assert encoded[0] < encoded[1] < encoded[2] < 5


def test_gaps():
    fitted = TableEncoder().fit([[1.0, 1.0], [2.0, None], [4.0, 3.0]])
    encoded = fitted.transform([[None, None], [np.nan, pd.NA]])
    assert fitted.get_feature_names_out().tolist() == ["x0", "x1", "x1=(missing)"]
    np.testing.assert_array_equal(encoded, np.repeat(fitted.transform([[2.0, 1.0]]) + [[0, 0, 1]], 2, axis=0))


def test_one_value_and_gaps_keeps_the_indicator_only():
    fitted = TableEncoder().fit([[5.0], [None]])
    assert fitted.get_feature_names_out().tolist() == ["x0=(missing)"]
    assert fitted.transform([[5.0], [None], [8.0]]).tolist() == [[0], [1], [0]]
    np.testing.assert_array_equal(fitted.inverse_transform([[0], [1]])["x0"], [5, np.nan])


def test_unseen_level_is_other_where_fit_saw_rare_ones():
    fitted = TableEncoder().fit([["a"], ["a"], ["b"]])
    assert fitted.get_feature_names_out().tolist() == ["x0=a", "x0=(other)"]
    assert fitted.transform([["a"], ["b"], ["new"], [None]]).tolist() == [[1, 0], [0, 1], [0, 1], [0, 1]]


def test_unseen_level_is_none_of_the_known_where_nothing_was_rare():
    fitted = TableEncoder().fit([["a"], ["a"], ["b"], ["b"]])
    encoded = fitted.transform([["b"], ["new"], [None], [3.5]])
    assert encoded.tolist() == [[0, 1], [0, 0], [0, 0], [0, 0]]
    assert fitted.inverse_transform(encoded)["x0"].tolist() == ["b", OTHER, OTHER, OTHER]


def test_most_frequent_levels_first():
    column = ["a"] * 2 + ["b"] * 5 + ["c"] * 3 + ["d"] * 3
    fitted = TableEncoder(max_levels=3).fit(np.array(column, dtype=object)[:, None])
    assert fitted.columns_[0] == Category(("b", "c", "d"), other=True, gaps=False)


def test_identifiers_have_no_feature_and_many_levels_do_not_explode():
    frame = pd.DataFrame({"id": [f"id{row}" for row in range(500)], "name": [f"name{row % 100}" for row in range(500)]})
    with pytest.warns(ColumnWarning, match="column 'id': left out, for almost every row has another text"):
        fitted = TableEncoder().fit(frame)
    assert [feature.name for feature in fitted.features_] == ["name"] * 33
    assert fitted.inverse_transform(fitted.transform(frame))["id"].tolist() == [OTHER] * 500


def test_levels_keep_their_type():
    frame = pd.DataFrame(
        {
            "number": pd.Categorical([1, 1, 2, 2, None]),
            "half": pd.Categorical([0.5, 0.5, 2.0, 2.0, 2.0]),
            "interval": pd.cut([1, 1, 3, 3, 3], 2),
            "date": pd.Categorical(pd.to_datetime(["2020-01-01", "2020-01-01", "2020-01-02", "2020-01-02", None])),
            "truth": pd.Categorical([True, False, True, None, True]),
            "inf": pd.Categorical([np.inf, np.inf, 1.0, 1.0, 1.0]),
        }
    )
    columns = TableEncoder().fit(frame).columns_
    assert columns[0].levels == (1, 2)
    assert columns[1].levels == (2, 0.5)
    assert columns[2].levels == ("(2.0, 3.0]", "(0.998, 2.0]")
    assert columns[3].levels == ("2020-01-01T00:00:00", "2020-01-02T00:00:00")
    assert columns[4] == Boolean(fill=True, gaps=True)
    assert columns[5].levels == ("1", "inf")


def test_levels_of_another_type_are_matched():
    numbers = TableEncoder().fit(pd.DataFrame({"a": pd.Categorical([1, 1, 2, 2])}))
    for came in ([2, 1, 9], [2.0, 1.0, 9.5], ["2", "1", "x"], [Decimal(2), True, "10" * 400]):
        assert numbers.transform(pd.DataFrame({"a": came})).tolist() == [[0, 1], [1, 0], [0, 0]]
    texts = TableEncoder().fit(pd.DataFrame({"a": ["1", "1", "2", "2"]}))
    for came in ([2, 1, 9], [2.0, 1.0, 9.5], [2.0, 1, np.nan], pd.array([2, 1, None], dtype="Int64")):
        assert texts.transform(pd.DataFrame({"a": came})).tolist() == [[0, 1], [1, 0], [0, 0]]


def test_gaps_in_an_arrow_dictionary():
    frame = pa.table({"a": pa.array(["x", None, "y", "x", "y", None]).dictionary_encode()})
    assert TableEncoder().fit_transform(frame).tolist() == [
        [1, 0, 0],
        [0, 0, 1],
        [0, 1, 0],
        [1, 0, 0],
        [0, 1, 0],
        [0, 0, 1],
    ]


def test_booleans():
    fitted = TableEncoder().fit(np.array([[True], [False], [True]]))
    assert fitted.get_feature_names_out().tolist() == ["x0=True"]
    came = [[True], [False], [None], [1], [0.0], ["false"], ["TRUE"], ["what"]]
    assert fitted.transform(came)[:, 0].tolist() == [1, 0, 1, 1, 0, 0, 1, 1]
    gaps = TableEncoder().fit([[True], [False], [None]])
    assert gaps.transform(came)[:, 1].tolist() == [0, 0, 1, 0, 0, 0, 0, 1]
    for dtype in ("boolean", "bool[pyarrow]", object):
        frame = pd.DataFrame({"a": pd.array([True, False, None], dtype=dtype)})
        assert TableEncoder().fit_transform(frame).tolist() == [[1, 0], [0, 0], [0, 1]]


def test_mixed_objects_are_levels_and_things_with_a_text_are_too():
    column = [1, "1", 1.0, True, b"1", UUID(int=1), pd.Period("2020-01"), np.str_("1")] * 2
    levels = TableEncoder().fit(np.array(column, dtype=object)[:, None]).columns_[0].levels
    assert levels == ("1", "00000000-0000-0000-0000-000000000001", "2020-01", "True")


def test_numbers_that_arrive_as_text():
    fitted = TableEncoder().fit(pd.DataFrame({"a": [1, 2, 3]}))
    expected = fitted.transform(pd.DataFrame({"a": [3, 1]}))
    for came in (["3", " 1.0 "], pd.Categorical(["3", "1"]), [Decimal(3), True]):
        np.testing.assert_array_equal(fitted.transform(pd.DataFrame({"a": came})), expected)


def test_all_missing_at_prediction_is_legal_for_every_kind():
    frame = pl.DataFrame(MIXED)
    encoded = TableEncoder().fit(frame).transform(pl.DataFrame({name: [None] for name in MIXED}))
    assert np.isfinite(encoded).all()


def test_sparse():
    dense = np.array([[0, 1.5, 0], [0, 0, 0], [2, 0, 0]])
    expected = TableEncoder().fit_transform(dense)
    for make in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array, sparse.lil_array, sparse.dia_array):
        np.testing.assert_array_equal(TableEncoder().fit_transform(make(dense)), expected)
    twice = sparse.coo_array(([1.0, 1.0, 1.5], ([2, 2, 0], [0, 0, 1])), shape=(3, 3))
    np.testing.assert_array_equal(TableEncoder().fit_transform(twice), expected)


def test_zero_rows_and_one_row():
    fitted = TableEncoder().fit(pl.DataFrame(MIXED))
    assert fitted.transform(pl.DataFrame(MIXED).head(0)).shape == (0, len(NAMES))
    assert TableEncoder().fit_transform(pl.DataFrame(MIXED).head(1)).shape == (1, 0)


def test_names_out_are_unique():
    frame = pd.DataFrame({"a": ["b", "b", "(other)", "(other)", "c"], "a=b": [1, 2, 3, 4, 5]})
    names = TableEncoder().fit(frame).get_feature_names_out().tolist()
    assert names == ["a=(other)", "a=b", "a=(other) (2)", "a=b (2)"]


def test_set_output_and_pipeline():
    frame = pl.DataFrame(MIXED)
    out = TableEncoder().set_output(transform="polars").fit_transform(frame)
    assert out.columns == NAMES
    out = make_pipeline(TableEncoder(), FunctionTransformer()).set_output(transform="pandas").fit_transform(frame)
    assert out.columns.tolist() == NAMES


def test_columns_without_string_names():
    fitted = TableEncoder().fit(pd.DataFrame([[1, 2], [3, 5]]))
    assert not hasattr(fitted, "feature_names_in_")
    assert fitted.get_feature_names_out().tolist() == ["x0", "x1"]
    fitted.fit(pd.DataFrame([[1, 2], [3, 5]], columns=["a", "b"]))
    assert fitted.feature_names_in_.tolist() == ["a", "b"]
    assert not hasattr(fitted.fit([[1, 2], [3, 5]]), "feature_names_in_")


def test_scaling_is_its_own_inverse():
    scaling = Scaling(3.0, 2.0)
    np.testing.assert_array_equal(scaling.decode(scaling.encode(np.array([1.0, 5.0]))), [1.0, 5.0])
