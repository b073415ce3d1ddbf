"""A joblib backend whose calls are tasks of a cluster.

Ray's own backend keeps a pool of processes; when the node of one is lost, so is its call. Here every call is a task,
which the cluster repeats on another node. A large argument that many calls share, such as a table, is sent once.
"""

from __future__ import annotations

import copy
import hashlib
import pickle
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import joblib
from joblib._parallel_backends import ParallelBackendBase

from tartree.cluster.connection import connected, count_slots, unwrap

#: Arguments above so many bytes are stored on the cluster, this many of them at a time.
LARGE = 2**20
STORED = 4


@contextmanager
def joblib_backend(
    address: str = "auto", *, cpus: float = 1.0, gpus: float = 0.0, retries: int = 10
) -> Iterator[ParallelBackendBase]:
    """Run the calls of joblib on a cluster within the block; those whose node is lost are repeated.

    Parameters
    ----------
    address : str, default="auto"
        The cluster; see `connected`.
    cpus, gpus : float
        Cores and GPUs of one call.
    retries : int, default=10
        Repetitions of a call whose node or process was lost, at most.

    Yields
    ------
    joblib.parallel.ParallelBackendBase

    Examples
    --------
    >>> from tartree.cluster import joblib_backend
    >>> with joblib_backend():  # doctest: +SKIP
    ...     search.fit(X, y)
    """
    with connected(address) as ray:
        backend = RayTasks(ray, cpus, gpus, retries)
        with joblib.parallel_config(backend=backend, n_jobs=-1):
            yield backend


class RayTasks(ParallelBackendBase):  # type: ignore[misc]
    """Joblib backend that runs every call as one task of Ray."""

    supports_retrieve_callback = True
    supports_sharedmem = False
    uses_threads = False

    def __init__(self, ray: Any, cpus: float = 1.0, gpus: float = 0.0, retries: int = 10, **others: Any) -> None:
        super().__init__(**others)
        self.ray, self.cpus, self.gpus = ray, cpus, gpus
        self._task = ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=retries)(_call)
        self._running: set[Any] = set()
        self._stored: OrderedDict[bytes, Any] = OrderedDict()  # references by the hash of their content

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        if n_jobs == 0:
            raise ValueError("n_jobs must not be 0; -1 takes the whole cluster")
        slots = max(1, count_slots(self.ray, self.cpus, self.gpus))
        if n_jobs is None:
            return 1
        return n_jobs if n_jobs > 0 else max(1, slots + 1 + n_jobs)

    def submit(self, func: Callable[[], Any], callback: Callable[[Any], None] | None = None) -> Any:
        reference = self._task.remote(*self._with_references(func))
        self._running.add(reference)
        future = reference.future()
        future.add_done_callback(lambda done: self._running.discard(reference))
        if callback is not None:
            future.add_done_callback(callback)
        return future

    def _with_references(self, func: Any) -> tuple[Any, ...]:
        """Return joblib's calls with placeholders for large arguments, and the references to these."""
        references: list[Any] = []

        def replace(argument: Any) -> Any:
            pickled = self.ray.cloudpickle.dumps(argument)
            if len(pickled) < LARGE:
                return argument
            references.append(self._reference(pickled))
            return Placeholder(len(references) - 1)

        calls = [(call, tuple(map(replace, arguments)), options) for call, arguments, options in func.items]
        func = copy.copy(func)
        func.items = calls
        return func, *references

    def _reference(self, pickled: bytes) -> Any:
        key = hashlib.blake2b(pickled).digest()
        if key not in self._stored:
            self._stored[key] = self.ray.put(pickled)
            while len(self._stored) > STORED:
                self._stored.popitem(last=False)
        self._stored.move_to_end(key)
        return self._stored[key]

    def retrieve_result_callback(self, out: Any) -> Any:
        try:
            return out.result()
        except self.ray.exceptions.RayTaskError as error:
            raise unwrap(error) from error

    def abort_everything(self, ensure_ready: bool = True) -> None:
        for reference in list(self._running):
            self.ray.cancel(reference, force=True)
        self._running.clear()

    def get_nested_backend(self) -> tuple[ParallelBackendBase, int | None]:
        from joblib._parallel_backends import SequentialBackend

        return SequentialBackend(nesting_level=(self.nesting_level or 0) + 1), 1  # a task has one core

    def __reduce__(self) -> Any:  # joblib sends the backend with each call, for nested calls
        from joblib._parallel_backends import SequentialBackend

        return SequentialBackend, ()


class Placeholder(NamedTuple):
    """Stands for a large argument, which is sent beside the call."""

    position: int


def _call(func: Any, *pickles: bytes) -> Any:
    """Run joblib's calls with large arguments put back."""

    def restore(argument: Any) -> Any:
        return pickle.loads(pickles[argument.position]) if isinstance(argument, Placeholder) else argument

    func.items = [(call, tuple(map(restore, arguments)), options) for call, arguments, options in func.items]
    return func()
