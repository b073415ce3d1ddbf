"""Differences between our means and the published ones, and their possible causes."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from uci.baselines import BASELINES, Baseline
from uci.labels import CLOSE, MODELS, cell, difference, label, table_text
from uci.models import GROUPS
from uci.results import Results
from uci.scores import LACKING, Scores

FAR = 5  # points
#: A binary tree, a single node with about as many leaves, and both numbers of leaves.
AS_MANY = [("D2-L2-single", "D1-L2-W3-single", "4, 3"), ("D4-L2-single", "D1-L2-W15-single", "16, 15")]


def missing_set(scores: Scores) -> str:
    """Return the accuracy on the missing large set that would explain each difference."""
    if LACKING in scores.sets:
        return ""
    n_sets, rows, implied = len(scores.group("large")), [], {}
    for name, model in MODELS.items():
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
    sentences = [f"For the models whose large group agrees to {CLOSE} points it is from {low:.1f} to {high:.1f}."]
    if inside:
        sentences.append(f"It is in this range for {'; '.join(inside)}: this set can explain the whole difference.")
    if outside:
        sentences.append(f"It is outside for {'; '.join(outside)}: this set cannot explain the difference.")
    return f"""The accuracy on MiniBooNE, a set of two classes, that would make both means of the large group agree.
{" ".join(sentences)}

{table_text(["model", "difference", "MiniBooNE"], rows)}"""


def as_many_leaves(scores: Scores) -> str:
    """Return a comparison of binary trees and single nodes with about as many leaves, published and ours."""
    rows = []
    for binary, node, n_leaves in AS_MANY:
        for number, group in enumerate(GROUPS):
            first, second = scores.mean(binary, group), scores.mean(node, group)
            published = MODELS[binary].published[number], MODELS[node].published[number]
            if first is None or second is None or None in published:
                continue
            cells = []
            for of_tree, of_node in (published, (round(first.value, 1), round(second.value, 1))):
                cells.append(f"{of_tree:.1f}, {of_node:.1f} ({of_node - of_tree:+.1f})")
            rows.append([n_leaves, group, *cells])
    if not rows:
        return ""
    return f"""Do the published means of binary trees with L 2 agree with other rows of the paper? A binary tree and a
single node with about as many leaves have the same perceptrons as leaves, and differ only in their decisions.

{table_text(["leaves of the binary tree, of the node", "group", "published: binary, node", "ours"], rows)}"""


def by_chance(scores: Scores) -> str:
    """Return how many large differences are expected between two means of four runs."""
    parts = []
    for number, group in enumerate(GROUPS):
        expected, observed, cells = 0.0, 0, 0
        for name, model in MODELS.items():
            mean, published = scores.mean(name, group), model.published[number]
            if mean is None or published is None or isinstance(model, Baseline):
                continue
            cells += 1
            observed += abs(mean.value - published) > CLOSE
            # Standard deviation of a difference of two means of four runs; `deviation` divides by 4, not 3.
            deviation = mean.deviation * (4 / 3) ** 0.5 * (2 / 4) ** 0.5
            expected += math.erfc(CLOSE / deviation / 2**0.5) if deviation else 0.0
        if cells:
            parts.append(f"{group}: {expected:.1f} of {cells} expected, {observed} observed")
    return (
        f"""Two means of four runs also differ by chance. With independent runs, and the
deviation in the tables, this many models would differ by more than {CLOSE} points (without those of other libraries):
{"; ".join(parts)}."""
        if parts
        else ""
    )


def other_seeds(scores: Scores, out: Path) -> str:
    """Return results of other seeds for groups that differ."""
    others = [Scores(Results(path).read(), scores.sets) for path in sorted(out.glob("seed-*.jsonl"))]
    rows = []
    for name, model in MODELS.items():
        for group, published in zip(GROUPS, model.published, strict=True):
            means = [mean.value for run in (scores, *others) if (mean := run.mean(name, group)) is not None]
            if published is None or len(means) < 2 or abs(means[0] - published) <= CLOSE:
                continue
            by_seed = ", ".join(f"{value:.1f}" for value in means)
            rows.append(
                [label(name, whole=True), group, f"{published:.1f}", by_seed, f"{np.mean(means) - published:+.2f}"]
            )
    if not rows:
        return ""
    return f"""The same with other seeds for weights, dropout and the order of rows. They were run only where the
first seed differed, which biases the mean of both towards the published one.

{table_text(["model", "group", "published", "ours, by seed", "difference of their mean"], rows)}"""


def too_deep(scores: Scores) -> str:
    """Return the sets on which sixteen layers are far below eight, because they were hardly trained."""
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
    return f"""MLP-16 has sixteen plain layers without normalisation or shortcuts, and on some sets its training hardly
makes progress. That depends on the initialisation. The paper names He's initialisation without the variant (here:
normal, by the number of inputs, biases 0); the second table compares it with that of torch.

{table_text(["group", "points below MLP-8", "due to these sets", f"sets more than {FAR} points below MLP-8"], rows)}

{table_text(["model", *GROUPS], starts)}"""


def weak_baselines(scores: Scores) -> str:
    """Return where baselines that differ from their reference in the large group are far below a decision tree."""
    sentences = []
    for name, baseline in BASELINES.items():
        mean, reference = scores.mean(name, "large"), baseline.reference[0]
        if mean is None or reference is None or abs(mean.value - reference) <= CLOSE or not scores.has("DT", "large"):
            continue
        sets = scores.group("large")
        below = scores.by_set("DT", sets) - scores.by_set(name, sets)
        far = [f"{member} ({points:.0f} points)" for member, points in zip(sets, below, strict=True) if points > FAR]
        sentences.append(
            f"{baseline.label} is far below a decision tree on {', '.join(far) or 'none of the large sets'}."
        )
    return "\n\n" + " ".join(sentences) if sentences else ""
