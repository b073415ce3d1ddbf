"""Time and memory of encoding, fitting for one epoch and predicting, as rows grow.

    python benchmarks/rows.py [--rows 10000 100000 1000000] [--out docs/benchmarks/rows]

Twenty numeric columns with gaps, two classes, depth 4, other parameters as they come. Each size runs in a process of
its own, whose peak of resident memory is read from the system (Linux).
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path


def measure(rows: int) -> dict[str, float]:
    import numpy as np

    from tartree import TartClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 20))
    y = X[:, 0] * X[:, 1] + X[:, 2] > 0
    X[rng.random(X.shape) < 0.01] = np.nan
    result: dict[str, float] = {"rows": rows}
    model = TartClassifier(depth=4, epochs=1, random_state=0)
    TartClassifier(epochs=1).fit(X[:100], y[:100])  # what the first fit loads is not counted
    start = time.perf_counter()
    model.fit(X, y)
    result["fit_s"] = time.perf_counter() - start
    start = time.perf_counter()
    model.predict(X)
    result["predict_s"] = time.perf_counter() - start
    status = Path("/proc/self/status").read_text()
    result["peak_gb"] = int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1e6  # type: ignore[index]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks/rows"), help="without its ending")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one)))
        return
    results = []
    for rows in arguments.rows:
        command = [sys.executable, __file__, "--one", str(rows)]
        results.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        print(results[-1], flush=True)
    lines = [
        "# Time and memory as rows grow",
        "",
        "Twenty numeric columns with gaps, two classes, depth 4, one epoch; times in seconds, memory as the",
        "peak of the whole process. Made by `benchmarks/rows.py`; its data is `rows.json`.",
        "",
        "| rows | encode and fit one epoch | predict | peak memory, GB |",
        "|---|---|---|---|",
        *(f"| {r['rows']:,} | {r['fit_s']:.2f} | {r['predict_s']:.2f} | {r['peak_gb']:.2f} |" for r in results),
        "",
    ]
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.with_suffix(".json").write_text(json.dumps(results, indent=2) + "\n")
    arguments.out.with_suffix(".md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
