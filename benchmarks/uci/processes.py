"""A function called with many things, in several processes or on a cluster: who is done with one takes the next."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

#: Where there is one, a process that has loaded everything once makes the others; CUDA is not begun in it.
WAY = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"


def load_ahead(module: str) -> None:
    """Begin to load a module for the processes to come; it takes seconds."""
    if WAY == "forkserver":
        from multiprocessing import forkserver

        forkserver.set_forkserver_preload([module])
        forkserver.ensure_running()


def call_in_processes(
    function: Callable[[Any], Any], things: Iterable[Any], processes: int
) -> Iterator[tuple[Any, Any]]:
    """Pairs of a thing and what the function gave for it, as they come. When left early, processes are ended."""
    context, waiting = multiprocessing.get_context(WAY), iter(things)
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


def call_on_cluster(
    function: Callable[[Any], Any], things: Iterable[Any], address: str, cpus: float, gpus: float
) -> Iterator[tuple[Any, Any]]:
    """The same on the nodes of a Ray cluster, which may be lost; the sets must be on all of them."""
    from tartree.cluster import connected, spread

    data = {name: os.environ[name] for name in ("TARTREE_DATA",) if name in os.environ}
    with connected(address, modules=[str(Path(__file__).parent)], variables=data):  # this package goes along
        yield from spread(function, things, cpus=cpus, gpus=gpus)


def _first(things: Iterator[Any], number: int) -> Iterator[Any]:
    for _, thing in zip(range(number), things, strict=False):
        yield thing


def _serve(connection: Connection, function: Callable[[Any], Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears an interrupt, and ends this process
    while True:
        try:
            thing = connection.recv()
        except EOFError:  # the parent is gone
            return
        connection.send(function(thing))
