"""Checkpoints of a training: a file of numbers and text in storage that all nodes see, never a pickle."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tartree import persist
from tartree.training.worker_group import WorkerGroup

FILE = "state.safetensors"


class RayKeeper:
    """A `tartree.training.checkpoint.CheckpointStore` whose states are checkpoints of Ray Train.

    Parameters
    ----------
    train : module
        `ray.train`, within a worker.
    team : WorkerGroup
    seconds : float
        Between checkpoints, at least; the end of an epoch makes one.
    """

    def __init__(self, train: Any, team: WorkerGroup, seconds: float) -> None:
        self._train, self._team, self._seconds = train, team, seconds
        self._last = time.monotonic()

    def load(self) -> dict[str, Any] | None:
        checkpoint = self._train.get_checkpoint()
        if checkpoint is None:
            return None
        with checkpoint.as_directory() as folder:
            state: dict[str, Any] = unpacked(*persist.read(os.path.join(folder, FILE)))
        return state

    def save(self, epoch: int, state: Callable[[], dict[str, Any]]) -> None:
        # The clock of the first worker counts for all: every worker must report, or none.
        due = self._team.rank == 0 and time.monotonic() - self._last >= self._seconds
        if not float(self._team.sum(torch.tensor([float(due)]))):
            return
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = None
            if self._team.rank == 0:
                persist.write(os.path.join(folder, FILE), *packed(state()))
                checkpoint = self._train.Checkpoint.from_directory(folder)
            self._train.report({"epoch": epoch}, checkpoint=checkpoint)
        self._last = time.monotonic()


def packed(state: dict[str, Any]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Nested dicts and lists as JSON data and arrays.

    Examples
    --------
    >>> document, arrays = packed({"epoch": 3, "weights": [torch.zeros(2)]})
    >>> document
    {'state': {'epoch': 3, 'weights': [{'tensor': '0'}]}}
    >>> unpacked(document, arrays)
    {'epoch': 3, 'weights': [tensor([0., 0.])]}
    """
    arrays: dict[str, NDArray[Any]] = {}

    def put(value: Any) -> Any:
        if isinstance(value, torch.Tensor | np.ndarray):
            kind, name = "tensor" if isinstance(value, torch.Tensor) else "array", str(len(arrays))
            arrays[name] = value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value
            return {kind: name}
        if isinstance(value, dict):
            return {key: put(one) for key, one in value.items()}
        return [put(one) for one in value] if isinstance(value, list | tuple) else value

    return {"state": put(state)}, arrays


def unpacked(document: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Any:
    """What `packed` was given; tuples have become lists."""

    def get(value: Any) -> Any:
        if isinstance(value, dict):
            if value.keys() == {"tensor"}:
                return torch.from_numpy(arrays[value["tensor"]])
            if value.keys() == {"array"}:
                return arrays[value["array"]]
            return {key: get(one) for key, one in value.items()}
        return [get(one) for one in value] if isinstance(value, list) else value

    return get(document["state"])
