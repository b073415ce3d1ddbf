"""What defaults were chosen by: models compared on held-out quarters of the training rows of the UCI sets.

python benchmarks/inner.py tart-max [--device cuda --processes 8] [--groups small medium large] [--limit-seconds 300]
python benchmarks/inner.py depth [...]
python benchmarks/inner.py tart-max --report     # prints the means; the UCI page has them too

No run looks at its own test rows. For `tart-max`, every kind of member is trained twice in each of the four runs, all
runs as members of one tree, and probabilities are averaged: within a kind, and over those of a mix. For the depth of a
default tree, one tree is trained for each depth and run. Results are appended to docs/benchmarks/uci/tart-max.jsonl or
depth.jsonl as they come, and the same command goes on with what is left.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import takewhile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from uci.command import at_least
from uci.models import DEFAULT, TreeModel
from uci.processes import call_in_processes
from uci.results import Line, Results, machine
from uci.scores import mix_means
from uci.sets import ORDER, StudySet, list_sets, load_set, summaries
from uci.trees import build, fit

from tartree.model.memory_source import split_rows
from tartree.nn import Pieces, combine
from tartree.training import RECIPES

RESULTS = Path(__file__).resolve().parents[1] / "docs/benchmarks/uci"
Mixes = list[tuple[str, ...]]
PLAIN = TreeModel("plain", "features as they are", 4, 4, members=2, recipe=RECIPES["deep"])
PIECES = replace(PLAIN, leaf=Pieces(layers=4, dropout=0.15, pieces=8))
FINE = replace(PLAIN, leaf=Pieces(layers=4, dropout=0.15, pieces=16))
DECAYED = replace(RECIPES["deep"], decision_decay=1.0, leaf_decay=1.0)
KINDS = {
    "plain": PLAIN,
    "plain, other seeds": PLAIN,
    "8 pieces": PIECES,
    "8 pieces, other seeds": PIECES,
    "16 pieces": FINE,
    "plain, more decay": replace(PLAIN, recipe=DECAYED),
    "8 pieces, more decay": replace(PIECES, recipe=DECAYED),
    "plain, more dropout": replace(PLAIN, dropout=0.4),
    "8 pieces, more dropout": replace(PIECES, leaf=Pieces(layers=4, dropout=0.4, pieces=8)),
    "linear leaves": replace(PLAIN, depth=6, leaf_layers=1, recipe=RECIPES["default"]),
    "two layers, 8 pieces": replace(PLAIN, leaf=Pieces(layers=2, dropout=0.15, pieces=8)),
}
SEEDS = {"plain, other seeds": 1, "8 pieces, other seeds": 1}
MIXES: Mixes = [
    *((kind,) for kind in KINDS),
    ("plain", "plain, other seeds"),
    ("plain", "8 pieces"),
    ("plain", "16 pieces"),
    ("8 pieces", "16 pieces"),
    ("plain, more decay", "8 pieces, more decay"),
    ("plain, more dropout", "8 pieces, more dropout"),
    ("linear leaves", "two layers, 8 pieces"),
    ("plain", "linear leaves"),
    ("8 pieces", "linear leaves"),
    ("plain", "8 pieces", "linear leaves"),
    ("plain", "8 pieces", "plain, other seeds", "8 pieces, other seeds"),
    ("plain", "8 pieces", "linear leaves", "two layers, 8 pieces"),
    ("plain, more decay", "8 pieces, more decay", "linear leaves", "two layers, 8 pieces"),
    ("plain, more dropout", "8 pieces, more dropout", "linear leaves", "two layers, 8 pieces"),
]
DEPTHS = {f"D {depth}": replace(DEFAULT, depth=depth, encoded=True) for depth in (4, 5, 6)}
SUBJECTS: dict[str, tuple[dict[str, TreeModel], Mixes]] = {
    "tart-max": (KINDS, MIXES),
    "depth": (DEPTHS, [(depth,) for depth in DEPTHS]),
}
HELD_OUT = 0.25
ROWS = 2048  # of a prediction


def do(name: str, subject: str, device: str, precision: str) -> list[Line]:
    """One set: accuracies of all kinds and mixes, by run."""
    torch.set_num_threads(1)
    start, failure, found, rows = time.perf_counter(), None, None, None
    try:
        data = _inner(load_set(name))
        rows = len(data.train[0])
        found = compare(data, *SUBJECTS[subject], device, precision)
    except Exception as error:  # the other sets go on
        failure = f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]
    about = {"model": "inner", "set": name, "group": summaries()[name].group, "failure": failure, "accuracy": found}
    about["rows"] = rows
    seconds = round(time.perf_counter() - start, 2)
    return [{**about, "seconds": seconds, "precision": precision, "machine": machine(torch.device(device))}]


def _inner(data: StudySet) -> StudySet:
    """The same set with a quarter of each run's training rows in place of its test rows."""
    pairs = []
    for run, rows in enumerate(data.train):
        labels = data.y[rows].numpy()
        kept, held = split_rows(len(rows), labels, HELD_OUT, np.random.RandomState(100 + run))
        pairs.append((rows[kept], rows[held]))
    train, held_out = zip(*pairs, strict=True)
    return replace(data, train=train, test=held_out)


