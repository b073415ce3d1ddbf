"""Calls of a function on a cluster: results as they are done, while nodes may leave and join."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from tartree.checks import check_integer
from tartree.cluster.connection import connected, count_slots, unwrap

Argument = TypeVar("Argument")
Result = TypeVar("Result")

#: Tasks submitted for each one that runs: enough that no node is idle, few enough to be cancelled quickly.
QUEUED = 2


def spread(
    function: Callable[[Argument], Result],
    things: Iterable[Argument],
    *,
    address: str = "auto",
    cpus: float = 1.0,
    gpus: float = 0.0,
    retries: int = 10,
) -> Iterator[tuple[Argument, Result]]:
    """Call a function for each of many arguments, and yield results as they are done.

    A call whose node or process is lost is repeated on another. Arguments are taken as nodes become free, so there may
    be infinitely many.

    Parameters
    ----------
    function : callable of one argument
        It runs in other processes, on machines that have what it imports.
    things : iterable
        Arguments.
    address : str, default="auto"
        The cluster; see `connected`.
    cpus, gpus : float
        Cores and GPUs of one call.
    retries : int, default=10
        Repetitions of a call whose node or process was lost, at most.

    Yields
    ------
    tuple
        An argument and its result.

    Raises
    ------
    RuntimeError
        If the process of a call dies more often than `retries`. What the function raises is raised as it is.

    Examples
    --------
    >>> from tartree.cluster import spread
    >>> for depth, accuracy in spread(fit_and_score, [2, 3, 4]):  # doctest: +SKIP
    ...     print(depth, accuracy)
    """
    check_integer("retries", retries, 0)
    with connected(address) as ray:
        call = ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=retries)(_call)
        shared = ray.put(function)  # once, not with every call
        waiting = iter(things)
        running: dict[Any, Argument] = {}
        try:
            while True:
                room = QUEUED * max(1, count_slots(ray, cpus, gpus)) - len(running)
                for argument in islice(waiting, max(0, room)):
                    running[call.remote(shared, argument)] = argument
                if not running:
                    return
                # With a timeout: a cluster that has grown takes more tasks.
                done, _ = ray.wait(list(running), num_returns=1, timeout=5.0)
                for reference in done:
                    argument = running.pop(reference)
                    yield argument, _result(ray, reference, argument, retries)
        finally:
            for reference in running:
                ray.cancel(reference, force=True)


def _call(function: Callable[[Any], Any], argument: Any) -> Any:
    return function(argument)


def _result(ray: Any, reference: Any, argument: Any, retries: int) -> Any:
    """Return the result of a task, or raise its error."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise unwrap(error) from error
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError, ray.exceptions.ObjectLostError) as error:
        raise RuntimeError(
            f"the process of the call for {argument!r} died {retries + 1} times; it may need more memory: give each "
            "call more cpus, so that fewer run at once"
        ) from error
