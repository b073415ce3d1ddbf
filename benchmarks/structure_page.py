"""The measured parts of docs/choosing-a-tree.md: effects of depth, width and leaves, and choices of a search.

The README has the table of means, too.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from toolkit.markdown import replace_between, table
from uci.labels import label as label_of
from uci.models import ALIASES, GROUPS
from uci.results import Line, Results
from uci.scores import Scores

from tartree.datasets import UciSummary
from tartree.search import expand

README = Path(__file__).resolve().parents[1] / "README.md"
PAGE = README.parent / "docs/choosing-a-tree.md"
SPEED = PAGE.parent / "benchmarks/search.json"
RULES = ("best", "1se")
OTHERS = ("random-forest", "extra-trees", "XGBoost", "CatBoost")
COMPARED = (*ALIASES.values(), *OTHERS, "not-readable", "TartClassifier", "tart-max")
TIE = 0.005  # points
#: Kinds of structures, by depth and layers of the leaves.
CHOICES: dict[str, Callable[[int, int], bool]] = {
    "one linear model": lambda depth, layers: depth == 0 and layers == 1,
    "one perceptron": lambda depth, layers: depth == 0 and layers > 1,
    "tree, constant or linear leaves": lambda depth, layers: depth > 0 and layers <= 1,
    "tree of perceptrons": lambda depth, layers: depth > 0 and layers > 1,
}
NOT_RUN = "The study has not been run for this version."

#: Changes of one parameter: label, and the models of the study before and after.
CHANGES: dict[str, list[tuple[str, str, str]]] = {
    'Depth, with linear leaves and `selection="multi"`': [
        ("2 to 4", "D2-L1-multi", "D4-L1-multi"),
        ("4 to 6", "D4-L1-multi", "D6-L1-multi"),
        ("6 to 8", "D6-L1-multi", "D8-L1-multi"),
    ],
    'Layers of the leaves, at depth 4, `selection="single"`': [
        ("1 to 2", "D4-L1-single", "D4-L2-single"),
        ("2 to 4", "D4-L2-single", "D4-L4-single"),
    ],
    'From `selection="single"` to `"multi"`, with linear leaves': [
        ("depth 2", "D2-L1-single", "D2-L1-multi"),
        ("depth 4", "D4-L1-single", "D4-L1-multi"),
        ("depth 8", "D8-L1-single", "D8-L1-multi"),
    ],
    'Children of a node, with leaves of two layers, `selection="single"`': [
        ("one node with 3 to one with 31", "D1-L2-W3-single", "D1-L2-W31-single"),
        ("a binary tree to a node with about as many leaves", "D4-L2-single", "D1-L2-W15-single"),
        ("a binary tree to shared children", "D4-L2-single", "D3-L2-W3S2-single"),
    ],
    "From the paper's training to the default recipe": [("structure of TART-A", ALIASES["tart-a"], "default-A")],
}
KINDS: dict[str, Callable[[UciSummary], bool]] = {
    "all": lambda data: True,
    "up to 300 rows": lambda data: data.rows <= 300,
    "300 to 1,000": lambda data: 300 < data.rows < 1000,
    "1,000 to 10,000": lambda data: 1000 <= data.rows < 10_000,
    "10,000 and more": lambda data: data.rows >= 10_000,
    "up to 10 features": lambda data: data.features <= 10,
    "more than 30": lambda data: data.features > 30,
    "2 classes": lambda data: data.classes == 2,
    "more than 5": lambda data: data.classes > 5,
}


def write(searches: Results, fixed: Results) -> None:
    """Write the tables between the marks of the pages."""
    lines, others = searches.read(), fixed.read()
    sets = _searched(lines, others)
    parts = {
        "numbers": "\n\n".join(_changes(Scores.read(fixed))),
        "searches": _searches(sets, lines, others) if sets else NOT_RUN,
    }
    if SPEED.exists():
        parts["speed"] = _speed(json.loads(SPEED.read_text(encoding="utf-8")))
    _write_parts(PAGE, parts)
    _write_parts(README, {"means": "\n".join(_means_table(sets, lines, others)) if sets else NOT_RUN})


def _write_parts(path: Path, parts: dict[str, str]) -> None:
    page = path.read_text(encoding="utf-8")
    for name, text in parts.items():
        page = replace_between(page, f"<!-- {name}: begin -->", f"<!-- {name}: end -->", text)
    path.write_text(page, encoding="utf-8")


def _speed(records: dict[str, Any]) -> str:
    """Return times of a search and of separate fits of the paper's 24 structures, on each measured device."""
    head = ["device", "search", "separate fits", "times faster", "processor seconds", "times fewer", "epochs"]
    rows, scaled, notes = [], 0, []
    for device, record in records.items():
        fits = record["one after another"]
        machine = record["machine"]
        where = machine["processor"] if device == "cuda" else f"{machine['threads']} threads of a CPU"
        for name in ("search", "search, without halving"):
            if (search := record.get(name)) is None:
                continue
            faster, fewer = (f"{search[f'times_faster_by_{clock}']:.1f}" for clock in ("seconds", "cpu_seconds"))
            seconds = [f"{search['seconds']:.1f} s", f"{fits['seconds']:.0f} s"]
            processor = f"{search['cpu_seconds']:.0f} s against {fits['cpu_seconds']:.0f} s"
            epochs = f"{search['epochs']:,} of {record['structures'] * record['epochs']:,}"
            rows.append([where + name.removeprefix("search"), *seconds, faster, processor, fewer, epochs])
        scaled = max(scaled, len(fits["scaled_up"]))
        if first := record.get("first search"):
            notes.append(
                f"The first search on the {where} took {first['seconds']:.0f} s, because it compiled kernels, which "
                "are then cached on disk."
            )
    if scaled:
        notes.append(f"Up to {scaled} structures of the separate fits were timed for fewer epochs and extrapolated.")
    return "\n".join([*table(head, rows), *(["", " ".join(notes)] if notes else [])])


