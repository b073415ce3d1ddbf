"""Models x sets: each pair is run once, and recorded with its accuracies or its failure."""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Any

import numpy as np
import torch
from toolkit.environment import machine
from toolkit.failure import failure_text

from uci.baselines import BASELINES, Baseline
from uci.models import ALIASES, SELECTIONS, TREES, EstimatorModel, TreeModel
from uci.processes import call, call_on_cluster
from uci.results import Line, Results
from uci.sets import ORDER, StudySet, load_set, summaries
from uci.trees import run_tree

Model = TreeModel | EstimatorModel | Baseline
#: Bytes of a GPU that a process may keep reserved, because others may share it.
MOST_RESERVED = 8 * 2**30


@dataclass(frozen=True)
class Settings:
    """Settings of a run."""

    device: str = "cpu"
    precision: str = "single"
    epochs: int | None = None  # instead of the recipe's
    threads: int = 1
    retry: bool = False
    limit_seconds: float = float("inf")
    processes: int = 1  # on this machine, or on each GPU of a cluster
    cluster: str | None = None  # its address
    seed: int = 0


@dataclass(frozen=True)
class Job:
    """Models that share a training, and a set."""

    models: tuple[Model, ...]
    set: str


def pick_models(names: Iterable[str]) -> list[Model]:
    """Return models by name; `structures`, `mlps`, `ours` and `baselines` stand for several."""
    models: dict[str, Model] = {**TREES, **BASELINES}
    groups = {**SELECTIONS, "baselines": list(BASELINES)}
    picked: dict[str, Model] = {}
    for name in names:
        for member in groups.get(name, [ALIASES.get(name, name)]):
            if member not in models:
                offered = ", ".join([*groups, *ALIASES, *models])
                raise ValueError(f"models must be some of {offered}, got {name!r}")
            picked[member] = models[member]
    return list(picked.values())


def plan(models: list[Model], sets: list[str], results: Results, settings: Settings) -> list[Job]:
    """Return what is left to do, in the order of the sets; models that share a training are one job."""
    lines = results.read(settings.epochs)
    by_training: dict[Any, list[Model]] = {}
    for model in models:
        by_training.setdefault(model.training if isinstance(model, TreeModel) else model.name, []).append(model)
    jobs = []
    for name in sets:
        for together in by_training.values():
            left = tuple(model for model in together if not _is_done(lines.get((model.name, name)), settings))
            if left:
                jobs.append(Job(left, name))
    return jobs


def _is_done(line: Line | None, settings: Settings) -> bool:
    return line is not None and not (line.get("failure") and settings.retry)


def run(jobs: list[Job], results: Results, settings: Settings, say: Callable[[str], None] = print) -> bool:
    """Run the jobs and append each result; return whether all were done within the time limit."""
    work = {job: _work(job) for job in jobs}
    total, done, start = sum(work.values()), 0.0, time.perf_counter()
    if settings.processes > 1 or settings.cluster:  # longest first, so that all processes end together
        groups = {name: summary.group for name, summary in summaries().items()}
        limited = settings.limit_seconds < float("inf")  # then small groups first, to complete them
        jobs = sorted(jobs, key=lambda job: (ORDER.index(groups[job.set]) if limited else 0, -work[job]))
    number = 0
    with closing(_done(jobs, settings, start)) as pairs:
        for job, lines in pairs:
            number += 1
            results.append(lines)
            done += work[job]
            left = (time.perf_counter() - start) * (total - done) / done
            summary = ", ".join(f"{line['model']} {_brief(line)}" for line in lines)
            say(f"[{number}/{len(jobs)}] {job.set}: {summary}; {lines[0]['seconds']:.2f} s, about {_clock(left)} left")
    if number < len(jobs):
        say(f"time is up after {number} of {len(jobs)} trainings; run the same command to resume")
    return number == len(jobs)


def _done(jobs: list[Job], settings: Settings, start: float) -> Iterator[tuple[Job, list[Line]]]:
    """Yield jobs with their lines as they are done: in this process, in several, or on a cluster."""
    in_time = takewhile(lambda _: time.perf_counter() - start <= settings.limit_seconds, jobs)
    function = partial(do, settings=settings)
    if settings.cluster:
        gpus = 1 / settings.processes if settings.device.startswith("cuda") else 0
        pairs = call_on_cluster(function, in_time, settings.cluster, settings.threads, gpus)
    else:
        pairs = call(function, in_time, settings.processes)
    with closing(pairs) as done:
        yield from done


