"""Time and memory of a table in Parquet files: streamed at two sizes, and read into memory.

    python benchmarks/streaming.py [--rows 2000000 20000000] [--out docs/benchmarks/streaming]

Twenty numeric columns in single precision with gaps, two classes, depth 4, one epoch. The files are made in
a temporary folder. Each measurement runs in a process of its own, whose peak of resident memory is read from the
system (Linux). Times are compared within one run only.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

COLUMNS = 20
FILE_ROWS = 1_000_000
GROUP_ROWS = 250_000


def write_files(folder: Path, rows: int) -> None:
    """Parquet files with a target that takes several columns to tell."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    for number in range(-(-rows // FILE_ROWS)):
        rng = np.random.default_rng([0, number])
        own = min(FILE_ROWS, rows - number * FILE_ROWS)
        X = rng.standard_normal((own, COLUMNS), dtype=np.float32)
        y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(np.int8)
        X[rng.random(X.shape, dtype=np.float32) < 0.01] = np.nan
        columns = {f"x{place}": X[:, place] for place in range(COLUMNS)} | {"y": y}
        pq.write_table(pa.table(columns), folder / f"rows-{number:04d}.parquet", row_group_size=GROUP_ROWS)


def measure(way: str, folder: str, model_path: str) -> dict[str, Any]:
    """One process: fit and predict, streamed or in memory, or predict by the command line."""
    from tartree import TartClassifier, load
    from tartree.table import ParquetTable

    result: dict[str, Any] = {}
    start = time.perf_counter()
    if way == "command":
        from click.testing import CliRunner

        from tartree.cli import main

        out = Path(model_path).with_suffix(".predicted.parquet")
        found = CliRunner().invoke(main, ["predict", model_path, folder, "--out", str(out), "--quiet"])
        if found.exit_code:
            raise RuntimeError(found.output)
        result["predict_s"] = time.perf_counter() - start
        result["out_bytes"] = out.stat().st_size
        out.unlink()
    else:
        table = ParquetTable(folder, in_memory=way == "memory")
        warm_up(TartClassifier)
        start, cpu = time.perf_counter(), time.process_time()
        model = TartClassifier(depth=4, epochs=1, random_state=0).fit(table, "y")
        result["fit_s"], result["fit_cpu_s"] = time.perf_counter() - start, time.process_time() - cpu
        result["fit_peak_gb"] = peak()
        start, cpu = time.perf_counter(), time.process_time()
        rows: Any = folder if way == "stream" else table.read_all().drop_columns(["y"])
        predicted = model.predict(rows)
        result["predict_s"], result["predict_cpu_s"] = time.perf_counter() - start, time.process_time() - cpu
        result["rows"] = len(predicted)
        model.save(model_path)
        load(model_path)
    result["peak_gb"] = peak()
    return result


def warm_up(estimator: Any) -> None:
    """What the first fit loads is not counted."""
    import numpy as np

    rng = np.random.default_rng(0)
    estimator(epochs=1).fit(rng.normal(size=(100, 2)), np.arange(100) % 2)


def peak() -> float:
    """The peak of resident memory of this process so far, in GB."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1e6  # type: ignore[index]


def run(way: str, folder: Path, model: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, "--one", way, "--folder", str(folder), "--model", str(model)]
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    return found


def best(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The shortest times and the highest peaks: what else runs on the machine makes times longer, never shorter."""
    return {key: (max if key.endswith("_gb") else min)(run[key] for run in runs) for key in runs[0]}


def page(results: dict[str, Any]) -> str:
    """The results as Markdown."""
    sizes = results["sizes"]
    lines = [
        "# A table in files: streamed and in memory",
        "",
        f"{COLUMNS} numeric columns in single precision with gaps, two classes, depth 4, one epoch, Parquet "
        f"files of {FILE_ROWS:,} rows, on {results['cores']} CPU cores.",
        "Each row is a process of its own, and memory its peak. Of the smaller table both ways were run in turn, "
        f"{results['repeats']} times, and the shortest times count.",
        "Made by `benchmarks/streaming.py`; its data is `streaming.json`.",
        "",
        "| rows | way | fit, s | rows a second | predict, s | rows a second | peak memory, GB |",
        "|---|---|---|---|---|---|---|",
    ]
    for size in sizes:
        for way, name in (("stream", "streamed"), ("memory", "in memory"), ("command", "`tartree predict`")):
            found = size.get(way)
            if found is None:
                continue
            fit = (f"{found['fit_s']:.1f}", f"{size['rows'] / found['fit_s']:,.0f}") if "fit_s" in found else ("", "")
            speed = f"{size['rows'] / found['predict_s']:,.0f}"
            lines.append(
                f"| {size['rows']:,} | {name} | {fit[0]} | {fit[1]} | {found['predict_s']:.1f} | {speed} | "
                f"{found['peak_gb']:.2f} |"
            )
    small, large = sizes[0], sizes[-1]
    lines += [
        "",
        f"- Peak memory at {large['rows']:,} rows against {small['rows']:,}, streamed: "
        f"{large['stream']['peak_gb'] / small['stream']['peak_gb']:.2f} times.",
    ]
    for size in sizes:
        if "memory" in size:
            fit, predict = (size["stream"][key] / size["memory"][key] for key in ("fit_s", "predict_s"))
            own, other = (
                [f"{size[way][key]:.1f}" for key in ("fit_cpu_s", "predict_cpu_s")] for way in ("stream", "memory")
            )
            lines += [
                f"- Streamed against in memory, {size['rows']:,} rows: fit takes {fit:.2f} times as long, predict "
                f"{predict:.2f} times.",
                "- In seconds of the processor, which other work on the machine disturbs less: fit "
                f"{own[0]} against {other[0]}, predict {own[1]} against {other[1]}.",
            ]
    lines.append("- One epoch includes the pass for statistics; further epochs do not.")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[2_000_000, 20_000_000])
    parser.add_argument("--memory-rows", type=int, default=2_000_000, help="the largest table that is read into memory")
    parser.add_argument("--repeats", type=int, default=3, help="of small tables, in turn; the shortest times count")
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks/streaming"), help="without its ending")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--model", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one, arguments.folder, arguments.model)))
        return
    sizes = []
    with tempfile.TemporaryDirectory() as folder:
        for rows in sorted(arguments.rows):
            own = Path(folder) / str(rows)
            own.mkdir()
            write_files(own, rows)
            size: dict[str, Any] = {"rows": rows, "bytes": sum(file.stat().st_size for file in own.iterdir())}
            small = rows <= arguments.memory_rows
            runs: dict[str, list[dict[str, Any]]] = {}
            for _ in range(arguments.repeats if small else 1):
                for way in ("stream", "memory") if small else ("stream",):
                    runs.setdefault(way, []).append(run(way, own, Path(folder) / "model.tart"))
                    print(rows, way, runs[way][-1], flush=True)
            runs["command"] = [run("command", own, Path(folder) / "model.tart")]
            print(rows, "command", runs["command"], flush=True)
            sizes.append(size | {way: best(found) for way, found in runs.items()})
    results = {"cores": os.cpu_count(), "repeats": arguments.repeats, "sizes": sizes}
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.with_suffix(".json").write_text(json.dumps(results, indent=2) + "\n")
    arguments.out.with_suffix(".md").write_text(page(results))


if __name__ == "__main__":
    main()
