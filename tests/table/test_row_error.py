"""Errors that say in which row a wrong value is, wherever that row is counted."""

import pickle

import numpy as np
import pytest

from tartree.table.row_error import RowError, among, naming


def wrong(row):
    raise RowError("x must be a number, but ", row, " holds {}")


def test_a_row_is_counted_where_it_comes_from():
    message = r"^f: x must be a number, but row 17 holds \{\}$"
    places = naming("f", range(10, 20)), among(None), among(np.array([1, 7]))
    with pytest.raises(RowError, match=message) as caught, places[0], places[1], places[2]:
        wrong(1)
    again = pickle.loads(pickle.dumps(caught.value))  # as errors of workers are
    assert (str(again), again.row, type(again.row)) == (str(caught.value), 17, int)


def test_other_errors_get_the_name_alone():
    with pytest.raises(ValueError, match=r"^f: not a table$"), naming("f", range(3)):
        raise TypeError("not a table")
