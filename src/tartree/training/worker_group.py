"""Worker groups: workers that train one tree together, and average their gradients in every step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from torch import Tensor


class WorkerGroup(Protocol):
    """The workers of a training, as one of them sees it. All call the same methods in the same order.

    Attributes
    ----------
    rank : int
        Of this worker, from 0.
    size : int
        Number of workers.

    Examples
    --------
    >>> group: WorkerGroup = SINGLE_WORKER
    >>> group.gather(3)
    [3]
    """

    rank: int
    size: int

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all workers in the order of ranks.

        Parameters
        ----------
        value : object
            Plain data that can be pickled.

        Returns
        -------
        list
            The same for all workers.
        """

    def average(self, tensors: Sequence[Tensor], weight: float) -> None:
        """Replace each tensor by its weighted mean over the workers.

        Parameters
        ----------
        tensors : sequence of Tensor
        weight : float
            Of at least 0, and not 0 for all workers.
        """

    def sum(self, tensor: Tensor) -> Tensor:
        """Return the sum of a tensor over the workers.

        Parameters
        ----------
        tensor : Tensor

        Returns
        -------
        Tensor
        """


class SingleWorker:
    """One worker that serves all rows."""

    rank = 0
    size = 1

    def gather(self, value: Any) -> list[Any]:
        return [value]

    def average(self, tensors: Sequence[Tensor], weight: float) -> None:
        return

    def sum(self, tensor: Tensor) -> Tensor:
        return tensor


SINGLE_WORKER = SingleWorker()
