"""NumberForm: how the numbers of a text column are written: decimal mark, thousands, currency or percent."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

#: ISO codes of currencies that are read beside a number.
CODES = (
    "AED|ARS|AUD|BGN|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|EGP|EUR|GBP|HKD|HUF|IDR|ILS|INR|JPY|KES|KRW|MAD|MXN|MYR|NGN|NOK|"
    "NZD|PEN|PHP|PKR|PLN|QAR|RON|RSD|RUB|SAR|SEK|SGD|THB|TRY|TWD|UAH|USD|VND|ZAR"
)
SYMBOLS = r"(?:US|AU|CA|NZ|HK|A|C|S|R)?\$|[€£¥₹₽₩₺₪฿₫₴₦₱₡₵₸₼₾]|zł|Kč|kr\.?|Fr\.?|Rs\.?"
CURRENCY = rf"(?:{CODES}|{SYMBOLS})"

#: A number with what may stand beside it. The core may end in spaces.
PARTS = re.compile(
    rf"(?P<open>\()?(?P<first>[+-])? ?(?P<before>{CURRENCY})? ?(?P<second>[+-])?(?P<inner>\()?"
    rf"(?P<core>[\d.,][\d.,' ]*(?:e[+-]?\d+)?) ?(?P<percent>%)?(?P<after>{CURRENCY})?(?P<last>-)?(?P<close>\))?",
    re.IGNORECASE | re.ASCII,
)
PLAIN = r"\d+\.?\d*(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?"
GROUPED = r"[1-9]\d{0,2}(?:([,' ])\d{3})(?:\1\d{3})*(?:\.\d*)?|[1-9]\d?(?:,\d\d)+,\d{3}(?:\.\d*)?"  # also 12,34,567
POINT = re.compile(f"(?:{PLAIN}|{GROUPED})", re.IGNORECASE | re.ASCII)
EITHER = re.compile(r"\d*[.,]?\d+", re.ASCII)
#: A single mark before three digits: it separates thousands or decimals.
TWOFOLD = re.compile(r"[1-9]\d{0,2}[.,]\d{3}", re.ASCII)
DIGITS = re.compile(r"\d+", re.ASCII)
SWAP = str.maketrans(".,", ",.")
#: Spaces, apostrophes and minus signs of any kind as plain ones; nothing for marks without width.
PLAIN_MARKS = str.maketrans(
    dict.fromkeys("\u00a0\u2007\u2009\u202f\t", " ")
    | {"\u2019": "'", "\u2212": "-"}
    | dict.fromkeys("\ufeff\u200b", None)
)


@dataclass(frozen=True)
class NumberForm:
    """How the numbers of a text column are written.

    Numbers without the currency or percent sign of the column are read too, and those with another one are refused.
    A percentage is the number before its sign: 12% is 12.

    Parameters
    ----------
    decimal : {".", ",", ".,"}
        The decimal mark; the other mark, spaces and apostrophes separate thousands. ".,": a comma was one in fit and
        no point separated thousands, so that a single mark of either kind is a decimal one.
    affix : str
        Currency as it is written, "%", or "".

    Examples
    --------
    >>> NumberForm(",", "€").parse("1.234,50 €"), NumberForm(".", "$").parse("($1,234)")
    (1234.5, -1234.0)
    """

    name: ClassVar[str] = "number"

    decimal: str = "."
    affix: str = ""

    def parse(self, text: str) -> float:
        """Return the number that a text holds, or raise ValueError."""
        parts = number_parts(text)
        if parts is None or not is_same_affix(parts.affix, self.affix):
            raise ValueError(f"text must hold a number, got {text!r}")
        value = read_core(parts.core, self.decimal)
        if value is None:
            raise ValueError(f"text must hold a number with decimal mark {self.decimal!r}, got {text!r}")
        return -value if parts.is_negative else value

    @property
    def example(self) -> str:
        """A text of this form, for messages."""
        number = "1234,5" if "," in self.decimal else "1234.5"
        return number + ("%" if self.affix == "%" else f" {self.affix}" if self.affix else "")

    @property
    def description(self) -> str:
        """What the texts look like: "in $, decimal comma"."""
        affix = {"": [], "%": ["in %"]}.get(self.affix, [f"in {self.affix}"])
        return ", ".join([*affix, *["decimal comma"] * ("," in self.decimal)])

    def to_state(self) -> dict[str, Any]:
        """Return the form as plain data."""
        return {"form": self.name, "decimal": self.decimal, "affix": self.affix}

    @classmethod
    def from_state(cls, state: Any) -> Self:
        """Read what `to_state` returned, or raise ValueError."""
        decimal, affix = state["decimal"], state["affix"]
        if set(state) != {"form", "decimal", "affix"} or decimal not in (".", ",", ".,"):
            raise ValueError(f"a number form must have a decimal mark and an affix, got {state}")
        if not isinstance(affix, str) or (affix not in ("", "%") and not re.fullmatch(CURRENCY, affix, re.IGNORECASE)):
            raise ValueError(f"affix must be a currency, '%' or '', got {affix!r}")
        return cls(decimal, affix)


@dataclass(frozen=True)
class Parts:
    """A number text: digits and marks, what stands beside them, and how its sign is written."""

    core: str
    affix: str
    is_negative: bool
    has_brackets: bool


def number_parts(text: str) -> Parts | None:
    """Return the parts of a number text; None if it is none."""
    match = PARTS.fullmatch(text.translate(PLAIN_MARKS).strip())
    if match is None:
        return None
    start, first, before, second, inner, core, percent, after, last, close = match.groups()
    affixes = [affix for affix in (before, percent, after) if affix]
    signs = [sign for sign in (first, second, last) if sign]
    opened = (start is not None) + (inner is not None)
    if len(affixes) > 1 or len(signs) > 1 or opened != (close is not None) or (opened and signs):
        return None
    affix = affixes[0] if affixes else ""
    return Parts(core.strip(), affix, bool(opened) or signs == ["-"], bool(opened))


def is_number_text(text: str) -> bool:
    """Return whether a text is a number with one decimal mark or the other."""
    parts = number_parts(text)
    return parts is not None and any(read_core(parts.core, decimal) is not None for decimal in (".", ","))


def read_core(core: str, decimal: str) -> float | None:
    """Return the value of digits and marks with a decimal mark; None if they do not fit."""
    if decimal == ".,":
        if EITHER.fullmatch(core):
            return float(core.replace(",", "."))
        value = read_core(core, ".")
        return read_core(core, ",") if value is None else value
    if decimal == ",":
        core = core.translate(SWAP)
    if POINT.fullmatch(core) is None:
        return None
    return float(core.replace(",", "").replace("'", "").replace(" ", ""))


def is_same_affix(affix: str, other: str) -> bool:
    """Return whether a currency or percent sign is missing or the same."""
    return not affix or _key(affix) == _key(other)


def _key(affix: str) -> str:
    return affix.rstrip(".").casefold()


def number_form(texts: Sequence[str], *, decimal_comma: bool = False) -> tuple[NumberForm, str | None] | None:
    """Return the form that all texts have, with a note if it was chosen by a rule; None if they are no numbers.

    A single mark before three digits in every text that has one, such as 1,234, may separate thousands or decimals. It
    separates thousands beside a currency. Otherwise a comma separates thousands by rule, unless `decimal_comma`, and a
    point decimals.

    Examples
    --------
    >>> number_form(["1,234", "5"])
    (NumberForm(decimal='.', affix=''), "'1,234' is read as 1234")
    >>> number_form(["637.324,73"])[0].decimal
    ','
    """
    cores, parts = [], []
    for text in texts:
        part = number_parts(text)
        if part is None:
            return None
        parts.append(part)
        cores.append(part.core)
    affix = next((part.affix for part in parts if part.affix), "")
    if not _are_of_one_unit(parts, affix) or _are_codes([part for part in parts if not part.affix]):
        return None
    if all(part.has_brackets for part in parts) and not affix and all(map(DIGITS.fullmatch, cores)):
        return None  # rather labels than losses
    marks = [decimal for decimal in (".", ",") if all(read_core(core, decimal) is not None for core in cores)]
    if not marks:
        is_either = all(read_core(core, ".,") is not None for core in cores)
        return (NumberForm(".,", affix), None) if is_either else None
    doubtful = next((index for index, core in enumerate(cores) if TWOFOLD.fullmatch(core)), None)
    if len(marks) == 1 or doubtful is None:
        return NumberForm(_comma(cores) if marks[0] == "," else ".", affix), None
    has_comma = "," in cores[doubtful]
    is_money = affix not in ("", "%")
    decimal = "," if (decimal_comma if has_comma else is_money) else "."
    form = NumberForm(_comma(cores) if decimal == "," else ".", affix)
    is_thousands = has_comma == (decimal == ".")
    if (is_money and is_thousands) or (not has_comma and decimal == "."):
        return form, None  # sums have no three decimals
    return form, f"{texts[doubtful]!r} is read as {form.parse(texts[doubtful]):.15g}"


def _comma(cores: Sequence[str]) -> str:
    """Return the decimal mark of numbers with decimal commas."""
    return "," if any("." in core for core in cores) else ".,"


def _are_of_one_unit(parts: list[Parts], affix: str) -> bool:
    """Whether there is one currency, or percent signs beside all numbers but 0."""
    if not all(is_same_affix(part.affix, affix) for part in parts):
        return False
    return affix != "%" or all(part.affix or not part.core.strip("0.,") for part in parts)


def _are_codes(parts: list[Parts]) -> bool:
    """Whether leading zeros have a meaning, as in postcodes, rather than being typed in a few values."""
    wholes = [part.core for part in parts if DIGITS.fullmatch(part.core)]
    n_zeros = sum(len(core) > 1 and core[0] == "0" for core in wholes)
    if not n_zeros or 2 * n_zeros >= len(parts):
        return n_zeros > 0
    return len(wholes) == len(parts) and len(set(map(len, wholes))) == 1
