"""Whole fits of small tables, and the latency of one row."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from tartree import TartClassifier
from tartree.nn import combine
from tartree.nn.best_leaf import best_leaf
from tartree.training import Recipe, TensorRows
from timing.work import Work, finished, learn

#: Rows that are answered one by one, and how many of them in a turn: a search comes after a search, as in use.
ROWS, TURN = 200, 20
#: Spread of the centres of classes, in units of the noise around them.
APART = 0.4


def fits(device: str, small: bool = False) -> list[dict[str, Any]]:
    """Seconds and accuracy of a fit at depth 4, beside scikit-learn's forest and boosting."""
    from sklearn import datasets
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.model_selection import train_test_split

    makers: dict[str, Callable[[], Any]] = {
        "TartClassifier": lambda: TartClassifier(depth=4, device=device, random_state=0),
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


def one_row(device: torch.device, depth: int = 12, features: int = 784) -> dict[str, Any]:
    """One row and a batch on the CPU: the searched best leaf against all nodes, on rows the tree was not trained on."""
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
        for dtype in (torch.float64, torch.float32):  # first what `TartClassifier` predicts with on a CPU
            own, x = tree.cpu().to(dtype).eval(), rows.x[fresh].to(dtype)
            results.append({"trained": trained, "precision": str(dtype).removeprefix("torch.")} | _latency(own, x))
            with torch.no_grad():
                right = float((own.predict(x, "single")[0].argmax(-1) == rows.target[fresh]).double().mean())
    return {"depth": depth, "features": features, "training rows": n_training, "right": right, "rows": results}


def _around_centres(work: Work, n_rows: int) -> TensorRows:
    """Rows of noise around one centre a class: what is learned of some of them is true of others."""
    torch.manual_seed(1)
    centres, y = APART * torch.randn(work.classes, work.features), torch.randint(work.classes, (n_rows,))
    return TensorRows(centres[y] + torch.randn(n_rows, work.features), y)


@torch.no_grad()
def _latency(tree: Any, x: torch.Tensor) -> dict[str, Any]:
    """Microseconds of one row and milliseconds of all, measured in turns, by two functions that find the same leaf."""

    def search(rows: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = tree.predict(rows, "single")
        return found

    def full(rows: torch.Tensor) -> torch.Tensor:
        arrival, numbers = tree(rows)
        return combine(arrival, tree.output.mean(numbers), "single")

    singles = [row[None] for row in x[:ROWS]]
    for rows in (*singles, x):
        _assert_same_leaf(tree, rows)
    both = {"search": search, "all": full}
    one: dict[str, list[float]] = {name: [] for name in both}
    batch: dict[str, list[float]] = {name: [] for name in both}
    cold: list[float] = []
    for start in range(0, len(singles), TURN):
        for name, function in both.items():
            one[name] += [_seconds(function, row) for row in singles[start : start + TURN]]
    for row in singles:
        full(row)  # its weights drive those of the search out of the caches
        cold.append(_seconds(search, row))
    for _ in range(5):
        for name, function in both.items():
            batch[name].append(_seconds(function, x))
    result: dict[str, Any] = {f"{name}_us": 1e6 * statistics.median(times) for name, times in one.items()}
    result["cold_us"] = 1e6 * statistics.median(cold)
    result |= {f"{name}_batch_ms": 1e3 * statistics.median(times) for name, times in batch.items()}
    result["ratio"] = result["all_us"] / result["search_us"]
    result["batch ratio"] = result["all_batch_ms"] / result["search_batch_ms"]
    # A machine with other work to do shows here: half of the rows lie between these.
    result |= {f"{name}_quarters_us": [1e6 * q for q in statistics.quantiles(one[name])[::2]] for name in both}
    return result


def _seconds(function: Callable[[torch.Tensor], Any], rows: torch.Tensor) -> float:
    begin = time.perf_counter()
    function(rows)
    return time.perf_counter() - begin


def _assert_same_leaf(tree: Any, rows: torch.Tensor) -> None:
    """The leaf that is searched for must be that of all nodes; where two are equal up to rounding, either is right."""
    found, arrival = best_leaf(tree, rows)[0], tree(rows).arrival
    largest, there = arrival.max(-1).values, arrival.gather(-1, found.unsqueeze(-1)).squeeze(-1)
    n_wrong = int((there < largest * (1 - 1e-5)).sum())
    if n_wrong:
        raise AssertionError(f"the leaf searched for must be the best of all, however: not so on {n_wrong} rows")
