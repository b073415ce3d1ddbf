"""A soft tree on MNIST: seconds until an accuracy is reached, and time and accuracy of other precisions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from toolkit.failure import failure_text
from toolkit.idx import FILES, read_idx

from tartree.training import Recipe, TensorRows
from timing.clock import Clock
from timing.work import Work, learn

#: Small steps, and noise against overfitting. Chosen among 32 settings (loss, learning rate, jitter, batch, epochs) by
#: the accuracy on 10,000 training images that were held out.
RECIPE = Recipe(
    epochs=40, batch_size=256, learning_rate=0.003, decision_decay=0.0, leaf_decay=0.0, jitter=3.0, loss="mixture"
)
DEPTH = 8
WANTED = 0.95


def time_to_accuracy(script: Path, folder: Path, clock: Clock, epochs: int | None = None) -> dict[str, Any]:
    """Measure seconds of training until a soft tree has 95 % test accuracy: the first of a process, and "warm".

    Both run in a new process without compiled kernels: `script` with --mnist-epochs.
    """
    options = [
        "--device",
        str(clock.device),
        "--mnist",
        str(folder.resolve()),
        "--mnist-epochs",
        str(epochs or RECIPE.epochs),
    ]
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(
            [sys.executable, str(script), *options], capture_output=True, text=True,
            env=os.environ | {"TRITON_CACHE_DIR": empty},
        )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"the training in a separate process failed:\n{done.stderr}")
    first, second = json.loads(done.stdout.splitlines()[-1])
    return {"depth": DEPTH, "wanted": WANTED} | first | {"warm": second}


def print_trainings(folder: Path, clock: Clock, epochs: int) -> None:
    """Train twice, and print both results."""
    parts = _load(folder, clock.device)
    print(json.dumps([_training(parts, clock, "single", epochs) for _ in range(2)]))


def precisions(folder: Path, clock: Clock, epochs: int | None = None) -> dict[str, Any]:
    """Measure seconds and accuracy of the same training in each precision of the device."""
    parts, rows = _load(folder, clock.device), []
    for precision in ("single", "bfloat16") if clock.device.type == "cpu" else ("single", "tf32", "bfloat16"):
        try:
            _training(parts, clock, precision, 1)  # imports and compilation are not counted
            result = _training(parts, clock, precision, epochs)
        except Exception as error:
            result = {"failure": failure_text(error, first_line=True)}
        rows.append({"precision": precision} | result)
    return {"depth": DEPTH, "warm": True, "rows": rows}


def _training(parts: tuple[TensorRows, TensorRows], clock: Clock, precision: str, epochs: int | None) -> dict[str, Any]:
    """Train once; test images are predicted after each epoch, which is not counted in the times."""
    training, test = parts
    tree = Work(DEPTH).tree(clock.device)
    recipe = replace(RECIPE, precision=precision, epochs=epochs or RECIPE.epochs)  # type: ignore[arg-type]
    accuracies: list[float] = []
    ends: list[float] = []  # of each epoch, in seconds of training
    testing = 0.0

    def test_epoch(epoch: Any) -> bool:
        nonlocal testing
        clock.wait()
        begin = time.perf_counter()
        ends.append(begin - start - testing)
        tree.eval()
        with torch.no_grad():
            right = [
                (tree.predict(x)[0].argmax(1) == y).sum()
                for x, y in zip(test.x.split(1000), test.target.split(1000), strict=True)
            ]
        tree.train()
        accuracies.append(float(torch.stack(right).sum()) / len(test.target))
        testing += time.perf_counter() - begin
        return False

    clock.wait()
    start = time.perf_counter()
    learn(tree, training, recipe, callbacks=(test_epoch,))
    reached = [end for end, accuracy in zip(ends, accuracies, strict=True) if accuracy >= WANTED]
    return {
        "reached_s": reached[0] if reached else None, "first_s": ends[0], "all_s": ends[-1],
        "epochs": len(accuracies), "accuracies": accuracies,
    }  # fmt: skip


def _load(folder: Path, device: torch.device) -> tuple[TensorRows, TensorRows]:
    """Return training and test images, standardised by the training images."""
    x, x_test, y, y_test = (torch.from_numpy(read_idx(folder / name)).to(device) for name in FILES)
    x, x_test = x.flatten(1).float(), x_test.flatten(1).float()
    center, spread = x.mean(), x.std()
    return TensorRows((x - center) / spread, y.long()), TensorRows((x_test - center) / spread, y_test.long())
