"""Peak memory of a first training step on a CPU, measured in a separate process (Linux)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import torch
from toolkit.environment import peak_memory

from timing.work import Work, our_step, recipe_for


def step_memory(script: Path, depth: int) -> float:
    """Return the growth of the peak in the first step, in units of batch x nodes x 4 bytes.

    `script` prints it when it is called with --memory-of.
    """
    command = [sys.executable, str(script), "--memory-of", str(depth)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def print_step_memory(depth: int) -> None:
    cpu = torch.device("cpu")
    steps = []
    for d in (2, depth):  # imports of a first step are not counted
        work = Work(d)
        steps.append(our_step(work.tree(cpu), work.rows(cpu, batches=2), recipe_for(work)))
    steps[0]()
    before = peak_memory()
    steps[1]()
    print(1024 * (peak_memory() - before) / (Work().batch * Work(depth).structure.n_decisions * 4))
