"""Dates, durations and times of day as float64 seconds, and back to ISO text."""

import datetime
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

Unit = Literal["number", "date", "datetime", "datetime[UTC]", "duration", "time"]

UNITS: tuple[str, ...] = get_args(Unit)
DATE_UNITS = frozenset({"date", "datetime", "datetime[UTC]"})
WRITTEN_UNITS = DATE_UNITS | {"time"}  # values that are given back as ISO text

DAY = 86400.0
EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()

# Microseconds since the epoch fill 64 bits after 292 thousand years; text beyond that is cut off there.
LAST_SECOND = 9e12


def seconds_of_array(values: NDArray[Any]) -> NDArray[np.float64]:
    """Seconds of a datetime64 or timedelta64 array, NaN where it holds NaT.  # (rows,)"""
    letter = values.dtype.kind
    step, _ = np.datetime_data(values.dtype)
    # A coarse step such as days reaches years that do not fit into microseconds.
    coarse = step in ("Y", "M", "W", "D", "h", "m", "s")
    if letter == "m" and step in ("Y", "M"):
        # numpy holds that a month has no fixed length; the mean Gregorian one is what it uses where it must.
        months = values.astype(f"m8[{step}]").astype(np.float64) * (12.0 if step == "Y" else 1.0)
        seconds = months * (30.436875 * DAY)
    else:
        ticks = values.astype(f"{letter}8[{'s' if coarse else 'us'}]").astype(np.int64)
        seconds = ticks.astype(np.float64) / (1.0 if coarse else 1e6)
    seconds[np.isnat(values)] = np.nan
    return seconds


def seconds_of(value: Any) -> float:
    """Seconds of one date, datetime, duration or time of day; a datetime without time zone is taken as UTC."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return float(seconds_of_array(np.asarray([value]))[0])
    if isinstance(value, datetime.datetime):
        return (value if value.tzinfo is not None else value.replace(tzinfo=datetime.UTC)).timestamp()
    if isinstance(value, datetime.date):
        return (value.toordinal() - EPOCH_ORDINAL) * DAY
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, datetime.time):
        return value.hour * 3600.0 + value.minute * 60.0 + value.second + value.microsecond / 1e6
    raise TypeError(f"a date, datetime, duration or time is required, however: {value!r}")


def parse(value: Any, unit: str) -> float:
    """One value of a unit, given as text or as an object; ValueError or TypeError if it is no such value."""
    if unit == "number":
        return float(value)
    if isinstance(value, str | bytes):
        text = (value if isinstance(value, str) else value.decode()).strip()
        if unit in DATE_UNITS:
            return seconds_of(datetime.datetime.fromisoformat(text))
        if unit == "time":
            return seconds_of(datetime.time.fromisoformat(text))
    seconds = seconds_of(value)
    wanted = {"duration": (datetime.timedelta, np.timedelta64), "time": (datetime.time,)}
    if not isinstance(value, wanted.get(unit, (datetime.date, np.datetime64))):
        raise TypeError(f"a {unit} is required, however: {value!r}")
    return seconds


def write(seconds: NDArray[np.float64], unit: str, *, fine: bool, round_days: bool = True) -> list[str]:
    """ISO text of finite seconds; microseconds are written if `fine`, and only then.

    With `round_days=False` a date that is not near a whole day, such as a threshold between two days, is written as a
    datetime.
    """
    seconds = np.clip(seconds, -LAST_SECOND, LAST_SECOND)
    if unit == "time":
        seconds = np.clip(seconds, 0.0, DAY - 1e-6)
    days = np.rint(seconds / DAY)
    if unit == "date" and (round_days or bool(np.all(np.abs(seconds / DAY - days) < 1e-3))):
        return [str(text) for text in np.datetime_as_string(days.astype(np.int64).astype("M8[D]"))]
    ticks = np.rint(seconds * 1e6).astype(np.int64).astype("M8[us]") if fine else _whole_seconds(seconds, unit)
    texts = [str(text) for text in np.datetime_as_string(ticks)]
    if unit == "time":
        return [text.partition("T")[2] for text in texts]
    return [text + "+00:00" for text in texts] if unit == "datetime[UTC]" else texts


def _whole_seconds(seconds: NDArray[np.float64], unit: str) -> NDArray[np.datetime64]:
    whole = np.rint(seconds)
    if unit == "time":
        whole = np.minimum(whole, DAY - 1.0)
    return whole.astype(np.int64).astype("M8[s]")
