"""Size of simplified default models and its cost: five folds of scikit-learn's sets, tolerance 0.01.

python benchmarks/simplify.py [--tolerance 0.01] [--out docs/benchmarks/simplify]
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch
from sklearn import datasets
from sklearn.model_selection import StratifiedKFold

from tartree import TartClassifier

ROOT = Path(__file__).resolve().parents[1]
SETS = {"iris": datasets.load_iris, "wine": datasets.load_wine, "breast cancer": datasets.load_breast_cancer}


def measure(name: str, tolerance: float) -> dict[str, Any]:
    """Fit each fold, simplify on its training rows, and score both models on the other rows."""
    X, y = SETS[name](return_X_y=True)
    folds = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        model = TartClassifier(random_state=0).fit(X[train], y[train])
        start = time.perf_counter()
        small = model.simplify(X[train], tolerance=tolerance)
        certificate = small.certificate_
        folds.append(
            {
                "leaves": small.get_n_leaves(),
                "terms": certificate.terms_after,
                "terms_before": certificate.terms_before,
                "before": float(model.score(X[test], y[test])),
                "after": float(small.score(X[test], y[test])),
                "measured": certificate.measured,
                "bound": certificate.bound,
                "held_out": float(np.abs(model.predict_proba(X[test]) - small.predict_proba(X[test])).max()),
                "seconds": time.perf_counter() - start,
            }
        )
    return {"data": name, "folds": folds}


def page(results: dict[str, Any]) -> str:
    lines = [
        "# How small a default model becomes",
        "",
        f"`TartClassifier` with defaults (16 linear leaves), simplified with a tolerance of {results['tolerance']}",
        "on its training rows; five folds. Changes are those of predicted probabilities: measured on the training",
        "rows, proven for their box, and, which no certificate promises, the largest on a held-out row. Made by",
        "`benchmarks/simplify.py`; its data is `simplify.json`. The settings of the refit were chosen for speed with",
        "these folds in view.",
        "",
        "| data | leaves kept | terms kept | accuracy before | after | measured | bound | held out | seconds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in results["rows"]:
        folds = row["folds"]

        def span(key: str, folds: list[dict[str, Any]] = folds) -> str:
            low, high = min(f[key] for f in folds), max(f[key] for f in folds)
            return f"{low}" if low == high else f"{low} to {high}"

        def mean(key: str, folds: list[dict[str, Any]] = folds) -> float:
            return float(np.mean([f[key] for f in folds]))

        lines.append(
            f"| {row['data']} | {span('leaves')} | {mean('terms') / mean('terms_before'):.0%} | {mean('before'):.4f} "
            f"| {mean('after'):.4f} | {max(f['measured'] for f in folds):.4f} | {max(f['bound'] for f in folds):.2f} "
            f"| {max(f['held_out'] for f in folds):.2f} | {mean('seconds'):.1f} |"
        )
    return "\n".join([*lines, "", results["versions"], ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tolerance", type=float, default=0.01)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/benchmarks/simplify", help="without its ending")
    arguments = parser.parse_args()
    rows = []
    for name in SETS:
        rows.append(measure(name, arguments.tolerance))
        print(name, [(f["leaves"], round(f["before"], 4), round(f["after"], 4)) for f in rows[-1]["folds"]], flush=True)
    versions = f"torch {torch.__version__}, scikit-learn {sklearn.__version__}, Python {platform.python_version()}."
    results = {"tolerance": arguments.tolerance, "rows": rows, "versions": versions}
    arguments.out.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")
    arguments.out.with_suffix(".md").write_text(page(results))


if __name__ == "__main__":
    main()
