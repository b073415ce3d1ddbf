"""A function called with many things on a cluster: results as they come, and nodes may go and come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from tartree.cluster.connecting import connected, count_slots, original

Thing = TypeVar("Thing")
Found = TypeVar("Found")

#: Tasks that wait on the cluster for each one that runs: enough that no node is idle, few enough to be told to stop.
AHEAD = 2


def spread(
    function: Callable[[Thing], Found],
    things: Iterable[Thing],
    *,
    address: str = "auto",
    cpus: float = 1.0,
    gpus: float = 0.0,
    retries: int = 10,
) -> Iterator[tuple[Thing, Found]]:
    """Pairs of a thing and what the function gave for it, as they come.

    A call whose node or process is lost is made again elsewhere. An error that the function raises is raised here; what
    was given before stays with the caller. Things are taken when there is room for them, so they may be endless.

    Parameters
    ----------
    function : callable of one argument
        It runs in other processes, on machines that have what it imports.
    things : iterable
    address : str, default="auto"
        The cluster; see `connected`.
    cpus, gpus : float
        What one call takes.
    retries : int, default=10
        How often a call is made again after its node or process was lost.

    Examples
    --------
    >>> from tartree.cluster import spread
    >>> for depth, accuracy in spread(fit_and_score, [2, 3, 4]):  # doctest: +SKIP
    ...     print(depth, accuracy)
    """
    if retries < 0:
        raise ValueError(f"retries must be at least 0, however: retries={retries}")
    with connected(address) as ray:
        call = ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=retries)(_call)
        shared = ray.put(function)  # once, not with every call
        waiting = iter(things)
        running: dict[Any, Thing] = {}  # what each task works on
        try:
            while True:
                room = AHEAD * max(1, count_slots(ray, cpus, gpus)) - len(running)
                for thing in islice(waiting, max(0, room)):
                    running[call.remote(shared, thing)] = thing
                if not running:
                    return
                # Asked anew now and then: a cluster that has grown has more room.
                done, _ = ray.wait(list(running), num_returns=1, timeout=5.0)
                for reference in done:
                    thing = running.pop(reference)
                    yield thing, _result(ray, reference, thing, retries)
        finally:
            for reference in running:
                ray.cancel(reference, force=True)


def _call(function: Callable[[Any], Any], thing: Any) -> Any:
    return function(thing)


def _result(ray: Any, reference: Any, thing: Any, retries: int) -> Any:
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise original(error) from error
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError, ray.exceptions.ObjectLostError) as error:
        raise RuntimeError(
            f"a process died {retries + 1} times while it worked on {thing!r}; it may need more memory: give each call "
            "more cpus, so that fewer run at once"
        ) from error
