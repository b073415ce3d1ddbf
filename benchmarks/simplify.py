"""Size of simplified default models and the accuracy lost: five folds of scikit-learn's sets, tolerance 0.01.

python benchmarks/simplify.py [--tolerance 0.01] [--out docs/benchmarks/simplify] [--page]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.model_selection import StratifiedKFold
from toolkit import record
from toolkit.environment import versions
from toolkit.markdown import table

from tartree import TartClassifier

SETS = {"iris": datasets.load_iris, "wine": datasets.load_wine, "breast cancer": datasets.load_breast_cancer}


def measure(name: str, tolerance: float) -> dict[str, Any]:
    """Fit in each fold, simplify on the training rows, and score both models on the held-out rows."""
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
    head = ["data", "leaves kept", "terms kept", "accuracy before", "after", "measured", "bound", "held out", "seconds"]
    lines = [
        "# Size of simplified default models",
        "",
        f"`TartClassifier` with defaults (16 linear leaves), simplified with a tolerance of {results['tolerance']}",
        "on its training rows; five folds. Changes are those of predicted probabilities: measured on the training",
        "rows, proven for their bounding box, and the largest on a held-out row, which no certificate covers. Made by",
        "`benchmarks/simplify.py`; the data is in `simplify.json`. Settings of the refit were chosen for speed with",
        "these folds in view.",
        "",
        *table(head, [_cells(row) for row in results["rows"]]),
        "",
        results["versions"],
        "",
    ]
    return "\n".join(lines)


def _cells(row: dict[str, Any]) -> list[str]:
    values = {key: [fold[key] for fold in row["folds"]] for key in row["folds"][0]}
    low, high = min(values["leaves"]), max(values["leaves"])
    mean = {key: float(np.mean(numbers)) for key, numbers in values.items()}
    return [
        row["data"],
        f"{low}" if low == high else f"{low} to {high}",
        f"{mean['terms'] / mean['terms_before']:.0%}",
        f"{mean['before']:.4f}",
        f"{mean['after']:.4f}",
        f"{max(values['measured']):.4f}",
        f"{max(values['bound']):.2f}",
        f"{max(values['held_out']):.2f}",
        f"{mean['seconds']:.1f}",
    ]


def measure_all(tolerance: float) -> dict[str, Any]:
    rows = []
    for name in SETS:
        rows.append(measure(name, tolerance))
        print(name, [(f["leaves"], round(f["before"], 4), round(f["after"], 4)) for f in rows[-1]["folds"]], flush=True)
    return {"tolerance": tolerance, "rows": rows, "versions": versions() + "."}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tolerance", type=float, default=0.01)
    record.add_arguments(parser, "simplify")
    arguments = parser.parse_args()
    record.write(arguments, lambda: measure_all(arguments.tolerance), page)


if __name__ == "__main__":
    main()
