"""What a cluster brings and costs: measured on simulated nodes, computed for 8, 64 and 512 workers.

    python benchmarks/cluster.py [--rows 200000] [--out docs/benchmarks/cluster.json] [--page docs/scaling.md]
    python benchmarks/cluster.py --only-page          # the tables again, from the numbers there are

Nodes are processes of this machine, and each worker is held to one core, so one worker and two compare fairly on two
cores; more share them. The network between them is memory. Tables go between the marks in the page.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

COLUMNS = 20
EPOCHS = 6  # of which the first, with what it loads, is not counted
BATCH = 8192
MODELS = {"small": {"depth": 4}, "large": {"depth": 8}}
LEAST = {"depth": 1, "leaf_layers": 0}  # hardly any arithmetic: what is left of a row is its reading
REDUCED = (10**3, 10**5, 10**7)  # numbers of a reduction
#: Networks to compute with: bytes a second, and seconds from one machine to the next.
NETWORKS = {"10 Gbit/s, 50 µs": (1.25e9, 50e-6), "100 Gbit/s, 10 µs": (12.5e9, 10e-6)}
WORKERS = (8, 64, 512)
BATCHES = (8192, 131_072)


class OneCore:
    """A callback that holds a worker to one core from the second epoch on, and notes what it has used of it.

    Threads that are started later follow it. There is a line a worker and epoch in `path`: rank, seconds of processor.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, epoch: Any) -> None:
        from torch import distributed

        rank = distributed.get_rank() if distributed.is_initialized() else 0
        cores = sorted(os.sched_getaffinity(0))
        if epoch.number == 1:
            os.sched_setaffinity(0, {cores[rank % len(cores)]})
        with open(self.path, "a") as file:
            file.write(f"{rank} {time.process_time()}\n")


