"""Speed and cost of a cluster: measured on simulated nodes, computed for 8, 64 and 512 workers.

    python benchmarks/cluster.py [--rows 200000] [--out docs/benchmarks/cluster.json] [--page docs/scaling.md]
    python benchmarks/cluster.py --only-page          # only the tables, from the saved results

Nodes are processes of this machine. Each worker is bound to one core, so one worker and two compare fairly on two
cores; more workers share them. The network between them is memory. Tables are written between the marks of the page.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from toolkit.markdown import replace_between, table

COLUMNS = 20
EPOCHS = 6  # the first, which includes imports, is not counted
BATCH = 8192
MODELS = {"small": {"depth": 4}, "large": {"depth": 8}}
LEAST = {"depth": 1, "leaf_layers": 0}  # hardly any arithmetic: nearly all of its time is reading
REDUCED = (10**3, 10**5, 10**7)  # numbers of a reduction
#: Networks of the computed table: bytes a second, and seconds from one machine to the next.
NETWORKS = {"10 Gbit/s, 50 µs": (1.25e9, 50e-6), "100 Gbit/s, 10 µs": (12.5e9, 10e-6)}
WORKERS = (8, 64, 512)
BATCHES = (8192, 131_072)


class OneCore:
    """Callback that binds a worker to one core from the second epoch on, and logs its processor time.

    Threads that are started later inherit the binding. `path` gets a line for each worker and epoch: rank, seconds.
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
    """Write sixteen files of numeric columns, with a target of two classes that depends on three of them."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    for number in range(16):
        X = rng.normal(size=(rows // 16, COLUMNS)).astype(np.float32)
        columns = {f"column_{column}": X[:, column] for column in range(COLUMNS)}
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
    """Return seconds of an epoch: wall-clock time, and the largest processor time of a worker."""
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
    """Return the shortest epoch on one core, without the first epoch."""
    return float(min(after - before for before, after in pairwise(ends)))


def measure_alone(folder: Path, name: str) -> dict[str, Any]:
    """Measure an epoch in one process on one core, in wall-clock and processor time, and count the parameters."""
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
    """Measure an epoch of a fit on a cluster, and the time that the fit spends outside its epochs."""
    from tartree import cluster

    notes = f"{folder}-{workers}"
    model = make_model(name, notes)
    start = time.perf_counter()
    cluster.fit(model, folder, y="y", workers=workers, checkpoint_seconds=1e9)
    beside = time.perf_counter() - start - float(model.history_["seconds"][-1])
    return {"model": name, "workers": workers, **times(model, notes), "beside_s": beside}


def measure_reductions(workers: int) -> list[dict[str, Any]]:
    """Measure an average of tensors over the workers, the shortest of twenty times."""
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

    measured = []
    for size in REDUCED:
        tensor, times = torch.ones(size), []
        for _ in range(20):  # the machine may have other load
            distributed.barrier()
            start = time.perf_counter()
            distributed.all_reduce(tensor)
            times.append(time.perf_counter() - start)
        measured.append({"numbers": size, "seconds": min(times)})
    return measured


@contextmanager
def simulated(nodes: int) -> Iterator[None]:
    """Start a cluster of nodes with one core each, all on this machine."""
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

    results: dict[str, Any] = {
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
            results["alone"][name] = measure_alone(folder, name)
            print(name, results["alone"][name], flush=True)
        results["reading"] = measure_alone(folder, "reading")
        with simulated(4):
            for workers in (2, 4):
                results["reductions"] += measure_reductions(workers)
            print(results["reductions"], flush=True)
            for name in MODELS:
                for workers in (1, 2, 4):
                    results["fits"].append(measure_fit(folder, name, workers))
                    print(results["fits"][-1], flush=True)
    return results


class CostModel:
    """Predicts seconds of a step: rows shared by the workers, overhead of each worker, gradients in a ring.

    A row costs its reading, which a model with hardly any parameters has too, and its arithmetic, which grows with the
    parameters: a multiplication and an addition for each forward, twice as much backward. The overhead is that of each
    worker in every step where there are several: for each model, the mean of the measurements with 2 and 4 workers,
    which differ. All times are processor times.
    """

    def __init__(self, results: dict[str, Any]) -> None:
        least, large = results["reading"], results["alone"]["large"]
        self.rows = rows = results["rows"]
        self.steps = steps = -(-rows // results["batch"])
        self.parameters = {name: single["parameters"] for name, single in results["alone"].items()}
        self.added: dict[str, dict[int, float]] = {name: {} for name in self.parameters}  # by model and workers
        for fit in results["fits"]:
            name, workers = fit["model"], fit["workers"]
            if workers > 1:
                shared = results["alone"][name]["processor_s"] / workers
                self.added[name][workers] = (fit["processor_s"] - shared) / steps
        self.each_step = {name: max(0.0, sum(added.values()) / len(added)) for name, added in self.added.items()}
        more = large["parameters"] - least["parameters"]
        self.each_parameter = (large["processor_s"] - least["processor_s"]) / rows / more
        self.each_row = least["processor_s"] / rows - self.each_parameter * least["parameters"]

    def row(self, name: str) -> float:
        return self.each_row + self.each_parameter * self.parameters[name]

    def processor(self, name: str, workers: int) -> float:
        """Return seconds for which a worker's core is busy in an epoch of the measured table."""
        return self.rows / workers * self.row(name) + (workers > 1) * self.steps * self.each_step[name]

    def step(self, name: str, batch: int, workers: int, network: tuple[float, float]) -> float:
        speed, delay = network
        reduction = 2 * (workers - 1) * (4 * self.parameters[name] / workers / speed + delay)
        return (workers > 1) * self.each_step[name] + batch / workers * self.row(name) + reduction

    def speedup(self, name: str, batch: int, workers: int, network: tuple[float, float]) -> float:
        return self.step(name, batch, 1, network) / self.step(name, batch, workers, network)

    def most(self, name: str, batch: int, network: tuple[float, float]) -> int:
        """Return the number of workers with the fastest step."""
        return min(range(1, 4097), key=lambda workers: self.step(name, batch, workers, network))


