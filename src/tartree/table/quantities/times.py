"""Dates, durations and times of day as float64 seconds, and back to ISO text."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tartree.table.quantities.quantity import Axis, Quantity

DAY, HOUR, MINUTE = 86400.0, 3600.0, 60.0
EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()

# Microseconds since the epoch fill 64 bits after 292 thousand years; text beyond that is cut off there.
LAST_SECOND = 9e12


def seconds_of_array(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return seconds of a datetime64 or timedelta64 array, NaN for NaT.  # (rows,)"""
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


class Seconds(Quantity):
    """What is measured in seconds."""

    group = "date"

    def parse(self, value: Any) -> float:
        """Read one object of the quantity's types."""
        seconds = self._seconds(value)
        if not isinstance(value, self.types):
            raise TypeError(f"a {self.name} is required, got {value!r}")
        return seconds

    def _seconds(self, value: Any) -> float:
        if isinstance(value, np.datetime64 | np.timedelta64):
            return float(seconds_of_array(np.asarray([value]))[0])
        if isinstance(value, datetime.datetime):  # without time zone it is taken as UTC
            return (value if value.tzinfo is not None else value.replace(tzinfo=datetime.UTC)).timestamp()
        if isinstance(value, datetime.date):
            return (value.toordinal() - EPOCH_ORDINAL) * DAY
        if isinstance(value, datetime.timedelta):
            return value.total_seconds()
        if isinstance(value, datetime.time):
            return value.hour * HOUR + value.minute * MINUTE + value.second + value.microsecond / 1e6
        raise TypeError(f"a {self.name} is required, got {value!r}")


class Duration(Seconds):
    """Lengths of time, as seconds."""

    name = "duration"
    accepts = frozenset({"duration"})
    families = accepts
    types = (datetime.timedelta, np.timedelta64)
    suffix = " s"
    noun = "second"

    def cell(self, value: float, *, fine: bool) -> datetime.timedelta:
        return datetime.timedelta(seconds=value)

    def axis(self, center: float) -> Axis:
        return Axis(label="seconds of {}")


class IsoQuantity(Seconds):
    """Dates and times, whose values are written in ISO form."""

    is_text = True
    step = 1.0
    form = "instant"
    #: Steps of the texts near a value, the largest first.
    round_steps: ClassVar[tuple[float, ...]] = (DAY, HOUR, MINUTE, 1.0)

    def parse(self, value: Any) -> float:
        """Read ISO text, or an object."""
        if isinstance(value, str | bytes):
            text = (value if isinstance(value, str) else value.decode()).strip()
            return self._seconds(self._from_iso(text))
        return super().parse(value)

    def texts(self, values: NDArray[np.float64], *, fine: bool, round_days: bool = True) -> list[str]:
        """Write finite seconds; with microseconds if `fine`."""
        seconds = np.clip(values, -LAST_SECOND, LAST_SECOND)
        ticks = np.rint(seconds * 1e6).astype(np.int64).astype("M8[us]") if fine else _whole_seconds(seconds)
        return [str(text) for text in np.datetime_as_string(ticks)]

    def texts_near(self, value: float, *, up: bool) -> Iterator[str]:
        for step in self.round_steps:
            ticks = round(value / step, 6)  # a whole number of steps is one in spite of single precision
            whole = np.array([(np.ceil(ticks) if up else np.floor(ticks)) * step])
            yield self.texts(whole, fine=False)[0]
        if self.step != DAY:
            yield self.texts(np.array([value]), fine=True)[0]

    def axis(self, center: float) -> Axis:
        origin = float(np.rint(center / DAY)) * DAY
        day = str(np.datetime64(int(origin // DAY), "D")) if abs(origin) < 1e13 else f"{origin:g} s"
        return Axis(origin, DAY, f"days of {{}} since {day}")

    def short_text(self, value: float) -> str:
        return str(np.datetime64(round(value), "s"))[:16].replace("T", " ")

    def _from_iso(self, text: str) -> Any:
        return datetime.datetime.fromisoformat(text)


class Datetime(IsoQuantity):
    """Dates with a time, without time zone."""

    name = "datetime"
    accepts = frozenset({"date", "datetime", "datetime[UTC]"})
    types = (datetime.date, np.datetime64)
    families = frozenset({"date", "datetime"})
    is_joined = True
    days = "date"
    control = "datetime-local"
    noun = "day"

    def is_type(self, python_type: type) -> bool:
        return issubclass(python_type, datetime.datetime | np.datetime64)

    def refined(self, values: list[Any]) -> str:
        """Return the quantity in UTC if a value has a time zone."""
        return UtcDatetime.name if any(getattr(value, "tzinfo", None) is not None for value in values) else self.name


class UtcDatetime(Datetime):
    """Dates with a time and a time zone, in UTC."""

    name = "datetime[UTC]"
    families = frozenset()
    is_joined = False
    days = ""

    def is_type(self, python_type: type) -> bool:
        return False  # `Datetime` is refined

    def texts(self, values: NDArray[np.float64], *, fine: bool, round_days: bool = True) -> list[str]:
        return [text + "+00:00" for text in super().texts(values, fine=fine)]


class Date(Datetime):
    """Dates."""

    name = "date"
    families = frozenset({"date"})
    is_joined = False
    step = DAY
    control = "date"
    round_steps = (DAY,)

    def is_type(self, python_type: type) -> bool:
        return issubclass(python_type, datetime.date) and not issubclass(python_type, datetime.datetime)

    def texts(self, values: NDArray[np.float64], *, fine: bool, round_days: bool = True) -> list[str]:
        """Write days; with `round_days=False` a value between two days, such as a threshold, as a datetime."""
        seconds = np.clip(values, -LAST_SECOND, LAST_SECOND)
        days = np.rint(seconds / DAY)
        if round_days or bool(np.all(np.abs(seconds / DAY - days) < 1e-3)):
            return [str(text) for text in np.datetime_as_string(days.astype(np.int64).astype("M8[D]"))]
        return super().texts(values, fine=fine)

    def short_text(self, value: float) -> str:
        return super().short_text(value)[:10]

    def refined(self, values: list[Any]) -> str:
        return self.name

    @property
    def page(self) -> dict[str, Any]:
        return super().page | {"isDay": True}


class TimeOfDay(IsoQuantity):
    """Times of day, as seconds since midnight."""

    name = "time"
    accepts = frozenset({"time"})
    families = accepts
    types = (datetime.time,)
    form = "time"
    control = "time"
    noun = "hour"
    round_steps = (MINUTE, 1.0)

    def texts(self, values: NDArray[np.float64], *, fine: bool, round_days: bool = True) -> list[str]:
        seconds = np.clip(values, 0.0, DAY - 1e-6)
        if not fine:
            seconds = np.minimum(np.rint(seconds), DAY - 1.0)
        return [text.partition("T")[2] for text in super().texts(seconds, fine=fine)]

    def axis(self, center: float) -> Axis:
        return Axis(0.0, HOUR, "hours of {}")

    def short_text(self, value: float) -> str:
        return str(np.datetime64(round(value), "s"))[11:16]

    def _from_iso(self, text: str) -> datetime.time:
        return datetime.time.fromisoformat(text)


def _whole_seconds(seconds: NDArray[np.float64]) -> NDArray[np.datetime64]:
    return np.rint(seconds).astype(np.int64).astype("M8[s]")
