"""Time of a training step against the least it needs: its two matrix products and the Adam step. Ratios, in one run.

    python benchmarks/speed.py [--depths 8 10 12] [--repeats 20] [--out docs/benchmarks/speed]

The tree is the paper's: W = S = 2, linear decisions (H = 1), constant leaves (L = 0), 784 features, 10 classes, a batch
of 1024 rows. Before anything is timed, its arrivals and gradients are compared with the reference.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tartree import Structure, losses, ops
from tartree.nn import Classes, Tree

BATCH, FEATURES, CLASSES = 1024, 784, 10


def make_step(depth: int) -> Callable[[], None]:
    tree = Tree.build(Structure(depth), FEATURES, Classes(CLASSES), leaf_layers=0)
    adam = torch.optim.Adam(tree.parameters(), fused=True)
    x, y = torch.randn(BATCH, FEATURES), torch.randint(CLASSES, (BATCH,))

    def step() -> None:
        adam.zero_grad()
        losses.expected(tree(x), y, tree.output).sum().backward()
        adam.step()

    return step


def make_floor(depth: int) -> Callable[[], None]:
    nodes = Structure(depth).n_decisions
    x, gradient = torch.randn(BATCH, FEATURES), torch.randn(nodes, BATCH)
    weight = nn.Parameter(torch.randn(nodes, FEATURES))
    weight.grad = torch.randn_like(weight)
    adam = torch.optim.Adam([weight], fused=True)

    @torch.no_grad()
    def floor() -> None:
        weight @ x.t()
        gradient @ x
        adam.step()

    return floor


def median_times(functions: list[Callable[[], None]], repeats: int) -> list[float]:
    """Median milliseconds of each, measured in turns so that all meet the same machine."""
    times: list[list[float]] = [[] for _ in functions]
    for turn in range(repeats + 3):
        for function, own in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            if turn >= 3:  # the first turns warm up
                own.append(1e3 * (time.perf_counter() - start))
    return [statistics.median(own) for own in times]


def check_against_reference() -> None:
    structure = Structure(6)
    logits = torch.randn(5, structure.n_logits, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(5, structure.n_leaves, dtype=torch.float64)
    results = []
    for backend in ("native", "reference"):
        arrival = ops.arrival(logits, structure, backend=backend)  # type: ignore[arg-type]
        results.append((arrival, torch.autograd.grad((arrival * weight).sum(), logits)[0]))
    for ours, wanted in zip(*results, strict=True):
        torch.testing.assert_close(ours, wanted, rtol=0, atol=1e-10)


def peak_memory(depth: int) -> float:
    """Peak growth of memory in the first step, in units of batch x nodes x 4 bytes, seen from a process of its own."""
    command = [sys.executable, __file__, "--memory-of", str(depth)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def print_peak_memory(depth: int) -> None:
    make_step(2)()  # what the first step of any size loads is not counted
    step = make_step(depth)
    before = peak_bytes()
    step()
    print((peak_bytes() - before) / (BATCH * Structure(depth).n_decisions * 4))


def peak_bytes() -> int:
    """Peak resident memory of this process (Linux); unlike getrusage's, it does not start from the parent's."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])  # type: ignore[index]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depths", type=int, nargs="+", default=[8, 10, 12])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks/speed"), help="without its ending")
    parser.add_argument("--memory-of", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of is not None:
        print_peak_memory(arguments.memory_of)
        return
    check_against_reference()
    rows: list[dict[str, Any]] = []
    print("depth   step ms   floor ms   ratio   peak memory of a step / (batch x nodes x 4 bytes)")
    for depth in arguments.depths:
        step, floor = median_times([make_step(depth), make_floor(depth)], arguments.repeats)
        memory = peak_memory(depth)
        rows.append({"depth": depth, "step_ms": step, "floor_ms": floor, "ratio": step / floor, "memory": memory})
        print(f"{depth:5}   {step:7.2f}   {floor:8.2f}   {step / floor:5.2f}   {memory:.1f}")
    machine = {
        "processor": platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.with_suffix(".json").write_text(json.dumps({"machine": machine, "rows": rows}, indent=2) + "\n")
    arguments.out.with_suffix(".md").write_text(page(rows, machine))


def page(rows: list[dict[str, Any]], machine: dict[str, Any]) -> str:
    lines = [
        "# Speed of a training step",
        "",
        "A soft tree (W = S = 2, linear decisions, constant leaves) on 784 features, 10 classes and a batch of 1024",
        "rows: milliseconds of a whole step (forward, backward, Adam) and of the least it needs, its two matrix",
        "products and the Adam step, measured in turns in one run. Memory is the peak growth in a step, in units of",
        "batch x nodes x 4 bytes.",
        "Made by `benchmarks/speed.py`; its data is `speed.json`.",
        "",
        "| depth | step, ms | products and Adam, ms | ratio | memory |",
        "|---|---|---|---|---|",
        *(
            f"| {r['depth']} | {r['step_ms']:.1f} | {r['floor_ms']:.1f} | {r['ratio']:.2f} | {r['memory']:.1f} |"
            for r in rows
        ),
        "",
        ", ".join(f"{name} {value}" for name, value in machine.items()) + ".",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
