"""DateForm: how the dates of a text column are written, and which of two numbers is the day."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

ENDINGS = {
    "jan": "uary", "feb": "ruary", "mar": "ch", "apr": "il", "may": "", "jun": "e", "jul": "y", "aug": "ust",
    "sep": "tember", "oct": "ober", "nov": "ember", "dec": "ember",
}  # fmt: skip
MONTHS = list(ENDINGS)
MONTH = "|".join([*(f"{month}(?:{ending}|\\.)?" for month, ending in ENDINGS.items() if ending), "may", r"sept\.?"])
CLOCK = (
    r"(?:(?:T|,? ?at |,? )(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?)?"
    r" ?(?P<half>[ap]\.?m\.?)? ?(?P<zone>Z|UTC|[+-]\d\d(?::?\d\d)?)?)?"
)
WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,? )?"
ORDINAL = r"(?:st|nd|rd|th)?"
FLAGS = re.IGNORECASE | re.ASCII
ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?", re.ASCII)
YEAR_FIRST = re.compile(
    rf"(?P<year>\d{{4}})(?P<mark>[-/.])(?P<month>\d{{1,2}})(?P=mark)(?P<day>\d{{1,2}}){CLOCK}", FLAGS
)
YEAR_LAST = re.compile(
    rf"(?P<one>\d{{1,2}})(?P<mark>[-/.])(?P<two>\d{{1,2}})(?P=mark)(?P<year>\d{{4}}|\d\d){CLOCK}", FLAGS
)
MONTH_FIRST = re.compile(
    rf"{WEEKDAY}(?P<month>{MONTH})[ -]?(?P<day>\d{{1,2}}){ORDINAL}(?:, ?| |-)(?P<year>\d{{4}}){CLOCK}", FLAGS
)
DAY_FIRST = re.compile(
    rf"{WEEKDAY}(?P<day>\d{{1,2}}){ORDINAL}\.?[ -]?(?P<month>{MONTH}),?[ -]?(?P<year>\d{{4}}){CLOCK}", FLAGS
)
#: Two digits of a year: those up to here are of this century.
LAST_SHORT_YEAR = 68
EPOCH = datetime.datetime(1970, 1, 1)
SPACES = str.maketrans(dict.fromkeys("\u00a0\u2007\u2009\u202f\t", " ") | dict.fromkeys("\ufeff\u200b", None))

Instant = tuple[float, bool]


class Written(NamedTuple):
    """A date text with two numbers, either of which may be the day."""

    one: int
    two: int
    mark: str
    year: int
    clock: datetime.timedelta
    zone: datetime.timezone | None

    def instant(self, order: str) -> Instant:
        """Return seconds since 1970, and whether there is a time zone; raises ValueError."""
        day, month = (self.two, self.one) if order == "mdy" and self.mark != "." else (self.one, self.two)
        return _instant(self.year, month, day, self.clock, self.zone)

    def may_be(self, order: str) -> bool:
        """Return whether there is such a date."""
        try:
            self.instant(order)
        except (ValueError, OverflowError):
            return False
        return True


@dataclass(frozen=True)
class DateForm:
    """How the dates of a text column are written.

    ISO dates, years first, and names of months in English are always read, and 31.12.2024 always has the day first.

    Parameters
    ----------
    order : {"", "dmy", "mdy"}
        Whether day or month comes first in 16/01/2020; "" where no text was like that.

    Examples
    --------
    >>> DateForm("dmy").parse("16/01/2020"), DateForm().parse("January 16, 2020")
    (1579132800.0, 1579132800.0)
    """

    name: ClassVar[str] = "date"

    order: str = ""

    def parse(self, text: str) -> float:
        """Return the date of a text in seconds since 1970, or raise ValueError."""
        return self.instant(text)[0]

    def instant(self, text: str) -> Instant:
        """Return seconds since 1970, and whether the text has a time zone, or raise ValueError."""
        read = read_date(text)
        if isinstance(read, Written):
            if not self.order and read.mark != ".":
                raise ValueError(f"text must have the month's name or the year first, got {text!r}")
            return read.instant(self.order)
        if read is None:
            raise ValueError(f"text must hold a date, got {text!r}")
        return read

    @property
    def example(self) -> str:
        """A text of this form, for messages."""
        return {"": "2024-12-31", "dmy": "31/12/2024", "mdy": "12/31/2024"}[self.order]

    @property
    def description(self) -> str:
        """What the texts look like: "day first"."""
        return {"": "", "dmy": "day first", "mdy": "month first"}[self.order]

    def to_state(self) -> dict[str, Any]:
        """Return the form as plain data."""
        return {"form": self.name, "order": self.order}

    @classmethod
    def from_state(cls, state: Any) -> Self:
        """Read what `to_state` returned, or raise ValueError."""
        if set(state) != {"form", "order"} or state["order"] not in ("", "dmy", "mdy"):
            raise ValueError(f"a date form must have an order, got {state}")
        return cls(state["order"])


def date_form(texts: Sequence[str]) -> tuple[DateForm, bool, str | None] | None:
    """Return the form that all texts have, whether they have a time zone, and a note if the order was chosen by a rule.

    None if they are no dates. In 01/02/2020 the day is first by rule, unless another text of the column tells.

    Examples
    --------
    >>> date_form(["01/02/2020", "01/16/2020"])
    (DateForm(order='mdy'), False, None)
    >>> date_form(["01/02/2020"])
    (DateForm(order='dmy'), False, "'01/02/2020' is read as day/month/year, 2020-02-01")
    >>> date_form(["red"]) is None
    True
    """
    zones: set[bool] = set()
    written: list[tuple[str, Written]] = []
    for text in texts:
        read = read_date(text)
        if read is None:
            return None
        if isinstance(read, Written):
            written.append((text, read))
        else:
            zones.add(read[1])
    zones |= {date.zone is not None for _, date in written}
    orders = [order for order in ("dmy", "mdy") if all(date.may_be(order) for _, date in written)]
    if len(zones) > 1 or not orders:
        return None
    twofold = [(text, date) for text, date in written if date.mark != "."]
    if not twofold:
        return DateForm(), True in zones, None
    form, note = DateForm(orders[0]), None
    doubtful = next((text for text, date in twofold if date.one != date.two), None)
    if len(orders) == 2 and doubtful is not None:
        day = EPOCH + datetime.timedelta(seconds=form.parse(doubtful))
        note = f"{doubtful!r} is read as day/month/year, {day.date()}"
    return form, True in zones, note


def read_date(text: str) -> Instant | Written | None:
    """Return what a text says: seconds since 1970 with whether it has a time zone, or two numbers; None if no date."""
    text = text.translate(SPACES).strip()
    try:
        if ISO.fullmatch(text):
            return (datetime.datetime.fromisoformat(text) - EPOCH).total_seconds(), False
        if match := YEAR_LAST.fullmatch(text):
            return _written(match)
        if match := YEAR_FIRST.fullmatch(text):
            return _instant(int(match["year"]), int(match["month"]), int(match["day"]), *_clock(match))
        if match := MONTH_FIRST.fullmatch(text) or DAY_FIRST.fullmatch(text):
            month = MONTHS.index(match["month"][:3].lower()) + 1
            return _instant(int(match["year"]), month, int(match["day"]), *_clock(match))
    except (ValueError, OverflowError):
        return None
    return None


def _written(match: re.Match[str]) -> Written | None:
    one, two, mark, year = match["one"], match["two"], match["mark"], match["year"]
    if len(year) == 2 and (mark == "-" or (mark == "." and (len(one), len(two)) != (2, 2))):
        return None  # rather a code such as 12-11-10, or a version such as 1.2.10
    century = 0 if len(year) == 4 else 2000 if int(year) <= LAST_SHORT_YEAR else 1900
    return Written(int(one), int(two), mark, century + int(year), *_clock(match))


def _clock(match: re.Match[str]) -> tuple[datetime.timedelta, datetime.timezone | None]:
    """Return time of day and time zone of a matched date."""
    if match["hour"] is None:
        return datetime.timedelta(), None
    hour, half = int(match["hour"]), match["half"]
    if half is not None:
        if not 1 <= hour <= 12:
            raise ValueError(f"hour must be from 1 to 12 beside am and pm, got {hour}")
        hour = hour % 12 + (12 if half[0] in "pP" else 0)
    fraction = int((match["fraction"] or "0")[:6].ljust(6, "0"))
    clock = datetime.time(hour, int(match["minute"]), int(match["second"] or 0), fraction)
    since_midnight = datetime.datetime.combine(EPOCH, clock) - EPOCH
    zone = match["zone"]
    if zone is None:
        return since_midnight, None
    if zone.upper() in ("Z", "UTC"):
        return since_midnight, datetime.UTC
    minutes = int(zone[1:3]) * 60 + int(zone[3:].lstrip(":") or 0)
    return since_midnight, datetime.timezone((1 if zone[0] == "+" else -1) * datetime.timedelta(minutes=minutes))


def _instant(year: int, month: int, day: int, clock: datetime.timedelta, zone: datetime.timezone | None) -> Instant:
    seconds = (datetime.datetime(year, month, day) - EPOCH + clock).total_seconds()
    return seconds - (0.0 if zone is None else zone.utcoffset(None).total_seconds()), zone is not None
