"""A soft tree on MNIST: seconds until an accuracy, and what other precisions cost and save."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tartree.training import Recipe, TensorRows
from timing.clock import Clock
from timing.said import said
from timing.work import Work, learn

#: Small steps, and noise, without which a soft tree fits the training images and not the others. Chosen among 32
#: (loss, learning rate, jitter, batch, epochs) by the accuracy on 10,000 of the training images, held out.
RECIPE = Recipe(
    epochs=40, batch_size=256, learning_rate=0.003, decision_decay=0.0, leaf_decay=0.0, jitter=3.0, loss="mixture"
)
DEPTH = 8
WANTED = 0.95
FILES = [f"{part}-{kind}-ubyte.gz" for kind in ("images-idx3", "labels-idx1") for part in ("train", "t10k")]


def time_to_accuracy(script: Path, folder: Path, clock: Clock, epochs: int | None = None) -> dict[str, Any]:
    """Seconds of training until a soft tree is right on 95 % of the test images: the first of a process, and "warm".

    Both are of a process of its own, which `script` is for with --mnist-epochs, and whose kernels nobody has compiled.
    """
    words = [
        "--device",
        str(clock.device),
        "--mnist",
        str(folder.resolve()),
        "--mnist-epochs",
        str(epochs or RECIPE.epochs),
    ]
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(
            [sys.executable, str(script), *words], capture_output=True, text=True,
            env=os.environ | {"TRITON_CACHE_DIR": empty},
        )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"the training in a process of its own failed:\n{done.stderr}")
    first, second = json.loads(done.stdout.splitlines()[-1])
    return {"depth": DEPTH, "wanted": WANTED} | first | {"warm": second}


def print_trainings(folder: Path, clock: Clock, epochs: int) -> None:
    """Train twice, and print both results."""
    parts = _load(folder, clock.device)
    print(json.dumps([_training(parts, clock, "single", epochs) for _ in range(2)]))


def precisions(folder: Path, clock: Clock, epochs: int | None = None) -> dict[str, Any]:
    """The same training in each precision that the device has: seconds and accuracy."""
    parts, rows = _load(folder, clock.device), []
    for precision in ("single", "bfloat16") if clock.device.type == "cpu" else ("single", "tf32", "bfloat16"):
        try:
            _training(parts, clock, precision, 1)  # what it loads and compiles is not counted
            found = _training(parts, clock, precision, epochs)
        except Exception as error:
            found = {"failure": said(error)}
        rows.append({"precision": precision} | found)
    return {"depth": DEPTH, "warm": True, "rows": rows}


def _training(parts: tuple[TensorRows, TensorRows], clock: Clock, precision: str, epochs: int | None) -> dict[str, Any]:
    """One training; the test images are looked at after each epoch, and the time of looking is not counted."""
    training, test = parts
    tree = Work(DEPTH).tree(clock.device)
    recipe = replace(RECIPE, precision=precision, epochs=epochs or RECIPE.epochs)  # type: ignore[arg-type]
    accuracies: list[float] = []
    ends: list[float] = []  # of each epoch, in seconds of training
    looking = 0.0

    def look(epoch: Any) -> bool:
        nonlocal looking
        clock.wait()
        begin = time.perf_counter()
        ends.append(begin - start - looking)
        tree.eval()
        with torch.no_grad():
            right = [
                (tree.predict(x)[0].argmax(1) == y).sum()
                for x, y in zip(test.x.split(1000), test.target.split(1000), strict=True)
            ]
        tree.train()
        accuracies.append(float(torch.stack(right).sum()) / len(test.target))
        looking += time.perf_counter() - begin
        return False

    clock.wait()
    start = time.perf_counter()
    learn(tree, training, recipe, callbacks=(look,))
    reached = [end for end, accuracy in zip(ends, accuracies, strict=True) if accuracy >= WANTED]
    return {
        "reached_s": reached[0] if reached else None, "first_s": ends[0], "all_s": ends[-1],
        "epochs": len(accuracies), "accuracies": accuracies,
    }  # fmt: skip


def _load(folder: Path, device: torch.device) -> tuple[TensorRows, TensorRows]:
    """Images of training and test, standardised as the former are."""
    x, x_test, y, y_test = (torch.from_numpy(_idx(folder / name).copy()).to(device) for name in FILES)
    x, x_test = x.flatten(1).float(), x_test.flatten(1).float()
    center, spread = x.mean(), x.std()
    return TensorRows((x - center) / spread, y.long()), TensorRows((x_test - center) / spread, y_test.long())


def _idx(path: Path) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """An array from a file in MNIST's format."""
    with gzip.open(path) as file:
        raw = file.read()
    n_axes = raw[3]
    shape = [int.from_bytes(raw[4 + 4 * i : 8 + 4 * i], "big") for i in range(n_axes)]
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * n_axes).reshape(shape)
