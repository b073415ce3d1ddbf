"""Cost of a step against depth, window, batch, features and members, and of an epoch against rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from timing.clock import Clock
from timing.floors import make_floors
from timing.work import Work, our_step, recipe_for

#: What each curve changes, from where.
AXES: dict[str, tuple[Work, list[int], list[int]]] = {  # values on a GPU, and on a CPU
    "depth": (Work(), [2, 4, 6, 8, 10, 12, 14], [2, 4, 6, 8, 10]),
    "window": (Work(4), [2, 3, 4, 6, 8], [2, 3, 4, 6]),
    "batch": (Work(8), [64, 256, 1024, 4096, 16384], [64, 256, 1024, 4096]),
    "features": (Work(8), [16, 64, 256, 1024, 4096], [16, 64, 256, 1024]),
    "members": (Work(6, leaf_layers=1, features=20, classes=3), [1, 4, 16, 64, 256], [1, 4, 16, 64]),
}
ROWS = [1_000, 10_000, 100_000, 1_000_000]


def measure(clock: Clock, seconds: float, small: bool = False) -> dict[str, Any]:
    """For each axis, its values with milliseconds of our step and of the floor; a curve ends when its time is over.

    What is compiled and captured before a measurement does not count.
    """
    cpu = clock.device.type == "cpu"
    curves: dict[str, Any] = {}
    for axis, (work, values, fewer) in AXES.items():
        spent, points = 0.0, []
        for value in (fewer[:2] if small else fewer) if cpu else values:
            if spent > seconds:
                break
            functions = _functions(replace(work, **{axis: value}), clock)
            begin = time.perf_counter()
            points.append({"value": value, **clock.medians(functions)})
            spent += time.perf_counter() - begin
        curves[axis] = points
    begin, points = time.perf_counter(), []
    for n_rows in ROWS[:2] if small else ROWS:
        if time.perf_counter() - begin > seconds:
            break
        points.append({"value": n_rows, "epoch_s": _epoch(n_rows, clock)})
    curves["rows"] = points
    return curves


def _functions(work: Work, clock: Clock) -> dict[str, Callable[[], Any]]:
    with clock.surroundings():
        functions = {"ours": our_step(work.tree(clock.device), work.rows(clock.device, batches=4), recipe_for(work))}
        functions["floor"] = make_floors(work, clock)["step"]
    return functions


def _epoch(n_rows: int, clock: Clock) -> float:
    from tartree.training import train

    work = Work(4, leaf_layers=1, features=20, classes=2, batch=n_rows)
    rows, recipe = work.rows(clock.device, batches=1), replace(recipe_for(work, epochs=6), batch_size=1024)
    tree = work.tree(clock.device)
    train(tree, rows, replace(recipe, epochs=1), generator=torch.Generator().manual_seed(0))
    return clock.wall(lambda: train(tree, rows, recipe, generator=torch.Generator().manual_seed(0)), repeats=1) / 6
