"""What goes wrong, said in one line: `Error: ...` and an exit code.

1 for what can be expected of files and data, 2 for a wrong option, 130 after Ctrl-C, 141 where nobody reads the output.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])

INTERRUPTED = 130
NO_READER = 141
#: The header of a table is row 1, and so is it taken to be where there is none: one way to count.
FIRST_ROW = 2


class Problem(click.ClickException):
    """Something about the data or the files that the user can put right; the message says how."""

    exit_code = 1


def debug_option(command: Function) -> Function:
    """`--debug`, before or after the name of the command."""

    def remember(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        if value:
            context.find_root().meta["debug"] = True

    option = click.option("--debug", is_flag=True, expose_value=False, callback=remember, help="Show tracebacks.")
    return option(command)


class Commands(click.Group):
    """A group whose commands end in one line where they fail."""

    def invoke(self, context: click.Context) -> Any:
        try:
            result = super().invoke(context)
            sys.stdout.flush()
            return result
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            context.exit(INTERRUPTED)
        except BrokenPipeError:
            _forget_output()
            context.exit(NO_READER)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            raise Problem(told(error)) from error


def told(error: Exception) -> str:
    """An exception in one line, after its traceback where `--debug` asks for it."""
    context = click.get_current_context(silent=True)
    if context is not None and context.find_root().meta.get("debug"):
        traceback.print_exception(error)
    return explain(error)


def explain(error: Exception) -> str:
    """An exception in one line."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    text = " ".join(str(error).split())
    if isinstance(error, ValueError | OSError) and text:
        return text
    if isinstance(error, MemoryError):
        return "there is not enough memory for this table; give fewer rows or columns"
    return f"{type(error).__name__}: {text}; this is not expected: run again with --debug to see where it comes from"


@contextlib.contextmanager
def naming(path: str | None, n_before: int = 0) -> Iterator[None]:
    """What is wrong with a table, said with the name of its file, if there is one.

    A wrong row that the library found is counted as here, from the header on, after `n_before` other rows.
    """
    try:
        yield
    except (Problem, ValueError, TypeError) as error:
        from tartree.table.row_error import RowError

        found = error.at(n_before + error.row + FIRST_ROW) if isinstance(error, RowError) else error
        said = found.message if isinstance(found, Problem) else explain(found)
        if path is None and found is error:
            raise
        raise Problem(said if path is None else f"{path}: {said}") from error


def _forget_output() -> None:
    """Send what is still to be flushed to nowhere, so that the interpreter does not complain when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def missing_column(name: str, names: Sequence[str], where: str, otherwise: str | None = None) -> Problem:
    """The error for a column that is not there, with the names that come closest, or `otherwise` if none does."""
    near = nearest(name, names)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else otherwise or f"its columns are {listed(names)}"
    return Problem(f"{where} has no column {name!r}; {hint}")


def nearest(name: str, names: Sequence[str]) -> list[str]:
    """Up to three names that may have been meant, whatever their case."""
    same = [other for other in names if _plain(other) == _plain(name)]
    if same:
        return same[:3]
    plain: dict[str, str] = {}
    for other in names:
        plain.setdefault(_plain(other), other)
    return [plain[match] for match in difflib.get_close_matches(_plain(name), plain, n=3, cutoff=0.6)]


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum()) or name.lower()


def counted(number: int, noun: str) -> str:
    """A number and its noun: "1 row", "1,000 rows"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listed(values: Iterable[Any], most: int = 8) -> str:
    """A list for a sentence, cut where it gets long."""
    texts = [str(value) for value in values]
    more = f", ... ({len(texts)} in all)" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more
