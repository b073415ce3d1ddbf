"""Whole fits of small tables, compared with scikit-learn's forest and boosting."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from tartree import TartClassifier
from timing.work import finished


def measure(device: str, small: bool = False) -> dict[str, Any]:
    """Measure seconds and accuracy of a fit at depth 4."""
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
            _fitted(make(), X_train[:60], y_train[:60])  # imports of a first fit are not counted
            times = []
            for _ in range(3):
                begin = time.perf_counter()
                model = _fitted(make(), X_train, y_train)
                times.append(time.perf_counter() - begin)
            row[kind] = {"seconds": statistics.median(times), "accuracy": float(model.score(X_test, y_test))}
        results.append(row)
    return {"rows": results}


def _fitted(model: Any, X: Any, y: Any) -> Any:
    model.fit(X, y)
    if isinstance(model, TartClassifier):
        finished(model.history_)
    return model
