"""Where our means differ from the published ones, and what a reader can check about it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from uci.baselines import BASELINES, Baseline
from uci.models import GROUPS
from uci.results import Results
from uci.scores import LACKING, Scores
from uci.words import CLOSE, KNOWN, cell, difference, label, table

FAR = 5  # points
#: A binary tree, one node with about as many leaves, and how many these are.
AS_MANY = [("D2-L2-single", "D1-L2-W3-single", "4, 3"), ("D4-L2-single", "D1-L2-W15-single", "16, 15")]


def without_one(scores: Scores) -> str:
    """What the one large set that we lack would have to give, and which differences it can explain."""
    if LACKING in scores.sets:
        return ""
    n_sets, rows, implied = len(scores.group("large")), [], {}
    for name, model in KNOWN.items():
        mean, published = scores.mean(name, "large"), model.published[0]
        if mean is not None and published is not None:
            implied[name] = (n_sets + 1) * published - n_sets * mean.value
            rows.append([label(name), difference(mean.value - published), f"{implied[name]:.1f}"])
    close = [implied[name] for name, row in zip(implied, rows, strict=True) if "**" not in row[1]]
    if len(close) in (0, len(rows)):
        return ""
    low, high = min(close), max(close)
    far = [name for name, row in zip(implied, rows, strict=True) if "**" in row[1]]
    inside = [label(name) for name in far if low <= implied[name] <= high]
    outside = [label(name) for name in far if not low <= implied[name] <= high]
    said = [f"Of the models whose large group agrees to 0.7 points it is from {low:.1f} to {high:.1f}."]
    if inside:
        said.append(f"It is in this range for {'; '.join(inside)}: there the one set can be all the difference.")
    if outside:
        said.append(f"It is outside for {'; '.join(outside)}: there it cannot.")
    return f"""The accuracy on MiniBooNE, a set of two classes, that would make both means of the large group agree.
{" ".join(said)}

{table(["model", "difference", "MiniBooNE"], rows)}"""


def as_many_leaves(scores: Scores) -> str:
    """Trees of two levels and of one with about as many leaves: do the published rows agree with each other?"""
    rows = []
    for binary, node, n_leaves in AS_MANY:
        for group, place in zip(GROUPS, range(3), strict=True):
            first, second = scores.mean(binary, group), scores.mean(node, group)
            published = KNOWN[binary].published[place], KNOWN[node].published[place]
            if first is None or second is None or None in published:
                continue
            cells = []
            for one, other in (published, (round(first.value, 1), round(second.value, 1))):
                cells.append(f"{one:.1f}, {other:.1f} ({other - one:+.1f})")
            rows.append([n_leaves, group, *cells])
    if not rows:
        return ""
    return f"""Do the published L 2 of binary trees agree with other rows of the paper? A binary tree and a single node
with about as many leaves have the same perceptrons in them, and differ in nothing but how they are reached.

{table(["leaves of the binary tree, of one node", "group", "published: binary, one node", "ours"], rows)}"""


def by_chance(scores: Scores) -> str:
    """How many differences above 0.7 points are to be expected between two means of four runs."""
    parts = []
    for group, place in zip(GROUPS, range(3), strict=True):
        expected, found, cells = 0.0, 0, 0
        for name, model in KNOWN.items():
            mean, published = scores.mean(name, group), model.published[place]
            if mean is None or published is None or isinstance(model, Baseline):
                continue
            cells += 1
            found += abs(mean.value - published) > CLOSE
            # Of a difference of two means of four runs, from the deviation of four (which is by 4, and not by 3).
            deviation = mean.deviation * (4 / 3) ** 0.5 * (2 / 4) ** 0.5
            expected += math.erfc(CLOSE / deviation / 2**0.5) if deviation else 0.0
        if cells:
            parts.append(f"{group}: {expected:.1f} of {cells} expected, {found} found")
    return (
        f"""Two means of four runs differ by chance, too. If each run were drawn anew, with the deviation that the
tables show, so many models would differ by more than 0.7 points (learnt ones, without those of other libraries):
{"; ".join(parts)}."""
        if parts
        else ""
    )


def other_seeds(scores: Scores, out: Path) -> str:
    """What other seeds give, where a group differs: how much of a difference is chance."""
    others = [Scores(Results(path).read(), scores.sets) for path in sorted(out.glob("seed-*.jsonl"))]
    rows = []
    for name, model in KNOWN.items():
        for group, published in zip(GROUPS, model.published, strict=True):
            means = [mean.value for one in (scores, *others) if (mean := one.mean(name, group)) is not None]
            if published is None or len(means) < 2 or abs(means[0] - published) <= CLOSE:
                continue
            said = ", ".join(f"{value:.1f}" for value in means)
            rows.append(
                [label(name, whole=True), group, f"{published:.1f}", said, f"{np.mean(means) - published:+.2f}"]
            )
    if not rows:
        return ""
    return f"""The same with other seeds, for weights, dropout and the order of rows. They were run only where the
first one differed, which by itself draws the mean of both towards the published one.

{table(["model", "group", "published", "ours, seed by seed", "difference of their mean"], rows)}"""


def too_deep(scores: Scores) -> str:
    """Where sixteen layers fall far behind eight: they have not been learnt there."""
    rows = []
    for group in GROUPS:
        sets = scores.group(group)
        if not scores.has("mlp-16", group) or not scores.has("mlp-8", group):
            continue
        below = scores.by_set("mlp-8", sets) - scores.by_set("mlp-16", sets)
        far = [f"{name} {points:.0f}" for name, points in zip(sets, below, strict=True) if points > FAR]
        cost = below[below > FAR].sum() / len(sets)
        rows.append([group, f"{below.mean():.1f}", f"{cost:.1f}", ", ".join(far) or "none"])
    if not rows:
        return ""
    starts = [[label(name), *(cell(scores, name, group) for group in GROUPS)] for name in ("mlp-16", "sixteen-layers")]
    return f"""MLP-16 has sixteen plain layers without normalisation or shortcuts, and on some sets it is hardly learnt.
How far it comes depends on how weights are drawn. The paper says He's initialisation, not of which kind (here: normal,
by the number of inputs, biases 0); the second table shows what another start does to the means.

{table(["group", "points below MLP-8", "by the sets named", f"sets more than {FAR} points below MLP-8"], rows)}

{table(["model", *GROUPS], starts)}"""


def not_learnt(scores: Scores) -> str:
    """Where baselines that differ from their reference in the large group are far below a decision tree."""
    found = []
    for name, one in BASELINES.items():
        mean, reference = scores.mean(name, "large"), one.reference[0]
        if mean is None or reference is None or abs(mean.value - reference) <= CLOSE or not scores.has("DT", "large"):
            continue
        sets = scores.group("large")
        below = scores.by_set("DT", sets) - scores.by_set(name, sets)
        far = [f"{own} ({points:.0f} points)" for own, points in zip(sets, below, strict=True) if points > FAR]
        found.append(f"{one.label} is far below a decision tree on {', '.join(far) or 'none of the large sets'}.")
    return "\n\n" + " ".join(found) if found else ""
