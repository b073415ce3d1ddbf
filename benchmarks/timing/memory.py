"""Peak memory of a first training step on a CPU, seen from a process of its own (Linux)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import torch

from timing.work import Work, our_step, recipe_for


def peak_memory(script: Path, depth: int) -> float:
    """Peak growth in the first step, in units of batch x nodes x 4 bytes; `script` prints it with --memory-of."""
    command = [sys.executable, str(script), "--memory-of", str(depth)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def print_peak_memory(depth: int) -> None:
    cpu = torch.device("cpu")
    steps = []
    for d in (2, depth):  # what the first step of any size loads is not counted
        work = Work(d)
        steps.append(our_step(work.tree(cpu), work.rows(cpu, batches=2), recipe_for(work)))
    steps[0]()
    before = _peak_bytes()
    steps[1]()
    print((_peak_bytes() - before) / (Work().batch * Work(depth).structure.n_decisions * 4))


def _peak_bytes() -> int:
    """Peak resident memory of this process; unlike getrusage's, it does not start from the parent's."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])  # type: ignore[index]
