"""Training steps and batches of predictions: ours, the floor, plain torch and the peers, on the same shapes."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from timing.clock import Clock
from timing.floors import make_floors, make_plain
from timing.peers import CLONES, make_peer
from timing.work import Work, our_prediction, our_step, recipe_for

Result = dict[str, Any]


def compare(work: Work, clock: Clock, peers: Path | None = None, *, extras: bool = False) -> Result:
    """Milliseconds of a step and of a batch of predictions of everybody; what fails is noted and left out.

    `extras` are plain torch, other precisions of ours, and the peers.
    """
    device = clock.device
    rows = work.rows(device)
    functions: dict[str, dict[str, Callable[[], Any]]] = {"step": {}, "predict": {}}
    failures: dict[str, str] = {}
    with clock.surroundings():
        tree = work.tree(device)
        functions["step"]["ours"] = our_step(tree, rows, recipe_for(work))
        x, y = rows.x[: work.batch].clone(), rows.target[: work.batch].clone()
        predict = our_prediction(tree, x)
        functions["predict"]["ours"] = clock.captured(predict)
        if device.type == "cuda":
            functions["predict"]["ours, eager"] = predict
        floors = make_floors(work, clock)
        functions["step"] |= {"floor": floors["step"], "products": floors["products"]}
        functions["predict"]["floor"] = floors["predict"]
        if extras and device.type == "cuda":
            loose = make_floors(work, clock, tf32=True)
            functions["step"]["floor, TF32"] = loose["step"]
            functions["predict"]["floor, TF32"] = loose["predict"]
            for precision, name in (("tf32", "ours, TF32"), ("bfloat16", "ours, bfloat16")):
                try:
                    functions["step"][name] = our_step(work.tree(device), rows, recipe_for(work, precision=precision))
                except Exception as error:
                    failures[name] = _said(error)
        if extras and work.window == 2 and work.leaf_layers == 0:
            for kind, function in make_plain(work, clock).items():
                functions[kind]["plain torch, eager"] = function
        for name in _present(peers) if extras else ():
            try:
                if name in CLONES and work.depth > CLONES[name][2]:
                    continue
                for kind, function in make_peer(name, peers, work, x, y).items():
                    function()  # a failure shows here
                    functions[kind][name] = function
            except Exception as error:
                failures[name] = _said(error)
                for own in functions.values():
                    own.pop(name, None)
    result: Result = {"work": asdict(work), "label": work.label, "failures": failures}
    for kind, own in functions.items():
        result[kind] = clock.medians(own)
    result["step ratio"] = result["step"]["ours"] / result["step"]["floor"]
    result["predict ratio"] = result["predict"]["ours"] / result["predict"]["floor"]
    return result


def members_and_epochs(clock: Clock, depths: list[int], rows: int, fleet: int) -> Result:
    """A whole epoch against its steps, and a fleet of trees against one."""
    device = clock.device
    result: Result = {"epochs": [], "fleet": {}}
    for depth in depths:
        work = Work(depth, batch=min(1024, rows))
        result["epochs"].append({"depth": depth, "rows": rows} | _epoch(work, clock, rows))
    work = Work(6, leaf_layers=1, features=20, classes=3, batch=1024)
    table = replace(work, batch=750).rows(device, batches=1)
    seconds = {}
    for members in (1, fleet):
        tree = replace(work, members=members).tree(device)
        seconds[members] = clock.wall(lambda tree=tree: _train(tree, table, recipe_for(work, epochs=200)))  # type: ignore[misc]
    result["fleet"] = {"members": fleet, "one_s": seconds[1], "all_s": seconds[fleet]}
    result["fleet"]["ratio"] = seconds[fleet] / seconds[1]
    return result


def _epoch(work: Work, clock: Clock, n_rows: int) -> Result:
    """Seconds of an epoch by the difference of two trainings, so that their beginnings do not count."""
    table = replace(work, batch=n_rows).rows(clock.device, batches=1)
    few, many = (1, 2) if clock.device.type == "cpu" else (4, 24)
    _train(work.tree(clock.device), table, recipe_for(work, epochs=few))
    times = [
        clock.wall(lambda e=e: _train(work.tree(clock.device), table, recipe_for(work, epochs=e)))  # type: ignore[misc]
        for e in (few, many)
    ]
    epoch = (times[1] - times[0]) / (many - few)
    with clock.surroundings():
        step = our_step(work.tree(clock.device), work.rows(clock.device), recipe_for(work))
    step_ms = clock.medians({"step": step})["step"]
    n_steps = -(-n_rows // work.batch)
    return {"epoch_s": epoch, "steps_s": n_steps * step_ms / 1e3, "ratio": epoch / (n_steps * step_ms / 1e3)}


def _train(tree: Any, rows: Any, recipe: Any) -> None:
    from tartree.training import train

    train(tree, rows, recipe, generator=torch.Generator().manual_seed(0))


def _present(peers: Path | None) -> list[str]:
    names = [] if peers is None else list(CLONES)
    return names + (["neural-trees"] if importlib.util.find_spec("neural_trees") else [])


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]
