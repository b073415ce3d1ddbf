"""Whole fits of small tables, and the latency of one row."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from tartree import TartClassifier
from tartree.nn import combine
from tartree.training import Recipe, TensorRows
from timing.work import Work, finished, learn


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
            _fitted(make(), X_train[:60], y_train[:60])  # what the first fit loads is not counted
            times = []
            for _ in range(3):
                begin = time.perf_counter()
                model = _fitted(make(), X_train, y_train)
                times.append(time.perf_counter() - begin)
            row[kind] = {"seconds": statistics.median(times), "accuracy": float(model.score(X_test, y_test))}
        results.append(row)
    return results


def _fitted(model: Any, X: Any, y: Any) -> Any:
    model.fit(X, y)
    if isinstance(model, TartClassifier):
        finished(model.history_)
    return model


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
            learn(tree, rows, recipe)
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
