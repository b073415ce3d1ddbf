"""A worker group of torch processes: gradients are averaged by collectives.

Torch's own data-parallel module does not apply: the gradients of a tree are set by a formula, not by autograd, so that
its hooks would never be called; and it takes the plain mean, whatever the weight of a worker's rows. A tree has few
gradients, so they travel as one buffer a step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch import distributed as collectives


class OtherWorkerError(RuntimeError):
    """Another worker has failed, and the coordinator has its error."""


class LostWorkerError(RuntimeError):
    """Another worker does not answer: its process or its node is gone. The others are restarted together."""


class TorchWorkerGroup:
    """A `tartree.training.WorkerGroup` of the processes in torch's default group.

    Parameters
    ----------
    ray : module
    coordinator : handle of a Coordinator
    """

    def __init__(self, ray: Any, coordinator: Any) -> None:
        self.rank, self.size = collectives.get_rank(), collectives.get_world_size()
        self.n_averages = 0
        self._ray, self._coordinator = ray, coordinator
        # After a failure workers start again: their barriers must not have the names of earlier ones.
        names = [str(torch.randint(2**62, ()).item())]
        with _lost_worker_errors():
            collectives.broadcast_object_list(names)
        self._name, self._n_barriers = names[0], 0

    @property
    def is_whole(self) -> bool:
        """Whether Ray has not begun to take the workers down."""
        return collectives.is_initialized()

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all workers in the order of ranks."""
        self._n_barriers += 1
        if not self._ray.get(self._coordinator.wait.remote(f"{self._name}-{self._n_barriers}", self.size)):
            raise OtherWorkerError("another worker has failed")
        values: list[Any] = [None] * self.size
        with _lost_worker_errors():
            collectives.all_gather_object(values, value)
        return values

    def average(self, tensors: Sequence[Tensor], weight: float) -> None:
        """Replace each tensor by its weighted mean over the workers."""
        self.n_averages += 1
        parts = [tensor.reshape(-1).float() for tensor in tensors]
        buffer = torch.cat([*parts, parts[0].new_ones(1)])
        buffer *= weight
        with _lost_worker_errors():
            collectives.all_reduce(buffer)
        # Rows without weight have no gradient either: 0, as one process computes it.
        buffer /= buffer[-1].clone().clamp_min(torch.finfo(buffer.dtype).tiny)
        for tensor, part in zip(tensors, buffer[:-1].split([len(part) for part in parts]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def sum(self, tensor: Tensor) -> Tensor:
        """Return the sum of a tensor over the workers."""
        total = tensor.clone()
        with _lost_worker_errors():
            collectives.all_reduce(total)
        return total


@contextmanager
def _lost_worker_errors() -> Iterator[None]:
    """Raise LostWorkerError for torch's errors about a lost worker."""
    try:
        yield
    # Torch has no class for it: a broken connection is a RuntimeError, a group that Ray has taken down because a worker
    # was lost a ValueError.
    except (RuntimeError, ValueError) as error:
        raise LostWorkerError(f"another worker does not answer: {error}") from error
