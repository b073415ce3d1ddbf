"""Structure search: over the UCI sets with their official splits, and how fast it is.

python benchmarks/search.py --groups small medium large [--device cuda] [--processes 4]   # goes on where it stopped
python benchmarks/search.py --report                                                      # docs/choosing-a-tree.md
python benchmarks/search.py --speed                                                       # docs/benchmarks/search.json

The study searches inside the training part of each of the four runs of a set: four runs x four folds x candidates of
one shape are members of one tree. Both rules are tried at once: a candidate is dropped when a search with neither of
them would go on with it. The chosen structures are then trained on the whole training part (again the runs that chose
one shape are members of one tree), and only then the test rows are looked at.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch
from choosing_page import label, write
from sklearn.datasets import make_classification
from uci.processes import call_in_processes
from uci.results import Line, Results, machine
from uci.sets import StudySet, list_sets, load_set, summaries

from tartree import StructureSearch, TartClassifier
from tartree.model import Sample
from tartree.nn import Classes
from tartree.search import expand
from tartree.search.candidates import Candidate, make_candidate
from tartree.search.engine import Engine
from tartree.search.folds import draw_rows, split
from tartree.search.group import Cell, Group
from tartree.search.problem import Problem
from tartree.search.scores import METRICS
from tartree.search.trials import Rule, Trial, promoted, ranked

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs/benchmarks/search/results.jsonl"
SPEED = ROOT / "docs/benchmarks/search.json"
RULES: tuple[Rule, ...] = ("best", "1se")
TABLE = ("standard", "None")


@dataclass(frozen=True)
class Settings:
    """How to search, whatever the set."""

    space: str = "small"
    folds: int = 4
    halving: float = 4.0  # as `StructureSearch` does it
    epochs: int | None = None
    max_rows: int = 20_000
    precision: str = "single"
    device: str = "cpu"
    threads: int = 1
    processes: int = 1


# The study


def do(name: str, settings: Settings) -> list[Line]:
    """One set: a line for each rule, with numbers or with a failure."""
    device = torch.device(settings.device)
    if device.type == "cpu":
        torch.set_num_threads(settings.threads)
    start, failure, found = time.perf_counter(), None, {}
    try:
        found = study(load_set(name), settings, device)
    except Exception as error:
        failure = f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]
    summary = summaries()[name]
    shared = {
        "set": name,
        "group": summary.group,
        "rows": summary.rows,
        "features": summary.features,
        "classes": summary.classes,
        "seconds": round(time.perf_counter() - start, 3),
        "failure": failure,
        "settings": {**vars(settings), "threads": None if device.type == "cuda" else settings.threads},
        "machine": machine(device),
    }
    return [{"model": f"search-{rule}", **found.get(rule, {"accuracy": None}), **shared} for rule in RULES]


def study(data: StudySet, settings: Settings, device: torch.device) -> dict[str, Line]:
    """What each rule chose in each run, and how good that is on the test rows."""
    base = TartClassifier(epochs=settings.epochs)
    candidates = [
        _with_precision(make_candidate(base, params, number, len(data.train[0])), settings.precision)
        for number, params in enumerate(expand(settings.space))
    ]
    table = Sample(data.x, data.y, None)
    parts = _parts(data, settings)
    shared = {TABLE: table}, Classes(data.n_classes)
    metric = METRICS["accuracy"]
    problem = Problem(*shared, parts, metric, None, 1, 0, device)
    left: dict[Rule, list[set[int]]] = {rule: [{one.number for one in candidates} for _ in parts] for rule in RULES}

    def choose(part: int, alive: Sequence[Trial]) -> list[Trial]:
        """Whoever one of the rules lets go on, each as if the other were not there."""
        for rule, own in left.items():
            own[part] = _going_on([one for one in alive if one.number in own[part]], candidates, settings, rule)
        return [one for one in alive if any(one.number in own[part] for own in left.values())]

    engine = Engine(problem, [settings.halving**-2, settings.halving**-1, 1.0], choose)
    engine.run(candidates)
    chosen = {
        rule: [
            ranked([one for one in trials if one.number in own], rule)[0]
            for trials, own in zip(engine.trials, left[rule], strict=True)
        ]
        for rule in RULES
    }
    outer = tuple(((data.train[run].numpy(), data.test[run].numpy()),) for run in range(data.runs))
    tested = _test(Problem(*shared, outer, metric, None, 1, 0, device), candidates, chosen)
    lines: dict[str, Line] = {
        rule: {
            "accuracy": [tested[run, trial.number][0] for run, trial in enumerate(trials)],
            "leaves": [tested[run, trial.number][1] for run, trial in enumerate(trials)],
            "inner": [trial.score for trial in trials],
            "chosen": [trial.params for trial in trials],
        }
        for rule, trials in chosen.items()
    }
    lines["best"]["candidates"] = _means(engine.trials)  # of both rules: it is one search
    return lines


def _with_precision(one: Candidate, precision: str) -> Candidate:
    return replace(one, recipe=replace(one.recipe, precision=precision))


def _going_on(trials: list[Trial], candidates: list[Candidate], settings: Settings, rule: Rule) -> set[int]:
    """Numbers of those that a search with a rule trains on, and of those that share their training."""
    going = promoted(trials, settings.halving, "leaves", rule)
    trainings = {candidates[one.number].training for one in going}
    return {one.number for one in trials if candidates[one.number].training in trainings}


def _parts(data: StudySet, settings: Settings) -> tuple[Any, ...]:
    """The folds of each run, equally many in all."""
    y = data.y.numpy()
    drawn = []
    for run, own in enumerate(data.train):
        rows = own.numpy()[draw_rows(len(own), y[own.numpy()], settings.max_rows, run)]
        drawn.append(rows)
    folds = min(settings.folds, *(int(np.bincount(y[rows]).max()) for rows in drawn))
    return tuple(tuple(split(len(y), y, folds, run, rows)) for run, rows in enumerate(drawn))


def _test(
    problem: Problem, candidates: list[Candidate], chosen: dict[str, list[Trial]]
) -> dict[tuple[int, int], tuple[float, float]]:
    """Accuracy on the test rows and used leaves, by run and candidate: one training a shape."""
    wanted = {(run, trial.number) for trials in chosen.values() for run, trial in enumerate(trials)}
    shapes: dict[Any, dict[Any, dict[int, list[Candidate]]]] = {}
    for run, number in sorted(wanted):
        one = candidates[number]
        shapes.setdefault(one.shape, {}).setdefault(one.training, {}).setdefault(run, []).append(one)
    found = {}
    for place, trainings in enumerate(shapes.values()):
        cells = [Cell(run, tuple(own)) for runs in trainings.values() for run, own in runs.items()]
        group = Group(place, cells)
        for cell, own in zip(cells, group.advance(problem, group.first.recipe.epochs), strict=True):
            if own.failure:
                raise FloatingPointError(own.failure)
            for one in cell.candidates:
                accuracy = float(own.scores[one.selection][0])
                found[cell.part, one.number] = accuracy, own.sizes[one.selection].leaves
    return found


def _means(trials: list[list[Trial]]) -> dict[str, tuple[float, float]]:
    """Score and used leaves of each candidate: means over the runs in which it was trained to the end."""
    found = {}
    for same in zip(*(sorted(part, key=lambda one: one.number) for part in trials), strict=True):
        done = [(one.score, one.size.leaves) for one in same if one.state == "complete" and one.size is not None]
        if done:
            score, leaves = np.mean(done, axis=0)
            found[label(same[0].params)] = round(float(score), 5), round(float(leaves), 2)
    return found


def run_study(sets: list[str], results: Results, settings: Settings, limit: float, retry: bool) -> None:
    there = results.read()

    def is_left(name: str) -> bool:
        lines = [there.get((f"search-{rule}", name)) for rule in RULES]
        return any(line is None or (line["failure"] and retry) for line in lines)

    left = [name for name in reversed(sets) if is_left(name)]  # the longest first: none is left for the end
    start = time.perf_counter()
    for done, (name, lines) in enumerate(_each(left, settings, start + limit), start=1):
        results.append(lines)
        said = ", ".join(f"{line['model']} {_brief(line)}" for line in lines)
        print(f"[{done}/{len(left)}] {name}: {said}; {lines[0]['seconds']:.1f} s", flush=True)


def _each(sets: list[str], settings: Settings, deadline: float) -> Iterator[tuple[str, list[Line]]]:
    function: Callable[[str], list[Line]] = partial(do, settings=settings)
    in_time = (name for name in sets if time.perf_counter() < deadline)
    if settings.processes == 1:
        for name in in_time:
            yield name, function(name)
        return
    with closing(call_in_processes(function, in_time, settings.processes)) as done:
        yield from done


def _brief(line: Line) -> str:
    if line["failure"]:
        return f"FAILED: {line['failure']}"
    return f"{100 * np.mean(line['accuracy']):.1f} with {np.mean(line['leaves']):.1f} leaves"


# Speed


def speed(out: Path, device: str, folds: int, epochs: int, jobs: int | None, limit: float) -> None:
    """The 24 structures of the paper: the search against one fit after another, with equal epochs and folds."""
    X, y = make_classification(500, 10, random_state=0)
    base = TartClassifier(device=device, epochs=epochs)
    # What torch and CUDA load at first use belongs to neither.
    StructureSearch(base, {"depth": [1]}, folds=2, random_state=0).fit(X, y)
    record: dict[str, Any] = {
        "rows": 500,
        "features": 10,
        "structures": 24,
        "folds": folds,
        "epochs": epochs,
        "device": device,
        "machine": {
            "threads": torch.get_num_threads(),
            "python": platform.python_version(),
            "torch": torch.__version__,
            "sklearn": sklearn.__version__,
            "processor": torch.cuda.get_device_name() if device == "cuda" else platform.machine(),
        },
    }
    # On a GPU, kernels are compiled when a machine meets a shape for the first time; files keep them.
    searches: dict[str, dict[str, Any]] = {"first search": {}} if device == "cuda" else {}
    searches |= {"search": {}, "search, without halving": {"halving": None}}
    for name, options in searches.items():
        search = StructureSearch(base, "paper", folds=folds, random_state=0, n_jobs=jobs, refit=False, **options)
        wall, own = time.perf_counter(), time.process_time()
        search.fit(X, y)
        states = Counter(trial["state"] for trial in search.trials_)
        record[name] = {
            "seconds": time.perf_counter() - wall,
            "cpu_seconds": time.process_time() - own,
            "epochs": sum(trial["epochs"] for trial in search.trials_),
            "states": dict(states),
            "best": search.front_[-1]["params"],
            "score": search.front_[-1]["score"],
        }
        print(name, record[name], flush=True)
    record["one after another"] = _one_after_another(base, X, y, search.splits_, epochs, limit)
    for name in searches:
        for clock in ("seconds", "cpu_seconds"):
            record[name][f"times_faster_by_{clock}"] = record["one after another"][clock] / record[name][clock]
    results = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    results[device] = record
    out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(record, indent=2))


def _one_after_another(base: Any, X: Any, y: Any, splits: Any, epochs: int, limit: float) -> dict[str, Any]:
    """Each structure fitted to each fold by the estimator. With a limit, long ones for fewer epochs, and scaled up."""
    totals, scaled = {"seconds": 0.0, "cpu_seconds": 0.0}, []

    def fit_all(params: dict[str, Any], own_epochs: int) -> dict[str, float]:
        wall, cpu = time.perf_counter(), time.process_time()
        for learnt, held in splits:
            model = TartClassifier(**{**base.get_params(), **params, "epochs": own_epochs, "random_state": 0})
            model.fit(X[learnt], y[learnt]).score(X[held], y[held])
        return {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}

    for params in expand("paper"):
        own_epochs = epochs
        first = fit_all(params, 1) if limit else {}
        if limit:  # a few epochs tell how long a fit will take
            each = fit_all(params, 3)["seconds"] - first["seconds"]
            own_epochs = min(epochs, max(4, math.floor(limit / 24 / max(each / 2, 1e-9))))
        found = fit_all(params, own_epochs)
        for clock in totals:
            if own_epochs < epochs:  # what one epoch more takes, times the epochs that are missing
                found[clock] += (found[clock] - first[clock]) / (own_epochs - 1) * (epochs - own_epochs)
            totals[clock] += found[clock]
        if own_epochs < epochs:
            scaled.append({"params": params, "epochs": own_epochs})
        print("one after another", params, own_epochs, totals, flush=True)
    return {**totals, "fits": 24 * len(splits), "scaled_up": scaled}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", nargs="+", default=[], choices=("small", "medium", "large"))
    parser.add_argument("--sets", nargs="+", help="only these")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--space", default="small")
    parser.add_argument("--folds", type=int, default=4)
    parser.add_argument("--halving", type=float, default=4.0)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--max-rows", type=int, default=20_000, help="of the search; the chosen ones are fitted to all")
    parser.add_argument("--precision", default="single", choices=("single", "tf32", "bfloat16"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--jobs", type=int, help="of joblib, with --speed")
    parser.add_argument(
        "--limit",
        type=float,
        default=0.0,
        help="seconds of the study; with --speed, roughly those of fits one after another, which are then scaled up",
    )
    parser.add_argument("--retry", action="store_true", help="failures too")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, default=SPEED)
    args = parser.parse_args()
    results = Results(args.results)
    if args.speed:
        speed(args.out, args.device, args.folds, args.epochs or 200, args.jobs, args.limit)
    if args.groups or args.sets:
        names = [one.name for one in fields(Settings)]
        settings = Settings(**{name: getattr(args, name) for name in names})
        sets = list_sets(args.groups or ["small", "medium", "large"], args.sets)
        run_study(sets, results, settings, args.limit or math.inf, args.retry)
    if args.report:
        write(results, Results(ROOT / "docs/benchmarks/uci/results.jsonl"))


if __name__ == "__main__":
    main()
