"""Scores of the models of the zoo, for docs/zoo.md.

    python benchmarks/zoo.py                          all that needs only scikit-learn's data
    python benchmarks/zoo.py --only warm --groups small medium large --processes 4
                                                      warm starts compared with their trees, on the UCI sets
    python benchmarks/zoo.py --only sdt dndf --data DIR --device cuda
    python benchmarks/zoo.py --pictures --page        the picture and the page, from the saved results

DIR holds the folders mnist and fashion-mnist with the four files of each in idx format. Every part writes one entry of
docs/benchmarks/zoo.json, and keeps the others. The part warm can be resumed: its results are in zoo-warm.jsonl.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn import datasets
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier
from toolkit import environment
from toolkit.idx import FILES, read_idx

from tartree import zoo
from tartree.nn import Conv
from tartree.training import Recipe

ROOT = Path(__file__).resolve().parents[1]
SETS = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
}


def versions(device: str, threads: int | None = None) -> str:
    if device == "cuda":
        return environment.versions(torch.cuda.get_device_name())
    count = threads or torch.get_num_threads()
    return environment.versions(f"{count} thread{'' if count == 1 else 's'} of a CPU")


def measure_sets(arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure every classifier of the zoo on scikit-learn's sets, five stratified folds."""
    rows = []
    for name, preset in zoo.PRESETS.items():
        if preset.task != "classification" or name not in (arguments.models or zoo.PRESETS):
            continue
        for data, load in SETS.items():
            if data not in (arguments.sets or SETS):
                continue
            X, y = load(return_X_y=True)
            X = X / 16 if data == "digits" else X
            scores, seconds = [], []
            for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
                start = time.perf_counter()
                model = zoo.make(name, random_state=0, device=arguments.device).fit(X[train], y[train])
                seconds.append(time.perf_counter() - start)
                scores.append(model.score(X[test], y[test]))
            row = {"model": name, "data": data, "score": mean(scores), "fit_s": round(float(np.median(seconds)), 2)}
            rows.append({**row, "versions": versions(arguments.device)})
            print(row, flush=True)
    for data, load in SETS.items():
        X, y = load(return_X_y=True)
        folds = StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)
        accuracies = [DecisionTreeClassifier(random_state=0).fit(X[a], y[a]).score(X[b], y[b]) for a, b in folds]
        rows.append({"model": "CART", "data": data, "score": mean(accuracies), "versions": versions("cpu")})
    # Rows that were not requested keep their earlier results.
    new = {(row["model"], row["data"]) for row in rows}
    path = arguments.out.with_suffix(".json")
    before = json.loads(path.read_text()).get("sets", {}).get("rows", []) if path.exists() else []
    return {"rows": [row for row in before if (row["model"], row["data"]) not in new] + rows}


