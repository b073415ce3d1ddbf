"""The measured parts of docs/choosing-a-tree.md: what the numbers of a structure do, and what a search chooses.

The README has the table of means, too.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from uci.models import ALIASES
from uci.results import Line, Results
from uci.scores import Scores
from uci.words import label as label_of

from tartree.datasets import UciSummary
from tartree.search import expand

README = Path(__file__).resolve().parents[1] / "README.md"
PAGE = README.parent / "docs/choosing-a-tree.md"
SPEED = PAGE.parent / "benchmarks/search.json"
RULES = ("best", "1se")
COMPARED = (*ALIASES.values(), "random-forest", "extra-trees", "XGBoost", "CatBoost", "TartClassifier", "tart-max")
TIE = 0.005  # points
#: Kinds of structures, by depth and layers of the leaves.
CHOICES: dict[str, Callable[[int, int], bool]] = {
    "one linear model": lambda depth, layers: depth == 0 and layers == 1,
    "one perceptron": lambda depth, layers: depth == 0 and layers > 1,
    "tree, constant or linear leaves": lambda depth, layers: depth > 0 and layers <= 1,
    "tree of perceptrons": lambda depth, layers: depth > 0 and layers > 1,
}
NOT_RUN = "The study has not been run for this version."

#: What a change brings: where it comes from and goes to, by names of the study's models.
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
    "From the paper's training to the default recipe": [("structure of TART-A", ALIASES["A"], "default-A")],
}
KINDS: dict[str, Callable[[UciSummary], bool]] = {
    "all": lambda one: True,
    "up to 300 rows": lambda one: one.rows <= 300,
    "300 to 1,000": lambda one: 300 < one.rows < 1000,
    "1,000 to 10,000": lambda one: 1000 <= one.rows < 10_000,
    "10,000 and more": lambda one: one.rows >= 10_000,
    "up to 10 features": lambda one: one.features <= 10,
    "more than 30": lambda one: one.features > 30,
    "2 classes": lambda one: one.classes == 2,
    "more than 5": lambda one: one.classes > 5,
}


def write(searches: Results, fixed: Results) -> None:
    """Put the tables into the pages, between their marks."""
    lines, others = searches.read(), fixed.read()
    sets = _searched(lines, others)
    parts = {
        "numbers": "\n\n".join(_changes(Scores.read(fixed))),
        "searches": _searches(sets, lines, others) if sets else NOT_RUN,
    }
    if SPEED.exists():
        parts["speed"] = _speed(json.loads(SPEED.read_text(encoding="utf-8")))
    _put(PAGE, parts)
    _put(README, {"means": "\n".join(_means_table(sets, lines, others)) if sets else NOT_RUN})


def _put(path: Path, parts: dict[str, str]) -> None:
    page = path.read_text(encoding="utf-8")
    for name, text in parts.items():
        page = _between(page, name, text)
    path.write_text(page, encoding="utf-8")


def _between(page: str, name: str, text: str) -> str:
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, rest = page.split(begin)
    return f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}"


def _speed(records: dict[str, Any]) -> str:
    """The 24 structures of the paper, searched and one after another, on each device that was measured."""
    lines = [
        "| where | search | one after another | times faster | processor seconds | times fewer | epochs |",
        "|---" * 7 + "|",
    ]
    scaled, notes = 0, []
    for device, record in records.items():
        others = record["one after another"]
        where = (
            record["machine"]["processor"] if device == "cuda" else f"{record['machine']['threads']} threads of a CPU"
        )
        for name in ("search", "search, without halving"):
            if (own := record.get(name)) is None:
                continue
            faster, fewer = (own[f"times_faster_by_{clock}"] for clock in ("seconds", "cpu_seconds"))
            cells = [where + name.removeprefix("search"), f"{own['seconds']:.1f} s", f"{others['seconds']:.0f} s"]
            cells += [
                f"{faster:.1f}",
                f"{own['cpu_seconds']:.0f} s against {others['cpu_seconds']:.0f} s",
                f"{fewer:.1f}",
            ]
            cells.append(f"{own['epochs']:,} of {record['structures'] * record['epochs']:,}")
            lines.append(f"| {' | '.join(cells)} |")
        scaled = max(scaled, len(others["scaled_up"]))
        if first := record.get("first search"):
            notes.append(
                f"The first search on the {where} took {first['seconds']:.0f} s, to compile kernels, which files keep."
            )
    if scaled:
        notes.append(
            f"Of the fits one after another, up to {scaled} structures were timed for fewer epochs and scaled up."
        )
    if notes:
        lines += ["", " ".join(notes)]
    return "\n".join(lines)


def _changes(scores: Scores) -> Iterator[str]:
    """What each change brings, by kind of data: the mean difference over the sets, and its standard error."""
    for title, changes in CHANGES.items():
        lines = [f"**{title}**", ""]
        lines.append("| data | sets | " + " | ".join(label for label, _, _ in changes) + " |")
        lines.append("|---" * (len(changes) + 2) + "|")
        for kind, belongs in KINDS.items():
            names = [name for name, one in scores.sets.items() if belongs(one)]
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
            lines.append(f"| {kind} | {len(names)} | " + " | ".join(cells) + " |")
        yield "\n".join(lines)


def _searched(lines: dict[tuple[str, str], Line], others: dict[tuple[str, str], Line]) -> list[str]:
    """The sets on which both a search and the paper's models were run."""
    sets = [name for model, name in lines if model == "search-best" and not lines[model, name]["failure"]]
    return [name for name in sets if all((model, name) in others for model in ALIASES.values())]


