"""The page of `benchmarks/reading.py`: means, agreement of the drawn tree, and each set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from reading_models import BUDGET, FOLDS, HELD_OUT, HELD_OUT_ROWS, READERS
from toolkit.markdown import table, wrapped

Line = dict[str, Any]
GROUPS = ("small", "medium")
OURS = "readable-45"

START = f"""Mean test accuracy in percent on UCI sets with their official splits, four runs a set, for models of at most
{BUDGET} printed numbers. Sizes and penalties are chosen with the training rows of each run only: of the candidates that
keep the budget, the one that predicts held-out training rows best ({FOLDS} folds, or one held-out share of {HELD_OUT}
from {HELD_OUT_ROWS:,} training rows on), the smallest of equal ones, fitted to all training rows. Where no candidate
keeps the budget, as with more classes than numbers, the model is the most frequent class, with no number."""

COUNT = """Numbers are counted alike for all models, as `reading_size_` counts them: one for a threshold, a weight and a
bias, two for each point of a curve. A linear decision of a tree has a weight for each column and a bias. A leaf or a
function has one output of two classes, and one for each of more classes; what leaves share is counted once. Names of
columns are not counted."""

MODELS = {
    "readable-45": '`TartClassifier(readable=True)` with straight lines (`numeric="standard"`) and depth 0 to 3, or '
    "curves and depth 0, and `max_terms` as large as the budget allows: the inner splits choose between these five.",
    "CART": "scikit-learn's decision tree; the inner splits choose the number of leaves.",
    "CART-labels": "the same trees with one label a leaf in place of probabilities, which allows more leaves with "
    "three or more classes.",
    "FIGS": "`imodels`; the inner splits choose the number of rules. With more than two classes a leaf has a number "
    "for each class, as FIGS does it by itself.",
    "L1": "multinomial, on standardised columns; the inner splits choose the penalty, up to the one with the most "
    "weights within the budget.",
    "simplified": "`TartClassifier().fit(X, y).simplify(X, max_leaves=4, max_terms=3)`, or where this has more than "
    "the allowed numbers the next smaller size; nothing is chosen by inner splits. Leaves are printed one by one where "
    "this is shorter than what they share and how they differ.",
    "readable": "default settings of `readable=True`, for comparison.",
}


def page(lines: Sequence[Line], groups: dict[str, str]) -> str:
    """Return the results in Markdown, from the lines of models on sets and the group of each set."""
    done = {(line["model"], line["set"]): line for line in lines if not line["failure"]}
    names = [name for name in READERS if any(model == name for model, _ in done)]
    limited = [name for name in names if READERS[name].is_limited]
    common = [name for name in groups if limited and all((model, name) in done for model in limited)]
    text = ["# Accuracy at an equal reading budget", "", *wrapped(START), "", *wrapped(COUNT), ""]
    text += [f"- {READERS[name].label}: {MODELS[name]}" for name in names]
    text += ["", "Made by `benchmarks/reading.py`; the data is in `reading.jsonl`."]
    text += ["", "## Means", "", *_means(done, names, common, groups)]
    if OURS in names:
        text += ["", *_wins(done, names)]
    text += ["", "## Agreement of the drawn tree", "", *_agreement(done, names)]
    text += ["", "## By set", "", *_by_set(done, names)]
    if failed := [line for line in lines if line["failure"]]:
        rows = [[line["set"], READERS[line["model"]].label, line["failure"].replace("|", "\\|")] for line in failed]
        text += ["", "## Failures", "", *table(["set", "model", "message"], rows)]
    return "\n".join([*text, "", _versions(done), ""])


def mean_of(line: Line, key: str = "accuracy") -> float:
    return float(np.mean(line[key]))


def _means(done: dict[Any, Line], names: list[str], common: list[str], groups: dict[str, str]) -> list[str]:
    of_group = {group: [name for name in common if groups[name] == group] for group in GROUPS}
    head = ["model"]
    for group, sets in of_group.items():
        head += [f"{group} ({len(sets)} sets)", "numbers"]
    rows = []
    for name in names:
        cells = [READERS[name].label]
        for sets in of_group.values():
            measured = [done[name, member] for member in sets if (name, member) in done]
            if not measured or len(measured) < len(sets):
                cells += ["-", "-"]
                continue
            cells.append(f"{100 * np.mean([mean_of(line) for line in measured]):.1f}")
            cells.append(f"{np.mean([mean_of(line, 'numbers') for line in measured]):.0f}")
        rows.append([*cells, str(sum(model == name for model, _ in done))])
    counts = [f"{len(sets)} of {list(groups.values()).count(group)} {group} sets" for group, sets in of_group.items()]
    note = f"Means of the sets on which all models with a budget were measured, {' and '.join(counts)}, with the mean "
    note += "of the numbers that were used."
    return [*wrapped(note), "", *table([*head, "sets measured"], rows)]


def _wins(done: dict[Any, Line], names: list[str]) -> list[str]:
    """Return sets won, tied and lost by the readable tree within the budget, against each model on the sets of both."""
    rows = []
    for name in names:
        both = [member for model, member in done if model == OURS and (name, member) in done]
        if name == OURS or not READERS[name].is_limited or not both:
            continue
        gaps = np.array([100 * (mean_of(done[OURS, member]) - mean_of(done[name, member])) for member in both])
        won, lost = int((gaps > 0.005).sum()), int((gaps < -0.005).sum())
        worst = [f"{both[k]} ({gaps[k]:+.1f})" for k in np.argsort(gaps, kind="stable")[:3] if gaps[k] < 0]
        cells = [f"{won} / {len(both) - won - lost} / {lost}", f"{gaps.mean():+.2f}", ", ".join(worst) or "none"]
        rows.append([READERS[name].label, str(len(both)), *cells])
    note = (
        f"{READERS[OURS].label} against each other model, on the sets where both were measured; differences in points:"
    )
    return [
        *wrapped(note),
        "",
        *table(["against", "sets", "won / tied / lost", "mean difference", "largest losses"], rows),
    ]


def _agreement(done: dict[Any, Line], names: list[str]) -> list[str]:
    note = "Share of test rows on which the hard path through the decisions, computed from weights and biases and not "
    note += "by `predict`, ends in a leaf whose own function gives the label of `predict`."
    rows = []
    for name in names:
        shares = {member: mean_of(line, "agreement") for (model, member), line in done.items()
                  if model == name and len(line.get("agreement", ())) == len(line["accuracy"])}  # fmt: skip
        if shares:
            lowest = min(shares, key=shares.__getitem__)
            mean = f"{100 * np.mean(list(shares.values())):.2f} %"
            rows.append([READERS[name].label, str(len(shares)), mean, f"{100 * shares[lowest]:.2f} % ({lowest})"])
    return [*wrapped(note), "", *table(["model", "sets", "mean over sets", "lowest"], rows)]


def _by_set(done: dict[Any, Line], names: list[str]) -> list[str]:
    facts = {line["set"]: line for line in done.values()}
    order = sorted(facts, key=lambda name: (GROUPS.index(facts[name]["group"]), facts[name]["rows"], name))
    rows = []
    for member in order:
        cells = {name: _cell(done.get((name, member))) for name in names}
        within = [name for name in names if READERS[name].is_limited and (name, member) in done]
        best = max((round(mean_of(done[name, member]), 4) for name in within), default=None)
        for name in within:
            if round(mean_of(done[name, member]), 4) == best:
                cells[name] = f"**{cells[name].partition(' ')[0]}** {cells[name].partition(' ')[2]}"
        fact = facts[member]
        rows.append([member, f"{fact['rows']:,} x {fact['features']}", fact["classes"], *cells.values()])
    note = (
        "Mean accuracy of the runs, with the mean of the numbers used in brackets; the best within the budget is bold."
    )
    return [*wrapped(note), "", *table(["set", "rows x columns", "classes", *(READERS[n].label for n in names)], rows)]


def _cell(line: Line | None) -> str:
    return "-" if line is None else f"{100 * mean_of(line):.1f} ({mean_of(line, 'numbers'):.0f})"


def _versions(done: dict[Any, Line]) -> str:
    used = {(m["tartree"], m["torch"], m["sklearn"], m["python"]) for m in (line["machine"] for line in done.values())}
    listed = [f"tartree {a}, torch {b}, scikit-learn {c}, Python {d}" for a, b, c, d in sorted(used)]
    return f"Computed with {'; '.join(listed)}." if listed else "Nothing has been measured."
