"""Types of text columns."""

import datetime

import pyarrow as pa
import pytest

from tartree.cli.io.text_values import describe_comma_doubt, describe_text_doubt, infer, read_as
from tartree.cli.problems import Problem
from tartree.table.texts.date_form import DateForm
from tartree.table.texts.number_form import NumberForm

DAY = datetime.date(2021, 12, 31)
NOON = datetime.datetime(2021, 12, 31, 12)


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1", " 2 ", "-3", "+4"], [1, 2, -3, 4]),
        (["1", "", "NA", "n/a", "NaN", "null", "?", "--", "-", ".", "None", "unknown"], [1] + [None] * 11),
        (["1.5", "2", ".5", "1e3", "\N{MINUS SIGN}1"], [1.5, 2.0, 0.5, 1000.0, -1.0]),
        (["12345678901234567890", "1"], [12345678901234567890.0, 1.0]),
        (["007", "123"], ["007", "123"]),
        (["0", "0.5"], [0.0, 0.5]),
        (["07"] + ["12"] * 2 + ["120"], [7, 12, 12, 120]),
        (["07", "08", "12", "120"], ["07", "08", "12", "120"]),
        (["01067", "80331", "20095", "?"], ["01067", "80331", "20095", None]),
        (["07", "-1.5", "3"], [7.0, -1.5, 3.0]),
        (["1,5", "2", "NA", "-0,25"], [1.5, 2.0, None, -0.25]),
        (["1,234", "12,5"], [1.234, 12.5]),
        (["0,125", "1,125"], [0.125, 1.125]),
        (["1,234", "56,789", "3"], [1234, 56789, 3]),
        (["$1.75", " 2 $", "NA"], [1.75, 2.0, None]),
        (["1.234,56", "7"], [1234.56, 7.0]),
        (["12 %", "3%"], [12, 3]),
        (["1,2,3", "4,5"], ["1,2,3", "4,5"]),
        (["1,5", "x"], ["1,5", "x"]),
        (["TRUE", "false", "NA"], [True, False, None]),
        (["yes", "no", "none", "?", " yes "], ["yes", "no", "none", None, "yes"]),
        (["2021-12-31", ""], [DAY, None]),
        (["31.12.2021", "-"], [DAY, None]),
        (["1.2.2021"], [datetime.date(2021, 2, 1)]),
        (["2021-12-31 12:00", "2021-12-31"], [NOON, datetime.datetime(2021, 12, 31)]),
        (["2021-12-31T12:00:00Z"], [NOON.replace(tzinfo=datetime.UTC)]),
        (["12/31/2021"], [datetime.datetime(2021, 12, 31)]),
        (["Dec 31, 2021 12:00 pm", "", "31/12/2021"], [NOON, None, datetime.datetime(2021, 12, 31)]),
        (["13/31/2021"], ["13/31/2021"]),
        (["", "NA"], [None, None]),
        (["unknown", "unknown"], ["unknown", "unknown"]),
        ([], []),
    ],
)
def test_types(texts, values):
    for column in (pa.array(texts, pa.string()), pa.chunked_array([[text] for text in texts], pa.string())):
        assert infer(column, decimal_comma=False).values.to_pylist() == values


def test_decimal_comma():
    assert infer(pa.array(["1,5", "-2", ",5"]), decimal_comma=True).values.to_pylist() == [1.5, -2.0, 0.5]
    assert infer(pa.array(["1.234,5", "1"]), decimal_comma=True).values.to_pylist() == [1234.5, 1.0]
    assert infer(pa.array(["1,234", "1"]), decimal_comma=True)[1:] == (
        NumberForm(".,"),
        "'1,234' is read as 1.234",
    )


def test_one_late_text_makes_the_column_text():
    column = pa.chunked_array([["1"] * 1000, ["x"]])
    assert infer(column, decimal_comma=False).values.to_pylist()[:2] == ["1", "1"]


@pytest.mark.parametrize(
    ("texts", "doubt"),
    [
        (["1"] * 9 + ["<5"], "1 of 10 values are no numbers (row 11: '<5'); correct them or leave them empty"),
        (["--", "<5"] + ["1"] * 9, "1 of 11 values are no numbers (row 3: '<5'); correct them or leave them empty"),
        (
            ["a", "< 5", "7"],
            "2 of 3 values are no numbers (row 2: 'a'); if it is to be numbers, write them like 1234.5",
        ),
        (
            ["1", "1,234", ">5"],
            "2 of 3 values are no numbers (row 3: '1,234'); if it is to be numbers, write them like 1234.5",
        ),
        (["$5", "€5"], "its numbers are written in several ways, such as '$5' and '€5'"),
        (["16/01/2020", "17/01/2020", "soon"], "'soon' is no date"),
    ],
)
def test_doubts(texts, doubt):
    typed = infer(pa.array(texts), decimal_comma=False).values
    assert describe_text_doubt(typed, "c", decimal_comma=False) == f"column 'c' is read as text: {doubt}"


