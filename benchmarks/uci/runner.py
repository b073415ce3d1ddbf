"""Models x sets, one after the other: each pair is tried once, and recorded as numbers or as a failure."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from uci.baselines import BASELINES, Baseline
from uci.models import ALIASES, SELECTIONS, TREES, EstimatorModel, TreeModel
from uci.results import Line, Results, machine
from uci.sets import StudySet, load_set
from uci.trees import run_tree

Model = TreeModel | EstimatorModel | Baseline


@dataclass(frozen=True)
class Settings:
    """How to run, whatever is run."""

    device: str = "cpu"
    precision: str = "single"
    epochs: int | None = None  # instead of the recipe's
    threads: int = 1
    retry: bool = False
    limit_seconds: float = float("inf")


@dataclass(frozen=True)
class Job:
    """Models that one training gives, on one set."""

    models: tuple[Model, ...]
    set: str


def pick_models(names: Iterable[str]) -> list[Model]:
    """Models by name; `structures`, `mlps`, `ours`, `wider` and `baselines` stand for several."""
    found: dict[str, Model] = {}
    known = {**TREES, **BASELINES}
    groups = {**SELECTIONS, "baselines": list(BASELINES)}
    for name in names:
        for one in groups.get(name, [ALIASES.get(name, name)]):
            if one not in known:
                offered = ", ".join([*groups, *ALIASES, *known])
                raise ValueError(f"models must be some of {offered}, however: {name!r}")
            found[one] = known[one]
    return list(found.values())


def plan(models: list[Model], sets: list[str], results: Results, settings: Settings) -> list[Job]:
    """What is left to do: groups of sets stay in order, and within a set models with one training go together."""
    there = results.read()
    by_training: dict[Any, list[Model]] = {}
    for model in models:
        by_training.setdefault(model.training if isinstance(model, TreeModel) else model.name, []).append(model)
    jobs = []
    for name in sets:
        for together in by_training.values():
            left = tuple(one for one in together if not _is_done(there.get((one.name, name)), settings))
            if left:
                jobs.append(Job(left, name))
    return jobs


def _is_done(line: Line | None, settings: Settings) -> bool:
    return line is not None and not (line.get("failure") and settings.retry)


def run(jobs: list[Job], results: Results, settings: Settings, say: Callable[[str], None] = print) -> bool:
    """Do the jobs; whether all were done before the time was up."""
    start = time.perf_counter()
    device = torch.device(settings.device)
    own_machine = machine(device)
    work = [_work(job) for job in jobs]
    for number, job in enumerate(jobs):
        passed = time.perf_counter() - start
        if passed > settings.limit_seconds:
            say(f"time is up after {number} of {len(jobs)} trainings; the same command goes on")
            return False
        lines = do(job, settings, device)
        results.append([{**line, **_how(settings), "machine": own_machine} for line in lines])
        passed = time.perf_counter() - start
        left = passed * sum(work[number + 1 :]) / sum(work[: number + 1])
        said = ", ".join(f"{line['model']} {_brief(line)}" for line in lines)
        say(f"[{number + 1}/{len(jobs)}] {job.set}: {said}; {lines[0]['seconds']:.2f} s, about {_clock(left)} left")
    return True


def do(job: Job, settings: Settings, device: torch.device) -> list[Line]:
    """One training and its lines; what goes wrong becomes a failure with its message."""
    start = time.perf_counter()
    failure: str | None = None
    scores: dict[str, list[float]] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            data = load_set(job.set)
            scores = _scores(job, data, settings, device)
        except Exception as error:
            failure = f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]
    if failure and device.type == "cuda":
        torch.cuda.empty_cache()
    shared: Line = {
        "set": job.set,
        "seconds": round(time.perf_counter() - start, 4),
        "training": job.models[0].name,
        "warnings": sorted({one.category.__name__ for one in caught}),
        "failure": failure,
    }
    try:
        shared |= {"rows": len(data.y), "features": data.x.shape[1], "classes": data.n_classes, "group": data.group}
    except UnboundLocalError:  # the set itself could not be loaded
        pass
    return [{"model": one.name, "accuracy": scores.get(one.name), **shared} for one in job.models]


def _scores(job: Job, data: StudySet, settings: Settings, device: torch.device) -> dict[str, list[float]]:
    first = job.models[0]
    if isinstance(first, TreeModel):
        recipe = replace(first.recipe, precision=settings.precision, epochs=settings.epochs or first.recipe.epochs)
        trees = [one for one in job.models if isinstance(one, TreeModel)]
        found = run_tree(first, data.to(device), {one.selection for one in trees}, recipe)
        return {one.name: found[one.selection] for one in trees}
    X, y = data.x.numpy(), data.y.numpy()
    accuracies = []
    for number, (train, test) in enumerate(zip(data.train, data.test, strict=True)):
        if isinstance(first, EstimatorModel):
            model: Any = first.make(number, settings.device)
            if settings.epochs:
                model.set_params(epochs=settings.epochs)
        else:
            model = first.make(number, settings.threads)
        present, codes = np.unique(y[train.numpy()], return_inverse=True)  # some packages want 0, 1, ... without gaps
        model.fit(X[train.numpy()], codes)
        if isinstance(first, EstimatorModel) and model.history_.interrupted:
            raise KeyboardInterrupt
        predicted = present[np.asarray(model.predict(X[test.numpy()])).ravel().astype(np.int64)]
        accuracies.append(float((predicted == y[test.numpy()]).mean()))
    return {first.name: accuracies}


def _how(settings: Settings) -> Line:
    return {"precision": settings.precision, "epochs": settings.epochs}


def _work(job: Job) -> float:
    """A rough measure of the time that a job takes."""
    data = load_set(job.set)
    model = job.models[0]
    inputs, rows = data.x.shape[1], len(data.y)
    if not isinstance(model, TreeModel):
        return rows * inputs * 50.0 + 1e6
    hidden = model.hidden if model.leaf_layers > 1 else 0
    leaf = inputs * (hidden or data.n_classes) + hidden * hidden * max(0, model.leaf_layers - 2) + hidden * 10
    return rows * model.members * (model.structure.n_leaves * leaf + 2000.0) + 1e7


def _brief(line: Line) -> str:
    return "FAILED: " + line["failure"] if line["failure"] else f"{100 * float(np.mean(line['accuracy'])):.1f}"


def _clock(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
