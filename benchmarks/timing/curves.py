"""Cost of a step against depth, window, batch, features and members, and of an epoch against rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from timing.clock import Clock
from timing.floors import make_floors
from timing.work import Work, learn, our_step, recipe_for

#: The base and the values of each curve.
AXES: dict[str, tuple[Work, list[int], list[int]]] = {  # values on a GPU, and on a CPU
    "depth": (Work(), [2, 4, 6, 8, 10, 12, 14], [2, 4, 6, 8, 10]),
    "window": (Work(4), [2, 3, 4, 6, 8], [2, 3, 4, 6]),
    "batch": (Work(8), [64, 256, 1024, 4096, 16384], [64, 256, 1024, 4096]),
    "features": (Work(8), [16, 64, 256, 1024, 4096], [16, 64, 256, 1024]),
    "members": (Work(6, leaf_layers=1, features=20, classes=3), [1, 4, 16, 64, 256], [1, 4, 16, 64]),
}
ROWS = [1_000, 10_000, 100_000, 1_000_000]


def measure(clock: Clock, seconds: float, small: bool = False) -> dict[str, Any]:
    """Measure milliseconds of a step and of its floor for the values of each axis, or of an epoch for rows.

    A curve ends when its time is up; "cut" lists the values left out. Compilation and capture before a measurement are
    not counted.
    """
    cpu = clock.device.type == "cpu"
    plans: dict[str, tuple[list[int], Callable[[int], tuple[dict[str, float], float]]]] = {}
    for axis, (work, values, fewer) in AXES.items():
        plans[axis] = (fewer if cpu else values, partial(_step, work, axis, clock))
    plans["rows"] = (ROWS, partial(_epoch, clock))
    curves: dict[str, Any] = {}
    cut: dict[str, list[int]] = {}
    for axis, (values, point) in plans.items():
        left, spent = values[:2] if small else list(values), 0.0
        curves[axis] = []
        while left and spent <= seconds:
            result, duration = point(left[0])
            curves[axis].append({"value": left.pop(0), **result})
            spent += duration
        if left:
            cut[axis] = left
    return {"curves": curves, "cut": cut}


def _step(work: Work, axis: str, clock: Clock, value: int) -> tuple[dict[str, float], float]:
    """Measure a point of a curve of steps; return it with the seconds that took."""
    work = replace(work, **{axis: value})  # type: ignore[arg-type]
    with clock.surroundings():
        functions = {"ours": our_step(work.tree(clock.device), work.rows(clock.device, batches=4), recipe_for(work))}
        functions["floor"] = make_floors(work, clock)["step"]
    begin = time.perf_counter()
    return clock.medians(functions), time.perf_counter() - begin


def _epoch(clock: Clock, n_rows: int) -> tuple[dict[str, float], float]:
    work = Work(4, leaf_layers=1, features=20, classes=2, batch=n_rows)
    rows, recipe = work.rows(clock.device, batches=1), replace(recipe_for(work, epochs=6), batch_size=1024)
    tree = work.tree(clock.device)
    learn(tree, rows, replace(recipe, epochs=1))
    seconds = clock.wall(lambda: learn(tree, rows, recipe), repeats=1)
    return {"epoch_s": seconds / recipe.epochs}, seconds
