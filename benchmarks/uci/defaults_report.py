"""Comparisons on held-out training rows that defaults were chosen by, made by `benchmarks/defaults.py`."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from uci.labels import table_text
from uci.models import GROUPS
from uci.results import Line, Results
from uci.scores import mix_means

#: The mix of members that became tart-max.
CHOSEN = "plain + 8 pieces"
#: Bounds of the numbers of rows in the table of depths.
ROWS = (200, 500, 1_000, 3_000)


def members(out: Path) -> str:
    """Return the section about the members of tart-max."""
    results = Results(out / "tart-max.jsonl")
    means = mix_means(results)
    if CHOSEN not in means:
        return ""
    lines = [line for line in results.read().values() if not line["failure"]]
    better = []
    for group in means[CHOSEN]:
        of_group = [line for line in lines if line["group"] == group]
        best = max(means, key=lambda mix: means[mix][group][0])
        if best != CHOSEN:
            better.append(f"{group} sets {_gain(of_group, best, CHOSEN)} ({_label(best)})")
    failed: dict[str, list[str]] = {}
    for line in results.read().values():
        if line["failure"]:
            failed.setdefault(line["failure"].split(":")[0], []).append(line["set"])
    failures = "".join(f" Failed with {reason}: {', '.join(sorted(names))}." for reason, names in failed.items())
    rows = [
        [_label(mix), *(f"{groups[group][0]:.2f} ({groups[group][1]})" if group in groups else "-" for group in GROUPS)]
        for mix, groups in means.items()
    ]
    return f"""## Choice of the members of tart-max

Kinds of members, compared by `python benchmarks/defaults.py tart-max` on held-out quarters of the training rows: mean
accuracy in percent, and in brackets the number of sets; two members of each kind in each run. `tart-max` has four
members that see each feature once (plain), and four that also see it in 8 piecewise-linear bins: trees of depth 4,
leaves of four layers with 100 hidden units. *More decay* is 1.0 instead of 0.3, *more dropout* 0.4 instead of 0.15;
*linear leaves* have depth 6 and the default recipe. Features are not encoded: all training rows are on the same scale,
so that the encoder would change little.{failures}

`{_label(CHOSEN)}` was chosen, the best of the mixes that were tried first. Gain of the best mix over it, with the
standard error over the sets: {"; ".join(better) or "none"}.

{table_text(["members", *GROUPS], rows)}"""


def _label(mix: str) -> str:
    """Return a mix in the words of the page; records call the bins pieces."""
    return mix.replace("pieces", "bins")


def depths(out: Path) -> str:
    """Return the section about the default depth."""
    lines = [line for line in Results(out / "depth.jsonl").read().values() if not line["failure"]]
    if not lines:
        return ""
    first, *deeper = lines[0]["accuracy"]
    rows = []
    for least, most in pairwise((0, *ROWS, None)):
        between = [line for line in lines if least <= line["rows"] and (most is None or line["rows"] < most)]
        bounds = f"{least:,} or more" if most is None else f"{least:,} to {most - 1:,}" if least else f"below {most:,}"
        rows.append([bounds, str(len(between)), *(_gain(between, depth, first) for depth in deeper)])
    return f"""## Depth of a tree without `readable`

The default recipe with the estimator's encoder, trained on three quarters of each run's training rows and scored on the
rest (`python benchmarks/defaults.py depth`): gain over {first} in points, with the standard error over the sets, by
the number of training rows. Sixty-four leaves gain a little from 200 rows on and much with many rows, but sixteen are
faster to train. With `readable=False`, `depth="auto"` is 4 below 1,000 rows and 6 from 1,000 on: a compromise between
the two, not an optimum.

{table_text(["rows", "sets", *deeper], rows)}"""


def _gain(lines: list[Line], variant: str, base: str) -> str:
    """Return mean and standard error of the gain of one variant over another, in points."""
    gains = [100 * (np.mean(line["accuracy"][variant]) - np.mean(line["accuracy"][base])) for line in lines]
    return f"{np.mean(gains):+.2f} ± {np.std(gains, ddof=1) / len(gains) ** 0.5:.2f}" if len(gains) > 1 else "-"
