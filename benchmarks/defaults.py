"""Comparisons that defaults were chosen by: models on held-out quarters of the training rows of the UCI sets.

python benchmarks/defaults.py tart-max [--device cuda --processes 8] [--groups small medium large] [--limit-seconds 300]
python benchmarks/defaults.py depth [...]
python benchmarks/defaults.py tart-max --report     # prints the means, which are also on the UCI page

Test rows are not used. For `tart-max`, each kind of member is trained twice in each of the four runs, all runs as
members of one tree; probabilities are averaged within a kind and over those of a mix. For the default depth, one tree
is trained for each depth and run. Results are appended to docs/benchmarks/uci/tart-max.jsonl or depth.jsonl, and the
same command resumes a stopped run.
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
from toolkit.arguments import whole_number
from toolkit.environment import machine
from toolkit.failure import failure_text
from torch import Tensor
from uci.models import DEFAULT, TreeModel
from uci.processes import call_in_processes
from uci.results import Line, Results
from uci.scores import mix_means
from uci.sets import ORDER, StudySet, list_sets, load_set, summaries
from uci.trees import build, fit

from tartree.model.memory_source import split_rows
from tartree.nn import Pieces, combine
from tartree.training import RECIPES

RESULTS = Path(__file__).resolve().parents[1] / "docs/benchmarks/uci"
Mixes = list[tuple[str, ...]]
PLAIN = TreeModel("plain", "features without bins", 4, 4, members=2, recipe=RECIPES["deep"])
BINNED = replace(PLAIN, leaf=Pieces(layers=4, dropout=0.15, pieces=8))
FINELY_BINNED = replace(PLAIN, leaf=Pieces(layers=4, dropout=0.15, pieces=16))
DECAYED = replace(RECIPES["deep"], decision_decay=1.0, leaf_decay=1.0)
#: Kinds of members by their names in the records, which call the bins of a feature pieces.
KINDS = {
    "plain": PLAIN,
    "plain, other seeds": PLAIN,
    "8 pieces": BINNED,
    "8 pieces, other seeds": BINNED,
    "16 pieces": FINELY_BINNED,
    "plain, more decay": replace(PLAIN, recipe=DECAYED),
    "8 pieces, more decay": replace(BINNED, recipe=DECAYED),
    "plain, more dropout": replace(PLAIN, dropout=0.4),
    "8 pieces, more dropout": replace(BINNED, leaf=Pieces(layers=4, dropout=0.4, pieces=8)),
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
CHUNK = 2048  # rows that are predicted together


def do(name: str, subject: str, device: str, precision: str) -> list[Line]:
    """Return accuracies of all kinds and mixes on one set, by run."""
    torch.set_num_threads(1)
    start, failure, accuracies, rows = time.perf_counter(), None, None, None
    try:
        data = hold_out(load_set(name))
        rows = len(data.train[0])
        accuracies = compare(data, *SUBJECTS[subject], device, precision)
    except Exception as error:  # the other sets still run
        failure = failure_text(error)
    about = {
        "model": "inner",
        "set": name,
        "group": summaries()[name].group,
        "failure": failure,
        "accuracy": accuracies,
    }
    about["rows"] = rows
    seconds = round(time.perf_counter() - start, 2)
    return [{**about, "seconds": seconds, "precision": precision, "machine": machine(torch.device(device))}]


def hold_out(data: StudySet) -> StudySet:
    """Return the set with a quarter of each run's training rows instead of its test rows."""
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
    """Return accuracies of each mix on the held-out rows, by run."""
    probabilities = {}
    for kind, model in models.items():
        seen = (data.encoded() if model.encoded else data).to(torch.device(device))
        probabilities[kind] = _probabilities(model, seen, precision, SEEDS.get(kind, 0))
    accuracies = {}
    for kinds in mixes:
        sums = [sum(probabilities[kind][run] for kind in kinds) for run in range(data.runs)]
        right = [(run.argmax(1) == data.y[held]) for run, held in zip(sums, data.test, strict=True)]
        accuracies[" + ".join(kinds)] = [round(float(run.double().mean()), 5) for run in right]
    return accuracies


def _probabilities(model: TreeModel, data: StudySet, precision: str, seed: int) -> list[Tensor]:
    """Return probabilities of the held-out rows of each run, (rows, classes), averaged over its members."""
    tree = build(model, data, seed)
    fit(tree, model, data, replace(model.recipe, precision=precision), seed)
    tree.eval()
    by_run = []
    with torch.no_grad():
        for run, held in enumerate(data.test):
            members = slice(run * model.members, (run + 1) * model.members)
            parts = []
            for rows in held.to(data.x.device).split(CHUNK):
                arrival, logits = tree(data.x[rows])
                predicted = combine(arrival[members], tree.output.mean(logits)[members], model.selection)
                parts.append(predicted.mean(0).cpu())
            by_run.append(torch.cat(parts))
    return by_run


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
    parser.add_argument("--processes", type=whole_number(1), default=1)
    parser.add_argument("--limit-seconds", type=float, default=float("inf"), help="start no set after this time")
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
