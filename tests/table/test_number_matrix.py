import numpy as np
import pytest

from tartree.table import TableEncoder
from tartree.table.number_matrix import CHUNK


def by_columns(encoder, X):
    """The same rows as objects, which are read column by column."""
    return encoder.transform(X.astype(object))


def matrix(rows=50, gaps=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 7)) * 10.0 ** np.arange(-3, 4)
    X[:, 2] = 4.0
    X[:, 5] = rng.integers(0, 3, rows)
    if gaps:
        X[rng.random(X.shape) < 0.2] = np.nan
        X[:, 2] = np.where(rng.random(rows) < 0.5, 4.0, np.nan)
        X[:, 6] = np.nan
    return X


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("numeric", ["standard", "quantile"])
@pytest.mark.parametrize("later_gaps", [False, True])
def test_a_matrix_is_encoded_as_its_columns_are(gaps, numeric, later_gaps):
    encoder = TableEncoder(numeric=numeric).fit(matrix(gaps=gaps))
    assert encoder._matrix.usable == (numeric == "standard")
    X = matrix(gaps=later_gaps, seed=1)
    X[0, 0] = 1e300
    np.testing.assert_array_equal(encoder.transform(X), by_columns(encoder, X))
    np.testing.assert_array_equal(encoder.transform(X[:1]), by_columns(encoder, X[:1]))
    np.testing.assert_array_equal(encoder.transform(np.asfortranarray(X)), encoder.transform(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.uint8, np.longdouble])
def test_other_numbers(dtype):
    X = np.random.default_rng(0).integers(0, 200, (30, 4)).astype(dtype)
    encoder = TableEncoder().fit(X)
    np.testing.assert_array_equal(encoder.transform(X), by_columns(encoder, X.astype(np.float64)))


def test_more_rows_than_a_piece_holds():
    X = np.random.default_rng(0).normal(size=(CHUNK // 3 + 7, 8))
    X[-1, 3] = np.nan
    encoder = TableEncoder().fit(X[:100])
    np.testing.assert_array_equal(encoder.transform(X)[-20:], encoder.transform(X[-20:]))
    np.testing.assert_array_equal(encoder.transform(X[-20:]), by_columns(encoder, X[-20:]))


def test_infinities_are_named_by_their_column():
    encoder = TableEncoder().fit(matrix())
    X = matrix()
    X[3, 4] = np.inf
    with pytest.raises(ValueError, match="column 4 must hold finite numbers or missing values, but row 3"):
        encoder.transform(X)


def test_columns_that_are_not_numbers_go_their_own_way():
    X = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    categories = TableEncoder().fit([[1.0, "a"], [2.0, "b"], [3.0, "a"], [4.0, "b"]])
    assert not categories._matrix.usable
    assert categories.transform(X).shape == (3, 3)
    numbers = TableEncoder().fit(X)
    np.testing.assert_array_equal(numbers.transform(X == 1)[:, 1], numbers.transform((X == 1) * 1.0)[:, 1])
