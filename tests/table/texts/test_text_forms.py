"""What a column of text is read as."""

import numpy as np
import pytest

from tartree.table.texts.date_form import DateForm
from tartree.table.texts.number_form import NumberForm
from tartree.table.texts.text_forms import describe_doubt, form_from_state, parse_texts, read_texts


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["1.5", "NA", "-"], "number"),
        (["2020-01-01", "unknown"], "datetime"),
        (["2020-01-01T10:00Z"], "datetime[UTC]"),
        (["1", "2"], "number"),
    ],
)
def test_kinds(texts, kind):
    assert read_texts(texts).kind == kind


@pytest.mark.parametrize("texts", [[], ["", "NA"], ["red"], ["1"] * 100 + ["red"], ["yes", "no"], ["2020-01-01", "5"]])
def test_levels(texts):
    assert read_texts(texts) is None


def test_digits_alone_may_be_codes():
    assert read_texts(["1", "2"], digits=False) is None
    assert read_texts(["1", "2", "NA"], digits=False).kind == "number"
    assert read_texts(["1", "-2"], digits=False).kind == "number"


def test_values_and_the_first_wrong_text():
    values, wrong = parse_texts(["$1", None, "NA", "$1", "$2,000"], NumberForm(".", "$"))
    np.testing.assert_array_equal(values, [1, np.nan, np.nan, 1, 2000])
    assert wrong is None
    assert parse_texts(["16/01/2020", "x", "y"], DateForm("dmy"))[1] == 1


def test_doubts():
    assert describe_doubt(["red", "blue", "1"]) is None
    assert describe_doubt(["1", "2"]) is None
    assert describe_doubt(["16/01/2020", "01/16/2020"]) == (
        "read as text: its dates are written in several ways, such as '16/01/2020' and '01/16/2020'"
    )


def test_an_unknown_form_is_refused():
    with pytest.raises(ValueError, match="a form must be one of number, date"):
        form_from_state({"form": "word"})
