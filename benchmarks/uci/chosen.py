"""What defaults were chosen by: comparisons on held-out training rows, made by `benchmarks/inner.py`."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from uci.models import GROUPS
from uci.results import Line, Results
from uci.scores import mix_means
from uci.words import table

#: The mix of members that became tart-max.
TAKEN = "plain + 8 pieces"
#: Numbers of rows that a table of depths is divided at.
ROWS = (200, 500, 1_000, 3_000)


def members(out: Path) -> str:
    """What the members of tart-max were chosen by."""
    results = Results(out / "tart-max.jsonl")
    means = mix_means(results)
    if TAKEN not in means:
        return ""
    lines = [line for line in results.read().values() if not line["failure"]]
    better = []
    for group in means[TAKEN]:
        own = [line for line in lines if line["group"] == group]
        best = max(means, key=lambda mix: means[mix][group][0])
        if best != TAKEN:
            better.append(f"{group} sets {_gain(own, best, TAKEN)} ({best})")
    failed: dict[str, list[str]] = {}
    for line in results.read().values():
        if line["failure"]:
            failed.setdefault(line["failure"].split(":")[0], []).append(line["set"])
    gaps = "".join(f" Failed by {why}: {', '.join(sorted(names))}." for why, names in failed.items())
    rows = [
        [mix, *(f"{own[group][0]:.2f} ({own[group][1]})" if group in own else "-" for group in GROUPS)]
        for mix, own in means.items()
    ]
    return f"""## What was tried for tart-max

Kinds of members, compared by `python benchmarks/inner.py tart-max` on held-out quarters of the training rows: mean
accuracy in percent, and the number of sets; two members of each kind in each run. `tart-max` has four members that see
features as they are (plain), and four that see them in 8 pieces too: trees of depth 4, leaves of four layers with 100
hidden units. More decay is 1.0 in place of 0.3, more dropout 0.4 in place of 0.15; linear leaves have depth 6 and the
default recipe. Features as they come: within the training rows there is one scale, and the encoder has little to
do.{gaps}

`{TAKEN}` was taken, the best of the mixes that were tried first. What the best of all gains over it, with the standard
error over the sets: {"; ".join(better) or "nothing"}.

{table(["members", *GROUPS], rows)}"""


def depths(out: Path) -> str:
    """What the depth that a tree has by itself was chosen by."""
    lines = [line for line in Results(out / "depth.jsonl").read().values() if not line["failure"]]
    if not lines:
        return ""
    first, *deeper = lines[0]["accuracy"]
    rows = []
    for least, most in pairwise((0, *ROWS, None)):
        own = [line for line in lines if least <= line["rows"] and (most is None or line["rows"] < most)]
        said = f"{least:,} or more" if most is None else f"{least:,} to {most - 1:,}" if least else f"below {most:,}"
        rows.append([said, str(len(own)), *(_gain(own, depth, first) for depth in deeper)])
    return f"""## Depth of a default tree

The default recipe with the estimator's encoder, trained on three quarters of each run's training rows and scored on the
rest (`python benchmarks/inner.py depth`): points gained over {first}, with the standard error over the sets, by how
many rows a tree was trained on. Sixty-four leaves gain a little from 200 rows on and much with many, but sixteen are
easier to read and faster to train. `depth="auto"` is 4 below 1,000 rows and 6 from there on: a convention between the
two, and not an optimum.

{table(["rows", "sets", *deeper], rows)}"""


def _gain(lines: list[Line], depth: str, first: str) -> str:
    """Mean and standard error of what a depth gains over the first one, in points."""
    gains = [100 * (np.mean(line["accuracy"][depth]) - np.mean(line["accuracy"][first])) for line in lines]
    return f"{np.mean(gains):+.2f} ± {np.std(gains, ddof=1) / len(gains) ** 0.5:.2f}" if len(gains) > 1 else "-"
