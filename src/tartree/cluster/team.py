"""The workers of a training on a cluster: what each has learnt is put together by torch's collectives.

The gradients of a tree are left by a formula, not by autograd, so that the hooks of torch's own data-parallel module
would never be called; and it would take the plain mean, whatever the weight of a worker's rows. They are few, and
travel as one buffer a step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch import distributed as collectives


class Elsewhere(RuntimeError):
    """Another worker has failed, and has told the board why."""


class Lost(RuntimeError):
    """Another worker does not answer: its process or its node is gone. Those that are left start again together."""


class TorchTeam:
    """A `tartree.training.worker_group.WorkerGroup` of the processes in torch's default group.

    Parameters
    ----------
    ray : module
    board : handle of a Board
    """

    def __init__(self, ray: Any, board: Any) -> None:
        self.rank, self.size = collectives.get_rank(), collectives.get_world_size()
        self.steps = 0  # so far
        self._ray, self._board = ray, board
        # Ranks start anew after a failure: the name of a meeting must not be that of an earlier start.
        names = [str(torch.randint(2**62, ()).item())]
        with _answers():
            collectives.broadcast_object_list(names)
        self._name, self._meetings = names[0], 0

    @property
    def is_whole(self) -> bool:
        """Whether Ray has not begun to take the workers down."""
        return collectives.is_initialized()

    def gather(self, thing: Any) -> list[Any]:
        self._meetings += 1
        if not self._ray.get(self._board.meet.remote(f"{self._name}-{self._meetings}", self.size)):
            raise Elsewhere("another worker has failed")
        found: list[Any] = [None] * self.size
        with _answers():
            collectives.all_gather_object(found, thing)
        return found

    def average(self, tensors: Sequence[Tensor], weight: float) -> None:
        self.steps += 1
        parts = [tensor.reshape(-1).float() for tensor in tensors]
        sent = torch.cat([*parts, parts[0].new_ones(1)])
        sent *= weight
        with _answers():
            collectives.all_reduce(sent)
        # Rows without weight have no gradient either: 0, as one process finds it.
        sent /= sent[-1].clone().clamp_min(torch.finfo(sent.dtype).tiny)
        for tensor, part in zip(tensors, sent[:-1].split([len(part) for part in parts]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def sum(self, tensor: Tensor) -> Tensor:
        total = tensor.clone()
        with _answers():
            collectives.all_reduce(total)
        return total


@contextmanager
def _answers() -> Iterator[None]:
    try:
        yield
    # Torch has no class of its own for this: a broken connection is a RuntimeError, a group that Ray has taken down
    # because a worker was lost a ValueError.
    except (RuntimeError, ValueError) as error:
        raise Lost(f"another worker does not answer: {error}") from error
