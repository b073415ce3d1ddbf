"""Structure search: over the UCI sets with their official splits, and how fast it is.

python benchmarks/search.py --groups small medium large [--device cuda] [--processes 4]   # goes on where it stopped
python benchmarks/search.py --report                                                      # pages from the results
python benchmarks/search.py --speed                                                       # docs/benchmarks/search.json

The study searches inside the training part of each of the four runs of a set: four runs x four folds x candidates of
one shape are members of one tree. The structures that the rules choose are then trained on the whole training part
(again the runs that chose one shape are members of one tree), and only then the test rows are looked at.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch
from sklearn.datasets import make_classification
from uci.models import ALIASES
from uci.processes import call_in_processes
from uci.results import Line, Results, machine
from uci.sets import StudySet, list_sets, load_set, summaries

from tartree import StructureSearch, TartClassifier
from tartree.nn import Classes
from tartree.search import expand
from tartree.search.candidates import Candidate, make_candidate
from tartree.search.engine import Engine
from tartree.search.group import Cell, Group
from tartree.search.problem import Problem, Table, draw_rows, split
from tartree.search.trials import Trial, ranked, who_goes_on

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs/benchmarks/search/results.jsonl"
SPEED = ROOT / "docs/benchmarks/search.json"
PAGE = ROOT / "docs/choosing-a-tree.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
RULES = ("best", "1se")
TABLE = ("standard", "None")


@dataclass(frozen=True)
class Settings:
    """How to search, whatever the set."""

    space: str = "small"
    folds: int = 4
    halving: float = 0.0  # 0: all candidates are trained to the end
    epochs: int | None = None
    max_rows: int = 4000
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
    candidates = [make_candidate(base, params, number) for number, params in enumerate(expand(settings.space))]
    table = Table(data.x, data.y, None)
    parts = _parts(data, settings)
    shared = {TABLE: table}, Classes(data.n_classes)
    problem = Problem(*shared, parts, "accuracy", None, 1, 0, device)
    fractions = [settings.halving**-2, settings.halving**-1, 1.0] if settings.halving else [1.0]
    engine = Engine(problem, fractions, lambda _, alive: who_goes_on(alive, settings.halving, "leaves"))
    engine.run(candidates)
    chosen = {rule: [ranked(trials, rule)[0] for trials in engine.trials] for rule in RULES}
    outer = tuple(((data.train[run].numpy(), data.test[run].numpy()),) for run in range(data.runs))
    tested = _test(Problem(*shared, outer, "accuracy", None, 1, 0, device), candidates, chosen)
    inner = _means(engine.trials)
    return {
        rule: {
            "accuracy": [tested[run, trial.number][0] for run, trial in enumerate(trials)],
            "leaves": [tested[run, trial.number][1] for run, trial in enumerate(trials)],
            "inner": [trial.score for trial in trials],
            "chosen": [trial.params for trial in trials],
            "candidates": inner,
        }
        for rule, trials in chosen.items()
    }


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


def _means(trials: list[list[Trial]]) -> list[list[float | None]]:
    """Of each candidate: score and used leaves, means over the runs in which it was trained to the end."""
    found: list[list[float | None]] = []
    for same in zip(*(sorted(part, key=lambda one: one.number) for part in trials), strict=True):
        done = [one for one in same if one.state == "complete" and one.size is not None]
        if not done:
            found.append([None, None])
            continue
        score = np.mean([one.score for one in done])
        found.append([round(float(score), 5), round(float(np.mean([one.size.leaves for one in done if one.size])), 2)])
    return found


def run_study(sets: list[str], results: Results, settings: Settings, limit: float, retry: bool) -> None:
    there = results.read()

    def is_left(name: str) -> bool:
        lines = [there.get((f"search-{rule}", name)) for rule in RULES]
        return any(line is None or (line["failure"] and retry) for line in lines)

    left = [name for name in sets if is_left(name)]
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


# The report


def write_report(results: Results, fixed: Results) -> None:
    """Put tables of the study into the page, between its marks."""
    lines, others = results.read(), fixed.read()
    sets = [name for model, name in lines if model == "search-best" and not lines[model, name]["failure"]]
    sets = [name for name in sets if all((model, name) in others for model in ALIASES.values())]
    if not sets:
        raise SystemExit("there is no set with both a search and the three models of the paper")
    text = "\n".join(
        [*_means_table(sets, lines, others), "", *_choice_table(sets, lines), "", *_cost_table(sets, lines)]
    )
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")
    print(text)


def _groups(sets: list[str], lines: dict[tuple[str, str], Line]) -> dict[str, list[str]]:
    found = defaultdict(list)
    for name in sets:
        found[lines["search-best", name]["group"]].append(name)
    return {group: found[group] for group in ("large", "medium", "small") if found[group]}


def _means_table(sets: list[str], lines: dict[Any, Line], others: dict[Any, Line]) -> Iterator[str]:
    """Mean accuracy by group, of the rules and of the paper's three models."""
    groups = _groups(sets, lines)
    yield "| model | " + " | ".join(f"{group}, {len(own)} sets" for group, own in groups.items()) + " |"
    yield "|---" * (len(groups) + 1) + "|"
    rows = {f"TART-{letter}": {name: others[model, name] for name in sets} for letter, model in ALIASES.items()}
    rows |= {f'`rule="{rule}"`': {name: lines[f"search-{rule}", name] for name in sets} for rule in RULES}
    for label, own in rows.items():
        cells = []
        for names in groups.values():
            cell = f"{100 * np.mean([np.mean(own[name]['accuracy']) for name in names]):.2f}"
            if "leaves" in own[names[0]]:
                cell += f" ({np.mean([np.mean(own[name]['leaves']) for name in names]):.1f} leaves)"
            cells.append(cell)
        yield f"| {label} | " + " | ".join(cells) + " |"


