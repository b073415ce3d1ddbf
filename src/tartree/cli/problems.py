"""Errors as one line for the user."""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Iterator, Sequence

import click

from tartree.cli.rendering.phrases import listed

#: Rows are counted from the header, which is row 1; the same in tables without a header.
FIRST_ROW = 2


class Problem(click.ClickException):
    """A problem of the data or the files that the user can solve; the message says how."""

    exit_code = 1


def report_error(error: Exception) -> str:
    """Return an exception in one line, and print its traceback with `--debug`."""
    context = click.get_current_context(silent=True)
    if context is not None and context.find_root().meta.get("debug"):
        traceback.print_exception(error)
    return describe_error(error)


def describe_error(error: Exception) -> str:
    """Return an exception in one line."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    text = " ".join(str(error).split())
    if isinstance(error, ValueError | OSError) and text:
        return text
    if isinstance(error, MemoryError):
        return "there is not enough memory for this table; give fewer rows or columns"
    return f"{type(error).__name__}: {text}; this is not expected: run again with --debug to see where it comes from"


@contextlib.contextmanager
def located_errors(path: str | None, n_before: int = 0) -> Iterator[None]:
    """Prefix errors with a file name, if any, and count rows from the header, after `n_before` other rows."""
    try:
        yield
    except (Problem, ValueError, TypeError) as error:
        from tartree.table.row_error import RowError

        located = error.at(n_before + error.row + FIRST_ROW) if isinstance(error, RowError) else error
        if path is None and located is error:
            raise
        message = located.message if isinstance(located, Problem) else describe_error(located)
        raise Problem(message if path is None else f"{path}: {message}") from error


def missing_column(name: str, names: Sequence[str], where: str, otherwise: str | None = None) -> Problem:
    """Return the error for a missing column, with the nearest names, or with `otherwise` if no name is near."""
    near = nearest_names(name, names)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else otherwise or f"its columns are {listed(names)}"
    return Problem(f"{where} has no column {name!r}; {hint}")


def nearest_names(name: str, names: Sequence[str]) -> list[str]:
    """Return up to three names that may be meant, ignoring case and punctuation."""
    import difflib

    same = [other for other in names if _letters(other) == _letters(name)]
    if same:
        return same[:3]
    by_letters: dict[str, str] = {}
    for other in names:
        by_letters.setdefault(_letters(other), other)
    return [by_letters[match] for match in difflib.get_close_matches(_letters(name), by_letters, n=3, cutoff=0.6)]


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum()) or name.lower()