def do(job: Job, settings: Settings) -> list[Line]:
    """Run one training and return its lines; an error is recorded as a failure."""
    device = torch.device(settings.device)
    if device.type == "cuda":
        torch.cuda.synchronize()  # raises if an earlier error has left the GPU unusable
        if torch.cuda.memory_reserved() > MOST_RESERVED:
            gc.collect()  # captured graphs are in reference cycles, which hold their memory
            torch.cuda.empty_cache()
    else:
        torch.set_num_threads(settings.threads)
    start = time.perf_counter()
    failure: str | None = None
    scores: dict[str, list[float]] = {}
    numbers: list[int | None] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            scores = _scores(job, load_set(job.set), settings, device, numbers)
        except Exception as error:
            failure = failure_text(error)
    summary = summaries()[job.set]
    shared: Line = {
        "set": job.set,
        "group": summary.group,
        "rows": summary.rows,
        "seconds": round(time.perf_counter() - start, 4),
        "training": job.models[0].name,
        "failure": failure,
        "warnings": sorted({warning.category.__name__ for warning in caught}),
        "precision": settings.precision,
        "epochs": settings.epochs,
        "seed": settings.seed,
        "processes": settings.processes,
        "machine": machine(device),
        **({"numbers": numbers} if numbers else {}),
    }
    return [{"model": model.name, "accuracy": scores.get(model.name), **shared} for model in job.models]


def _scores(
    job: Job, data: StudySet, settings: Settings, device: torch.device, numbers: list[int | None]
) -> dict[str, list[float]]:
    """Return the accuracies of each model by run; of estimators, append the numbers to read in each run."""
    first = job.models[0]
    if isinstance(first, TreeModel):
        recipe = replace(first.recipe, precision=settings.precision, epochs=settings.epochs or first.recipe.epochs)
        trees = [model for model in job.models if isinstance(model, TreeModel)]
        data = data.encoded() if first.encoded else data
        selections = {tree.selection for tree in trees}
        by_selection = run_tree(first, data.to(device), selections, recipe, settings.seed)
        return {tree.name: by_selection[tree.selection] for tree in trees}
    X, y = data.x.numpy(), data.y.numpy()
    accuracies = []
    for number, (train, test) in enumerate(zip(data.train, data.test, strict=True)):
        if isinstance(first, EstimatorModel):
            model: Any = first.make(number + data.runs * settings.seed, settings.device, settings.precision)
            if settings.epochs:
                model.set_params(epochs=settings.epochs)
        else:
            model = first.make(number + data.runs * settings.seed, settings.threads)
        present, codes = np.unique(y[train.numpy()], return_inverse=True)  # some packages need 0, 1, ... without gaps
        model.fit(X[train.numpy()], codes)
        if isinstance(first, EstimatorModel) and model.history_.interrupted:
            raise KeyboardInterrupt
        if isinstance(first, EstimatorModel):
            numbers.append(model.reading_size_.numbers)
        predicted = present[np.asarray(model.predict(X[test.numpy()])).ravel().astype(np.int64)]
        accuracies.append(float((predicted == y[test.numpy()]).mean()))
    return {first.name: accuracies}


def _work(job: Job) -> float:
    """Estimate the relative time of a job."""
    data, model = summaries()[job.set], job.models[0]
    inputs, rows = data.features, data.rows
    if not isinstance(model, TreeModel):
        return rows * inputs * 50.0 + 1e6
    hidden = model.hidden if model.leaf_layers > 1 else 0
    leaf = inputs * (hidden or data.classes) + hidden * hidden * max(0, model.leaf_layers - 2) + hidden * 10
    return rows * model.members * (model.structure.n_leaves * leaf + 2000.0) + 1e7


def _brief(line: Line) -> str:
    return "FAILED: " + line["failure"] if line["failure"] else f"{100 * float(np.mean(line['accuracy'])):.1f}"


def _clock(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
