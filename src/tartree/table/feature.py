"""Feature: one column of the encoded matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from tartree.table.quantities import QUANTITIES
from tartree.table.quantities.quantity import Quantity
from tartree.table.scales import IDENTITY, Scaling

Level: TypeAlias = str | bool | int | float

OTHER = "(other)"  # what decode gives for a rare or unseen level
MISSING = "(missing)"


@dataclass(frozen=True)
class Feature:
    """One output feature: the column it comes from, what it says, and how to read its numbers.

    Parameters
    ----------
    column : int
        Index of the source column.
    name : str
        Name of the source column, "x0", "x1", ... where the table had no names.
    kind : {"value", "level", "other", "missing"}
        A number in original units; or 1 where the column has the level, a rare or unseen level, or a missing value,
        and 0 elsewhere.
    level : str, bool, int, float or None
        The level, for the kind "level".
    unit : str
        "number", "date", "datetime", "datetime[UTC]", "duration" or "time"; all but numbers are in seconds.
    whole : bool
        Whether fit saw whole numbers only.
    scaling : Scaling
        The map between original and encoded numbers; the identity for all kinds but "value".

    Examples
    --------
    >>> from tartree.table import Feature
    >>> Feature(0, "colour", "level", "red").label
    'colour=red'
    """

    column: int
    name: str
    kind: Literal["value", "level", "other", "missing"]
    level: Level | None = None
    unit: str = "number"
    whole: bool = False
    scaling: Scaling = IDENTITY

    @property
    def quantity(self) -> Quantity:
        """What the values measure."""
        return QUANTITIES[self.unit]

    @property
    def label(self) -> str:
        """The name of the feature: "age", "colour=red", "colour=(other)", "age=(missing)"."""
        if self.kind == "value":
            return self.name
        return f"{self.name}={ {'level': self.level, 'other': OTHER, 'missing': MISSING}[self.kind] }"

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
        if self.kind != "value":
            return bool(encoded > 0.5)
        value = float(self.scaling.decode(np.asarray([encoded], dtype=np.float64))[0])
        return self.quantity.original(value, fine=self.scaling.is_fine)
