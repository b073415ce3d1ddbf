"""What a page says of an error."""

from __future__ import annotations

import re

PATH = re.compile(r"(?<![\w:/])(?:[A-Za-z]:)?(?:[\\/][^\s\\/'\"]+){2,}")  # not an address


def said(error: Exception) -> str:
    """Its kind and first line, without paths of the machine."""
    return PATH.sub("(a path)", f"{type(error).__name__}: {error}".splitlines()[0])[:200]
