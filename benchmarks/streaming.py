"""Time and memory of a table in Parquet files: streamed at two sizes, and read into memory.

    python benchmarks/streaming.py [--rows 2000000 20000000] [--out docs/benchmarks/streaming] [--page]

Twenty numeric columns in single precision with missing values, two classes, depth 4, one epoch. The files are made in
a temporary folder. Each measurement runs in a separate process, whose peak of resident memory is read from the system
(Linux). Times are compared within one run only.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from toolkit import record
from toolkit.environment import peak_memory
from toolkit.markdown import table

COLUMNS = 20
FILE_ROWS = 1_000_000
GROUP_ROWS = 250_000


def write_files(folder: Path, rows: int) -> None:
    """Write Parquet files whose target depends on several columns."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    for number in range(-(-rows // FILE_ROWS)):
        rng = np.random.default_rng([0, number])
        n_rows = min(FILE_ROWS, rows - number * FILE_ROWS)
        X = rng.standard_normal((n_rows, COLUMNS), dtype=np.float32)
        y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(np.int8)
        X[rng.random(X.shape, dtype=np.float32) < 0.01] = np.nan
        columns = {f"x{column}": X[:, column] for column in range(COLUMNS)} | {"y": y}
        pq.write_table(pa.table(columns), folder / f"rows-{number:04d}.parquet", row_group_size=GROUP_ROWS)


def measure(mode: str, folder: str, model_path: str) -> dict[str, Any]:
    """Fit and predict in this process, streamed or in memory, or predict by the command line."""
    from tartree import TartClassifier, load
    from tartree.table import ParquetTable

    result: dict[str, Any] = {}
    start = time.perf_counter()
    if mode == "command":
        from click.testing import CliRunner

        from tartree.cli import main

        out = Path(model_path).with_suffix(".predicted.parquet")
        done = CliRunner().invoke(main, ["predict", model_path, folder, "--out", str(out), "--quiet"])
        if done.exit_code:
            raise RuntimeError(done.output)
        result["predict_s"] = time.perf_counter() - start
        result["out_bytes"] = out.stat().st_size
        out.unlink()
    else:
        source = ParquetTable(folder, in_memory=mode == "memory")
        warm_up(TartClassifier)
        start, cpu = time.perf_counter(), time.process_time()
        model = TartClassifier(depth=4, epochs=1, random_state=0).fit(source, "y")
        result["fit_s"], result["fit_cpu_s"] = time.perf_counter() - start, time.process_time() - cpu
        result["fit_peak_gb"] = peak()
        start, cpu = time.perf_counter(), time.process_time()
        rows: Any = folder if mode == "stream" else source.read_all().drop_columns(["y"])
        predicted = model.predict(rows)
        result["predict_s"], result["predict_cpu_s"] = time.perf_counter() - start, time.process_time() - cpu
        result["rows"] = len(predicted)
        model.save(model_path)
        load(model_path)
    result["peak_gb"] = peak()
    return result


def warm_up(estimator: Any) -> None:
    """Fit once, so that imports of a first fit are not counted."""
    import numpy as np

    rng = np.random.default_rng(0)
    estimator(epochs=1).fit(rng.normal(size=(100, 2)), np.arange(100) % 2)


def peak() -> float:
    """Return the peak of resident memory of this process so far, in GB."""
    return peak_memory() / 1e6


def run(mode: str, folder: Path, model: Path) -> dict[str, Any]:
    """Measure in a separate process."""
    command = [sys.executable, __file__, "--mode", mode, "--folder", str(folder), "--model", str(model)]
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    result: dict[str, Any] = json.loads(output.splitlines()[-1])
    return result


