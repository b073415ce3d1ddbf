"""What every quantity must do, whichever there are."""

import json

import numpy as np
import pytest

from tartree.table.quantities import QUANTITIES, joined_kind

VALUES = np.array([0.0, 3600.0, 43_200.0])


@pytest.mark.parametrize("quantity", QUANTITIES.values(), ids=QUANTITIES)
def test_values_are_read_back_as_they_are_written(quantity):
    """As a value of a table, and as text near a threshold."""
    for value in VALUES.tolist():
        assert quantity.parse(quantity.cell(value, fine=True)) == value
        if quantity.step is not None:
            assert min(map(quantity.parse, quantity.texts_near(value, up=True))) >= value
            assert quantity.short_text(value)


@pytest.mark.parametrize("quantity", QUANTITIES.values(), ids=QUANTITIES)
def test_missing_values_have_no_text(quantity):
    assert quantity.originals(np.array([np.nan]), fine=False)[0] in (None, pytest.approx(np.nan, nan_ok=True))


@pytest.mark.parametrize("quantity", QUANTITIES.values(), ids=QUANTITIES)
def test_what_the_page_needs_is_plain_data(quantity):
    page = json.loads(json.dumps(quantity.page))
    assert page["form"] in ("number", "instant", "time")
    assert "{}" in quantity.axis(86400.0).label


def test_chunks_of_dates_and_datetimes_are_one_column():
    assert joined_kind("datetime", "date") == "datetime"
    assert joined_kind("date", "datetime[UTC]") is None
    assert joined_kind("number", "boolean") is None
