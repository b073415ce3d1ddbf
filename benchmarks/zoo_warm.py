"""Warm starts against the trees that they came from, on the UCI sets; `python benchmarks/zoo.py --only warm` calls it.

One line for each set and split goes to a file as soon as it is measured, so an interrupted run can be resumed. The
summary counts a set when all of its splits are measured, and the measured sets of each group.
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
from uci.processes import call_in_processes
from uci.results import Line, Results

from tartree import zoo
from tartree.datasets import UciSummary, load_uci, uci_index

LABELS = ("cart", "soft", "warm")
GROUPS = ("small", "medium", "large")
Job = tuple[str, int]  # a set and one of its splits


class TimeIsUp(Exception):
    """The seconds of `--limit-seconds` have passed."""


def measure(arguments: argparse.Namespace, before: dict[str, Any], versions: str) -> dict[str, Any]:
    """Do what is left of the groups, then the entry of zoo.json: what it held `before`, and all lines of the file."""
    results = Results(arguments.out.with_name(arguments.out.name + "-warm.jsonl"), numbers="warm")
    index = uci_index().sets
    jobs = _left(results, {name: entry for name, entry in index.items() if entry.group in arguments.groups}, arguments)
    start, done = time.perf_counter(), 0
    try:
        with _limited(arguments.limit_seconds), closing(_each(jobs, versions, arguments)) as lines:
            for done, line in enumerate(lines, start=1):
                results.append([line])
                print(f"[{done}/{len(jobs)}, {time.perf_counter() - start:.0f} s] {_brief(line)}", flush=True)
    except TimeIsUp:
        print(f"stopped after {arguments.limit_seconds} s, {done} of {len(jobs)} done; the same command resumes")
    return summary(results, index, before, arguments.splits)


def _left(results: Results, sets: dict[str, UciSummary], arguments: argparse.Namespace) -> list[Job]:
    """Sets and splits without a number yet, those that take longest first; failures when asked for."""
    lines = results.read()

    def is_left(name: str, split: int) -> bool:
        line = lines.get((_model(split), name))
        return line is None or (bool(line.get("failure")) and arguments.retry)

    # A tree that is grown in full has leaves in proportion to the rows, and every row meets every leaf.
    order = sorted(sets, key=lambda name: -(sets[name].rows ** 2) * sets[name].classes)
    return [(name, split) for name in order for split in range(arguments.splits) if is_left(name, split)]


def _each(jobs: list[Job], versions: str, arguments: argparse.Namespace) -> Iterator[Line]:
    function = partial(measure_split, device=arguments.device, versions=versions)
    if arguments.processes == 1:
        yield from map(function, jobs)
        return
    with closing(call_in_processes(function, jobs, arguments.processes)) as results:
        yield from (line for _, line in results)


def measure_split(job: Job, device: str, versions: str) -> Line:
    """Return the accuracies of the tree, of its soft form, and after training, or the reason of a failure."""
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
    except (ValueError, RuntimeError, MemoryError, FloatingPointError) as error:  # the other sets continue
        line["failure"] = f"{type(error).__name__}: {error}"
    return {**line, "seconds": round(time.perf_counter() - start, 2), "versions": versions}


def summary(results: Results, index: dict[str, UciSummary], before: dict[str, Any], splits: int) -> dict[str, Any]:
    """Return means of each set and each group; a set without lines keeps its entry."""
    measured = {(line["set"], line["split"]): line for line in results.read().values() if not line["failure"]}
    sets = {entry["data"]: entry for entry in before.get("sets", [])}
    for name, about in index.items():
        lines = [measured[name, split] for split in range(splits) if (name, split) in measured]
        if len(lines) == splits >= sets.get(name, {"splits": 0})["splits"]:  # not in place of more
            means = {label: _mean([line[label] for line in lines]) for label in LABELS}
            entry = {"data": name, "group": about.group, "splits": splits, "versions": _versions(lines)}
            sets[name] = {**entry, **means, "notes": list(about.notes)}
    groups = {}
    for group in GROUPS:
        group_sets = [entry for entry in sets.values() if entry["group"] == group]
        if not group_sets:
            continue
        groups[group] = {
            "sets": len(group_sets),
            "of": sum(about.group == group for about in index.values()),
            "splits": min(entry["splits"] for entry in group_sets),
            **{label: _mean([entry[label] for entry in group_sets]) for label in LABELS},
            "versions": _versions(group_sets),
        }
        print(group, groups[group])
    return {"groups": groups, "sets": [sets[name] for name in sorted(sets)]}


def _versions(measured: list[Line]) -> str:
    return "; ".join(sorted({version for entry in measured for version in entry["versions"].split("; ")}))


@contextmanager
def _limited(seconds: float | None) -> Iterator[None]:
    """Raise `TimeIsUp` in this process once so many seconds have passed."""
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
    text = ", ".join(f"{label} {100 * line[label]:.1f}" for label in LABELS)
    return f"{line['set']} {line['split']}: {text}; {line['leaves']} leaves, {line['seconds']:.1f} s"


def _mean(values: list[float]) -> float:
    return round(float(np.mean(values)), 4)
