"""Columns that name rows."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tartree.table import ColumnWarning, TableEncoder, TableStatistics

from ..optional import optional

pl = optional("polars")

NAMES = [f"Passenger {row}" for row in range(98)] + ["Kelly", "Kelly"]
FRAME = {"name": NAMES, "customer_id": [7 * row % 1009 for row in range(100)], "size": list(range(100))}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_identifiers_are_left_out_with_a_warning(make):
    with pytest.warns(ColumnWarning) as caught:
        encoder = TableEncoder().fit(make(FRAME))
    assert len(caught) == 1
    assert encoder.get_feature_names_out().tolist() == ["size"]
    assert [column.kind for column in encoder.summary()] == ["left out", "left out", "number"]
    assert all("identifier" in column.note for column in encoder.summary()[:2])
    later = make({**FRAME, "name": ["x"] * 100, "customer_id": ["y"] * 100})
    np.testing.assert_array_equal(encoder.transform(later), encoder.transform(make(FRAME)))


def test_the_user_keeps_them():
    encoder = TableEncoder(columns={"name": "category", "customer_id": "number"}).fit(pd.DataFrame(FRAME))
    assert [column.kind for column in encoder.summary()] == ["category", "number", "number"]


def test_texts_in_chunks():
    with pytest.warns(ColumnWarning, match="column 'name': left out"):
        encoder = TableEncoder().fit_statistics(TableStatistics.of(pd.DataFrame(FRAME)))
    assert encoder.summary()[0].kind == "left out"


@pytest.mark.parametrize("name", ["id", "ID", "row_id", "customerId", "Order ID", "uuid", "Unnamed: 0", "index"])
def test_names_of_identifiers(name):
    with pytest.warns(ColumnWarning, match="left out"):
        TableEncoder().fit(pd.DataFrame({name: range(50), "size": range(50)}))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("id", list(range(49)) + [1]),
        ("id", [row / 3 for row in range(50)]),
        ("id", [1, 2, 3]),
        ("year", list(range(50))),
        ("paid", list(range(50))),
        ("humidity index value", list(range(50))),
    ],
)
def test_numbers_that_stay(name, values):
    encoder = TableEncoder().fit(pd.DataFrame({name: values}))
    assert encoder.summary()[0].kind == "number"


def test_text_with_repeated_values_stays():
    encoder = TableEncoder().fit(pd.DataFrame({"a": [f"a{row // 2}" for row in range(100)]}))
    assert encoder.summary()[0].kind == "category"
