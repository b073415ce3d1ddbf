"""Checkpoints of a training on a cluster: files of arrays and JSON in storage that all nodes see, never a pickle."""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from tartree import persist
from tartree.training import WorkerGroup

FILE = "state.safetensors"


class CheckpointFolder(NamedTuple):
    """A folder for the checkpoints of one fit."""

    filesystem: Any
    parent: str
    name: str


@contextmanager
def checkpoint_folder(ray: Any, storage: str | None) -> Iterator[CheckpointFolder]:
    """Yield a folder within `storage`, or within a local one if all nodes are on this machine; remove it at the end."""
    from pyarrow import fs

    if storage is None:
        addresses = {node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
        if addresses != {ray.util.get_node_ip_address()}:
            raise ValueError(
                "storage must be a folder that every node sees, got None for a cluster with nodes on "
                f"{len(addresses)} machines; give a shared folder or the address of an object store"
            )
        storage = tempfile.gettempdir()
    local = fs.LocalFileSystem(), os.path.abspath(storage)
    filesystem, parent = fs.FileSystem.from_uri(storage) if "://" in storage else local
    folder = CheckpointFolder(filesystem, parent, f"tartree-{secrets.token_hex(8)}")
    try:
        yield folder
    finally:
        with suppress(FileNotFoundError):  # nothing was ever written
            filesystem.delete_dir(f"{parent}/{folder.name}")


class RayCheckpointStore:
    """A `tartree.training.CheckpointStore` whose states are checkpoints of Ray Train.

    Parameters
    ----------
    train : module
        `ray.train`, within a worker.
    workers : WorkerGroup
    seconds : float
        Shortest time between checkpoints, which are written at the end of an epoch.
    """

    def __init__(self, train: Any, workers: WorkerGroup, seconds: float) -> None:
        self._train, self._workers, self._seconds = train, workers, seconds
        self._last = time.monotonic()

    def load(self) -> dict[str, Any] | None:
        """Return the last state, or None if there is no checkpoint."""
        checkpoint = self._train.get_checkpoint()
        if checkpoint is None:
            return None
        with checkpoint.as_directory() as folder:
            state: dict[str, Any] = from_plain(*persist.read(os.path.join(folder, FILE)))
        return state

    def save(self, epoch: int, state: Callable[[], dict[str, Any]]) -> None:
        """Write a checkpoint if the last one is old enough."""
        # The clock of the first worker counts for all: every worker must report, or none.
        is_due = self._workers.rank == 0 and time.monotonic() - self._last >= self._seconds
        if not float(self._workers.sum(torch.tensor([float(is_due)]))):
            return
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = None
            if self._workers.rank == 0:
                persist.write(os.path.join(folder, FILE), *to_plain(state()))
                checkpoint = self._train.Checkpoint.from_directory(folder)
            self._train.report({"epoch": epoch}, checkpoint=checkpoint)
        self._last = time.monotonic()


def to_plain(state: dict[str, Any]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return nested dicts and lists as JSON data and arrays.

    Examples
    --------
    >>> document, arrays = to_plain({"epoch": 3, "weights": [torch.zeros(2)]})
    >>> document
    {'state': {'epoch': 3, 'weights': [{'tensor': '0'}]}}
    >>> from_plain(document, arrays)
    {'epoch': 3, 'weights': [tensor([0., 0.])]}
    """
    arrays: dict[str, NDArray[Any]] = {}

    def convert(value: Any) -> Any:
        if isinstance(value, torch.Tensor | np.ndarray):
            kind, name = "tensor" if isinstance(value, torch.Tensor) else "array", str(len(arrays))
            arrays[name] = value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value
            return {kind: name}
        if isinstance(value, dict):
            return {key: convert(item) for key, item in value.items()}
        return [convert(item) for item in value] if isinstance(value, list | tuple) else value

    return {"state": convert(state)}, arrays


def from_plain(document: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Any:
    """Return what `to_plain` received; tuples have become lists."""

    def convert(value: Any) -> Any:
        if isinstance(value, dict):
            if value.keys() == {"tensor"}:
                return torch.from_numpy(arrays[value["tensor"]])
            if value.keys() == {"array"}:
                return arrays[value["array"]]
            return {key: convert(item) for key, item in value.items()}
        return [convert(item) for item in value] if isinstance(value, list) else value

    return convert(document["state"])
