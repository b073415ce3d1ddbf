"""The check of integer parameters."""

import numpy as np
import pytest

from tartree.checks import check_integer


@pytest.mark.parametrize("value", [2, 3, np.int64(5)])
def test_integers_of_at_least_the_bound_are_returned_as_int(value):
    result = check_integer("rows", value, 2)
    assert result == value
    assert type(result) is int


@pytest.mark.parametrize("value", [1, -3, True, 2.0, "2", None, np.float64(3), np.int64(1)])
def test_other_values_are_refused_by_name(value):
    with pytest.raises(ValueError, match=r"^rows must be an integer of at least 2, got "):
        check_integer("rows", value, 2)