def _searches(sets: list[str], lines: dict[tuple[str, str], Line], others: dict[tuple[str, str], Line]) -> str:
    """What the rules choose."""
    settings = {(line["group"], line["settings"]["precision"]) for line in lines.values() if not line["failure"]}
    precisions = ", ".join(f"{precision} for {group} sets" for group, precision in sorted(settings))
    if len(used := {precision for _, precision in settings}) == 1:
        precisions = used.pop()
    return "\n".join(
        [
            f"Mean accuracy in percent, and leaves that are used. Precision of the searches' products: {precisions}.",
            "",
            *_means_table(sets, lines, others),
            "",
            'What was chosen, in percent of the runs, by `rule="best"` / by `rule="1se"`:',
            "",
            *_choice_table(sets, lines),
            "",
            "How far the score of a structure in the folds is below the best of its set: the mean over the sets, whose",
            "number is in brackets, in which it was trained to the end. It was dropped early in the others.",
            "",
            *_cost_table(sets, lines),
        ]
    )


def label(params: Mapping[str, Any]) -> str:
    """What a candidate is called in results."""
    return ", ".join(f"{name} {value}" for name, value in params.items())


def _groups(sets: list[str], lines: dict[tuple[str, str], Line]) -> dict[str, list[str]]:
    found = defaultdict(list)
    for name in sets:
        found[lines["search-best", name]["group"]].append(name)
    return {group: found[group] for group in ("large", "medium", "small") if found[group]}


def _means_table(sets: list[str], lines: dict[Any, Line], others: dict[Any, Line]) -> Iterator[str]:
    """Mean accuracy by group and of all sets: the paper's three models, other libraries, and the rules."""
    groups = _groups(sets, lines)
    if len(groups) > 1:
        groups["all"] = sets
    yield "| model | " + " | ".join(f"{group}, {len(own)} sets" for group, own in groups.items()) + " |"
    yield "|---" * (len(groups) + 1) + "|"
    rows = {
        label_of(model): {name: others[model, name] for name in sets}
        for model in COMPARED
        if all((model, name) in others for name in sets)
    }
    for rule in RULES:
        rows[f'`StructureSearch(rule="{rule}")`'] = {name: lines[f"search-{rule}", name] for name in sets}
    for label, own in rows.items():
        cells = []
        for names in groups.values():
            cell = f"{100 * np.mean([np.mean(own[name]['accuracy']) for name in names]):.2f}"
            if "leaves" in own[names[0]]:
                cell += f" ({np.mean([np.mean(own[name]['leaves']) for name in names]):.1f} leaves)"
            cells.append(cell)
        yield f"| {label} | " + " | ".join(cells) + " |"


def _choice_table(sets: list[str], lines: dict[Any, Line]) -> Iterator[str]:
    """What each rule chose, by how many rows, features and classes there are: shares of the runs."""
    kinds = {
        "all": lambda line: True,
        "up to 300 rows": lambda line: line["rows"] <= 300,
        "300 to 3,000 rows": lambda line: 300 < line["rows"] <= 3000,
        "more than 3,000 rows": lambda line: line["rows"] > 3000,
        "up to 10 features": lambda line: line["features"] <= 10,
        "more than 30 features": lambda line: line["features"] > 30,
        "2 classes": lambda line: line["classes"] == 2,
        "more than 5 classes": lambda line: line["classes"] > 5,
    }
    yield "| data | runs | " + " | ".join(CHOICES) + " |"
    yield "|---" * (2 + len(CHOICES)) + "|"
    for kind, belongs in kinds.items():
        own = [name for name in sets if belongs(lines["search-best", name])]
        if not own:
            continue
        cells = []
        for is_one in CHOICES.values():
            shares = []
            for rule in RULES:
                chosen = [params for name in own for params in lines[f"search-{rule}", name]["chosen"]]
                shares.append(100 * np.mean([is_one(params["depth"], params["leaf_layers"]) for params in chosen]))
            cells.append(" / ".join(f"{share:.0f}" for share in shares))
        yield f"| {kind} | {len(chosen)} | " + " | ".join(cells) + " |"


def _cost_table(sets: list[str], lines: dict[Any, Line]) -> Iterator[str]:
    """Of each candidate: how far its inner score is below the best one of the set, on average."""
    first = lines["search-best", sets[0]]["settings"]
    sets = [name for name in sets if lines["search-best", name]["settings"]["space"] == first["space"]]
    groups = _groups(sets, lines)
    yield "| structure | " + " | ".join(f"{group}: points below the best" for group in groups) + " |"
    yield "|---" * (len(groups) + 1) + "|"
    for params in expand(first["space"]):
        cells = []
        for names in groups.values():
            gaps = []
            for name in names:
                scores = {one: score for one, (score, _) in lines["search-best", name]["candidates"].items()}
                if label(params) in scores:
                    gaps.append(100 * (max(scores.values()) - scores[label(params)]))
            cells.append(f"{np.mean(gaps):.2f} ({len(gaps)})" if gaps else "-")
        said = label({name: value for name, value in params.items() if name not in ("recipe", "dropout")})
        yield f"| {said} | " + " | ".join(cells) + " |"
