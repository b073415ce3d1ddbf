"""Accuracy at an equal reading budget, and agreement of the drawn tree with the model, on small and medium UCI sets.

    tartree data uci                                               # once: the data
    python benchmarks/reading.py                                   # what has no line yet; skips absent packages
    python benchmarks/reading.py --models readable readable-45 --again    # measure these models again
    python benchmarks/reading.py --page                            # only the page

A line of `reading.jsonl` is one model on one set, with the official splits; a run that was stopped resumes.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from drawn_tree import drawn_labels
from reading_models import BUDGET, READERS, Reader, fit_best, labels
from reading_page import page
from toolkit.environment import machine
from toolkit.failure import failure_text
from toolkit.record import beside
from uci.results import Line, Results
from uci.sets import StudySet, list_sets, load_set, summaries

from tartree import TartClassifier

OUT = Path("docs/benchmarks/reading")
GROUPS = ["small", "medium"]


def run(readers: Sequence[Reader], sets: Sequence[str], results: Results, seconds: float, retry: bool) -> bool:
    """Measure each model on each set that has no line; return whether all were done within the time limit."""
    start, lines = time.perf_counter(), results.read()
    jobs = [(reader, name) for name in sets for reader in readers]
    left = [(r, name) for r, name in jobs if (line := lines.get((r.name, name))) is None or (retry and line["failure"])]
    for number, (reader, name) in enumerate(left, start=1):
        if time.perf_counter() - start > seconds:
            print(f"time is up after {number - 1} of {len(left)}; run the same command to resume", flush=True)
            return False
        line = measure(reader, name)
        results.append([line])
        brief = line["failure"] or f"{100 * np.mean(line['accuracy']):.1f} with {np.mean(line['numbers']):.0f} numbers"
        print(f"[{number}/{len(left)}] {name}: {reader.name} {brief}, {line['seconds']:.1f} s", flush=True)
    return True


def measure(reader: Reader, name: str) -> Line:
    """Fit a model in the runs of a set and score it on their test rows; an error is recorded as a failure."""
    start = time.perf_counter()
    runs: dict[str, list[Any]] = {"accuracy": [], "numbers": [], "settings": [], "agreement": []}
    failure: str | None = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            data = load_set(name)
            for number in range(data.runs):
                for key, value in score(reader, data, number).items():
                    runs[key].append(value)
        except Exception as error:
            failure, runs = failure_text(error), {}
    summary = summaries()[name]
    return {
        "model": reader.name,
        "set": name,
        "group": summary.group,
        "rows": summary.rows,
        "features": summary.features,
        "classes": summary.classes,
        **{key: values for key, values in runs.items() if values},
        "failure": failure,
        "seconds": round(time.perf_counter() - start, 2),
        "machine": machine(torch.device("cpu")),
    }


def score(reader: Reader, data: StudySet, number: int) -> dict[str, Any]:
    """Fit a model to the training rows of a run; return accuracy, numbers, settings and agreement of the drawn tree."""
    X, y = data.x.double().numpy(), data.y.numpy()
    train, test = data.train[number].numpy(), data.test[number].numpy()
    present, codes = np.unique(y[train], return_inverse=True)
    best = fit_best(reader, X[train], codes, seed=number)
    if reader.is_limited and best.numbers > BUDGET:
        raise ValueError(f"a model must have at most {BUDGET} numbers, got {best.numbers} of {best.settings}")
    predicted = labels(best.fitted, X[test])
    measured: dict[str, Any] = {
        "accuracy": round(float(np.mean(present[predicted] == y[test])), 6),
        "numbers": int(best.numbers),
        "settings": best.settings,
    }
    if isinstance(best.fitted, TartClassifier) and reader.draws:
        drawn = drawn_labels(best.fitted.model_, X[test])
        measured["agreement"] = round(float(np.mean(drawn == predicted)), 6)
    return measured


def forget(results: Results, names: Sequence[str], sets: Sequence[str]) -> None:
    """Remove the lines of models on sets, so that they are measured again."""
    lines = [line for (name, member), line in results.read().items() if name not in names or member not in sets]
    results.path.unlink(missing_ok=True)
    if lines:
        results.append(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(READERS), choices=READERS, metavar="MODEL")
    parser.add_argument("--groups", nargs="+", default=GROUPS, choices=GROUPS)
    parser.add_argument("--sets", nargs="+", metavar="SET", help="only these sets of the groups")
    parser.add_argument("--limit-seconds", type=float, default=float("inf"), help="start no training after that time")
    parser.add_argument("--again", action="store_true", help="remove the lines of these models and sets first")
    parser.add_argument("--retry", action="store_true", help="run failures again")
    parser.add_argument("--out", type=Path, default=OUT, help="path of the record, without an ending")
    parser.add_argument("--page", action="store_true", help="only write the page, from the saved results")
    options = parser.parse_args(arguments)
    results = Results(beside(options.out, ".jsonl"))
    all_done = True
    if not options.page:
        torch.set_num_threads(1)
        try:
            sets = list_sets(options.groups, options.sets)
        except (OSError, ValueError) as error:
            parser.error(str(error))
        readers = [READERS[name] for name in options.models]
        for message in filter(None, (reader.missing for reader in readers)):
            print(message, flush=True)
        readers = [reader for reader in readers if not reader.missing]
        if options.again:
            forget(results, [reader.name for reader in readers], sets)
        try:
            all_done = run(readers, sets, results, options.limit_seconds, options.retry)
        except KeyboardInterrupt:
            print("stopped; results are kept, run the same command without --again to resume", file=sys.stderr)
            return 130
    lines = [line for line in results.read().values() if line["model"] in READERS]
    path = beside(options.out, ".md")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(lines, {name: member.group for name, member in summaries().items()}), encoding="utf-8")
    print(path)
    return 0 if all_done else 3


if __name__ == "__main__":
    sys.exit(main())
