"""Columns of text that are read as numbers or dates, from any kind of table."""

import json
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tartree.table import TableEncoder, TableStatistics

from ..optional import optional

pl = optional("polars")

MESSY = {
    "price": ["$1.75", "$447,000", None, "n/a", "($3)"],
    "share": ["12%", "7.5 %", "3%", "1%", "0"],
    "amount": ["637.324,73", "12,00", "1,5", "2", ""],
    "when": ["16/01/2020", "01/02/2020", "", "03/04/2020 3:05 pm", None],
    "day": ["2020-01-01", "2020-01-03", "2020-01-05", "2020-02-01", "?"],
    "code": ["1", "2", "1", "2", "1"],
    "answer": ["yes", "no", "yes", "no", "yes"],
}
TABLES = (pd.DataFrame, pl.DataFrame, pa.table)


def kinds(encoder):
    return {column.name: (column.kind, column.form) for column in encoder.summary()}


EXPECTED = {
    "price": ("number", "in $"),
    "share": ("number", "in %"),
    "amount": ("number", "decimal comma"),
    "when": ("datetime", "day first"),
    "day": ("date", ""),
    "code": ("category", ""),
    "answer": ("category", ""),
}


@pytest.mark.parametrize("make", TABLES)
def test_every_kind_of_table_is_read_alike(make):
    encoder = TableEncoder().fit(make(MESSY))
    assert kinds(encoder) == EXPECTED
    typed = pd.DataFrame(
        {
            "price": [1.75, 447000, np.nan, np.nan, -3],
            "share": [12, 7.5, 3, 1, 0],
            "amount": [637324.73, 12, 1.5, 2, np.nan],
            "when": pd.to_datetime(["2020-01-16", "2020-02-01", None, "2020-04-03 15:05", None], format="ISO8601"),
            "day": pd.to_datetime(["2020-01-01", "2020-01-03", "2020-01-05", "2020-02-01", None]),
            "code": MESSY["code"],
            "answer": MESSY["answer"],
        }
    )
    np.testing.assert_array_equal(encoder.transform(make(MESSY)), TableEncoder().fit_transform(typed))
    np.testing.assert_array_equal(encoder.transform(make(MESSY)), encoder.transform(typed))


def test_rows_of_lists():
    rows = [list(row) for row in zip(*MESSY.values(), strict=True)]
    encoder = TableEncoder().fit(rows)
    assert list(kinds(encoder).values()) == list(EXPECTED.values())


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table])
def test_chunks_are_read_alike(make):
    statistics = TableStatistics()
    for rows in (slice(0, 2), slice(2, 4), slice(4, 5)):
        statistics.update(make({name: values[rows] for name, values in MESSY.items()}))
    encoder, whole = TableEncoder().fit_statistics(statistics), TableEncoder().fit(make(MESSY))
    assert kinds(encoder) == EXPECTED
    assert encoder.summary() == whole.summary()
    np.testing.assert_allclose(encoder.transform(make(MESSY)), whole.transform(make(MESSY)), rtol=1e-6)


def test_what_was_read_is_saved():
    encoder = TableEncoder(columns={"code": "number"}).fit(pd.DataFrame(MESSY))
    state, arrays = encoder.get_state()
    again = TableEncoder.from_state(json.loads(json.dumps(state, allow_nan=False)), arrays)
    assert again.columns_ == encoder.columns_
    assert again.summary() == encoder.summary()
    assert again.columns == {"code": "number"}
    later = pd.DataFrame(MESSY).assign(price="$5", when="02/03/2021")
    np.testing.assert_array_equal(again.transform(later), encoder.transform(later))


def test_a_state_of_the_former_format_has_no_facts():
    state, arrays = TableEncoder().fit(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})).get_state()
    del state["facts"], state["parameters"]["columns"]
    encoder = TableEncoder.from_state(state | {"format": 3}, arrays)
    assert [column.missing for column in encoder.summary()] == [None, None]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["columns", 0, "text"], {"form": "word"}),
        (["columns", 0, "text"], {"form": "date", "order": "dmy"}),
        (["columns", 0, "text"], {"form": "number"}),
        (["columns", 0, "text"], None),
        (["facts"], []),
        (["facts", 0], {"missing": 2.0, "note": None}),
        (["facts", 0], {"missing": None, "note": 3}),
        (["facts", 0], {"missing": None}),
        (["parameters", "columns"], {"price": "number"}),
        (["parameters", "columns"], [["price"]]),
        (["parameters", "columns"], [["price", "word"]]),
    ],
)
def test_wrong_states_are_refused(path, value):
    state, arrays = TableEncoder().fit(pd.DataFrame(MESSY)).get_state()
    place = state
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(ValueError, match=", got "):
        TableEncoder.from_state(state, arrays)


