"""Workers that train one tree together: what each learns from its own rows is put together in every step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from torch import Tensor


class WorkerGroup(Protocol):
    """The workers of a training, as one of them sees it. All call the same methods in the same order."""

    rank: int  # of this worker, from 0
    size: int

    def gather(self, thing: Any) -> list[Any]:
        """What each worker gave, plain data that can be pickled, in the order of ranks; the same for all."""

    def average(self, tensors: Sequence[Tensor], weight: float) -> None:
        """Replace each tensor by its weighted mean over the workers; weights are of at least 0, and not all 0."""

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over the workers."""


class SingleWorker:
    """One worker, that has all rows."""

    rank = 0
    size = 1

    def gather(self, thing: Any) -> list[Any]:
        return [thing]

    def average(self, tensors: Sequence[Tensor], weight: float) -> None:
        return

    def sum(self, tensor: Tensor) -> Tensor:
        return tensor


SINGLE_WORKER = SingleWorker()