def _changes(scores: Scores) -> Iterator[str]:
    """Yield a table for each change: the mean difference over the sets and its standard error, by kind of data."""
    for title, changes in CHANGES.items():
        rows = []
        for kind, belongs in KINDS.items():
            names = [name for name, summary in scores.sets.items() if belongs(summary)]
            cells = []
            for _, before, after in changes:
                points = scores.by_set(after, names) - scores.by_set(before, names)
                points = points[np.isfinite(points)]
                if len(points) < 2:
                    cells.append("-")
                    continue
                error = points.std(ddof=1) / len(points) ** 0.5
                better, worse = int((points > TIE).sum()), int((points < -TIE).sum())
                cells.append(f"{round(points.mean(), 1) + 0.0:+.1f} ± {error:.1f} ({better} : {worse})")
            rows.append([kind, len(names), *cells])
        yield "\n".join([f"**{title}**", "", *table(["data", "sets", *(label for label, _, _ in changes)], rows)])


def _searched(lines: dict[tuple[str, str], Line], others: dict[tuple[str, str], Line]) -> list[str]:
    """Return the sets on which both a search and the paper's models were run."""
    sets = [name for model, name in lines if model == "search-best" and not lines[model, name]["failure"]]
    return [name for name in sets if all((model, name) in others for model in ALIASES.values())]


def _searches(sets: list[str], lines: dict[tuple[str, str], Line], others: dict[tuple[str, str], Line]) -> str:
    """Return accuracies and choices of the two rules."""
    settings = {(line["group"], line["settings"]["precision"]) for line in lines.values() if not line["failure"]}
    precisions = ", ".join(f"{precision} for {group} sets" for group, precision in sorted(settings))
    if len(used := {precision for _, precision in settings}) == 1:
        precisions = used.pop()
    return "\n".join(
        [
            f"Mean accuracy in percent, and number of used leaves. Precision of the searches: {precisions}.",
            "",
            *_means_table(sets, lines, others),
            "",
            'Chosen structures in percent of the runs, with `rule="best"` / with `rule="1se"`:',
            "",
            *_choice_table(sets, lines),
            "",
            "Score of each structure in the folds, in points below the best on the same set: the mean over the sets on",
            "which it was trained to the end, with their number in brackets. On the others it was dropped early.",
            "",
            *_cost_table(sets, lines),
        ]
    )


def label(params: Mapping[str, Any]) -> str:
    """Return the name of a candidate in results."""
    return ", ".join(f"{name} {value}" for name, value in params.items())