@pytest.mark.parametrize("make", TABLES)
@pytest.mark.parametrize(
    ("column", "text", "example"),
    [("price", "cheap", "1234.5 \\$"), ("price", "€5", "1234.5 \\$"), ("when", "01/16/2020", "31/12/2024")],
)
def test_a_wrong_text_is_named_with_column_and_row(make, column, text, example):
    encoder = TableEncoder().fit(make(MESSY))
    wrong = MESSY | {column: [*MESSY[column][:3], text, text]}
    with pytest.raises(
        ValueError, match=f"column '{column}' must hold a .*, such as {example}, but row 3 holds '{text}'"
    ):
        encoder.transform(make(wrong))


def test_choices_by_a_rule_are_warnings():
    frame = pd.DataFrame(
        {
            "a": ["1,234", "5"],
            "b": ["01/02/2020", "02/02/2020"],
        }
    )
    with pytest.warns(
        UserWarning, match="column 'a': '1,234' is read as 1234; column 'b': '01/02/2020' is read as day"
    ):
        encoder = TableEncoder().fit(frame)
    assert [bool(column.note) for column in encoder.summary()] == [True, True]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TableEncoder(columns={"a": "number-decimal-comma", "b": "date-month-first"}).fit(frame)


def test_texts_that_only_look_like_numbers_have_a_note():
    encoder = TableEncoder().fit(pd.DataFrame({"a": ["1.5", "2.5", "3.5", "<4"], "b": ["$5", "€5", "$6", "€7"]}))
    assert [column.note for column in encoder.summary()] == [
        "read as text: '<4' is no number",
        "read as text: its numbers are written in several ways, such as '$5' and '€7'",
    ]


@pytest.mark.parametrize("categorical", [pd.Categorical, lambda values: pd.array(values, dtype="category")])
def test_declared_categories_are_levels(categorical):
    encoder = TableEncoder().fit(pd.DataFrame({"a": categorical(["$1", "$2", "$1", "$2"])}))
    assert encoder.summary()[0].levels == ("$1", "$2")
    assert (
        TableEncoder().fit(pl.DataFrame({"a": pl.Series(["$1", "$2"], dtype=pl.Categorical)})).columns_[0].kind
        == "category"
    )


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"price": "category"}, ("category", "")),
        ({"price": "ignore"}, ("left out", "")),
        ({"code": "number"}, ("number", "")),
        ({"when": "date-day-first"}, ("datetime", "day first")),
        ({"amount": "number-decimal-comma"}, ("number", "decimal comma")),
        ({"price": "number-decimal-point"}, ("number", "in $")),
        ({"day": "date"}, ("date", "")),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_kinds_that_the_user_gives(columns, expected, streamed):
    frame, encoder = pd.DataFrame(MESSY), TableEncoder(columns=columns)
    encoder = encoder.fit_statistics(TableStatistics.of(frame)) if streamed else encoder.fit(frame)
    assert kinds(encoder)[next(iter(columns))] == expected


def test_kinds_of_typed_columns_and_of_positions():
    rows = [[1, 2.0], [2, 3.0], [1, 5.0]]
    assert TableEncoder(columns={0: "category"}).fit(rows).summary()[0].levels == (1,)
    assert TableEncoder(columns={1: "ignore"}).fit(rows).get_feature_names_out().tolist() == ["x0"]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"price": "word"}, "columns must give column 'price' one of the kinds number, .*, got 'word'"),
        (["price"], "columns must map columns to kinds"),
        ({"cost": "number"}, "columns must name columns of the table, 'price', .*, got 'cost'"),
        ({"answer": "number"}, "column 'answer' must hold a number or a missing value in every row, .*'yes'"),
        ({"when": "date-month-first"}, "column 'when' must hold a datetime .*'16/01/2020'"),
        ({"size": "date"}, "column 'size' holds a number, which cannot be read as a date"),
    ],
)
def test_kinds_that_do_not_fit(columns, message, streamed):
    frame, encoder = pd.DataFrame(MESSY).assign(size=1.5), TableEncoder(columns=columns)
    with pytest.raises(ValueError, match=message):
        encoder.fit_statistics(TableStatistics.of(frame)) if streamed else encoder.fit(frame)
