"""Warm starts compared with their source trees on the UCI sets; called by `python benchmarks/zoo.py --only warm`.

A line for each set and split is appended to a file when it is done, so a stopped run can be resumed. The summary
includes a set when all of its splits are done, and states for each group how many of its sets have been measured.
"""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.tree import DecisionTreeClassifier
from toolkit.failure import failure_text
from uci.processes import call
from uci.results import Line, Results
from uci.sets import ORDER

from tartree import zoo
from tartree.datasets import UciSummary, load_uci, uci_index

LABELS = ("cart", "soft", "warm")
Job = tuple[str, int]  # a set and one of its splits


class TimeIsUp(Exception):
    """The seconds of `--limit-seconds` have passed."""


def measure(arguments: argparse.Namespace, before: dict[str, Any], versions: str) -> dict[str, Any]:
    """Run what is left of the groups, and return the entry of zoo.json from `before` and all lines of the file."""
    results = Results(arguments.out.with_name(arguments.out.name + "-warm.jsonl"), numbers="warm")
    index = uci_index().sets
    jobs = _left(results, {name: data for name, data in index.items() if data.group in arguments.groups}, arguments)
    start, done = time.perf_counter(), 0
    try:
        function = partial(measure_split, device=arguments.device, versions=versions)
        with _limited(arguments.limit_seconds), closing(call(function, jobs, arguments.processes)) as pairs:
            for done, (_, line) in enumerate(pairs, start=1):
                results.append([line])
                print(f"[{done}/{len(jobs)}, {time.perf_counter() - start:.0f} s] {_brief(line)}", flush=True)
    except TimeIsUp:
        print(f"stopped after {arguments.limit_seconds} s, {done} of {len(jobs)} done; run the same command to resume")
    return summary(results, index, before, arguments.splits)


def _left(results: Results, sets: dict[str, UciSummary], arguments: argparse.Namespace) -> list[Job]:
    """Return sets and splits without a result, longest first; with `retry` also failures."""
    saved = results.read()

    def is_left(name: str, split: int) -> bool:
        line = saved.get((_model(split), name))
        return line is None or (bool(line.get("failure")) and arguments.retry)

    # The leaves of a fully grown tree are proportional to the rows, and every row reaches every leaf.
    order = sorted(sets, key=lambda name: -(sets[name].rows ** 2) * sets[name].classes)
    return [(name, split) for name in order for split in range(arguments.splits) if is_left(name, split)]


def measure_split(job: Job, device: str, versions: str) -> Line:
    """Return accuracies of the tree, the soft tree, and the trained tree, or a failure."""
    torch.set_num_threads(1)
    name, split = job
    data = load_uci(name)
    line: Line = {"model": _model(split), "set": name, "group": data.group, "split": split, "failure": None}
    start = time.perf_counter()
    try:
        train, test = data.splits[split]
        X, y = data.X[train], data.y[train]
        cart = DecisionTreeClassifier(random_state=split).fit(X, y)
        soft = zoo.soften(cart, X, y, random_state=split, device=device)
        warm = zoo.warm_start(cart, X, y, temperature=soft.temperature_, random_state=split, device=device)
        for label, model in zip(LABELS, (cart, soft, warm), strict=True):
            line[label] = round(float(model.score(data.X[test], data.y[test])), 5)
        line |= {"leaves": int(cart.get_n_leaves()), "temperature": soft.temperature_}
    except (ValueError, RuntimeError, MemoryError, FloatingPointError) as error:  # the other sets still run
        line["failure"] = failure_text(error)
    return {**line, "seconds": round(time.perf_counter() - start, 2), "versions": versions}


def summary(results: Results, index: dict[str, UciSummary], before: dict[str, Any], splits: int) -> dict[str, Any]:
    """Return means of each set and each group; a set without lines keeps its entry."""
    done = {(line["set"], line["split"]): line for line in results.read().values() if not line["failure"]}
    sets = {entry["data"]: entry for entry in before.get("sets", [])}
    for name, data in index.items():
        lines = [done[name, split] for split in range(splits) if (name, split) in done]
        if len(lines) == splits >= sets.get(name, {"splits": 0})["splits"]:  # never replaces more splits
            means = {label: _mean([line[label] for line in lines]) for label in LABELS}
            about = {"data": name, "group": data.group, "splits": splits, "versions": _versions(lines)}
            sets[name] = {**about, **means, "notes": list(data.notes)}
    groups = {}
    for group in ORDER:
        entries = [entry for entry in sets.values() if entry["group"] == group]
        if not entries:
            continue
        groups[group] = {
            "sets": len(entries),
            "of": sum(data.group == group for data in index.values()),
            "splits": min(entry["splits"] for entry in entries),
            **{label: _mean([entry[label] for entry in entries]) for label in LABELS},
            "versions": _versions(entries),
        }
        print(group, groups[group])
    return {"groups": groups, "sets": [sets[name] for name in sorted(sets)]}


def _versions(measured: list[Line]) -> str:
    return "; ".join(sorted({version for entry in measured for version in entry["versions"].split("; ")}))


@contextmanager
def _limited(seconds: float | None) -> Iterator[None]:
    """Raise `TimeIsUp` in this process after `seconds`."""
    if seconds is None:
        yield
        return

    def stop(number: int, frame: Any) -> None:
        raise TimeIsUp

    earlier = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, earlier)


def _model(split: int) -> str:
    return f"warm-start-{split}"


def _brief(line: Line) -> str:
    if line["failure"]:
        return f"{line['set']} {line['split']} FAILED: {line['failure']}"
    accuracies = ", ".join(f"{label} {100 * line[label]:.1f}" for label in LABELS)
    return f"{line['set']} {line['split']}: {accuracies}; {line['leaves']} leaves, {line['seconds']:.1f} s"


def _mean(values: list[float]) -> float:
    return round(float(np.mean(values)), 4)
