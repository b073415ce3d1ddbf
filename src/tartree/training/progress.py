"""A progress bar for training, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tartree.training.history import Epoch


@contextmanager
def progress_bar(epochs: int, verbose: int) -> Iterator[Callable[[Epoch], None]]:
    """Yield a function that shows an epoch; without `verbose` it does nothing, and nothing is imported or printed."""
    if not verbose:
        yield lambda epoch: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)  # standard output belongs to results
    if not console.is_terminal:  # a log file: one line at the end
        last: list[Epoch] = []
        yield lambda epoch: last.__setitem__(slice(None), [epoch])
        for epoch in last:
            console.print(f"fit: {epoch.number} epochs, {_summary(epoch)}, {epoch.seconds:.1f} s", highlight=False)
        return
    with Progress(
        TextColumn("fit"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    ) as progress:
        task = progress.add_task("", total=epochs)
        yield lambda epoch: progress.update(task, completed=epoch.number, description=_summary(epoch))


def _summary(epoch: Epoch) -> str:
    text = f"loss {epoch.loss.mean():.4f}"
    if epoch.validation_loss is not None:
        text += f", validation loss {epoch.validation_loss.mean():.4f}"
    if epoch.validation_score is not None:
        text += f", score {epoch.validation_score.mean():.3f}"
    return text