def write_rows(folder: Path, rows: int) -> None:
    """Sixteen files of numbers, of which two classes depend."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    for number in range(16):
        X = rng.normal(size=(rows // 16, COLUMNS)).astype(np.float32)
        columns = {f"column_{place}": X[:, place] for place in range(COLUMNS)}
        columns["y"] = X[:, 0] * X[:, 1] + X[:, 2] > 0
        pq.write_table(pa.table(columns), folder / f"{number:02}.parquet")


def make_model(name: str, notes: str) -> Any:
    from tartree import TartClassifier

    callbacks = [OneCore(notes)]
    return TartClassifier(
        **MODELS.get(name, LEAST),
        epochs=EPOCHS,
        batch_size=BATCH,
        early_stopping=False,
        random_state=0,
        callbacks=callbacks,
    )


def times(model: Any, notes: str) -> dict[str, float]:
    """Seconds of an epoch by the clock, and of the processor for the worker that needs most."""
    used: dict[str, list[float]] = {}
    for line in Path(notes).read_text().splitlines():
        rank, seconds = line.split()
        used.setdefault(rank, []).append(float(seconds))
    Path(notes).unlink()
    return {
        "epoch_s": quickest(model.history_["seconds"]),
        "processor_s": max(quickest(ends) for ends in used.values()),
    }


def quickest(ends: Any) -> float:
    """Seconds of an epoch on one core: those after the first, the quickest of them."""
    return float(min(after - before for before, after in pairwise(ends)))


def measure_alone(folder: Path, name: str) -> dict[str, Any]:
    """Seconds of an epoch in one process on one core, by the clock and of the processor, and what the model has."""
    import torch

    from tartree.table import ParquetTable

    cores = os.sched_getaffinity(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    notes = f"{folder}-alone"
    model = make_model(name, notes)
    try:
        model.fit(ParquetTable(folder, in_memory=False), y="y")
    finally:
        os.sched_setaffinity(0, cores)
        torch.set_num_threads(threads)
    return {**times(model, notes), "parameters": model.n_parameters_}


def measure_fit(folder: Path, name: str, workers: int) -> dict[str, Any]:
    """Seconds of an epoch, and of all that a fit on a cluster does beside its epochs."""
    from tartree import cluster

    notes = f"{folder}-{workers}"
    model = make_model(name, notes)
    start = time.perf_counter()
    cluster.fit(model, folder, y="y", workers=workers, checkpoint_seconds=1e9)
    beside = time.perf_counter() - start - float(model.history_["seconds"][-1])
    return {"model": name, "workers": workers, **times(model, notes), "beside_s": beside}


def measure_reductions(workers: int) -> list[dict[str, Any]]:
    """Seconds to average so many numbers over the workers, the quickest of twenty times."""
    import ray
    from ray import train
    from ray.train.torch import TorchConfig, TorchTrainer

    with tempfile.TemporaryDirectory() as folder:
        done = TorchTrainer(
            time_reductions,
            torch_config=TorchConfig(backend="gloo"),
            scaling_config=train.ScalingConfig(num_workers=workers, resources_per_worker={"CPU": 1}),
            run_config=train.RunConfig(storage_path=folder, name="reductions"),
        ).fit()
    assert ray.is_initialized()
    return [{"workers": workers, **line} for line in done.return_value]


def time_reductions() -> list[dict[str, Any]]:
    import torch
    from torch import distributed

    found = []
    for size in REDUCED:
        numbers, times = torch.ones(size), []
        for _ in range(20):  # beside whatever else runs here
            distributed.barrier()
            start = time.perf_counter()
            distributed.all_reduce(numbers)
            times.append(time.perf_counter() - start)
        found.append({"numbers": size, "seconds": min(times)})
    return found


@contextmanager
def simulated(nodes: int) -> Iterator[None]:
    """A cluster of so many nodes of one core each, all on this machine."""
    os.environ |= {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
    }
    import ray
    from ray.cluster_utils import Cluster

    small = {"num_cpus": 1, "object_store_memory": 100 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args=small | {"include_dashboard": False})
    for _ in range(nodes - 1):
        cluster.add_node(**small)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
    try:
        yield
    finally:
        ray.shutdown()
        cluster.shutdown()


def measure(rows: int) -> dict[str, Any]:
    import torch

    found: dict[str, Any] = {
        "rows": rows,
        "columns": COLUMNS,
        "batch": BATCH,
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "alone": {},
        "fits": [],
        "reductions": [],
    }
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        write_rows(folder, rows)
        for name in MODELS:
            found["alone"][name] = measure_alone(folder, name)
            print(name, found["alone"][name], flush=True)
        found["reading"] = measure_alone(folder, "reading")
        with simulated(4):
            for workers in (2, 4):
                found["reductions"] += measure_reductions(workers)
            print(found["reductions"], flush=True)
            for name in MODELS:
                for workers in (1, 2, 4):
                    found["fits"].append(measure_fit(folder, name, workers))
                    print(found["fits"][-1], flush=True)
    return found


class CostModel:
    """Seconds of a step: rows shared out over the workers, what every worker does in each step, gradients in a ring.

    A row costs its reading, which a model with hardly any parameters has too, and its arithmetic, which grows with the
    parameters: a multiplication and an addition for each forward, twice as much backward. What several workers need
    beyond that, each of them needs in every step: for each model the mean of what was measured with 2 and 4 workers,
    which differ. All is time of the processor.
    """

    def __init__(self, found: dict[str, Any]) -> None:
        least, large = found["reading"], found["alone"]["large"]
        self.rows = rows = found["rows"]
        self.steps = steps = -(-rows // found["batch"])
        self.parameters = {name: one["parameters"] for name, one in found["alone"].items()}
        self.added: dict[str, dict[int, float]] = {name: {} for name in self.parameters}  # by model and workers
        for fit in found["fits"]:
            name, workers = fit["model"], fit["workers"]
            if workers > 1:
                shared = found["alone"][name]["processor_s"] / workers
                self.added[name][workers] = (fit["processor_s"] - shared) / steps
        self.each_step = {name: max(0.0, sum(own.values()) / len(own)) for name, own in self.added.items()}
        more = large["parameters"] - least["parameters"]
        self.each_parameter = (large["processor_s"] - least["processor_s"]) / rows / more
        self.each_row = least["processor_s"] / rows - self.each_parameter * least["parameters"]

    def row(self, name: str) -> float:
        return self.each_row + self.each_parameter * self.parameters[name]

    def processor(self, name: str, workers: int) -> float:
        """Seconds for which a worker's core is busy in an epoch of what was measured."""
        return self.rows / workers * self.row(name) + (workers > 1) * self.steps * self.each_step[name]

    def step(self, name: str, batch: int, workers: int, network: tuple[float, float]) -> float:
        speed, delay = network
        reduction = 2 * (workers - 1) * (4 * self.parameters[name] / workers / speed + delay)
        return (workers > 1) * self.each_step[name] + batch / workers * self.row(name) + reduction

    def speedup(self, name: str, batch: int, workers: int, network: tuple[float, float]) -> float:
        return self.step(name, batch, 1, network) / self.step(name, batch, workers, network)

    def most(self, name: str, batch: int, network: tuple[float, float]) -> int:
        """Workers beyond which a step takes longer again."""
        return min(range(1, 4097), key=lambda workers: self.step(name, batch, workers, network))


