"""What all commands share: the entry of a command, `--debug`, and exit codes.

Exit codes are 1 for expected problems of files and data, 2 for a wrong option, 130 after Ctrl-C, and 141 if the reader
of standard output has gone.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from tartree.cli.problems import Problem, report_error

Function = TypeVar("Function", bound=Callable[..., Any])

INTERRUPTED = 130
NO_READER = 141


@dataclass(frozen=True)
class CommandEntry:
    """A command with the line about it in `tartree --help`."""

    command: click.Command
    example: str  # arguments behind "tartree"
    purpose: str


def debug_option(command: Function) -> Function:
    """Add `--debug`, which is accepted before and after the name of the command."""

    def remember(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        if value:
            context.find_root().meta["debug"] = True

    option = click.option("--debug", is_flag=True, expose_value=False, callback=remember, help="Show tracebacks.")
    return option(command)


class CommandGroup(click.Group):
    """A group that reports any failure of its commands in one line."""

    def invoke(self, context: click.Context) -> Any:
        """Run the command of a context."""
        try:
            result = super().invoke(context)
            sys.stdout.flush()
            return result
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            context.exit(INTERRUPTED)
        except BrokenPipeError:
            _discard_output()
            context.exit(NO_READER)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            raise Problem(report_error(error)) from error


def _discard_output() -> None:
    """Send unflushed output to the null device, so that the interpreter does not complain when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
