"""Numbers on the page: what it writes it reads back; what is typed is read as meant, or visibly not at all."""

import re

import numpy as np
import pandas as pd
import pytest

from tartree import TartClassifier
from tartree.explain.page import write_report

pytestmark = pytest.mark.browser

MINUS = "\N{MINUS SIGN}"


def loans(n_rows=300, seed=0):
    """Credit-like rows, in which the sum decides."""
    draw = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "sum": draw.integers(250, 18_424, n_rows).astype(float),
            "rate": draw.normal(0.031, 0.011, n_rows),
            "months": draw.integers(4, 72, n_rows),
            "since": pd.to_timedelta(draw.integers(1, 90_000, n_rows), unit="s"),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(draw.integers(0, 900, n_rows), unit="D"),
        }
    )
    return frame, np.where(frame["sum"] + 60 * frame["months"] > 9000, "bad", "good")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    frame, y = loans()
    model = TartClassifier(depth=2, epochs=30, random_state=0, device="cpu").fit(frame, y)
    path = tmp_path_factory.mktemp("loans") / "page.html"
    write_report(model, frame, y, path, sizes=())
    return path, model, frame


def shown(page):
    """The prediction as it is shown: class and share."""
    return page.locator(".answer").inner_text()


def type_into(page, text, column=0):
    page.fill(f"#value-{column}", "")
    page.locator(f"#value-{column}").press_sequentially(text)


def note(page, column=0):
    return page.locator(f".field:has(#value-{column}) [role=alert]").inner_text()


def test_a_sum_of_thousands_is_the_same_sum(report, visit):
    """The loan that was bad with 4500 and good with 4,500."""
    path, model, frame = report
    page = visit(path)
    page.click("#row-typical")
    page.fill("#value-2", "70")
    type_into(page, "9500")
    wanted, small = shown(page), frame.iloc[:1].assign(sum=9.5, months=70)
    assert wanted.startswith("Predicted bad")
    assert model.predict(small)[0] == "good"
    assert note(page) == ""
    for text in (
        "9,500",
        "9 500",
        "9\u202f500",
        "9\u00a0500",
        "9'500",
        "9\u2019500",
        "9,500.0",
        "9.500,0",
        "9500,0",
        "+9500",
    ):
        type_into(page, text)
        assert shown(page) == wanted, text
        assert note(page) == ("read as 9500" if text != "+9500" else ""), text


READ = {
    "4500": (4500, ""),
    "4,500": (4500, "read as 4500"),
    "4.500": (4.5, "read as 4.5"),
    "4,5": (4.5, "read as 4.5"),
    "4,50": (4.5, "read as 4.5"),
    "0,500": (0.5, "read as 0.5"),
    "4500,5": (4500.5, "read as 4500.5"),
    "1,234,567.5": (1234567.5, "read as 1234567.5"),
    "1.234.567,5": (1234567.5, "read as 1234567.5"),
    "1.234.567": (1234567, "read as 1234567"),
    "1 234 567,5": (1234567.5, "read as 1234567.5"),
    "12'345.5": (12345.5, "read as 12345.5"),
    "\N{MINUS SIGN}4,500": (-4500, "read as -4500"),
    "1.23e+7": (12300000, ""),
    "1.23e\N{MINUS SIGN}5": (0.0000123, ""),
    ".5": (0.5, ""),
    "5.": (5, ""),
}
UNREADABLE = [
    "4,5,6",
    "4,50,000",
    "1,234,56",
    "1.2.3",
    "12 34",
    "4 5",
    "0x10",
    "4500 EUR",
    "1e999",
    "Infinity",
    "-",
    "4,,5",
    "\u0664",
]


@pytest.mark.parametrize("text", READ)
def test_forms_of_numbers(report, visit, text):
    path, _, frame = report
    value, reading = READ[text]
    page = visit(path)
    page.click("#row-typical")
    page.fill("#value-0", text)
    found = note(page)
    assert found.partition("; ")[0].replace("outside the data's range", "") == reading
    assert ("outside the data's range" in found) == (not frame["sum"].min() <= value <= frame["sum"].max())
    typical = page.evaluate("window.tartree.report.columns.map((column) => column.typical)")
    wanted = page.evaluate("values => window.tartree.predictValues(values)", [value, *typical[1:]])
    share = re.search(r"\((.*)\)", shown(page))[1]
    assert share == page.evaluate("p => window.tartree.shareText(p)", max(wanted))


def test_what_cannot_be_read_changes_nothing(report, visit):
    path, _, _ = report
    page = visit(path)
    page.click("#row-typical")
    page.fill("#value-0", "6000")
    before = page.locator("#prediction").inner_text()
    for text in UNREADABLE:
        page.fill("#value-0", "6000")
        page.fill("#value-0", text)
        assert note(page) == "not a number: the prediction still uses 6000", text
        assert page.get_attribute("#value-0", "aria-invalid") == "true"
        assert page.locator("#prediction").inner_text() == before
    page.fill("#value-0", "6000")
    assert note(page) == ""
    assert page.get_attribute("#value-0", "aria-invalid") == "false"


