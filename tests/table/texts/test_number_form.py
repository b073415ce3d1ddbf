"""Numbers as people write them."""

import pytest

from tartree.table.texts.number_form import NumberForm, number_form


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["$1.75", "$447,000", "3"], [1.75, 447000, 3]),
        (["1.234,50 €", "€ 5"], [1234.5, 5]),
        (["USD 5", "7 usd"], [5, 7]),
        (["kr 5", "5 kr."], [5, 5]),
        (["12%", "7.5 %", "0"], [12, 7.5, 0]),
        (["637.324,73", "12,00"], [637324.73, 12]),
        (["1,234,567", "12.5"], [1234567, 12.5]),
        (["1.234.567", "5"], [1234567, 5]),
        (["12,34,567", "1,00,000"], [1234567, 100000]),
        (["1'234", "CHF 1\N{RIGHT SINGLE QUOTATION MARK}200.50"], [1234, 1200.5]),
        (["\N{NO-BREAK SPACE}1\N{NARROW NO-BREAK SPACE}234,5 ", "3"], [1234.5, 3]),
        (["(1,234.5)", "($3)", "-$5", "$-6", "7-", "\N{MINUS SIGN}8"], [-1234.5, -3, -5, -6, -7, -8]),
        (["1,5", "2.5"], [1.5, 2.5]),
        (["0,125", "1,125"], [0.125, 1.125]),
        (["1e5", ".5", "2."], [1e5, 0.5, 2]),
        (["07", "12", "13", "120"], [7, 12, 13, 120]),
    ],
)
def test_values(texts, values):
    form, note = number_form(texts)
    assert [form.parse(text) for text in texts] == values
    assert note is None
    assert NumberForm.from_state(form.to_state()) == form


@pytest.mark.parametrize(
    "texts",
    [
        ["$5", "€5"],
        ["12%", "13"],
        ["(1)", "(2)"],
        ["007", "123"],
        ["192.168.1.1"],
        ["1,2,3"],
        ["12,3456", "1.5,2"],
        ["1.5", "x"],
        ["--5"],
        ["(5"],
        ["-(5)"],
        ["5%%"],
        ["1 2"],
    ],
)
def test_other_texts(texts):
    assert number_form(texts) is None


@pytest.mark.parametrize(
    ("texts", "decimal_comma", "values", "note"),
    [
        (["1,234", "5"], False, [1234, 5], "'1,234' is read as 1234"),
        (["5", "1,234"], True, [5, 1.234], "'1,234' is read as 1.234"),
        (["1,234", "5.5"], True, [1234, 5.5], None),
        (["€1.234", "800"], False, [1234, 800], None),
        (["$1,234", "800"], False, [1234, 800], None),
        (["$1,234", "800"], True, [1.234, 800], "'$1,234' is read as 1.234"),
        (["1.234", "800"], False, [1.234, 800], None),
        (["1.234%", "8%"], False, [1.234, 8], None),
    ],
)
def test_a_single_mark_before_three_digits(texts, decimal_comma, values, note):
    form, found = number_form(texts, decimal_comma=decimal_comma)
    assert [form.parse(text) for text in texts] == values
    assert found == note


def test_a_decimal_comma_without_points_in_fit_leaves_points_decimal():
    form, _ = number_form(["0,125", "12,5"])
    texts = ["0.125", "3.125", "3,125", "1.234,5", "1.234.567", "1 234"]
    assert [form.parse(text) for text in texts] == [0.125, 3.125, 3.125, 1234.5, 1234567, 1234]
    form, _ = number_form(["1.234,5", "12,5"])
    assert form.parse("3.125") == 3125


def test_what_a_form_refuses():
    dollars = NumberForm(".", "$")
    assert dollars.parse("5") == 5
    for text in ("€5", "5%", "1.234,5", "five", ""):
        with pytest.raises(ValueError, match="must hold a number"):
            dollars.parse(text)


@pytest.mark.parametrize(
    "state",
    [
        {"form": "number", "decimal": ";", "affix": ""},
        {"form": "number", "decimal": ".", "affix": "m"},
        {"form": "number", "decimal": ".", "affix": None},
        {"form": "number", "decimal": ".", "affix": "", "more": 1},
    ],
)
def test_wrong_states(state):
    with pytest.raises(ValueError, match=", got "):
        NumberForm.from_state(state)


def test_descriptions():
    assert NumberForm(",", "€").description == "in €, decimal comma"
    assert NumberForm(".", "%").description == "in %"
    assert NumberForm().description == ""
    assert [NumberForm(".", "$").example, NumberForm(",", "%").example] == ["1234.5 $", "1234,5%"]
