import numpy as np

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
