"""Numbers and lists in sentences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def counted(number: int, noun: str) -> str:
    """Return a number and its noun: "1 row", "1,000 rows"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listed(values: Iterable[Any], most: int = 8) -> str:
    """Return a list for a sentence, cut off after `most` values."""
    texts = [str(value) for value in values]
    more = f", ... ({len(texts)} in all)" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more
