"""Structure search on the UCI sets with their official splits, and its speed.

python benchmarks/search.py --groups small medium large [--device cuda] [--processes 4]   # resumes a stopped run
python benchmarks/search.py --report                                                      # docs/choosing-a-tree.md
python benchmarks/search.py --speed                                                       # docs/benchmarks/search.json

The study searches within the training part of each of the four runs of a set: four runs x four folds x candidates of
one shape are members of one tree. Both rules are tried at once: a candidate is dropped when neither rule keeps it. The
chosen structures are then trained on the whole training part (runs that chose the same shape are members of one tree),
and then scored on the test rows.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import make_classification
from structure_page import label, write
from toolkit.environment import machine, processor
from toolkit.failure import failure_text
from uci.processes import call
from uci.results import Line, Results
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
    """Settings of a search."""

    space: str = "small"
    folds: int = 4
    halving: float = 4.0  # the default of `StructureSearch`
    epochs: int | None = None
    max_rows: int = 20_000
    precision: str = "single"
    device: str = "cpu"
    threads: int = 1
    processes: int = 1


# The study


def do(name: str, settings: Settings) -> list[Line]:
    """Search on one set and return a line for each rule, with accuracies or a failure."""
    device = torch.device(settings.device)
    if device.type == "cpu":
        torch.set_num_threads(settings.threads)
    start, failure, by_rule = time.perf_counter(), None, {}
    try:
        by_rule = study(load_set(name), settings, device)
    except Exception as error:
        failure = failure_text(error)
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
    return [{"model": f"search-{rule}", **by_rule.get(rule, {"accuracy": None}), **shared} for rule in RULES]


def study(data: StudySet, settings: Settings, device: torch.device) -> dict[str, Line]:
    """Return the choice of each rule in each run, and its accuracy on the test rows."""
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
    everyone = {candidate.number for candidate in candidates}
    left: dict[Rule, list[set[int]]] = {rule: [set(everyone) for _ in parts] for rule in RULES}

    def choose(part: int, alive: Sequence[Trial]) -> list[Trial]:
        """Return the trials that one of the rules keeps; each rule is applied as if alone."""
        for rule, numbers in left.items():
            kept = [trial for trial in alive if trial.number in numbers[part]]
            numbers[part] = _kept(kept, candidates, settings, rule)
        return [trial for trial in alive if any(trial.number in numbers[part] for numbers in left.values())]

    engine = Engine(problem, [settings.halving**-2, settings.halving**-1, 1.0], choose)
    engine.run(candidates)
    chosen = {
        rule: [
            ranked([trial for trial in trials if trial.number in numbers], rule)[0]
            for trials, numbers in zip(engine.trials, left[rule], strict=True)
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
    lines["best"]["candidates"] = _means(engine.trials)  # shared by both rules, which are one search
    return lines


def _with_precision(candidate: Candidate, precision: str) -> Candidate:
    return replace(candidate, recipe=replace(candidate.recipe, precision=precision))


def _kept(trials: list[Trial], candidates: list[Candidate], settings: Settings, rule: Rule) -> set[int]:
    """Return numbers of the trials that a search with a rule keeps, and of those that share their training."""
    kept = promoted(trials, settings.halving, "leaves", rule)
    trainings = {candidates[trial.number].training for trial in kept}
    return {trial.number for trial in trials if candidates[trial.number].training in trainings}


def _parts(data: StudySet, settings: Settings) -> tuple[Any, ...]:
    """Return the folds of each run, the same number in all."""
    y = data.y.numpy()
    drawn = []
    for run, rows in enumerate(data.train):
        drawn.append(rows.numpy()[draw_rows(len(rows), y[rows.numpy()], settings.max_rows, run)])
    folds = min(settings.folds, *(int(np.bincount(y[rows]).max()) for rows in drawn))
    return tuple(tuple(split(len(y), y, folds, run, rows)) for run, rows in enumerate(drawn))


def _test(
    problem: Problem, candidates: list[Candidate], chosen: dict[str, list[Trial]]
) -> dict[tuple[int, int], tuple[float, float]]:
    """Return accuracy on the test rows and used leaves by run and candidate, with one training for each shape."""
    wanted = {(run, trial.number) for trials in chosen.values() for run, trial in enumerate(trials)}
    shapes: dict[Any, dict[Any, dict[int, list[Candidate]]]] = {}
    for run, number in sorted(wanted):
        candidate = candidates[number]
        by_run = shapes.setdefault(candidate.shape, {}).setdefault(candidate.training, {})
        by_run.setdefault(run, []).append(candidate)
    results = {}
    for number, trainings in enumerate(shapes.values()):
        cells = [Cell(run, tuple(members)) for runs in trainings.values() for run, members in runs.items()]
        group = Group(number, cells)
        for cell, outcome in zip(cells, group.advance(problem, group.first.recipe.epochs), strict=True):
            if outcome.failure:
                raise FloatingPointError(outcome.failure)
            for candidate in cell.candidates:
                accuracy = float(outcome.scores[candidate.selection][0])
                results[cell.part, candidate.number] = accuracy, outcome.sizes[candidate.selection].leaves
    return results


def _means(trials: list[list[Trial]]) -> dict[str, tuple[float, float]]:
    """Return mean score and used leaves of each candidate over the runs in which it was trained to the end."""
    means = {}
    for same in zip(*(sorted(part, key=lambda trial: trial.number) for part in trials), strict=True):
        done = [
            (trial.score, trial.size.leaves) for trial in same if trial.state == "complete" and trial.size is not None
        ]
        if done:
            score, leaves = np.mean(done, axis=0)
            means[label(same[0].params)] = round(float(score), 5), round(float(leaves), 2)
    return means


def run_study(sets: list[str], results: Results, settings: Settings, limit: float, retry: bool) -> None:
    saved = results.read()

    def is_left(name: str) -> bool:
        lines = [saved.get((f"search-{rule}", name)) for rule in RULES]
        return any(line is None or (line["failure"] and retry) for line in lines)

    left = [name for name in reversed(sets) if is_left(name)]  # longest first, so that all processes end together
    start = time.perf_counter()
    in_time = (name for name in left if time.perf_counter() - start < limit)
    with closing(call(partial(do, settings=settings), in_time, settings.processes)) as pairs:
        for done, (name, lines) in enumerate(pairs, start=1):
            results.append(lines)
            summary = ", ".join(f"{line['model']} {_brief(line)}" for line in lines)
            print(f"[{done}/{len(left)}] {name}: {summary}; {lines[0]['seconds']:.1f} s", flush=True)


def _brief(line: Line) -> str:
    if line["failure"]:
        return f"FAILED: {line['failure']}"
    return f"{100 * np.mean(line['accuracy']):.1f} with {np.mean(line['leaves']):.1f} leaves"


# Speed


def speed(out: Path, device: str, folds: int, epochs: int, jobs: int | None, limit: float) -> None:
    """Compare a search of the paper's 24 structures with separate fits, with the same epochs and folds."""
    X, y = make_classification(500, 10, random_state=0)
    base = TartClassifier(device=device, epochs=epochs)
    # First use of torch and CUDA is counted in neither.
    StructureSearch(base, {"depth": [1]}, folds=2, random_state=0).fit(X, y)
    record: dict[str, Any] = {
        "rows": 500,
        "features": 10,
        "structures": 24,
        "folds": folds,
        "epochs": epochs,
        "device": device,
        "machine": machine(torch.device(device)) | {"processor": _processor(device)},
    }
    # On a GPU, kernels are compiled at the first use of a shape, and then cached on disk.
    searches: dict[str, dict[str, Any]] = {"first search": {}} if device == "cuda" else {}
    searches |= {"search": {}, "search, without halving": {"halving": None}}
    for name, options in searches.items():
        search = StructureSearch(base, "paper", folds=folds, random_state=0, n_jobs=jobs, refit=False, **options)
        wall, cpu = time.perf_counter(), time.process_time()
        search.fit(X, y)
        states = Counter(trial["state"] for trial in search.trials_)
        record[name] = {
            "seconds": time.perf_counter() - wall,
            "cpu_seconds": time.process_time() - cpu,
            "epochs": sum(trial["epochs"] for trial in search.trials_),
            "states": dict(states),
            "best": search.front_[-1]["params"],
            "score": search.front_[-1]["score"],
        }
        print(name, record[name], flush=True)
    record["one after another"] = _separate_fits(base, X, y, search.splits_, epochs, limit)
    for name in searches:
        for clock in ("seconds", "cpu_seconds"):
            record[name][f"times_faster_by_{clock}"] = record["one after another"][clock] / record[name][clock]
    results = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    results[device] = record
    out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(record, indent=2))


