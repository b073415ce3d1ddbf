"""TextReading: what a column of text is read as, decided from all of its different texts."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tartree.table.texts.date_form import DateForm, date_form, read_date
from tartree.table.texts.number_form import DIGITS, NumberForm, is_number_text, number_form, number_parts

TextForm: TypeAlias = NumberForm | DateForm

#: Each form by the name in its state.
FORMS: dict[str, type[NumberForm] | type[DateForm]] = {form.name: form for form in (NumberForm, DateForm)}

#: Texts of missing values, in lower case; a column of numbers or dates has more of them.
MISSING = ("", "na", "n/a", "nan", "null", "?", "<na>", "#n/a", "#null!", "#value!", "#div/0!")
NUMBER_MISSING = (*MISSING, "-", "--", "---", ".", "..", "none", "missing", "unknown", "n.a.", "nd", "n.d.", "nil")
_IS_MISSING = frozenset(NUMBER_MISSING)

#: Different texts that are looked at before all others: most columns of text are recognised by them.
SAMPLE = 64
#: Different texts that a note about them is made from.
DOUBT_SAMPLE = 1000


@dataclass(frozen=True)
class TextReading:
    """What a column of text is read as.

    Parameters
    ----------
    kind : {"number", "datetime", "datetime[UTC]"}
    form : NumberForm or DateForm
    note : str or None
        What was decided by a rule, since the texts alone do not tell.
    """

    kind: str
    form: TextForm
    note: str | None = None


def read_texts(texts: Sequence[str], *, decimal_comma: bool = False, digits: bool = True) -> TextReading | None:
    """Return how the different texts of a column are read as numbers or dates; None if they are levels.

    Parameters
    ----------
    texts : sequence of str
        Among them those of missing values.
    decimal_comma : bool, default=False
        Whether 1,234 has a decimal comma if no other text tells.
    digits : bool, default=True
        Whether a column of nothing but digits is one of numbers, rather than of codes.

    Examples
    --------
    >>> read_texts(["12%", "7.5 %", "n/a"])
    TextReading(kind='number', form=NumberForm(decimal='.', affix='%'), note=None)
    >>> read_texts(["16/01/2020", "07/05/2020 3:15 pm"]).form
    DateForm(order='dmy')
    """
    present = [text for text in texts if not is_missing_text(text)]
    sample = present[:SAMPLE]
    if not present:
        return None
    if all(number_parts(text) is not None for text in sample):
        if not digits and len(present) == len(texts) and all(map(DIGITS.fullmatch, present)):
            return None
        numbers = number_form(present, decimal_comma=decimal_comma)
        if numbers is not None:
            return TextReading("number", *numbers)
    dates = date_form(present) if all(read_date(text) is not None for text in sample) else None
    if dates is None:
        return None
    form, zoned, note = dates
    return TextReading("datetime[UTC]" if zoned else "datetime", form, note)


def read_number_texts(values: Any) -> Any:
    """Return one-dimensional texts as numbers if all of them are, with a warning if a rule decides how; else as it is.

    Examples
    --------
    >>> read_number_texts(["$447,000.00", "$1.75"])
    array([4.47e+05, 1.75e+00])
    """
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "UOT":
        return values
    texts = array.tolist()
    different = list(dict.fromkeys(text for text in texts if isinstance(text, str)))
    reading = read_texts(different) if set(map(type, texts)) <= {str, type(None)} else None
    if reading is None or reading.kind != "number":
        return values
    if reading.note is not None:
        warnings.warn(f"target: {reading.note}; give numbers if it is meant otherwise", stacklevel=2)
    return parse_texts(texts, reading.form)[0]


def describe_doubt(texts: Sequence[str]) -> str | None:
    """Return a note about texts that are levels, although most look like numbers or dates; None if they do not.

    Examples
    --------
    >>> describe_doubt(["1.5", "2.5", "<3"])
    "read as text: '<3' is no number"
    """
    present = [text for text in texts[:DOUBT_SAMPLE] if not is_missing_text(text)]
    for noun, is_one in (("number", is_number_text), ("date", _is_date)):
        wrong = [text for text in present if not is_one(text)]
        if present and not wrong and not all(map(DIGITS.fullmatch, present)):
            return f"read as text: its {noun}s are written in several ways, such as {_two_of(present)}"
        if wrong and 2 * len(wrong) < len(present):
            return f"read as text: {wrong[0]!r} is no {noun}"
    return None


def _is_date(text: str) -> bool:
    return read_date(text) is not None


def _two_of(texts: Sequence[str]) -> str:
    return f"{texts[0]!r} and {texts[-1]!r}"


def is_missing_text(text: str) -> bool:
    """Return whether a text means a missing value in a column of numbers or dates."""
    return len(text) < 12 and text.strip().lower() in _IS_MISSING


def parse_texts(texts: Sequence[Any], form: TextForm) -> tuple[NDArray[np.float64], int | None]:
    """Return texts as numbers or seconds, NaN for missing ones and None, and the index of the first wrong text."""
    values = np.full(len(texts), np.nan)
    known: dict[str, float] = {}
    for index, text in enumerate(texts):
        if text is None:
            continue
        value = known.get(text)
        if value is None:
            if is_missing_text(text):
                continue
            try:
                value = known[text] = form.parse(text)
            except (ValueError, OverflowError):
                return values, index
        values[index] = value
    return values, None


def form_from_state(state: Any) -> TextForm:
    """Read what `to_state` of a form returned, or raise ValueError."""
    if not isinstance(state, Mapping) or state.get("form") not in tuple(FORMS):
        raise ValueError(f"a form must be one of {', '.join(FORMS)}, got {state}")
    return FORMS[state["form"]].from_state(state)
