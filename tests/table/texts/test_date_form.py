"""Dates as people write them."""

import datetime

import pytest

from tartree.table.texts.date_form import DateForm, date_form

EPOCH = datetime.datetime(1970, 1, 1)


def instants(texts):
    form, _, _ = date_form(texts)
    return [(EPOCH + datetime.timedelta(seconds=form.parse(text))).isoformat(" ") for text in texts]


@pytest.mark.parametrize(
    ("texts", "instant"),
    [
        (["2020-01-16", "2020/1/16", "2020-01-16 00:00"], "2020-01-16 00:00:00"),
        (["16/01/2020", "16.01.2020", "16-1-2020", "16/01/20", "16.01.20"], "2020-01-16 00:00:00"),
        (["01/16/2020", "1/16/20"], "2020-01-16 00:00:00"),
        (["May 07, 2020", "7 May 2020", "07-May-2020", "Thu, 7th may 2020", "May. 7 2020"][:4], "2020-05-07 00:00:00"),
        (["Sept. 3, 2020", "3 September 2020", "Sep 3rd, 2020"], "2020-09-03 00:00:00"),
        (["16/01/2020 3:05 pm", "2020-01-16T15:05", "Jan 16, 2020 at 3:05 P.M."], "2020-01-16 15:05:00"),
        (["2020-01-16 12:00 AM", "2020-01-16 0:00"], "2020-01-16 00:00:00"),
        (["2020-01-16 10:00:30.25"], "2020-01-16 10:00:30.250000"),
        (["2020-01-16T10:00:00Z", "2020-01-16T12:00+02:00", "2020-01-16 04:30-0530"], "2020-01-16 10:00:00"),
        ([" 2020-01-16\N{NO-BREAK SPACE}", "16/01/1999"][:1], "2020-01-16 00:00:00"),
    ],
)
def test_instants(texts, instant):
    assert set(instants(texts)) == {instant}


def test_two_digits_of_a_year():
    assert instants(["31.12.68", "31.12.69"]) == ["2068-12-31 00:00:00", "1969-12-31 00:00:00"]


@pytest.mark.parametrize(
    "texts",
    [
        ["16/13/2020"],
        ["16/01/2020", "01/16/2020"],
        ["2020-02-30"],
        ["1.2.10"],
        ["12-11-10"],
        ["13:00 pm"],
        ["2020-01-01 13:00 pm"],
        ["2020-01-01 10:00", "2020-01-01T10:00Z"],
        ["May 2020"],
        ["20200101"],
        ["1-2"],
    ],
)
def test_other_texts(texts):
    assert date_form(texts) is None


@pytest.mark.parametrize(
    ("texts", "order", "note"),
    [
        (["01/02/2020", "16/02/2020"], "dmy", None),
        (["01/02/2020", "02/16/2020"], "mdy", None),
        (["03/03/2020", "01/02/2020"], "dmy", "'01/02/2020' is read as day/month/year, 2020-02-01"),
        (["01.02.2020"], "", None),
        (["2020-01-02", "May 7, 2020"], "", None),
        (["05/05/2020"], "dmy", None),
    ],
)
def test_the_order_of_a_whole_column(texts, order, note):
    form, _, found = date_form(texts)
    assert (form.order, found) == (order, note)
    assert DateForm.from_state(form.to_state()) == form


def test_time_zones():
    assert date_form(["2020-01-01T10:00Z"])[1]
    assert not date_form(["2020-01-01T10:00"])[1]


def test_what_a_form_refuses():
    for text in ("01/02/2020", "soon", "2020-02-30", ""):
        with pytest.raises(ValueError, match=r"must|day"):
            DateForm().parse(text)
    with pytest.raises(ValueError, match="must have an order"):
        DateForm.from_state({"form": "date", "order": "ydm"})
