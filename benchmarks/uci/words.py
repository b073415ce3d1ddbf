"""Words that the pages of the study share: names of models, cells and tables."""

from __future__ import annotations

from collections.abc import Sequence

from uci import models
from uci.baselines import BASELINES
from uci.models import ALIASES
from uci.scores import Scores

KNOWN = {**models.TREES, **BASELINES}
LETTERS = {name: letter for letter, name in ALIASES.items()}
CLOSE = 0.7  # points: what differs by more is bold


def difference(points: float) -> str:
    return f"**{points:+.2f}**" if abs(points) > CLOSE else f"{round(points, 1) + 0.0:+.1f}"


def cell(scores: Scores, name: str, group: str) -> str:
    mean = scores.mean(name, group)
    if mean is not None:
        return f"{mean.value:.1f} ± {mean.deviation:.1f}"
    done = len(scores.group(group)) - len(scores.missing(name, group))
    return f"- ({done} of {len(scores.group(group))} sets)" if done else "-"


def label(name: str, whole: bool = False) -> str:
    """What a reader calls a model; `whole` says what a letter stands for."""
    label = KNOWN[name].label if name in KNOWN else name
    if name not in LETTERS:
        return label
    return f"TART-{LETTERS[name]} ({label})" if whole else f"TART-{LETTERS[name]}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