def _groups(sets: list[str], lines: dict[tuple[str, str], Line]) -> dict[str, list[str]]:
    by_group = defaultdict(list)
    for name in sets:
        by_group[lines["search-best", name]["group"]].append(name)
    return {group: by_group[group] for group in GROUPS if by_group[group]}


def _means_table(sets: list[str], lines: dict[Any, Line], others: dict[Any, Line]) -> list[str]:
    """Return mean accuracies by group and of all sets: TART-A, B and C, other libraries, and the rules.

    A model that was not run on all sets of a group has a dash there.
    """
    groups = _groups(sets, lines)
    if len(groups) > 1:
        groups["all"] = sets
    lines_by_model = {
        label_of(model): {name: others[model, name] for name in sets if (model, name) in others} for model in COMPARED
    }
    for rule in RULES:
        lines_by_model[f'`StructureSearch(rule="{rule}")`'] = {name: lines[f"search-{rule}", name] for name in sets}
    rows = []
    for model, by_set in lines_by_model.items():
        cells = []
        for names in groups.values():
            if not all(name in by_set for name in names):
                cells.append("-")
                continue
            cell = f"{100 * np.mean([np.mean(by_set[name]['accuracy']) for name in names]):.2f}"
            if all("numbers" in by_set[name] for name in names):
                cell += f" ({np.median([np.median(by_set[name]['numbers']) for name in names]):,.0f} numbers)"
            if "leaves" in by_set[names[0]]:
                cell += f" ({np.mean([np.mean(by_set[name]['leaves']) for name in names]):.1f} leaves)"
            cells.append(cell)
        if set(cells) != {"-"}:
            rows.append([model, *cells])
    return table(["model", *(f"{group}, {len(names)} sets" for group, names in groups.items())], rows)


def _choice_table(sets: list[str], lines: dict[Any, Line]) -> list[str]:
    """Return shares of the runs in which each rule chose each kind of structure, by kind of data."""
    kinds: dict[str, Callable[[Line], bool]] = {
        "all": lambda line: True,
        "up to 300 rows": lambda line: line["rows"] <= 300,
        "300 to 3,000 rows": lambda line: 300 < line["rows"] <= 3000,
        "more than 3,000 rows": lambda line: line["rows"] > 3000,
        "up to 10 features": lambda line: line["features"] <= 10,
        "more than 30 features": lambda line: line["features"] > 30,
        "2 classes": lambda line: line["classes"] == 2,
        "more than 5 classes": lambda line: line["classes"] > 5,
    }
    rows = []
    for kind, belongs in kinds.items():
        of_kind = [name for name in sets if belongs(lines["search-best", name])]
        if not of_kind:
            continue
        cells = []
        for is_chosen in CHOICES.values():
            shares = []
            for rule in RULES:
                chosen = [params for name in of_kind for params in lines[f"search-{rule}", name]["chosen"]]
                shares.append(100 * np.mean([is_chosen(params["depth"], params["leaf_layers"]) for params in chosen]))
            cells.append(" / ".join(f"{share:.0f}" for share in shares))
        rows.append([kind, len(chosen), *cells])
    return table(["data", "runs", *CHOICES], rows)


def _cost_table(sets: list[str], lines: dict[Any, Line]) -> list[str]:
    """Return how far the inner score of each candidate is below the best on the same set, on average."""
    first = lines["search-best", sets[0]]["settings"]
    sets = [name for name in sets if lines["search-best", name]["settings"]["space"] == first["space"]]
    groups = _groups(sets, lines)
    rows = []
    for params in expand(first["space"]):
        cells = []
        for names in groups.values():
            gaps = []
            for name in names:
                scores = {other: score for other, (score, _) in lines["search-best", name]["candidates"].items()}
                if label(params) in scores:
                    gaps.append(100 * (max(scores.values()) - scores[label(params)]))
            cells.append(f"{np.mean(gaps):.2f} ({len(gaps)})" if gaps else "-")
        structure = {name: value for name, value in params.items() if name not in ("recipe", "dropout")}
        rows.append([label(structure), *cells])
    return table(["structure", *(f"{group}: points below the best" for group in groups)], rows)
