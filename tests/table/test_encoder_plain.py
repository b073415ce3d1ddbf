import numpy as np
import pandas as pd

from tartree import TableEncoder

ROWS = np.array([[0.0, 5.0, 1e9], [0.0, np.nan, 2.0], [0.0, 7.0, -3.0]])


def test_plain_numbers_stay_as_they_are_and_where_they_are():
    encoder = TableEncoder(numeric="plain").fit(ROWS)
    assert list(encoder.get_feature_names_out()) == ["x0", "x1", "x1=(missing)", "x2"]
    expected = [[0, 5, 0, 1e6], [0, 5, 1, 2], [0, 7, 0, -3]]  # within a million, as everywhere
    np.testing.assert_array_equal(encoder.transform(ROWS), np.array(expected, dtype=np.float32))
    assert encoder.inverse_value(3, 2.0) == 2.0


def test_a_column_of_one_value_is_read_later():
    encoder = TableEncoder(numeric="plain").fit(ROWS[:, :1])
    np.testing.assert_array_equal(encoder.transform([[3.0]]), [[3.0]])


def test_plain_encoders_are_saved():
    encoder = TableEncoder(numeric="plain").fit(ROWS)
    again = TableEncoder.from_state(*encoder.get_state())
    np.testing.assert_array_equal(again.transform(ROWS), encoder.transform(ROWS))
    assert again.numeric == "plain"


def test_dates_and_times_are_standardised():
    """In seconds they are beyond what is kept: every row would be the same."""
    days = pd.date_range("2020-01-01", periods=20, freq="D")
    frame = pd.DataFrame({"day": days, "wait": days - days[0], "age": np.arange(20.0)})
    encoder = TableEncoder(numeric="plain").fit(frame)
    encoded = encoder.transform(frame)
    np.testing.assert_allclose(encoded[:, :2].mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(encoded[:, :2].std(axis=0), 1, rtol=1e-5)
    np.testing.assert_array_equal(encoded[:, 2], frame["age"])
    again = encoder.inverse_transform(encoded)
    assert again["day"].tolist() == [str(day.date()) for day in days]
