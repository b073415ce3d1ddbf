"""Time and memory of encoding, fitting for one epoch and predicting, as rows grow.

    python benchmarks/rows.py [--rows 10000 100000 1000000] [--out docs/benchmarks/rows] [--page]

Twenty numeric columns with missing values, two classes, depth 4, other parameters at their defaults. Each size runs in
its own process, whose peak of resident memory is read from the system (Linux).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

from toolkit import record
from toolkit.environment import peak_memory
from toolkit.markdown import table


def measure(rows: int) -> dict[str, float]:
    """Return seconds and peak memory of one size, measured in this process."""
    import numpy as np

    from tartree import TartClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 20))
    y = X[:, 0] * X[:, 1] + X[:, 2] > 0
    X[rng.random(X.shape) < 0.01] = np.nan
    result: dict[str, float] = {"rows": rows}
    model = TartClassifier(depth=4, epochs=1, random_state=0)
    TartClassifier(epochs=1).fit(X[:100], y[:100])  # imports of a first fit are not counted
    start = time.perf_counter()
    model.fit(X, y)
    result["fit_s"] = time.perf_counter() - start
    start = time.perf_counter()
    model.predict(X)
    result["predict_s"] = time.perf_counter() - start
    result["peak_gb"] = peak_memory() / 1e6
    return result


def measure_all(sizes: list[int]) -> list[dict[str, float]]:
    """Measure each size in its own process."""
    results = []
    for rows in sizes:
        command = [sys.executable, __file__, "--size", str(rows)]
        results.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        print(results[-1], flush=True)
    return results


def page(results: list[dict[str, float]]) -> str:
    lines = [
        "# Time and memory as rows grow",
        "",
        "Twenty numeric columns with missing values, two classes, depth 4, one epoch. Times are in seconds; memory is",
        "the peak of the whole process. Made by `benchmarks/rows.py`; the data is in `rows.json`.",
        "",
        *table(
            ["rows", "encode and fit one epoch", "predict", "peak memory, GB"],
            [[f"{r['rows']:,}", f"{r['fit_s']:.2f}", f"{r['predict_s']:.2f}", f"{r['peak_gb']:.2f}"] for r in results],
        ),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--size", type=int, help=argparse.SUPPRESS)
    record.add_arguments(parser, "rows")
    arguments = parser.parse_args()
    if arguments.size:
        print(json.dumps(measure(arguments.size)))
        return
    record.write(arguments, lambda: measure_all(arguments.rows), page)


if __name__ == "__main__":
    main()
