"""Records about a tree that are saved with it: certificates of simplified trees, comparisons of hardened ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self

from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


class Record(Protocol):
    """A record about a tree that can be converted to plain data."""

    def to_state(self) -> tuple[dict[str, Any], Arrays]:
        """Return plain data for JSON, and arrays."""

    @classmethod
    def from_state(cls, state: Mapping[str, Any], arrays: Arrays, n_features: int) -> Self:
        """Read what `to_state` returned, for a tree with this many features, and check it."""


#: Names of the records that a model may have; those of its provenance and of files.
RECORDS = ("certificate", "hardening")
