"""Whole fits of small tables, the latency of one row, and MNIST."""

from __future__ import annotations

import gzip
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tartree import TartClassifier
from tartree.nn import combine
from tartree.training import Recipe, TensorRows, train
from timing.clock import Clock
from timing.work import Work

#: A soft tree on MNIST: small steps, and noise, without which it fits the training images and not the others. Chosen
#: among 32 (loss, learning rate, jitter, batch, epochs) by the accuracy on 10,000 of the training images, held out.
MNIST_RECIPE = Recipe(
    epochs=40, batch_size=256, learning_rate=0.003, decision_decay=0.0, leaf_decay=0.0, jitter=3.0, loss="mixture"
)


def fits(device: str, small: bool = False) -> list[dict[str, Any]]:
    """Seconds and accuracy of a fit with default parameters, beside scikit-learn's forest and boosting."""
    from sklearn import datasets
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.model_selection import train_test_split

    makers: dict[str, Callable[[], Any]] = {
        "TartClassifier": lambda: TartClassifier(device=device, random_state=0),
        "random forest": lambda: RandomForestClassifier(random_state=0, n_jobs=-1),
        "gradient boosting": lambda: HistGradientBoostingClassifier(random_state=0),
    }
    results = []
    for name in ("iris", "wine", "breast_cancer", "digits")[: 1 if small else None]:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
        row: dict[str, Any] = {"data": name.replace("_", " "), "rows": len(X_train)}
        for kind, make in makers.items():
            make().fit(X_train[:60], y_train[:60])  # what the first fit loads is not counted
            times = []
            for _ in range(3):
                model, begin = make(), time.perf_counter()
                model.fit(X_train, y_train)
                times.append(time.perf_counter() - begin)
            row[kind] = {"seconds": statistics.median(times), "accuracy": float(model.score(X_test, y_test))}
        results.append(row)
    return results


def one_row(device: torch.device, depth: int = 12, features: int = 784) -> list[dict[str, Any]]:
    """Microseconds of one row and of a batch on the CPU: the searched best leaf against all nodes, by the same tree."""
    work = Work(depth, features=features)
    rows = work.rows(device, batches=4)
    teacher = torch.randn(features, work.classes, device=device)
    rows = TensorRows(rows.x, (rows.x @ teacher).argmax(1))
    results = []
    for trained in (False, True):
        tree = work.tree(device)
        if trained:
            recipe = Recipe(epochs=20, batch_size=256, learning_rate=0.02, decision_decay=0.0, jitter=0.0)
            train(tree, rows, recipe, generator=torch.Generator().manual_seed(0))
        for dtype in (torch.float32, torch.float64):
            own = tree.cpu().to(dtype).eval()
            x = rows.x[:1024].cpu().to(dtype)
            results.append({"trained": trained, "precision": str(dtype).removeprefix("torch.")} | _latency(own, x))
        tree.to(torch.float32)
    return results


@torch.no_grad()
def _latency(tree: Any, x: torch.Tensor) -> dict[str, Any]:
    def full(rows: torch.Tensor) -> torch.Tensor:
        arrival, numbers = tree(rows)
        return combine(arrival, tree.output.mean(numbers), "single")

    found, wanted = tree.predict(x, "single"), full(x)
    result: dict[str, Any] = {"rows that agree": float((found.argmax(-1) == wanted.argmax(-1)).double().mean())}
    for name, function in (("search", lambda rows: tree.predict(rows, "single")), ("all", full)):
        singles = []
        for i in range(200):
            row, begin = x[i % len(x)][None], time.perf_counter()
            function(row)
            singles.append(time.perf_counter() - begin)
        result[f"{name}_us"] = 1e6 * statistics.median(singles)
        batches = []
        for _ in range(5):
            begin = time.perf_counter()
            function(x)
            batches.append(time.perf_counter() - begin)
        result[f"{name}_batch_ms"] = 1e3 * statistics.median(batches)
    result["ratio"] = result["all_us"] / result["search_us"]
    result["batch ratio"] = result["all_batch_ms"] / result["search_batch_ms"]
    return result


def mnist(
    folder: Path, clock: Clock, wanted: float = 0.95, depth: int = 8, epochs: int | None = None
) -> dict[str, Any]:
    """Seconds of training until a soft tree reaches an accuracy on the test images; looking at them is not counted."""
    device = clock.device
    images = [torch.from_numpy(_idx(folder / f"{part}-images-idx3-ubyte.gz").copy()) for part in ("train", "t10k")]
    labels = [torch.from_numpy(_idx(folder / f"{part}-labels-idx1-ubyte.gz").copy()) for part in ("train", "t10k")]
    x, x_test = (i.flatten(1).float().to(device) / 255 for i in images)
    center, spread = x.mean(), x.std()
    x, x_test = (x - center) / spread, (x_test - center) / spread
    y, y_test = (part.long().to(device) for part in labels)
    tree = Work(depth).tree(device)
    recipe = MNIST_RECIPE if epochs is None else Recipe(**{**vars(MNIST_RECIPE), "epochs": epochs})
    accuracies: list[float] = []
    looking = [0.0]
    reached: list[float] = []

    def look(epoch: Any) -> bool:
        clock.wait()
        begin = time.perf_counter()
        tree.eval()
        with torch.no_grad():
            right = [
                (tree.predict(a)[0].argmax(1) == b).sum()
                for a, b in zip(x_test.split(1000), y_test.split(1000), strict=True)
            ]
        tree.train()
        accuracies.append(float(torch.stack(right).sum()) / len(y_test))
        if accuracies[-1] >= wanted and not reached:
            reached.append(begin - start - looking[0])
        looking[0] += time.perf_counter() - begin
        return False

    clock.wait()
    start = time.perf_counter()
    train(tree, TensorRows(x, y), recipe, generator=torch.Generator().manual_seed(0), callbacks=(look,))
    clock.wait()
    total = time.perf_counter() - start - looking[0]
    return {
        "depth": depth, "wanted": wanted, "reached_s": reached[0] if reached else None, "all_s": total,
        "epochs": len(accuracies), "accuracies": accuracies,
    }  # fmt: skip


def _idx(path: Path) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """An array from a file in MNIST's format."""
    with gzip.open(path) as file:
        raw = file.read()
    n_axes = raw[3]
    shape = [int.from_bytes(raw[4 + 4 * i : 8 + 4 * i], "big") for i in range(n_axes)]
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * n_axes).reshape(shape)