def numbers(seed=0):
    """Numbers of all sizes, signs and digits, and some that are near a change of the format."""
    draw = np.random.default_rng(seed)
    made = draw.normal(size=1200) * 10.0 ** draw.integers(-12, 15, 1200)
    short = np.array([float(f"{value:.{digits}g}") for value in made[:300] for digits in (1, 2, 3, 4)])
    edges = [0, 1, 999, 1000, 9999.5, 99999.5, 1e4, 1e6, 9999999, 1e7, 9999999.5, 1e-4, 9.9999e-5, 1e15, 0.1 + 0.2]
    return [*made, *short, *np.rint(made), *edges, *(-np.array(edges))]


def test_what_the_page_writes_it_reads(report, visit):
    """The text of a number is read as the number that it shows, which is near the number itself."""
    page = visit(report[0])
    given = [float(value) for value in numbers()]
    texts = page.evaluate("all => all.map((value) => window.tartree.numberText(value))", given)
    read = page.evaluate("all => all.map((text) => window.tartree.readNumber(text).value)", texts)
    meant = [float(text.replace(MINUS, "-").replace(",", "")) for text in texts]
    assert read == meant
    for value, found in zip(given, read, strict=True):
        assert abs(found - value) <= 0.0051 * abs(value)
        if value.is_integer() and abs(value) < 1e7:
            assert found == value
    assert sum("," in text for text in texts) > 200
    assert sum("e" in text for text in texts) > 200


def test_values_of_columns_are_read_back(report, visit):
    """Ranges, values of rows and typical values of every column, as they are written beside its field."""
    page = visit(report[0])
    read = """() => window.tartree.report.columns.flatMap((column, place) =>
      [...window.tartree.report.rows.columns[place].slice(0, 50), null].map((value) => {
        const text = window.tartree.valueText(column, value);
        return [text, value, window.tartree.parseValue(column, text)];
      }))"""
    found = page.evaluate(read)
    assert len(found) == 5 * 51
    for text, value, again in found:
        assert (again is None) == (value is None), text
        if value is not None:
            assert again == pytest.approx(value, rel=6e-4), text


def test_the_range_beside_a_field_lies_within_it(report, visit):
    page = visit(report[0])
    page.click("#row-typical")
    for place, name in enumerate(["sum", "rate", "months", "since"]):
        low, high = page.locator(f"#value-{place}-range").inner_text().split(" to ")
        for text in (low, high):
            page.fill(f"#value-{place}", text)
            assert "outside" not in note(page, place), (name, text)
            assert "not a" not in note(page, place), (name, text)
    columns = [(0.123456, 0.98765432), (1000.00001, 1000.00002), (-3.33333, -3.33332), (1e-9, 2.34567e9), (0.3, 0.7)]
    for low, high in columns:
        text = page.evaluate("c => window.tartree.rangeText(c)", {"unit": "number", "low": low, "high": high})
        ends = [float(end.replace(MINUS, "-").replace(",", "")) for end in text.split(" to ")]
        assert low <= ends[0] <= ends[1] <= high
        assert len(text) < 30


def test_rows_are_found_by_number_in_any_form(tmp_path, visit):
    frame, y = loans(1300)
    model = TartClassifier(depth=1, epochs=2, random_state=0, device="cpu").fit(frame, y)
    write_report(model, frame, y, tmp_path / "page.html", rows=1300, sizes=())
    page = visit(tmp_path / "page.html")
    for text in ("1,200", "1200", "1 200"):
        page.fill("#row-number", "3")
        page.press("#row-number", "Enter")
        page.fill("#row-number", text)
        page.press("#row-number", "Enter")
        assert page.input_value("#row-number") == "1200"
        assert page.input_value("#value-0") == f"{frame['sum'][1199]:.0f}"


def test_what_is_nearly_all_or_nothing_is_not_said_to_be_so(report, visit):
    page = visit(report[0])

    def text(name, value):
        return page.evaluate(f"value => window.tartree.{name}(value)", value)

    for name, whole in (("shareText", "100%"), ("exactShareText", "100.0%"), ("scoreText", "1.000")):
        assert text(name, 1) == whole
        for near in (0.9996, 0.99996, 1 - 1e-12):
            assert text(name, near).startswith(">")
    for name, nothing in (("shareText", "0%"), ("exactShareText", "0.0%")):
        assert text(name, 0) == nothing
        for near in (0.0004, 1e-9):
            assert text(name, near) == "<0.1%"
    draw = np.random.default_rng(0)
    for value in draw.uniform(size=50) * 10.0 ** draw.integers(-4, 4, 50):
        for name in ("changeText", "boundText"):  # for what is called the largest, or a bound
            shown = text(name, value)
            if not shown.startswith("<"):
                assert value <= float(shown.replace(",", "").replace(MINUS, "-")) <= value + max(1e-4, 1e-3 * value)
