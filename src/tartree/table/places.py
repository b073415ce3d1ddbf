"""Where a wrong value is: the row of a piece, counted in the whole file and said with the file's name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


class RowError(ValueError):
    """A wrong value in a row, which is counted from 0 among the rows that were looked at.

    Examples
    --------
    >>> error = RowError("age must be a number, however: ", 3, " holds 'old'")
    >>> str(error), str(error.at(1003, "rows.parquet"))[:31]
    ("age must be a number, however: row 3 holds 'old'", 'rows.parquet: age must be a num')
    """

    def __init__(self, before: str, row: int, after: str) -> None:
        super().__init__(before, row, after)  # what it is pickled with

    def __str__(self) -> str:
        before, row, after = self.args
        return f"{before}row {row}{after}"

    @property
    def row(self) -> int:
        return int(self.args[1])

    def at(self, row: int, path: str | None = None) -> RowError:
        """The same error, of a row counted elsewhere, and with the name of its file."""
        before, _, after = self.args
        return RowError(before if path is None else f"{path}: {before}", int(row), after)


@contextmanager
def among(rows: Sequence[int] | Any | None) -> Iterator[None]:
    """Say what is wrong with a row by its number in the table that these rows were taken from; None: all of them."""
    try:
        yield
    except RowError as error:
        if rows is None:
            raise
        raise error.at(rows[error.row]) from error


@contextmanager
def naming(path: str, rows: Sequence[int] | Any) -> Iterator[None]:
    """Say what is wrong with the name of the file, and where it is a row, by the row's number there.

    `rows` are the numbers of the rows that are looked at: a range, or an array.
    """
    try:
        yield
    except RowError as error:
        raise error.at(rows[error.row], path) from error
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from error
