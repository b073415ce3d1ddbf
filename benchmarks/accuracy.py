"""Accuracy of the default estimators on scikit-learn's data sets, compared with other common models.

    python benchmarks/accuracy.py [--out docs/benchmarks/accuracy] [--page]

Five stratified folds, three seeds, default parameters, the same folds for all models. The package `neural-trees` is
included if it is installed (pip install neural-trees).
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn import datasets
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from toolkit import record
from toolkit.environment import versions
from toolkit.markdown import table

from tartree import TartClassifier, TartRegressor

SETS = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
}
SEEDS = 3
Makers = dict[str, Callable[[int], Any]]


def classifiers() -> Makers:
    makers: Makers = {
        "TartClassifier": lambda seed: TartClassifier(random_state=seed),
        "random forest": lambda seed: RandomForestClassifier(n_estimators=500, random_state=seed),
        "SVM (RBF)": lambda seed: make_pipeline(StandardScaler(), SVC()),
    }
    try:
        from neural_trees import SoftDecisionTree
    except ImportError:
        print("neural-trees is not installed: left out")
    else:
        makers["neural-trees"] = lambda seed: make_pipeline(StandardScaler(), SoftDecisionTree(random_state=seed))
    return makers


def regressors() -> Makers:
    return {
        "TartRegressor": lambda seed: TartRegressor(random_state=seed),
        "ridge": lambda seed: make_pipeline(StandardScaler(), Ridge()),
        "random forest": lambda seed: RandomForestRegressor(n_estimators=500, random_state=seed),
    }


def compare(name: str, load: Callable[..., Any], makers: Makers, stratified: bool) -> list[dict[str, Any]]:
    X, y = load(return_X_y=True)
    rows = []
    for label, make in makers.items():
        scores, seconds, covered = [], [], []
        for seed in range(SEEDS):
            folds = (StratifiedKFold if stratified else KFold)(5, shuffle=True, random_state=seed)
            for train, test in folds.split(X, y):
                start = time.perf_counter()
                model = make(seed).fit(X[train], y[train])
                seconds.append(time.perf_counter() - start)
                scores.append(model.score(X[test], y[test]))
                if isinstance(model, TartRegressor):
                    low, high = model.predict_quantiles(X[test], [0.05, 0.95]).T
                    covered.append(np.mean((low <= y[test]) & (y[test] <= high)))
        row = {
            "data": name,
            "model": label,
            "score": np.mean(scores),
            "sd": np.std(scores),
            "fit_s": np.median(seconds),
        }
        row["slowest_fit_s"] = np.max(seconds)
        if covered:
            row["covered_by_90_percent_interval"] = np.mean(covered)
        rows.append({key: value if isinstance(value, str) else round(float(value), 4) for key, value in row.items()})
        print(*(f"{key}={value}" for key, value in rows[-1].items()), flush=True)
    return rows


def page(results: dict[str, Any]) -> str:
    rows = results["rows"]
    models = list(dict.fromkeys(row["model"] for row in rows if row["data"] in SETS))
    by_set = {(row["data"], row["model"]): row for row in rows}
    cells = []
    for name in SETS:
        best = max(by_set[name, model]["score"] for model in models)
        cells.append([name, *(_cell(by_set[name, model], best) for model in models)])
    diabetes = [row for row in rows if row["data"] == "diabetes"]
    share = next(row["covered_by_90_percent_interval"] for row in diabetes if "covered_by_90_percent_interval" in row)
    lines = [
        "# Accuracy on scikit-learn's data sets",
        "",
        "Mean accuracy over five stratified folds and three seeds, default parameters, the same folds for all models;",
        "in brackets, the median seconds of a fit. Made by `benchmarks/accuracy.py`; the data is in `accuracy.json`.",
        "",
        *table(["data", *models], cells),
        "",
        "Regression, diabetes: R2 over five folds and three seeds.",
        "",
        *table(
            ["model", "R2", "seconds of a fit"],
            [[row["model"], f"{row['score']:.4f}", f"{row['fit_s']:.2f}"] for row in diabetes],
        ),
        "",
        f"The 90 % intervals of TartRegressor (`predict_quantiles`) cover {100 * share:.1f} % of the held-out targets.",
        "",
        "The UCI sets were in view when the default recipe was chosen, so the figures of TartClassifier are slightly",
        "optimistic. The other models have default settings.",
        "",
        results["versions"],
        "",
    ]
    return "\n".join(lines)


def _cell(row: dict[str, Any], best: float) -> str:
    score = f"{row['score']:.4f}"
    return f"{f'**{score}**' if row['score'] == best else score} ({row['fit_s']:.2f})"


def measure() -> dict[str, Any]:
    warnings.filterwarnings("ignore", category=FutureWarning)
    rows = []
    for name, load in SETS.items():
        rows += compare(name, load, classifiers(), stratified=True)
    rows += compare("diabetes", datasets.load_diabetes, regressors(), stratified=False)
    return {"versions": versions(f"{torch.get_num_threads()} threads") + ".", "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    record.add_arguments(parser, "accuracy")
    record.write(parser.parse_args(), measure, page)


if __name__ == "__main__":
    main()