def _choice_table(sets: list[str], lines: dict[Any, Line]) -> Iterator[str]:
    """What was chosen, by how many rows, features and classes there are."""
    kinds = {
        "up to 300 rows": lambda line: line["rows"] <= 300,
        "300 to 3,000 rows": lambda line: 300 < line["rows"] <= 3000,
        "more than 3,000 rows": lambda line: line["rows"] > 3000,
        "up to 10 features": lambda line: line["features"] <= 10,
        "more than 30 features": lambda line: line["features"] > 30,
        "2 classes": lambda line: line["classes"] == 2,
        "more than 5 classes": lambda line: line["classes"] > 5,
    }
    names = ("depth", "leaf_layers", "selection", "window")
    yield "| kind of data | runs | " + " | ".join(names) + " |"
    yield "|---" * (len(names) + 2) + "|"
    defaults = {"window": 2, "selection": "multi", "depth": 0, "leaf_layers": 1}
    for kind, belongs in kinds.items():
        own = [lines["search-best", name] for name in sets if belongs(lines["search-best", name])]
        chosen = [params for line in own for params in line["chosen"]]
        if not chosen:
            continue
        cells = []
        for name in names:
            counts = Counter(params.get(name, defaults[name]) for params in chosen)
            cells.append(
                ", ".join(f"{value}: {100 * n / len(chosen):.0f} %" for value, n in sorted(counts.items(), key=str))
            )
        yield f"| {kind} | {len(chosen)} | " + " | ".join(cells) + " |"


def _cost_table(sets: list[str], lines: dict[Any, Line]) -> Iterator[str]:
    """Of each candidate: how far its inner score is below the best one of the set, on average."""
    first = lines["search-best", sets[0]]["settings"]
    sets = [name for name in sets if lines["search-best", name]["settings"]["space"] == first["space"]]
    groups = _groups(sets, lines)
    yield "| structure | " + " | ".join(f"{group}: points below the best" for group in groups) + " |"
    yield "|---" * (len(groups) + 1) + "|"
    for number, params in enumerate(expand(first["space"])):
        cells = []
        for names in groups.values():
            gaps = []
            for name in names:
                scores = [score for score, _ in lines["search-best", name]["candidates"]]
                if scores[number] is not None:
                    gaps.append(100 * (max(score for score in scores if score is not None) - scores[number]))
            cells.append(f"{np.mean(gaps):.2f}" if gaps else "-")
        said = ", ".join(f"{name} {value}" for name, value in params.items() if name not in ("recipe", "dropout"))
        yield f"| {said} | " + " | ".join(cells) + " |"


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
    searches: dict[str, dict[str, Any]] = {"search": {}}
    if not limit:
        searches["search, without halving"] = {"halving": None}
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
    parser.add_argument("--halving", type=float, default=0.0, help="0: train all candidates to the end")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--max-rows", type=int, default=4000, help="of the search; the chosen ones are fitted to all")
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
        settings = Settings(
            args.space, args.folds, args.halving, args.epochs, args.max_rows, args.device, args.threads, args.processes
        )
        sets = list_sets(args.groups or ["small", "medium", "large"], args.sets)
        run_study(sets, results, settings, args.limit or math.inf, args.retry)
    if args.report:
        write_report(results, Results(ROOT / "docs/benchmarks/uci/results.jsonl"))


if __name__ == "__main__":
    main()