@pytest.mark.parametrize(
    "texts", [["a", "b"], ["1", "2"], ["007", "8"], ["", ""], ["1", "x", "y"], ["2021-01-01"], ["1-2", "3:4"]]
)
def test_no_doubts(texts):
    assert describe_text_doubt(infer(pa.array(texts), decimal_comma=False).values, "c", decimal_comma=False) is None


def as_fitted(texts, kind, unit=None):
    return read_as(pa.array(texts), unit, name="c", first_row=2)


def test_read_as_what_was_fitted():
    assert as_fitted(["007", "--"], "numeric", "number").to_pylist() == [7, None]
    assert as_fitted(["1,234", "12,5", "2"], "numeric", "number").to_pylist() == [1.234, 12.5, 2.0]
    assert as_fitted([" 1", "NA"], "category").to_pylist() == ["1", None]
    assert as_fitted(["31.12.2021"], "numeric", "date").to_pylist() == [DAY]
    assert as_fitted(["", ""], "numeric", "datetime").to_pylist() == [None, None]


@pytest.mark.parametrize(
    ("texts", "unit", "form", "values"),
    [
        (["$1,234", "5", "NA"], "number", NumberForm(".", "$"), [1234, 5, None]),
        (["1.234", "5,5", ""], "number", NumberForm(","), [1234, 5.5, None]),
        (["16/01/2020", "-"], "date", DateForm("dmy"), [datetime.datetime(2020, 1, 16), None]),
        (["2021-12-31", "-"], "date", DateForm(), [DAY, None]),
        (["31 Dec 2021 12:00"], "datetime", DateForm(), [NOON]),
    ],
)
def test_read_in_the_form_that_fit_saw(texts, unit, form, values):
    for column in (pa.array(texts), pa.chunked_array([[text] for text in texts])):
        assert read_as(column, unit, name="c", first_row=2, form=form).to_pylist() == values


@pytest.mark.parametrize(
    ("texts", "unit", "form", "message"),
    [
        (["1", "€5"], "number", NumberForm(".", "$"), "numbers such as 1234.5 $, as it did in fit, got '€5' in row 3"),
        (
            ["01/16/2020"],
            "date",
            DateForm("dmy"),
            "dates such as 31/12/2024, as it did in fit, got '01/16/2020' in row 2",
        ),
        (
            ["1,0", "$1e999"],
            "number",
            NumberForm(",", "$"),
            "finite numbers, got infinity or a number too large in row 3",
        ),
    ],
)
def test_values_in_another_form(texts, unit, form, message):
    with pytest.raises(Problem) as caught:
        read_as(pa.array(texts), unit, name="c", first_row=2, form=form)
    assert caught.value.message.startswith(f"column 'c' must hold {message}")


@pytest.mark.parametrize(
    ("texts", "unit", "message"),
    [
        (["1", "", "x1"], "number", "numbers, as it did in fit, got 'x1' in row 4"),
        (["2021-01-01", "soon"], "date", "dates such as 2024-12-31, as it did in fit, got 'soon' in row 3"),
        (["1", "1e999"], "number", "finite numbers, got infinity or a number too large in row 3"),
        (["2021-01-01 10:00", "2021-01-01T10:00Z"], "datetime", "dates such as 2024-12-31, as it did in fit, got "),
    ],
)
def test_values_that_do_not_fit(texts, unit, message):
    with pytest.raises(Problem) as caught:
        as_fitted(texts, "numeric", unit)
    assert caught.value.message.startswith(f"column 'c' must hold {message}")


def test_commas_that_may_stand_for_thousands():
    def doubt(texts):
        column = pa.array(texts)
        return describe_comma_doubt(column, read_as(column, "number", name="c", first_row=10), "c", 10)

    assert doubt(["5", "", "1,234"]) == "column 'c': '1,234' in row 12 is read as 1.234; leave out thousands commas"
    assert doubt(["1,234", "1,5"]) is None
    assert doubt(["1234", ""]) is None


@pytest.mark.parametrize(
    ("fitted_range", "numbers"),
    [
        ((250.0, 18424.0), [4500.0, 4500.0, 4.5, -4.5, None, 12.0]),  # as fit saw it
        ((0.0, 10.0), [4500.0, 4.5, 4.5, -4.5, None, 12.0]),
        ((0.0, 18424.0), [4500.0, 4.5, 4.5, -4.5, None, 12.0]),  # both would do
        ((100000.0, 200000.0), [4500.0, 4.5, 4.5, -4.5, None, 12.0]),  # neither
        ((-18424.0, -250.0), [4500.0, 4.5, 4.5, -4500.0, None, 12.0]),
    ],
)
def test_the_range_that_fit_saw_tells_thousands_from_decimals(fitted_range, numbers):
    texts = ["4500", "4,500", "4,5", "-4,500", "", "12"]
    for column in (pa.array(texts), pa.chunked_array([[text] for text in texts])):
        found = read_as(column, "number", name="c", first_row=2, fitted_range=fitted_range)
        assert found.to_pylist() == numbers
