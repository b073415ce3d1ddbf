"""Typed reading of saved columns: what is read may come from anywhere, so every field is checked by type and range."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NoReturn

from numpy.typing import NDArray

from tartree.table.feature import Level
from tartree.table.scales import LARGEST

Arrays = dict[str, NDArray[Any]]


def refuse(what: str, value: object) -> NoReturn:
    """Raise for a state that does not have `what`."""
    text = repr(value)
    text = text if len(text) <= 80 else text[:77] + "..."
    raise ValueError(f"the state of a TableEncoder must have {what}, got {text}; save it again")


class Fields:
    """A dict from JSON that must have exactly these keys."""

    def __init__(self, state: Any, names: set[str]) -> None:
        if not isinstance(state, Mapping) or set(state) != names:
            refuse(
                f"exactly the fields {', '.join(sorted(names))}",
                sorted(map(str, state)) if isinstance(state, Mapping) else state,
            )
        self.state = state

    def flag(self, name: str) -> bool:
        """Return a bool."""
        value = self.state[name]
        return value if isinstance(value, bool) else refuse(f"true or false for {name}", value)

    def number(self, name: str) -> float:
        """Return a finite number."""
        value = self.state[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
            refuse(f"a finite number for {name}", value)
        return float(value)

    def level(self, name: str, value: Any) -> Level:
        """Return a level, which `name` is about."""
        if isinstance(value, float) and not math.isfinite(value):
            refuse(f"a finite number for {name}", value)
        return (
            value
            if isinstance(value, str | bool | int | float)
            else refuse(f"text, a number or a bool for {name}", value)
        )
