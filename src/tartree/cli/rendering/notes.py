"""Notes, warnings and progress on standard error, beside the results."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

#: The end of a warning about columns, by which it is known without an import of the library.
COLUMN_WARNING = ".*columns= says it otherwise, and summary"


class Notes:
    """Notes for the user: shown at once unless `quiet`, and kept for output as JSON."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.texts: list[str] = []

    def add(self, text: str, *, always: bool = False) -> None:
        """Keep a note and show it; with `always` even if quiet."""
        self.texts.append(text)
        if always:
            click.echo(f"Note: {text}", err=True)
        else:
            self.say(f"Note: {text}")

    def say(self, text: str) -> None:
        """Show a line without keeping it."""
        if not self.quiet:
            click.echo(text, err=True)

    @property
    def shows_progress(self) -> bool:
        """Whether progress bars are shown: on a terminal, unless quiet."""
        return not self.quiet and sys.stderr.isatty()

    @contextmanager
    def warnings(self) -> Iterator[None]:
        """Turn warnings into notes, each text once."""

        def add(message: Warning | str, *where: Any, **more: Any) -> None:
            text = " ".join(str(message).split())
            if text not in self.texts:
                self.add(text)

        with warnings.catch_warnings():
            warnings.simplefilter("default")
            # Coming changes of libraries do not concern users of the command line.
            for kind in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
                warnings.simplefilter("ignore", kind)
            warnings.filterwarnings("ignore", COLUMN_WARNING)  # notes about columns are those of the whole table
            warnings.showwarning = add
            yield

    @contextmanager
    def progress(self, total: int | None) -> Iterator[Callable[[str], None]]:
        """Show a transient bar of `total` steps, None if unknown; call the function it gives as each step begins."""
        if not self.shows_progress:
            yield lambda step: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("", total=total)
            begun = 0

            def begin(step: str) -> None:
                nonlocal begun
                bar.update(task, completed=begun, description=step)
                begun += 1

            yield begin
