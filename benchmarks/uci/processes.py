"""Calls of a function with many arguments: in this process, in several, or on a cluster, each taking the next one."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

#: A fork server imports everything once, if the platform has one; CUDA is not initialised in it.
START_METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"


def load_ahead(module: str) -> None:
    """Start to import a module for the worker processes, which takes seconds."""
    if START_METHOD == "forkserver":
        from multiprocessing import forkserver

        forkserver.set_forkserver_preload([module])
        forkserver.ensure_running()


def call(function: Callable[[Any], Any], things: Iterable[Any], processes: int) -> Iterator[tuple[Any, Any]]:
    """Yield pairs of an argument and its result as they are done, with one process in order in this one."""
    if processes == 1:
        return ((thing, function(thing)) for thing in things)
    return call_in_processes(function, things, processes)


def call_in_processes(
    function: Callable[[Any], Any], things: Iterable[Any], processes: int
) -> Iterator[tuple[Any, Any]]:
    """Yield pairs of an argument and its result as they are done; processes end when the iterator is closed."""
    context, waiting = multiprocessing.get_context(START_METHOD), iter(things)
    running: dict[Any, Any] = {}  # argument by connection to a process
    workers = []
    try:
        for thing in _first(waiting, processes):
            connection, remote = context.Pipe()
            worker = context.Process(target=_serve, args=(remote, function, dict(os.environ)), daemon=True)
            worker.start()
            remote.close()  # so that the death of the process ends the connection
            workers.append(worker)
            connection.send(thing)
            running[connection] = thing
        while running:
            for ready in wait(list(running)):
                thing = running.pop(ready)
                try:
                    result = ready.recv()  # type: ignore[union-attr]
                except EOFError:
                    raise RuntimeError(f"a process died while working on {thing}") from None
                yield thing, result
                for following in _first(waiting, 1):
                    ready.send(following)  # type: ignore[union-attr]
                    running[ready] = following
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.join()


def call_on_cluster(
    function: Callable[[Any], Any], things: Iterable[Any], address: str, cpus: float, gpus: float
) -> Iterator[tuple[Any, Any]]:
    """Yield the same from the nodes of a Ray cluster, which may be lost; the sets must be on all of them."""
    from tartree.cluster import connected, spread

    data = {name: os.environ[name] for name in ("TARTREE_DATA",) if name in os.environ}
    packages = [str(Path(__file__).parents[1] / name) for name in ("uci", "toolkit")]
    with connected(address, modules=packages, variables=data):
        yield from spread(function, things, cpus=cpus, gpus=gpus)


def _first(things: Iterator[Any], number: int) -> Iterator[Any]:
    for _, thing in zip(range(number), things, strict=False):
        yield thing


def _serve(connection: Connection, function: Callable[[Any], Any], environment: dict[str, str]) -> None:
    os.environ.update(environment)  # the server that forks processes may have started before it changed
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles an interrupt, and ends this process
    while True:
        try:
            thing = connection.recv()
        except EOFError:  # the parent has ended
            return
        connection.send(function(thing))