def compare(
    data: StudySet, models: dict[str, TreeModel], mixes: Mixes, device: str, precision: str
) -> dict[str, list[float]]:
    said = {}
    for kind, model in models.items():
        own = (data.encoded() if model.encoded else data).to(torch.device(device))
        said[kind] = _probabilities(model, own, precision, SEEDS.get(kind, 0))
    found = {}
    for kinds in mixes:
        sums = [sum(said[kind][run] for kind in kinds) for run in range(data.runs)]
        right = [(own.argmax(1) == data.y[held]) for own, held in zip(sums, data.test, strict=True)]
        found[" + ".join(kinds)] = [round(float(run.double().mean()), 5) for run in right]
    return found


def _probabilities(model: TreeModel, data: StudySet, precision: str, seed: int) -> list[Tensor]:
    """Of the held-out rows of each run, (rows, classes), the mean of its members."""
    tree = build(model, data, seed)
    fit(tree, model, data, replace(model.recipe, precision=precision), seed)
    tree.eval()
    found = []
    with torch.no_grad():
        for run, held in enumerate(data.test):
            own = slice(run * model.members, (run + 1) * model.members)
            parts = []
            for rows in held.to(data.x.device).split(ROWS):
                arrival, numbers = tree(data.x[rows])
                said = combine(arrival[own], tree.output.mean(numbers)[own], model.selection)
                parts.append(said.mean(0).cpu())
            found.append(torch.cat(parts))
    return found


def report(results: Results) -> Iterator[str]:
    for mix, groups in mix_means(results).items():
        yield f"{mix}: " + ", ".join(f"{group} {mean:.2f} ({n})" for group, (mean, n) in groups.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("subject", choices=SUBJECTS)
    parser.add_argument("--groups", nargs="+", choices=ORDER, default=[*ORDER])
    parser.add_argument("--sets", nargs="+", help="only these")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="single", choices=["single", "tf32", "bfloat16"])
    parser.add_argument("--processes", type=at_least(1), default=1)
    parser.add_argument("--limit-seconds", type=float, default=float("inf"), help="begin no set after this time")
    parser.add_argument("--report", action="store_true", help="only print the means")
    parser.add_argument("--results", type=Path, help="docs/benchmarks/uci/SUBJECT.jsonl by default")
    options = parser.parse_args()
    results = Results(options.results or RESULTS / f"{options.subject}.jsonl")
    start = time.perf_counter()
    if not options.report:
        done = {name for (_, name), line in results.read().items() if not line["failure"]}
        left = [name for name in reversed(list_sets(options.groups, options.sets)) if name not in done]
        in_time = takewhile(lambda _: time.perf_counter() - start < options.limit_seconds, left)
        function = partial(do, subject=options.subject, device=options.device, precision=options.precision)
        for name, lines in call_in_processes(function, in_time, options.processes):
            results.append(lines)
            print(name, lines[0]["failure"] or f"{lines[0]['seconds']} s", flush=True)
    print("\n".join(report(results)))


if __name__ == "__main__":
    main()
