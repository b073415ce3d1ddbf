"""Durations and times of day from text, in the forms of pandas, Python and ISO 8601."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa

# Digits are limited, so that microseconds fit into 64 bits. The clock adds to negative days: -1 days +23:00:00.
CLOCK = r"(?P<sign>[+-]?)(?P<hours>\d{1,8}):(?P<minutes>[0-5]?\d):(?P<seconds>[0-5]?\d(\.\d{1,9})?)"
DAYS = re.compile(rf"(?P<days>[+-]?\d{{1,7}}) days?(,? {CLOCK})?", re.ASCII)
CLOCK_ALONE = re.compile(CLOCK, re.ASCII)
ISO = re.compile(
    r"(?P<all>[+-]?)P(?=.)((?P<days>-?\d{1,7})D)?"
    r"(T(?=.)((?P<hours>\d{1,8})H)?((?P<minutes>\d{1,9})M)?((?P<seconds>\d{1,9}(\.\d{1,9})?)S)?)?",
    re.ASCII,
)


def parse_duration(text: str) -> datetime.timedelta:
    """Return the duration of a text, or raise ValueError; a number alone is refused, since it has no unit.

    Examples
    --------
    >>> str(parse_duration("13 days 13:00:00")), str(parse_duration("-1 days +23:00:00")), str(parse_duration("PT90M"))
    ('13 days, 13:00:00', '-1 day, 23:00:00', '1:30:00')
    """
    match = DAYS.fullmatch(text) or CLOCK_ALONE.fullmatch(text) or ISO.fullmatch(text)
    if match is None:
        raise ValueError(f"text must be a duration such as 2 days 12:30:00, got {text!r}")
    parts = match.groupdict()
    clock = datetime.timedelta(
        hours=int(parts["hours"] or 0), minutes=int(parts["minutes"] or 0), seconds=float(parts["seconds"] or 0)
    )
    total = datetime.timedelta(days=int(parts.get("days") or 0)) + (-clock if parts.get("sign") == "-" else clock)
    return -total if parts.get("all") == "-" else total


def to_durations(text: Any) -> Any:
    """Return durations to the microsecond, or None if a value is none; see `parse_duration`."""
    return _each(text, parse_duration, pa.duration("us"))


def to_times(text: Any) -> Any:
    """Return times of day, from ISO form to the microsecond, or None if a value is none.

    Examples
    --------
    >>> to_times(pa.array(["12:30", None])).to_pylist()
    [datetime.time(12, 30), None]
    """
    return _each(text, lambda value: datetime.time.fromisoformat(value).replace(tzinfo=None), pa.time64("us"))


def _each(text: Any, parse: Callable[[str], Any], arrow_type: Any) -> Any:
    try:
        return pa.array([None if value is None else parse(value) for value in text.to_pylist()], arrow_type)
    except ValueError:
        return None