def _separate_fits(base: Any, X: Any, y: Any, splits: Any, epochs: int, limit: float) -> dict[str, Any]:
    """Fit each structure to each fold with the estimator; with a limit, extrapolate long fits from fewer epochs."""
    totals, scaled = {"seconds": 0.0, "cpu_seconds": 0.0}, []

    def fit_all(params: dict[str, Any], n_epochs: int) -> dict[str, float]:
        wall, cpu = time.perf_counter(), time.process_time()
        for learnt, held in splits:
            model = TartClassifier(**{**base.get_params(), **params, "epochs": n_epochs, "random_state": 0})
            model.fit(X[learnt], y[learnt]).score(X[held], y[held])
        return {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}

    for params in expand("paper"):
        n_epochs = epochs
        first = fit_all(params, 1) if limit else {}
        if limit:  # estimate the time of a fit from a few epochs
            each = fit_all(params, 3)["seconds"] - first["seconds"]
            n_epochs = min(epochs, max(4, math.floor(limit / 24 / max(each / 2, 1e-9))))
        spent = fit_all(params, n_epochs)
        for clock in totals:
            if n_epochs < epochs:  # the time of an epoch, times the missing epochs
                spent[clock] += (spent[clock] - first[clock]) / (n_epochs - 1) * (epochs - n_epochs)
            totals[clock] += spent[clock]
        if n_epochs < epochs:
            scaled.append({"params": params, "epochs": n_epochs})
        print("one after another", params, n_epochs, totals, flush=True)
    return {**totals, "fits": 24 * len(splits), "scaled_up": scaled}


def _processor(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else processor()


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
    parser.add_argument(
        "--max-rows", type=int, default=20_000, help="of the search; the chosen structures are fitted to all rows"
    )
    parser.add_argument("--precision", default="single", choices=("single", "tf32", "bfloat16"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--jobs", type=int, help="of joblib, with --speed")
    parser.add_argument(
        "--limit",
        type=float,
        default=0.0,
        help="seconds of the study; with --speed, approximate seconds of the separate fits, by extrapolation",
    )
    parser.add_argument("--retry", action="store_true", help="run failures again")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, default=SPEED)
    args = parser.parse_args()
    results = Results(args.results)
    if args.speed:
        speed(args.out, args.device, args.folds, args.epochs or 200, args.jobs, args.limit)
    if args.groups or args.sets:
        names = [field.name for field in fields(Settings)]
        settings = Settings(**{name: getattr(args, name) for name in names})
        sets = list_sets(args.groups or ["small", "medium", "large"], args.sets)
        run_study(sets, results, settings, args.limit or math.inf, args.retry)
    if args.report:
        write(results, Results(ROOT / "docs/benchmarks/uci/results.jsonl"))


if __name__ == "__main__":
    main()