def measure_warm(arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure trees of scikit-learn, soft trees from them, and warm starts, on the official splits of the UCI sets."""
    import zoo_warm

    path = arguments.out.with_suffix(".json")
    before = json.loads(path.read_text()).get("warm", {}) if path.exists() else {}
    return zoo_warm.measure(arguments, before, versions(arguments.device, threads=1))


def images(folder: Path) -> list[np.ndarray]:
    """Return training images, test images (rows of numbers from 0 to 1), training labels and test labels."""
    arrays = []
    for name in FILES:
        path = next((p for p in (folder / name, folder / name.removesuffix(".gz")) if p.exists()), None)
        if path is None:
            raise FileNotFoundError(f"{folder} must hold {name}")
        array = read_idx(path)
        arrays.append(array.astype(np.int64) if array.ndim == 1 else array.reshape(len(array), -1) / np.float32(255))
    return arrays


def measure_images(model: Any, folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    X, X_test, y, y_test = (part[: arguments.rows] for part in images(folder))
    start = time.perf_counter()
    model.set_params(device=arguments.device, random_state=0, verbose=1).fit(X, y)
    seconds = time.perf_counter() - start
    result: dict[str, Any] = {"fit_s": round(seconds, 1), "rows": len(X), "parameters": model.n_parameters_}
    for selection in ("multi", "single"):
        result[selection] = mean([model.set_params(selection=selection).score(X_test, y_test)])
    return result


def measure_sdt(arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure the soft decision tree of depth 8 on MNIST."""
    recipe = Recipe(
        epochs=30, learning_rate=0.01, decision_decay=1.0, leaf_decay=0.0, jitter=0.5, balance=0.1, batch_size=1024
    )
    model = zoo.make("sdt", depth=8, numeric="plain", recipe=recipe, early_stopping=False, epochs=arguments.epochs)
    return {"data": "MNIST", "depth": 8, **measure_images(model, arguments.data / "mnist", arguments)}


def measure_dndf(arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure the deep neural decision forest on Fashion-MNIST: five trees above one small network."""
    decision = Conv(shape=(1, 28, 28), channels=32, width=256, dropout=0.3, shift=2, flip=True)
    settings = {"epochs": arguments.epochs or 30, "batch_size": 256}
    model = zoo.make("dndf", decision=decision, **settings)
    return {"data": "Fashion-MNIST", **settings, **measure_images(model, arguments.data / "fashion-mnist", arguments)}


def measure_nrf(arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure the neural regression forest: R2, and the coverage of its 90 % intervals on held-out rows."""
    friedman = datasets.make_friedman1(1000, noise=1.0, random_state=0)
    rows = []
    for data, (X, y) in (("diabetes", datasets.load_diabetes(return_X_y=True)), ("Friedman 1", friedman)):
        scores, covered, widths = [], [], []
        for seed in range(3):
            for train, test in KFold(5, shuffle=True, random_state=seed).split(X):
                model = zoo.make("nrf", random_state=seed, device=arguments.device).fit(X[train], y[train])
                scores.append(model.score(X[test], y[test]))
                low, high = model.predict_quantiles(X[test], [0.05, 0.95]).T
                covered.append(np.mean((low <= y[test]) & (y[test] <= high)))
                widths.append(np.mean(high - low) / np.std(y))
        rows.append({"data": data, "r2": mean(scores), "covered": mean(covered), "width": mean(widths)})
        print(rows[-1], flush=True)
    return {"rows": rows}


def mean(values: list[Any]) -> float:
    return round(float(np.mean(values)), 4)


PARTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "sets": measure_sets,
    "nrf": measure_nrf,
    "warm": measure_warm,
    "sdt": measure_sdt,
    "dndf": measure_dndf,
}
WITHOUT_DATA = ("sets", "nrf")  # need only scikit-learn's data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, help="parts to measure")
    parser.add_argument("--data", type=Path, help="folder with mnist and fashion-mnist")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rows", type=int, help="number of images, for trials; all by default")
    parser.add_argument("--epochs", type=int, help="for the images, for trials; those of the recipe by default")
    parser.add_argument("--models", nargs="+", choices=zoo.PRESETS, help="for the part sets; all by default")
    parser.add_argument("--sets", nargs="+", choices=SETS, help="for the part sets; all by default")
    parser.add_argument("--groups", nargs="+", default=["small"], choices=["large", "medium", "small"])
    parser.add_argument("--splits", type=int, default=4, choices=range(1, 5), help="number of splits of the UCI sets")
    parser.add_argument("--processes", type=int, default=1, help="for the part warm, one thread each")
    parser.add_argument("--limit-seconds", type=float, help="for the part warm; finished results are kept")
    parser.add_argument("--retry", action="store_true", help="for the part warm: run failures again")
    parser.add_argument("--pictures", action="store_true", help="draw docs/pictures/zoo.png")
    parser.add_argument("--page", action="store_true", help="write docs/zoo.md from the saved results")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "docs/benchmarks/zoo", help="path of the record, without an ending"
    )
    arguments = parser.parse_args()
    only_pages = (arguments.pictures or arguments.page) and not arguments.only
    parts = () if only_pages else arguments.only or WITHOUT_DATA
    if {"sdt", "dndf"} & set(parts) and arguments.data is None:
        parser.error("--data DIR is needed: the folder of the images")
    warnings.filterwarnings("ignore", category=FutureWarning)
    path = arguments.out.with_suffix(".json")
    for part in parts:
        entry = PARTS[part](arguments)
        results = json.loads(path.read_text()) if path.exists() else {}
        # Each row of the parts warm and sets has its versions.
        results[part] = entry if part in ("warm", "sets") else {"versions": versions(arguments.device), **entry}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(results, indent=2) + "\n")
        print(f"{part}: written to {path}", flush=True)
    if arguments.pictures or arguments.page:
        import zoo_page

        zoo_page.write(path, draw=arguments.pictures, page=arguments.page)


if __name__ == "__main__":
    main()
