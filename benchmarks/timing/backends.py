"""Small shapes on a GPU: a training step with the fused kernels and with the native backend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import torch
from toolkit.failure import failure_text

from tartree.ops import backend
from timing.clock import Clock
from timing.work import Work, our_step, recipe_for

#: Window, stride, and depths up to about a hundred leaves.
SHAPES = ((2, 2, (1, 2, 3, 4, 6)), (3, 2, (2, 4, 6)), (3, 3, (2, 4)), (8, 8, (1, 2)), (8, 4, (1, 2, 3)))
BATCHES, LEAF_LAYERS = (32, 256, 1024), (0, 1)


def measure(clock: Clock, small: bool = False) -> dict[str, Any]:
    """Measure milliseconds of a step by each backend, both as captured graphs; record failures by shape."""
    rows = []
    for work in _works(small):
        try:
            result: dict[str, Any] = _both(work, clock)
        except Exception as error:
            result = {"failure": failure_text(error, first_line=True)}
            print(f"{work.label}, {work.batch} rows: {result['failure']}", flush=True)
        rows.append({"work": asdict(work)} | result)
    return {"rows": rows}


def _works(small: bool) -> Iterator[Work]:
    for window, stride, depths in SHAPES:
        for layers in LEAF_LAYERS:
            for depth in depths[:1] if small else depths:
                for batch in BATCHES[:1] if small else BATCHES:
                    yield Work(depth, window, stride, layers, features=10, classes=2, batch=batch)


def _both(work: Work, clock: Clock) -> dict[str, float]:
    if clock.stream is not None:
        logits = torch.empty(work.batch, work.structure.n_logits, device=clock.device)
        if not backend.takes_kernels(logits, work.structure, work.classes):
            raise ValueError("the kernels do not take this shape")
    with clock.surroundings():
        rows = work.rows(clock.device)
        steps = {"fused": our_step(work.tree(clock.device), rows, recipe_for(work))}
        with natively():  # on a GPU the step is captured here with this backend
            steps["native"] = our_step(work.tree(clock.device), rows, recipe_for(work))
    return clock.medians(steps)


@contextmanager
def natively() -> Iterator[None]:
    """Use the native backend, whatever the shape."""
    before = backend.takes_kernels
    backend.takes_kernels = lambda *arguments, **keywords: False
    try:
        yield
    finally:
        backend.takes_kernels = before
