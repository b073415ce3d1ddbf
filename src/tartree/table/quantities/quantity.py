"""Quantity: what the numbers of a column measure, how they are read, written and shown; and plain numbers."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Axis(NamedTuple):
    """Where the weight of a linear function counts from, and in what steps; `label` holds the column as {}."""

    origin: float = 0.0
    per: float = 1.0
    label: str = "{}"


class Quantity:
    """What the numbers of a column measure. A new one is a subclass and an entry of `QUANTITIES`.

    Attributes
    ----------
    name : str
        In messages, files and as `unit` of columns and features.
    accepts : frozenset of str
        Kinds of raw columns whose numbers are of this quantity.
    types : tuple of type
        Python and numpy types of a single value.
    families : frozenset of str
        Columns of objects have this quantity if the types of all values are among these.
    is_bare : bool
        Whether these are numbers without unit, which may be counts or codes.
    is_text : bool
        Whether values in original units are text.
    is_from_text : bool
        Whether columns of text may have this quantity; `matches` decides.
    is_joined : bool
        Whether a column has this quantity if its chunks are of several of the families.
    days : str
        Name of the quantity if all values are whole days; "" where days mean nothing.
    step : float or None
        The smallest step that thresholds are rounded to; None for as many decimals as it takes.
    suffix : str
        Text after a number that is shown.
    form : {"number", "instant", "time"}
        How the page reads and writes values.
    control, noun : str
        Type of the page's input, and what weights count by there.
    group : str
        What the command line counts columns as.
    """

    name: ClassVar[str]
    accepts: ClassVar[frozenset[str]]
    types: ClassVar[tuple[type, ...]] = ()
    families: ClassVar[frozenset[str]] = frozenset()
    is_bare: ClassVar[bool] = False
    is_text: ClassVar[bool] = False
    is_from_text: ClassVar[bool] = False
    is_joined: ClassVar[bool] = False
    days: ClassVar[str] = ""
    step: ClassVar[float | None] = None
    suffix: ClassVar[str] = ""
    form: ClassVar[str] = "number"
    control: ClassVar[str] = "text"
    noun: ClassVar[str] = "unit"
    group: ClassVar[str] = "numeric"

    # Reading

    def is_type(self, python_type: type) -> bool:
        """Return whether values of a type are of this quantity."""
        return issubclass(python_type, self.types)

    def matches(self, texts: list[Any]) -> bool:
        """Return whether the different texts of a column, None among them, are values of this quantity."""
        return False

    def refined(self, values: list[Any]) -> str:
        """Return the name of the quantity that objects of its types have."""
        return self.name

    def parse(self, value: Any) -> float:
        """Read one object or text; raises ValueError, TypeError or OverflowError."""
        return float(value)

    # Writing

    def texts(self, values: NDArray[np.float64], *, fine: bool, round_days: bool = True) -> list[str]:
        """Write finite values as text that `parse` reads; used if `is_text`."""
        raise NotImplementedError

    def objects(self, values: NDArray[np.float64]) -> list[Any]:
        """Return finite values as Python objects."""
        return self.texts(values, fine=False) if self.is_text else values.tolist()

    def originals(self, values: NDArray[np.float64], *, fine: bool) -> NDArray[Any]:
        """Return values, (rows,), in original units: numbers, or text with None for NaN."""
        if not self.is_text:
            return values
        texts = np.full(len(values), None, dtype=object)
        present = ~np.isnan(values)
        texts[present] = self.texts(values[present], fine=fine)
        return texts

    def original(self, value: float, *, fine: bool) -> float | str:
        """Return one value, such as a threshold, in original units."""
        return self.texts(np.array([value]), fine=fine, round_days=False)[0] if self.is_text else value

    def cell(self, value: float, *, fine: bool) -> Any:
        """Return one value as a table may hold it."""
        return self.original(value, fine=fine)

    def texts_near(self, value: float, *, up: bool) -> Iterator[str]:
        """Yield texts of values near this one, at or beyond it, the roundest first; used if there is a `step`."""
        raise NotImplementedError

    # Showing

    def axis(self, center: float) -> Axis:
        """Return how weights of a column with this center are counted."""
        return Axis()

    def short_text(self, value: float) -> str:
        """Write a value for a label in a picture; used if there is a `step`."""
        raise NotImplementedError

    @property
    def page(self) -> dict[str, Any]:
        """What the page's scripts need to show and read values."""
        return {"form": self.form, "control": self.control, "noun": self.noun, "suffix": self.suffix}


class Number(Quantity):
    """Numbers without unit."""

    name = "number"
    accepts = frozenset({"number", "boolean"})
    types = (numbers.Real, Decimal, np.floating, np.integer)
    families = accepts
    is_bare = True

    def is_type(self, python_type: type) -> bool:
        return issubclass(python_type, self.types) and not issubclass(python_type, np.timedelta64)  # numpy's integer