def tables(found: dict[str, Any]) -> dict[str, list[str]]:
    """The tables of the page, by the names of their marks."""
    rows, alone, fits = found["rows"], found["alone"], found["fits"]
    costs = CostModel(found)
    measured = [
        "| model | parameters | workers | core busy, of one process | computed | rows a second by the clock "
        "| beside the epochs |",
        "|---|---|---|---|---|---|---|",
    ]
    missed: dict[str, float] = {}
    for name, one in alone.items():
        lines = [
            ("one process", one, ""),
            *((f["workers"], f, f"{f['beside_s']:.0f} s") for f in fits if f["model"] == name),
        ]
        for workers, line, beside in lines:
            share, speed = 100 * line["processor_s"] / one["processor_s"], rows / line["epoch_s"]
            expected = 100 * costs.processor(name, line.get("workers", 1)) / one["processor_s"]
            missed[name] = max(missed.get(name, 0.0), abs(round(expected) - round(share)))
            measured.append(
                f"| {name} | {one['parameters']:,} | {workers} | {share:.0f} % | {expected:.0f} % | {speed:,.0f} "
                f"| {beside} |"
            )
    differences = " and ".join(f"{points:.0f} for {name}" for name, points in missed.items())
    measured += [
        "",
        f"*Computed* is what the formula gives with the constants above, which come from these very lines: it misses "
        f"them by up to {differences.replace(' for', ' points for', 1)}.",
    ]
    sizes = sorted({line["numbers"] for line in found["reductions"]})
    reduced = [
        "| workers | " + " | ".join(f"{size:,} numbers" for size in sizes) + " |",
        "|---" * (len(sizes) + 1) + "|",
    ]
    for workers in sorted({line["workers"] for line in found["reductions"]}):
        times = {line["numbers"]: line["seconds"] for line in found["reductions"] if line["workers"] == workers}
        reduced.append(f"| {workers} | " + " | ".join(f"{1e3 * times[size]:.2g} ms" for size in sizes) + " |")
    computed = [
        "| model | rows of a batch | network | " + " | ".join(f"{k} workers" for k in WORKERS) + " | fastest with |",
        "|---" * (len(WORKERS) + 4) + "|",
    ]
    for name in alone:
        for batch in BATCHES:
            for label, network in NETWORKS.items():
                times = " | ".join(f"{costs.speedup(name, batch, k, network):.1f}" for k in WORKERS)
                most = costs.most(name, batch, network)
                computed.append(f"| {name} | {batch:,} | {label} | {times} | {most:,} |")
    constants = [
        f"{name} {1e3 * costs.each_step[name]:.1f} ms ("
        + ", ".join(f"{1e3 * own:.1f} with {k}{' workers' if k == min(costs.added[name]) else ''}" for k, own in added)
        + ")"
        for name, added in ((name, sorted(own.items())) for name, own in costs.added.items())
    ]
    said = [
        f"Measured: {1e6 * costs.each_row:.2f} µs a row to read, encode and shuffle, "
        f"{1e12 * costs.each_parameter:.0f} ps a row and parameter to learn from it, on one core.",
        f"For each of several workers in a step: {', '.join(constants)}.",
    ]
    growing = [name for name, own in costs.added.items() if own[max(own)] > 1.1 * own[min(own)]]
    if growing:
        said.append(
            f"It grows with the workers for {' and '.join(growing)}, so what is computed below for many workers is "
            "rather too good there."
        )
    return {"measured": measured, "reductions": reduced, "computed": computed, "costs": said}


def write_page(found: dict[str, Any], page: Path) -> None:
    """Put the tables between their marks."""
    text = page.read_text(encoding="utf-8")
    for name, lines in tables(found).items():
        begin, end = f"<!-- cluster: {name} -->\n", "<!-- end -->"
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        if not pattern.search(text):
            sys.exit(f"{page} has no mark {begin.strip()}")
        body = "\n".join(["", *lines, ""])
        text = pattern.sub(lambda _, whole=begin + body + "\n" + end: whole, text)
    page.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks/cluster.json"))
    parser.add_argument("--page", type=Path, default=Path("docs/scaling.md"))
    parser.add_argument("--only-page", action="store_true")
    arguments = parser.parse_args()
    if not arguments.only_page:
        found = measure(arguments.rows)
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(found, indent=2) + "\n")
    write_page(json.loads(arguments.out.read_text()), arguments.page)


if __name__ == "__main__":
    main()
