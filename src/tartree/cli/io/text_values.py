"""Values of a CSV column from text: numbers, dates, booleans or levels, decided over the whole column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tartree.cli.io.durations import to_durations, to_times
from tartree.cli.problems import FIRST_ROW, Problem
from tartree.table.column_kinds import plain_reading, reading_as
from tartree.table.texts.date_form import DateForm
from tartree.table.texts.number_form import NumberForm
from tartree.table.texts.text_forms import (
    MISSING,
    NUMBER_MISSING,
    TextForm,
    TextReading,
    describe_doubt,
    parse_texts,
    read_texts,
)

NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
WHOLE = r"^[+-]?\d{1,15}$"
LEADING_ZERO = r"^0\d+$"
DECIMAL_COMMA = r"^[+-]?\d*,\d+$"
THOUSANDS = r"^[+-]?[1-9]\d{0,2},\d{3}$"  # or a decimal comma, which one value alone does not tell
SIGNS = r"[<>=%\s\x{2264}\x{2265}\x{A0}\x{2009}\x{202F}]"  # beside a number, and the spaces within
MEANT = rf"{NUMBER}|{DECIMAL_COMMA}|^[+-]?\d{{1,3}}([,.'\x{{2019}}]\d{{3}})+([.,]\d+)?$"  # a number as people write it


class TypedColumn(NamedTuple):
    """Values of a column in the type that all of its texts have; how they were read, and a note if by a rule."""

    values: Any
    form: TextForm | None = None
    note: str | None = None


def trim(column: Any) -> Any:
    """Return text without the spaces around it."""
    return pc.utf8_trim_whitespace(column)


def blank(text: Any, missing: tuple[str, ...] = MISSING) -> Any:
    """Return trimmed text, null where it is a text of missing values."""
    is_missing = pc.is_in(pc.utf8_lower(text), value_set=pa.array(missing))
    return pc.if_else(is_missing, pa.scalar(None, pa.string()), text)


def infer(column: Any, *, decimal_comma: bool) -> TypedColumn:
    """Return a column of text in the type that all of its values have."""
    text = trim(column)
    present = blank(text, NUMBER_MISSING)
    if present.null_count == len(present):
        return TypedColumn(blank(text))
    if _are_codes(present):
        return TypedColumn(blank(text))
    numbers = to_numbers(present, decimal_comma=False)
    if numbers is not None:
        return TypedColumn(numbers)
    if _has_decimal_commas(present):
        numbers = to_numbers(present, decimal_comma=True)
        if numbers is not None:
            return TypedColumn(numbers, NumberForm(".,"))
    lower = pc.utf8_lower(present)
    if _all(pc.is_in(pc.drop_null(lower), value_set=pa.array(["true", "false"]))):
        return TypedColumn(pc.equal(lower, "true"))
    dates = to_dates(present)
    if dates is not None:
        return TypedColumn(dates, DateForm())
    reading = read_texts(different_texts(present), decimal_comma=decimal_comma)
    if reading is None:
        return TypedColumn(blank(text))
    values, _ = _parse(present, reading)
    return TypedColumn(values, reading.form, reading.note)


def read_kind(column: Any, kind: str, name: str, *, decimal_comma: bool) -> TypedColumn:
    """Return a column of text as the kind that the user gives it, or raise with the row of a value that is none."""
    text = trim(column)
    if kind == "category":
        return TypedColumn(blank(text))
    present = blank(text, NUMBER_MISSING)
    decimal_comma = decimal_comma or kind == "number-decimal-comma"
    inferred = read_texts(different_texts(present), decimal_comma=decimal_comma)
    reading = reading_as(kind, inferred) or plain_reading(kind)
    form = reading.form
    values, wrong = _parse(present, reading)
    if wrong is not None:
        raise Problem(
            f"column {name!r} must hold {form.name}s such as {form.example} for --column {name}:{kind}, "
            f"got {present[wrong].as_py()!r} in row {FIRST_ROW + wrong}; correct it or leave it empty"
        )
    check_finite(values, name, FIRST_ROW)
    return TypedColumn(values, form, reading.note)


def different_texts(text: Any) -> list[str]:
    """Return the different texts of a column without its missing values."""
    texts: list[str] = pc.unique(pc.drop_null(text)).to_pylist()
    return texts


def _parse(text: Any, reading: TextReading) -> tuple[Any, int | None]:
    """Return texts as numbers or timestamps, and the first row with another text."""
    coded = text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text
    if isinstance(coded, pa.ChunkedArray):  # without rows it has no chunk
        coded = pa.array([], pa.string())
    coded = coded.dictionary_encode()
    different, wrong = parse_texts(coded.dictionary.to_pylist(), reading.form)
    if wrong is not None:
        return None, pc.index(coded.indices, wrong).as_py()
    codes = coded.indices.fill_null(len(different)).to_numpy(zero_copy_only=False)
    values = np.append(different, np.nan)[codes]  # (rows,)
    missing = np.isnan(values)
    if reading.kind == "number":
        is_whole = bool((np.rint(different) == different).all() and (np.abs(different) < 2**53).all())
        return pa.array(np.where(missing, 0, values).astype(np.int64) if is_whole else values, mask=missing), None
    ticks = np.rint(np.where(missing, 0, values) * 1e6).astype(np.int64)
    return pa.array(ticks, pa.timestamp("us", "UTC" if reading.kind == "datetime[UTC]" else None), mask=missing), None


def _are_codes(text: Any) -> bool:
    """Whether leading zeros have a meaning, as in postcodes, rather than being typed in a few values."""
    present = pc.drop_null(text)
    n_zeros = pc.sum(pc.match_substring_regex(present, LEADING_ZERO)).as_py() or 0
    if not n_zeros or 2 * n_zeros >= len(present):
        return bool(n_zeros)
    return _all(pc.match_substring_regex(present, r"^\d+$")) and len(pc.unique(pc.utf8_length(present))) == 1


def _has_decimal_commas(text: Any) -> bool:
    """Whether all commas are decimal ones, and there are no points."""
    commas = _with_comma(text)
    return bool(
        len(commas)
        and _all(pc.match_substring_regex(commas, DECIMAL_COMMA))
        and not _all(pc.match_substring_regex(commas, THOUSANDS))
        and not _any(pc.match_substring(pc.drop_null(text), "."))
    )


def _with_comma(text: Any) -> Any:
    present = pc.drop_null(text)
    return pc.filter(present, pc.match_substring(present, ","))


def to_numbers(text: Any, *, decimal_comma: bool) -> Any:
    """Return whole numbers as int64 and others as float64, or None if a value is no number."""
    for repair in (False, True):
        repaired = _repaired(text, decimal_comma) if repair else text
        try:
            numbers = pc.cast(repaired, pa.float64())
        except pa.ArrowInvalid:
            continue
        return pc.cast(numbers, pa.int64()) if _all(pc.match_substring_regex(repaired, WHOLE)) else numbers
    return None


def _repaired(text: Any, decimal_comma: bool) -> Any:
    """Return numbers with a plain minus and a decimal point."""
    text = pc.replace_substring(text, "\N{MINUS SIGN}", "-")
    return pc.replace_substring_regex(text, r"^([+-]?\d*),(\d+)$", r"\1.\2") if decimal_comma else text


def to_dates(text: Any) -> Any:
    """Return dates or datetimes from ISO form, or from 31.12.2024; None if a value is none."""
    text = pc.replace_substring_regex(text, r"^(\d)\.", r"0\1.")
    text = pc.replace_substring_regex(text, r"^(\d\d)\.(\d)\.", r"\1.0\2.")
    text = pc.replace_substring_regex(text, r"^(\d\d)\.(\d\d)\.(\d{4})\b", r"\3-\2-\1")
    for arrow_type in (pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return pc.cast(text, arrow_type)
        except pa.ArrowInvalid:
            continue
    return None


def _to_numbers_each(text: Any) -> Any:
    return to_numbers(text, decimal_comma=True)


_DATES = (to_dates, "dates such as 2024-12-31")
#: Reader and name of the values of each fitted unit; levels, and values of other units, are text to the encoder.
_READERS: dict[str | None, tuple[Callable[[Any], Any], str]] = {
    "number": (_to_numbers_each, "numbers"),
    "duration": (to_durations, "durations such as 2 days 12:30:00"),
    "time": (to_times, "times of day such as 12:30:00"),
    **dict.fromkeys(("date", "datetime", "datetime[UTC]"), _DATES),
}


def read_as(
    column: Any,
    unit: str | None,
    *,
    name: str,
    first_row: int,
    fitted_range: tuple[float, float] | None = None,
    form: TextForm | None = None,
) -> Any:
    """Return a column of text in the type of a fitted column, or raise with the row of a value that has another.

    Each value is read alone, so that chunks of rows do not matter. Text is read by the `form` that fit saw. Without
    one, a comma is a decimal one, unless 4500 is within the `fitted_range` of numbers seen in fit and 4.5 is not.
    """
    text = trim(column)
    if unit not in _READERS:
        return blank(text)
    if form is not None:
        return _read_by_form(blank(text, NUMBER_MISSING), unit, form, name, first_row)
    read, wanted = _READERS[unit]
    present = blank(text, NUMBER_MISSING)
    typed = read(present)
    check_finite(typed, name, first_row)
    if typed is None:
        row, value = _first_wrong(present, read)
        raise Problem(
            f"column {name!r} must hold {wanted}, as it did in fit, got {value!r} in row {first_row + row}; "
            "correct it or leave it empty"
        )
    return typed if fitted_range is None or unit != "number" else _with_thousands(present, typed, fitted_range)


def _read_by_form(text: Any, unit: str | None, form: TextForm, name: str, first_row: int) -> Any:
    """Return texts in the form of a fitted column, or raise with the row of a value that has another."""
    fast = to_dates(text) if form == DateForm() else None
    if isinstance(form, NumberForm) and form.decimal != ",":
        fast = to_numbers(text, decimal_comma=False)
    if fast is None:
        kind = "number" if form.name == "number" else "datetime[UTC]" if unit == "datetime[UTC]" else "datetime"
        fast, wrong = _parse(text, TextReading(kind, form))
        if wrong is not None:
            raise Problem(
                f"column {name!r} must hold {form.name}s such as {form.example}, as it did in fit, "
                f"got {text[wrong].as_py()!r} in row {first_row + wrong}; correct it or leave it empty"
            )
    check_finite(fast, name, first_row)
    return fast


def _with_thousands(text: Any, numbers: Any, fitted_range: tuple[float, float]) -> Any:
    """Read commas as separators of thousands where only that is within the range seen in fit."""
    candidates = pc.fill_null(pc.match_substring_regex(text, THOUSANDS), False)
    if not _any(candidates):
        return numbers
    without = pc.if_else(candidates, pc.replace_substring(text, ",", ""), pa.scalar(None, pa.string()))
    thousands = pc.cast(without, pa.float64())
    is_meant = pc.and_(_is_within(thousands, fitted_range), pc.invert(_is_within(numbers, fitted_range)))
    return pc.if_else(pc.and_(candidates, pc.fill_null(is_meant, False)), thousands, pc.cast(numbers, pa.float64()))


def _is_within(numbers: Any, limits: tuple[float, float]) -> Any:
    return pc.and_(pc.greater_equal(numbers, limits[0]), pc.less_equal(numbers, limits[1]))


def check_finite(column: Any, name: str, first_row: int) -> None:
    """Raise if a column holds infinity."""
    if column is not None and pa.types.is_floating(column.type):
        infinite = pc.fill_null(pc.is_inf(column), False)
        if _any(infinite):
            row = first_row + pc.index(infinite, True).as_py()
            raise Problem(f"column {name!r} must hold finite numbers, got infinity or a number too large in row {row}")


def _first_wrong(text: Any, read: Callable[[Any], Any]) -> tuple[int, str]:
    for row, value in enumerate(text.to_pylist()):
        if read(pa.array([value], pa.string())) is None:
            return row, value
    # Each value is a date, but in several forms.
    return 0, text.drop_null()[0].as_py()


def describe_text_doubt(typed: Any, name: str, *, decimal_comma: bool) -> str | None:
    """Return a note about a column that was read as text but looks like numbers or dates; None if it does not."""
    if not pa.types.is_string(typed.type) or typed.null_count == len(typed):
        return None
    present = pc.drop_null(typed)
    numeric = pc.match_substring_regex(_repaired(blank(present, NUMBER_MISSING), decimal_comma), NUMBER)
    wrong = pc.filter(present, pc.invert(pc.fill_null(numeric, True)))  # missing values of numbers are not wrong
    n_numbers = pc.sum(numeric).as_py() or 0
    n_meant = pc.sum(pc.match_substring_regex(pc.replace_substring_regex(wrong, SIGNS, ""), MEANT)).as_py() or 0
    if len(wrong) and 2 * (n_numbers + n_meant) >= n_numbers + len(wrong):
        row = pc.index(typed, wrong[0]).as_py() + FIRST_ROW
        few = len(wrong) <= 0.2 * len(present)
        return (
            f"column {name!r} is read as text: {len(wrong)} of {len(present)} values are no numbers "
            f"(row {row}: {wrong[0].as_py()!r}); "
            f"{'correct them or leave them empty' if few else 'if it is to be numbers, write them like 1234.5'}"
        )
    doubt = describe_doubt(different_texts(present))
    return None if doubt is None else f"column {name!r} is {doubt}"


def describe_comma_doubt(column: Any, numbers: Any, name: str, first_row: int) -> str | None:
    """Return a note about commas that may be decimal ones or separate thousands, read as `numbers`; None without."""
    text = trim(column)
    commas = _with_comma(text)
    if not len(commas) or not _all(pc.match_substring_regex(commas, THOUSANDS)):
        return None
    index = pc.index(text, commas[0]).as_py()
    value, read = commas[0].as_py(), numbers[index].as_py()
    return f"column {name!r}: {value!r} in row {first_row + index} is read as {read:.15g}; leave out thousands commas"


def _all(mask: Any) -> bool:
    return bool(pc.all(mask).as_py())


def _any(mask: Any) -> bool:
    return bool(pc.any(mask).as_py())