def best(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the shortest times and the highest peaks: other load on the machine makes times longer, never shorter."""
    return {key: (max if key.endswith("_gb") else min)(run[key] for run in runs) for key in runs[0]}


def page(results: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    sizes = results["sizes"]
    names = {"stream": "streamed", "memory": "in memory", "command": "`tartree predict`"}
    head = ["rows", "mode", "fit, s", "rows a second", "predict, s", "rows a second", "peak memory, GB"]
    small, large = sizes[0], sizes[-1]
    lines = [
        "# A table in files: streamed and in memory",
        "",
        f"{COLUMNS} numeric columns in single precision with missing values, two classes, depth 4, one epoch, Parquet "
        f"files of {FILE_ROWS:,} rows, on {results['cores']} CPU cores.",
        "Each row was measured in a separate process; memory is its peak. For the smaller table both modes were run in "
        f"turn, {results['repeats']} times, and the shortest times are shown.",
        "Made by `benchmarks/streaming.py`; the data is in `streaming.json`.",
        "",
        *table(head, [_cells(size, mode, names[mode]) for size in sizes for mode in names if mode in size]),
        "",
        f"- Peak memory at {large['rows']:,} rows against {small['rows']:,}, streamed: "
        f"{large['stream']['peak_gb'] / small['stream']['peak_gb']:.2f} times.",
    ]
    for size in sizes:
        if "memory" in size:
            stream, memory = size["stream"], size["memory"]
            fit, predict = (stream[key] / memory[key] for key in ("fit_s", "predict_s"))
            lines += [
                f"- Streamed against in memory, {size['rows']:,} rows: fit takes {fit:.2f} times as long, predict "
                f"{predict:.2f} times.",
                "- In seconds of processor time, which other load on the machine affects less: fit "
                f"{stream['fit_cpu_s']:.1f} against {memory['fit_cpu_s']:.1f}, predict {stream['predict_cpu_s']:.1f} "
                f"against {memory['predict_cpu_s']:.1f}.",
            ]
    lines.append("- One epoch includes the pass for statistics; further epochs do not.")
    return "\n".join([*lines, ""])


def _cells(size: dict[str, Any], mode: str, name: str) -> list[str]:
    result, rows = size[mode], size["rows"]
    fit = (f"{result['fit_s']:.1f}", f"{rows / result['fit_s']:,.0f}") if "fit_s" in result else ("", "")
    predict = (f"{result['predict_s']:.1f}", f"{rows / result['predict_s']:,.0f}")
    return [f"{rows:,}", name, *fit, *predict, f"{result['peak_gb']:.2f}"]


def measure_all(arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure all sizes and modes."""
    sizes = []
    with tempfile.TemporaryDirectory() as folder:
        for rows in sorted(arguments.rows):
            files = Path(folder) / str(rows)
            files.mkdir()
            write_files(files, rows)
            size: dict[str, Any] = {"rows": rows, "bytes": sum(file.stat().st_size for file in files.iterdir())}
            is_small = rows <= arguments.memory_rows
            runs: dict[str, list[dict[str, Any]]] = {}
            for _ in range(arguments.repeats if is_small else 1):
                for mode in ("stream", "memory") if is_small else ("stream",):
                    runs.setdefault(mode, []).append(run(mode, files, Path(folder) / "model.tart"))
                    print(rows, mode, runs[mode][-1], flush=True)
            runs["command"] = [run("command", files, Path(folder) / "model.tart")]
            print(rows, "command", runs["command"], flush=True)
            sizes.append(size | {mode: best(results) for mode, results in runs.items()})
    return {"cores": os.cpu_count(), "repeats": arguments.repeats, "sizes": sizes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[2_000_000, 20_000_000])
    parser.add_argument("--memory-rows", type=int, default=2_000_000, help="the largest table that is read into memory")
    parser.add_argument("--repeats", type=int, default=3, help="for small tables, in turn; the shortest times count")
    parser.add_argument("--mode", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--model", help=argparse.SUPPRESS)
    record.add_arguments(parser, "streaming")
    arguments = parser.parse_args()
    if arguments.mode:
        print(json.dumps(measure(arguments.mode, arguments.folder, arguments.model)))
        return
    record.write(arguments, lambda: measure_all(arguments), page)


if __name__ == "__main__":
    main()
