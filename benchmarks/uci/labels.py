"""Labels and cells that the pages of the study share."""

from __future__ import annotations

from toolkit.markdown import table

from uci import models
from uci.baselines import BASELINES
from uci.models import ALIASES
from uci.scores import Scores

MODELS = {**models.TREES, **BASELINES}
PAPER_NAMES = {name: alias.upper() for alias, name in ALIASES.items()}
CLOSE = 0.7  # points: larger differences are bold


def difference(points: float) -> str:
    return f"**{points:+.2f}**" if abs(points) > CLOSE else f"{round(points, 1) + 0.0:+.1f}"


def cell(scores: Scores, name: str, group: str) -> str:
    mean = scores.mean(name, group)
    if mean is not None:
        return f"{mean.value:.1f} ± {mean.deviation:.1f}"
    done = len(scores.group(group)) - len(scores.missing(name, group))
    return f"- ({done} of {len(scores.group(group))} sets)" if done else "-"


def label(name: str, whole: bool = False) -> str:
    """Return the name of a model on a page; `whole` adds the structure of TART-A, B and C."""
    structure = MODELS[name].label if name in MODELS else name
    if name not in PAPER_NAMES:
        return structure
    return f"{PAPER_NAMES[name]} ({structure})" if whole else PAPER_NAMES[name]


def table_text(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join(table(head, rows))
