"""Training steps and batches of predictions: the library, floors, plain torch and peers, on the same shapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from toolkit.failure import failure_text
from torch import Tensor

from tartree import TartClassifier
from tartree.training import TensorRows
from timing.clock import Clock
from timing.floors import make_compiled, make_floors, make_plain
from timing.peers import PEERS, Functions, is_installed, make_peer
from timing.work import Work, finished, learn, our_prediction, our_step, recipe_for

Result = dict[str, Any]
#: Models whose call takes more seconds are not timed.
PATIENCE = 20.0
NOUNS = {"step": "step", "predict": "batch of predictions"}


def compare_depths(works: list[Work], clock: Clock, peers: Path | None) -> list[Result]:
    """Run `compare` with all extras, from shallow to deep; models that are too slow are left out for deeper trees."""
    slow: dict[str, str] = {}
    return [compare(work, clock, peers, slow) for work in sorted(works, key=lambda work: work.depth)]


def compare(work: Work, clock: Clock, peers: Path | None = None, slow: dict[str, str] | None = None) -> Result:
    """Measure milliseconds of a step and of a batch of predictions: the library and the floors.

    With `slow`, the extras are timed too. Those that fail are recorded and left out, as are those in `slow`, to which
    models that take too long are added with the reason.
    """
    functions: dict[str, Functions] = {"step": {}, "predict": {}}
    failures: dict[str, str] = {}
    with clock.surroundings():
        rows = work.rows(clock.device)
        tree = work.tree(clock.device)
        functions["step"]["ours"] = our_step(tree, rows, recipe_for(work))
        x, y = rows.x[: work.batch].clone(), rows.target[: work.batch].clone()
        functions["predict"]["ours"] = our_prediction(tree, x)
        if clock.stream is not None:
            functions["predict"]["ours, eager"] = our_prediction(tree, x, eager=True)
        floors = make_floors(work, clock)
        functions["step"] |= {"floor": floors["step"], "products": floors["products"]}
        functions["predict"]["floor"] = floors["predict"]
        for name, make in _extras(work, clock, rows, x, y, peers).items() if slow is not None else ():
            try:
                made = make() if name not in slow else {}
                for kind, function in made.items():
                    if (seconds := clock.once(function)) > PATIENCE:  # a failure occurs here too
                        slow[name] = f"at D {work.depth}, one {NOUNS[kind]} takes {seconds:.0f} s"
            except Exception as error:
                failures[name] = failure_text(error, first_line=True)
                print(f"{name}, {work.label}: {failures[name]}", flush=True)
                continue
            if name in slow:
                failures[name] = slow[name]
                continue
            for kind, function in made.items():
                functions[kind][name] = function
    result: Result = {"work": asdict(work), "label": work.label, "failures": failures, "predictor": True}
    for kind, timed in functions.items():
        result[kind] = clock.medians(timed)
    result["step ratio"] = result["step"]["ours"] / result["step"]["floor"]
    result["predict ratio"] = result["predict"]["ours"] / result["predict"]["floor"]
    return result


def _extras(
    work: Work, clock: Clock, rows: TensorRows, x: Tensor, y: Tensor, peers: Path | None
) -> dict[str, Callable[[], Functions]]:
    """Return makers of the other models: the estimator, plain torch, other precisions, and the peers."""
    makers: dict[str, Callable[[], Functions]] = {
        "ours, predict_proba": lambda: _estimator(work, x, y),
        "plain torch, eager": lambda: make_plain(work, clock),
    }
    if clock.stream is not None:

        def loose_floors() -> Functions:
            floors = make_floors(work, clock, tf32=True)
            return {kind: floors[kind] for kind in ("step", "predict")}

        def in_precision(precision: str) -> Functions:
            return {"step": our_step(work.tree(clock.device), rows, recipe_for(work, precision=precision))}

        makers["plain torch, compiled, in a graph"] = lambda: make_compiled(work, clock)
        makers["floor, TF32"] = loose_floors
        makers["ours, TF32"] = partial(in_precision, "tf32")
        makers["ours, bfloat16"] = partial(in_precision, "bfloat16")
    for name in [name for name in PEERS if is_installed(name, peers)]:
        makers[name] = partial(make_peer, name, peers, work, x, y)
    return makers


def _estimator(work: Work, x: Tensor, y: Tensor) -> Functions:
    """Return the prediction of an estimator: from an array to an array, with the encoding of the table."""
    X = x.cpu().numpy()
    model = TartClassifier(
        depth=work.depth, window=work.window, stride=work.stride, leaf_layers=work.leaf_layers, members=work.members,
        epochs=1, early_stopping=False, device=str(x.device), random_state=0,
    )  # fmt: skip
    finished(model.fit(X, y.cpu().numpy()).history_)
    return {"predict": lambda: model.predict_proba(X)}


def members_and_epochs(clock: Clock, depths: list[int], rows: int, fleet: int) -> Result:
    """Compare an epoch with its steps, and a fleet of trees with a single tree."""
    device = clock.device
    result: Result = {"epochs": [], "fleet": {}}
    for depth in depths:
        work = Work(depth, batch=min(1024, rows))
        result["epochs"].append({"depth": depth, "rows": rows} | _epoch(work, clock, rows))
    work = Work(6, leaf_layers=1, features=20, classes=3, batch=1024)
    table = replace(work, batch=750).rows(device, batches=1)
    few, many = 40, 200
    single, together = (_fits(replace(work, members=n), clock, table, few, many) for n in (1, fleet))
    result["fleet"] = {
        "members": fleet, "one_s": single[1], "all_s": together[1], "ratio": together[1] / single[1],
        "few": few, "many": many, "one_epoch_s": _difference(single, few, many),
        "all_epoch_s": _difference(together, few, many),
    }  # fmt: skip
    result["fleet"]["epoch ratio"] = result["fleet"]["all_epoch_s"] / result["fleet"]["one_epoch_s"]
    return result


def _fits(work: Work, clock: Clock, table: TensorRows, few: int, many: int) -> list[float]:
    """Measure seconds of two trainings, of few epochs and of many, after one that is not counted."""
    tree = work.tree(clock.device)
    learn(tree, table, recipe_for(work, epochs=few))
    return [
        clock.wall(lambda e=e: learn(tree, table, recipe_for(work, epochs=e)))  # type: ignore[misc]
        for e in (few, many)
    ]


def _difference(seconds: list[float], few: int, many: int) -> float:
    """Return seconds of one epoch by the difference of two trainings, so that their start is not counted."""
    return (seconds[1] - seconds[0]) / (many - few)


def _epoch(work: Work, clock: Clock, n_rows: int) -> Result:
    """Measure seconds of an epoch, and of its steps."""
    table = replace(work, batch=n_rows).rows(clock.device, batches=1)
    few, many = (1, 2) if clock.device.type == "cpu" else (4, 24)
    epoch = _difference(_fits(work, clock, table, few, many), few, many)
    with clock.surroundings():
        step = our_step(work.tree(clock.device), work.rows(clock.device), recipe_for(work))
    step_ms = clock.medians({"step": step})["step"]
    n_steps = -(-n_rows // work.batch)
    return {"epoch_s": epoch, "steps_s": n_steps * step_ms / 1e3, "ratio": epoch / (n_steps * step_ms / 1e3)}
