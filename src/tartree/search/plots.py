"""The picture of a front (extra `plot`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

METRICS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "neg_log_loss": "log likelihood",
    "r2": "R2",
}


def plot_front(search: Any, *, baselines: Mapping[str, Any] | None = None, ax: Any = None) -> Any:
    """Draw score against size: the front with standard errors, the chosen structure, and other models as lines.

    Parameters
    ----------
    search : fitted StructureSearch
    baselines : mapping of name to scores of the folds, optional
        What `baseline_scores` gives.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    from matplotlib.ticker import LogLocator, NullFormatter

    from tartree.explain.plots.style import BRANCHES, CLASSES, OTHER, QUIET, axes_for, styled

    def draw(ax: Any) -> Any:
        ax = axes_for(ax, 6.8, 4.2)
        measure = search.size
        complete = [trial for trial in search.trials_ if trial["state"] == "complete"]
        if complete:
            ax.plot(
                [trial[measure] for trial in complete], [trial["score"] for trial in complete], "o",
                color=OTHER, markersize=4, alpha=0.6, label="trained to the end",
            )  # fmt: skip
        front = search.front_
        ax.errorbar(
            [trial[measure] for trial in front], [trial["score"] for trial in front],
            yerr=[trial["error"] for trial in front], fmt="o-", color=CLASSES[0], capsize=3, markersize=6,
            label="front, with standard errors" if complete else "front so far, with standard errors",
        )  # fmt: skip
        chosen = search.trials_[search.best_index_]
        ax.plot([chosen[measure]], [chosen["score"]], "*", color=CLASSES[1], markersize=18, label="chosen", zorder=5)
        for place, (name, scores) in enumerate((baselines or {}).items()):
            mean = float(np.mean(scores))
            colour = BRANCHES[place % len(BRANCHES)]
            ax.axhline(mean, color=colour, linestyle=("--", ":", "-.")[place % 3], label=f"{name}, {mean:.3f}")
        ax.set_xscale("log", base=2 if measure == "leaves" else 10)
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
        if measure == "parameters":  # within one power of ten there may be no label: then at some multiples of it
            sizes = [trial[measure] for trial in [*complete, *front, chosen]]
            within = max(sizes) < 10 * min(sizes)
            ax.xaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5) if within else (1,)))
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_xlabel("leaves that are used" if measure == "leaves" else "parameters")
        ax.set_ylabel(f"{METRICS[search.scoring_]}, {len(search.splits_)} folds")
        ax.set_title("Score against size")
        ax.tick_params(color=QUIET)
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), markerscale=0.7)  # beside the points, not among them
        return ax

    return styled(draw)(ax)
