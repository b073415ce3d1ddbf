"""Latency of one row on a CPU: the best leaf by search, and by computing all nodes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from tartree.nn import combine
from tartree.nn.best_leaf import best_leaf
from tartree.training import Recipe, TensorRows
from timing.work import Work, learn

#: Rows that are timed one by one, and how many in a turn: a search follows a search, as in use.
ROWS, TURN = 200, 20
#: Distance of the class centres, in units of the noise around them.
SEPARATION = 0.4


def measure(device: torch.device, depth: int = 12, features: int = 784) -> dict[str, Any]:
    """Time one row and a batch on the CPU, by search and by all nodes, on rows that the tree was not trained on."""
    work = Work(depth, features=features)
    n_training = 4 * work.batch
    rows = _around_centres(work, n_training + work.batch)
    training = TensorRows(rows.x[:n_training].to(device), rows.target[:n_training].to(device))
    fresh = slice(n_training, None)
    results = []
    right = 0.0
    for trained in (False, True):
        tree = work.tree(device)
        if trained:
            recipe = Recipe(epochs=20, batch_size=256, learning_rate=0.02, decision_decay=0.0, jitter=0.0)
            learn(tree, training, recipe)
        for dtype in (torch.float64, torch.float32):  # double precision, which `TartClassifier` uses on a CPU, first
            on_cpu, x = tree.cpu().to(dtype).eval(), rows.x[fresh].to(dtype)
            results.append({"trained": trained, "precision": str(dtype).removeprefix("torch.")} | _latency(on_cpu, x))
            with torch.no_grad():
                right = float((on_cpu.predict(x, "single")[0].argmax(-1) == rows.target[fresh]).double().mean())
    return {"depth": depth, "features": features, "training rows": n_training, "right": right, "rows": results}


def _around_centres(work: Work, n_rows: int) -> TensorRows:
    """Draw rows of noise around the centre of each class, so that new rows follow the training rows."""
    torch.manual_seed(1)
    centres, y = SEPARATION * torch.randn(work.classes, work.features), torch.randint(work.classes, (n_rows,))
    return TensorRows(centres[y] + torch.randn(n_rows, work.features), y)


@torch.no_grad()
def _latency(tree: Any, x: torch.Tensor) -> dict[str, Any]:
    """Measure microseconds of one row and milliseconds of all, in turns; both functions find the same leaf."""

    def search(rows: torch.Tensor) -> torch.Tensor:
        prediction: torch.Tensor = tree.predict(rows, "single")
        return prediction

    def full(rows: torch.Tensor) -> torch.Tensor:
        arrival, logits = tree(rows)
        return combine(arrival, tree.output.mean(logits), "single")

    singles = [row[None] for row in x[:ROWS]]
    for rows in (*singles, x):
        _assert_same_leaf(tree, rows)
    functions = {"search": search, "all": full}
    single: dict[str, list[float]] = {name: [] for name in functions}
    batch: dict[str, list[float]] = {name: [] for name in functions}
    cold: list[float] = []
    for start in range(0, len(singles), TURN):
        for name, function in functions.items():
            single[name] += [_seconds(function, row) for row in singles[start : start + TURN]]
    for row in singles:
        full(row)  # evicts the weights of the search from the caches
        cold.append(_seconds(search, row))
    for _ in range(5):
        for name, function in functions.items():
            batch[name].append(_seconds(function, x))
    result: dict[str, Any] = {f"{name}_us": 1e6 * statistics.median(times) for name, times in single.items()}
    result["cold_us"] = 1e6 * statistics.median(cold)
    result |= {f"{name}_batch_ms": 1e3 * statistics.median(times) for name, times in batch.items()}
    result["ratio"] = result["all_us"] / result["search_us"]
    result["batch ratio"] = result["all_batch_ms"] / result["search_batch_ms"]
    # Quartiles show whether the machine had other load.
    result |= {f"{name}_quarters_us": [1e6 * q for q in statistics.quantiles(single[name])[::2]] for name in functions}
    return result


def _seconds(function: Callable[[torch.Tensor], Any], rows: torch.Tensor) -> float:
    begin = time.perf_counter()
    function(rows)
    return time.perf_counter() - begin


def _assert_same_leaf(tree: Any, rows: torch.Tensor) -> None:
    """Raise unless the search finds the leaf of the largest arrival; equal up to rounding, either leaf is right."""
    leaf, arrival = best_leaf(tree, rows)[0], tree(rows).arrival
    largest, at_leaf = arrival.max(-1).values, arrival.gather(-1, leaf.unsqueeze(-1)).squeeze(-1)
    n_wrong = int((at_leaf < largest * (1 - 1e-5)).sum())
    if n_wrong:
        raise AssertionError(f"the search must find the leaf of the largest arrival, but does not on {n_wrong} rows")