def tables(results: dict[str, Any]) -> dict[str, list[str]]:
    """Return the generated parts of the page, by the names of their marks."""
    costs = CostModel(results)
    return {
        "measured": _measured(results, costs),
        "reductions": _reductions(results),
        "computed": _computed(results, costs),
        "costs": _costs(costs),
    }


def _measured(results: dict[str, Any], costs: CostModel) -> list[str]:
    """Return what was measured for each model and number of workers, beside the prediction of the cost model."""
    head = ["model", "parameters", "workers", "core busy, of one process", "computed"]
    head += ["rows a second, wall clock", "outside the epochs"]
    rows, errors = [], {}
    for name, single in results["alone"].items():
        lines = [("one process", single, "")]
        lines += [(f["workers"], f, f"{f['beside_s']:.0f} s") for f in results["fits"] if f["model"] == name]
        for workers, line, outside in lines:
            share, speed = 100 * line["processor_s"] / single["processor_s"], results["rows"] / line["epoch_s"]
            expected = 100 * costs.processor(name, line.get("workers", 1)) / single["processor_s"]
            errors[name] = max(errors.get(name, 0.0), abs(round(expected) - round(share)))
            shares = [f"{share:.0f} %", f"{expected:.0f} %"]
            rows.append([name, f"{single['parameters']:,}", workers, *shares, f"{speed:,.0f}", outside])
    differences = " and ".join(f"{points:.0f} for {name}" for name, points in errors.items())
    return [
        *table(head, rows),
        "",
        "*Computed* is the result of the formula with the constants above, which were estimated from these same rows: "
        f"it is off by up to {differences.replace(' for', ' points for', 1)}.",
    ]


def _reductions(results: dict[str, Any]) -> list[str]:
    sizes = sorted({line["numbers"] for line in results["reductions"]})
    rows = []
    for workers in sorted({line["workers"] for line in results["reductions"]}):
        times = {line["numbers"]: line["seconds"] for line in results["reductions"] if line["workers"] == workers}
        rows.append([workers, *(f"{1e3 * times[size]:.2g} ms" for size in sizes)])
    return table(["workers", *(f"{size:,} numbers" for size in sizes)], rows)


def _computed(results: dict[str, Any], costs: CostModel) -> list[str]:
    rows = []
    for name in results["alone"]:
        for batch in BATCHES:
            for label, network in NETWORKS.items():
                speedups = (f"{costs.speedup(name, batch, k, network):.1f}" for k in WORKERS)
                rows.append([name, f"{batch:,}", label, *speedups, f"{costs.most(name, batch, network):,}"])
    return table(["model", "rows of a batch", "network", *(f"{k} workers" for k in WORKERS), "fastest with"], rows)


def _costs(costs: CostModel) -> list[str]:
    """Return the constants of the cost model in sentences."""
    constants = []
    for name, added in costs.added.items():
        by_workers = ", ".join(
            f"{1e3 * seconds:.1f} with {k}{' workers' if k == min(added) else ''}"
            for k, seconds in sorted(added.items())
        )
        constants.append(f"{name} {1e3 * costs.each_step[name]:.1f} ms ({by_workers})")
    sentences = [
        f"Measured: {1e6 * costs.each_row:.2f} µs a row to read, encode and shuffle, "
        f"{1e12 * costs.each_parameter:.0f} ps a row and parameter to learn from it, on one core.",
        f"Overhead of each of several workers in a step: {', '.join(constants)}.",
    ]
    growing = [name for name, added in costs.added.items() if added[max(added)] > 1.1 * added[min(added)]]
    if growing:
        sentences.append(
            f"It grows with the workers for {' and '.join(growing)}, so the figures computed below for many workers "
            "are too optimistic there."
        )
    return sentences


def write_page(results: dict[str, Any], page: Path) -> None:
    """Write the tables between their marks."""
    text = page.read_text(encoding="utf-8")
    for name, lines in tables(results).items():
        text = replace_between(text, f"<!-- cluster: {name} -->", "<!-- end -->", "\n".join(lines))
    page.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks/cluster.json"))
    parser.add_argument("--page", type=Path, default=Path("docs/scaling.md"))
    parser.add_argument("--only-page", action="store_true")
    arguments = parser.parse_args()
    if not arguments.only_page:
        results = measure(arguments.rows)
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(results, indent=2) + "\n")
    write_page(json.loads(arguments.out.read_text()), arguments.page)


if __name__ == "__main__":
    main()
