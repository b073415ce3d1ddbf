"""A function called with many things, in several processes: each takes the next thing when it is done with one."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any


def call_in_processes(
    function: Callable[[Any], Any], things: Iterable[Any], processes: int
) -> Iterator[tuple[Any, Any]]:
    """Pairs of a thing and what the function gave for it, as they come. When left early, processes are ended."""
    context, waiting = get_context("spawn"), iter(things)
    running: dict[Any, Any] = {}  # connection to a process: what it works on
    workers = []
    try:
        for thing in _first(waiting, processes):
            here, there = context.Pipe()
            worker = context.Process(target=_serve, args=(there, function), daemon=True)
            worker.start()
            there.close()  # so that the death of the process is heard
            workers.append(worker)
            here.send(thing)
            running[here] = thing
        while running:
            for connection in wait(list(running)):
                thing = running.pop(connection)
                try:
                    found = connection.recv()  # type: ignore[union-attr]
                except EOFError:
                    raise RuntimeError(f"a process died while it worked on {thing}") from None
                yield thing, found
                for following in _first(waiting, 1):
                    connection.send(following)  # type: ignore[union-attr]
                    running[connection] = following
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.join()


def _first(things: Iterator[Any], number: int) -> Iterator[Any]:
    for _, thing in zip(range(number), things, strict=False):
        yield thing


def _serve(connection: Connection, function: Callable[[Any], Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears an interrupt, and ends this process
    while True:
        connection.send(function(connection.recv()))
