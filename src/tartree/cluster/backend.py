"""A cluster for joblib, and so for everything that takes joblib's backends.

Ray has a backend of its own, which keeps a pool of processes; when the node of one is lost, so is what it worked on.
Here every call is a task, which the cluster runs again elsewhere. A large argument that many calls share, such as a
table, is put on the cluster once.
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

from tartree.cluster.connecting import connected, count_slots, original

#: Bytes from which on an argument is put on the cluster, and how many of them are remembered.
LARGE = 2**20
REMEMBERED = 4


@contextmanager
def joblib_backend(
    address: str = "auto", *, cpus: float = 1.0, gpus: float = 0.0, retries: int = 10
) -> Iterator[ParallelBackendBase]:
    """Within the block, joblib's calls run on a cluster; those whose node is lost run again.

    Parameters
    ----------
    address : str, default="auto"
        The cluster; see `connected`.
    cpus, gpus : float
        What one call takes.
    retries : int, default=10
        How often a call is made again after its node or process was lost.

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
    """Every call of joblib as one task of Ray."""

    supports_retrieve_callback = True
    supports_sharedmem = False
    uses_threads = False

    def __init__(self, ray: Any, cpus: float = 1.0, gpus: float = 0.0, retries: int = 10, **others: Any) -> None:
        super().__init__(**others)
        self.ray, self.cpus, self.gpus = ray, cpus, gpus
        self._task = ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=retries)(_call)
        self._running: set[Any] = set()
        self._put: OrderedDict[bytes, Any] = OrderedDict()  # by a hash of what they hold

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        if n_jobs == 0:
            raise ValueError("n_jobs must not be 0, however: n_jobs=0; -1 takes the whole cluster")
        slots = max(1, count_slots(self.ray, self.cpus, self.gpus))
        if n_jobs is None:
            return 1
        return n_jobs if n_jobs > 0 else max(1, slots + 1 + n_jobs)

    def submit(self, func: Callable[[], Any], callback: Callable[[Any], None] | None = None) -> Any:
        reference = self._task.remote(*self._light(func))
        self._running.add(reference)
        future = reference.future()
        future.add_done_callback(lambda done: self._running.discard(reference))
        if callback is not None:
            future.add_done_callback(callback)
        return future

    def _light(self, func: Any) -> tuple[Any, ...]:
        """Joblib's calls with references in place of large arguments, and what these refer to."""
        references: list[Any] = []

        def light(argument: Any) -> Any:
            packed = self.ray.cloudpickle.dumps(argument)
            if len(packed) < LARGE:
                return argument
            references.append(self._reference(packed))
            return Beside(len(references) - 1)

        calls = [(call, tuple(map(light, arguments)), options) for call, arguments, options in func.items]
        func = copy.copy(func)
        func.items = calls
        return func, *references

    def _reference(self, packed: bytes) -> Any:
        key = hashlib.blake2b(packed).digest()
        if key not in self._put:
            self._put[key] = self.ray.put(packed)
            while len(self._put) > REMEMBERED:
                self._put.popitem(last=False)
        self._put.move_to_end(key)
        return self._put[key]

    def retrieve_result_callback(self, out: Any) -> Any:
        try:
            return out.result()
        except self.ray.exceptions.RayTaskError as error:
            raise original(error) from error

    def abort_everything(self, ensure_ready: bool = True) -> None:
        for reference in list(self._running):
            self.ray.cancel(reference, force=True)
        self._running.clear()

    def get_nested_backend(self) -> tuple[ParallelBackendBase, int | None]:
        from joblib._parallel_backends import SequentialBackend

        return SequentialBackend(nesting_level=(self.nesting_level or 0) + 1), 1  # a task has its own core, no more

    def __reduce__(self) -> Any:  # joblib sends the backend along with each call, for calls within it
        from joblib._parallel_backends import SequentialBackend

        return SequentialBackend, ()


class Beside(NamedTuple):
    """Stands for a large argument, which comes beside the call."""

    place: int


def _call(func: Any, *packed: bytes) -> Any:
    def whole(argument: Any) -> Any:
        return pickle.loads(packed[argument.place]) if isinstance(argument, Beside) else argument

    func.items = [(call, tuple(map(whole, arguments)), options) for call, arguments, options in func.items]
    return func()
