"""The picture of a Pareto front (extra `plot`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tartree.search.scores import METRICS

if TYPE_CHECKING:
    from tartree.search.structure_search import StructureSearch


def plot_front(search: StructureSearch, *, baselines: Mapping[str, Any] | None = None, ax: Any = None) -> Any:
    """Draw score against size: the front with standard errors, the chosen structure, and other models as lines.

    The axis of the scores is that of the front. Scores far from it are marked at the edge, with an arrow and the score.

    Parameters
    ----------
    search : StructureSearch
        A fitted search.
    baselines : mapping of str to scores of the folds, optional
        As from `baseline_scores`.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import StructureSearch, TartClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> space = {"depth": [0, 1]}
    >>> search = StructureSearch(TartClassifier(epochs=4), space, refit=False, random_state=0).fit(X, y)
    >>> plot_front(search).get_ylabel()
    'accuracy, 4 folds'
    """
    from matplotlib.ticker import LogLocator, NullFormatter

    from tartree.explain.plots.style import BRANCHES, CLASSES, OTHER, QUIET, axes_for, styled

    def draw(ax: Any) -> Any:
        ax = axes_for(ax, 6.8, 4.2)
        measure = search.size
        complete = [trial for trial in search.trials_ if trial["state"] == "complete"]
        front = search.front_
        chosen = search.trials_[search.best_index_]
        means = {name: float(np.mean(scores)) for name, scores in (baselines or {}).items()}
        low, high = _limits([*front, chosen], [*(trial["score"] for trial in complete), *means.values()])
        ax.set_ylim(low, high)
        if complete:
            n_below = sum(trial["score"] < low for trial in complete)  # none is above the front
            ax.plot(
                [trial[measure] for trial in complete], [trial["score"] for trial in complete], "o",
                color=OTHER, markersize=4, alpha=0.6,
                label=f"trained to the end ({n_below} below)" if n_below else "trained to the end",
            )  # fmt: skip
        ax.errorbar(
            [trial[measure] for trial in front], [trial["score"] for trial in front],
            yerr=[trial["error"] for trial in front], fmt="o-", color=CLASSES[0], capsize=3, markersize=6,
            label="front, with standard errors" if complete else "front so far, with standard errors",
        )  # fmt: skip
        ax.plot([chosen[measure]], [chosen["score"]], "*", color=CLASSES[1], markersize=18, label="chosen", zorder=5)
        for index, (name, mean) in enumerate(means.items()):
            colour = BRANCHES[index % len(BRANCHES)]
            if low <= mean <= high:
                ax.axhline(mean, color=colour, linestyle=("--", ":", "-.")[index % 3], label=f"{name}, {mean:.3f}")
                continue
            at, side, arrow = (0.03, "below", "v") if mean < low else (0.97, "above", "^")
            across = (index + 1) / (len(means) + 1)
            ax.plot(
                [across], [at], arrow, color=colour, markersize=7, zorder=6, transform=ax.transAxes,
                label=f"{name}, {mean:.3f} ({side})",
            )  # fmt: skip
            ax.annotate(
                f"{mean:.3f}", (across, at), xycoords="axes fraction", xytext=(6, 0), textcoords="offset points",
                va="center", color=colour, fontsize=8,
            )  # fmt: skip
        ax.set_xscale("log", base=2 if measure == "leaves" else 10)
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
        if measure == "parameters":  # sizes within one power of ten need labels at its multiples
            sizes = [trial[measure] for trial in [*complete, *front, chosen]]
            within = max(sizes) < 10 * min(sizes)
            ax.xaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5) if within else (1,)))
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_xlabel("used leaves" if measure == "leaves" else "parameters")
        ax.set_ylabel(f"{METRICS[search.scoring_].label}, {len(search.splits_)} folds")
        ax.set_title("Score against size")
        ax.tick_params(color=QUIET)
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), markerscale=0.7)  # beside the points
        return ax

    return styled(draw)(ax)


def _limits(front: list[dict[str, Any]], others: list[float]) -> tuple[float, float]:
    """Return the limits of the axis: the front with its standard errors, and other scores within its own height."""
    low = min(trial["score"] - trial["error"] for trial in front)
    high = max(trial["score"] + trial["error"] for trial in front)
    reach = max(high - low, 0.01)
    near = [score for score in others if low - reach <= score <= high + reach]
    low, high = min([low, *near]), max([high, *near])
    margin = 0.08 * max(high - low, 0.01)
    return low - margin, high + margin
