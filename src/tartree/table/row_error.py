"""RowError: a wrong value with its row, counted in the chunk, in the whole file, and with the file's name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


class RowError(ValueError):
    """A wrong value in a row, which is counted from 0 among the rows that were read.

    Examples
    --------
    >>> error = RowError("age must be a number, but ", 3, " holds 'old'")
    >>> str(error), str(error.at(1003, "rows.parquet"))[:31]
    ("age must be a number, but row 3 holds 'old'", 'rows.parquet: age must be a num')
    """

    def __init__(self, before: str, row: int, after: str) -> None:
        super().__init__(before, row, after)  # what it is pickled with

    def __str__(self) -> str:
        before, row, after = self.args
        return f"{before}row {row}{after}"

    @property
    def row(self) -> int:
        """The row."""
        return int(self.args[1])

    def at(self, row: int, path: str | None = None) -> RowError:
        """Return the same error for a row counted elsewhere, with the name of its file."""
        before, _, after = self.args
        return RowError(before if path is None else f"{path}: {before}", int(row), after)


@contextmanager
def among(rows: Sequence[int] | Any | None) -> Iterator[None]:
    """Number rows in errors as in the table that these rows were taken from; None: all of them."""
    try:
        yield
    except RowError as error:
        if rows is None:
            raise
        raise error.at(rows[error.row]) from error


@contextmanager
def naming(path: str, rows: Sequence[int] | Any) -> Iterator[None]:
    """Prefix errors with file name and row number.

    `rows` are the numbers, in the file, of the rows that are read: a range, or an array.
    """
    try:
        yield
    except RowError as error:
        raise error.at(rows[error.row], path) from error
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from error
