"""Feature: one column of the encoded matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from tartree.table.quantities import QUANTITIES
from tartree.table.quantities.quantity import Quantity
from tartree.table.scales import IDENTITY, Scaling

Level: TypeAlias = str | bool | int | float

OTHER = "(other)"  # what decode gives for a rare or unseen level
MISSING = "(missing)"

#: What a bin rises by, so that it spreads about as far as a standardised value.
BIN_HEIGHT = 2.0


@dataclass(frozen=True)
class Bin:
    """Part of a curve: constant below `start` and above `end`, and rising by `BIN_HEIGHT` in between.

    Parameters
    ----------
    start, end : float
        Encoded values of the column.
    offset : float
        What is subtracted, so that the mean is about 0.
    """

    start: float
    end: float
    offset: float

    def at(self, values: Any) -> Any:
        """Return the feature of encoded values of the column.

        Parameters
        ----------
        values : float or ndarray

        Returns
        -------
        float or ndarray
        """
        return np.clip((values - self.start) / (self.end - self.start), 0.0, 1.0) * BIN_HEIGHT - self.offset


@dataclass(frozen=True)
class Feature:
    """One output feature: the column it comes from, what it says, and how to read its numbers.

    Parameters
    ----------
    column : int
        Index of the source column.
    name : str
        Name of the source column, "x0", "x1", ... where the table had no names.
    kind : {"value", "bin", "level", "other", "missing"}
        A number in original units; a part of a curve of it; or 1 where the column has the level, a rare or unseen
        level, or a missing value, and 0 elsewhere.
    level : str, bool, int, float or None
        The level, for the kind "level".
    unit : str
        "number", "date", "datetime", "datetime[UTC]", "duration" or "time"; all but numbers are in seconds.
    whole : bool
        Whether fit saw whole numbers only.
    scaling : Scaling
        The map between original and encoded numbers; the identity for all kinds but "value" and "bin".
    bin : Bin or None
        The part of the curve, for the kind "bin".

    Examples
    --------
    >>> from tartree.table import Feature
    >>> Feature(0, "colour", "level", "red").label
    'colour=red'
    """

    column: int
    name: str
    kind: Literal["value", "bin", "level", "other", "missing"]
    level: Level | None = None
    unit: str = "number"
    whole: bool = False
    scaling: Scaling = IDENTITY
    bin: Bin | None = None

    @property
    def quantity(self) -> Quantity:
        """What the values measure."""
        return QUANTITIES[self.unit]

    @property
    def label(self) -> str:
        """The name of the feature: "age", "age=(30 to 45)", "colour=red", "colour=(other)", "age=(missing)"."""
        if self.kind == "value":
            return self.name
        if self.bin is not None:
            return f"{self.name}=({' to '.join(self.bin_ends)})"
        return f"{self.name}={ {'level': self.level, 'other': OTHER, 'missing': MISSING}[self.kind] }"

    @property
    def bin_ends(self) -> tuple[str, str]:
        """Start and end of the bin in original units, as text."""
        assert self.bin is not None
        ends = self.scaling.decode(np.array([self.bin.start, self.bin.end]))
        if self.quantity.is_bare:
            return f"{ends[0]:.4g}", f"{ends[1]:.4g}"
        first, second = self.quantity.texts(ends, fine=self.scaling.is_fine)
        return first, second

    def original(self, encoded: float) -> float | str | bool:
        """Return an encoded value, such as a threshold, in original units.

        Parameters
        ----------
        encoded : float

        Returns
        -------
        float, str or bool
            A number, ISO text for dates and times, a bool for the indicators 0 and 1.
        """
        if self.kind not in ("value", "bin"):
            return bool(encoded > 0.5)
        if self.bin is not None:  # where on the bin a value lies, as a value of the column
            share = min(max((encoded + self.bin.offset) / BIN_HEIGHT, 0.0), 1.0)
            encoded = self.bin.start + share * (self.bin.end - self.bin.start)
        value = float(self.scaling.decode(np.asarray([encoded], dtype=np.float64))[0])
        return self.quantity.original(value, fine=self.scaling.is_fine)
