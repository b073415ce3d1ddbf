"""Errors as text for records and pages."""

from __future__ import annotations

import re

PATH = re.compile(r"(?<![\w:/])(?:[A-Za-z]:)?(?:[\\/][^\s\\/'\"]+){2,}")  # not an address
LENGTH = 500


def failure_text(error: Exception, *, first_line: bool = False) -> str:
    """Return the kind of an error and its message in one line, without paths of the machine.

    >>> failure_text(OSError("no '/home/me/x.py' there"))
    "OSError: no '(a path)' there"
    """
    message = str(error).partition("\n")[0] if first_line else " ".join(str(error).split())
    return PATH.sub("(a path)", f"{type(error).__name__}: {message}")[:LENGTH]
