"""Average ranks over sets, Friedman's test, and the plot of critical differences (Demsar, JMLR 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

LEVEL = 0.05


@dataclass(frozen=True)
class Ranks:
    """Mean rank of each model, best first; ranks closer than `critical` do not differ at the level of 0.05."""

    models: list[str]
    means: NDArray[Any]  # (models,)
    critical: float
    statistic: float
    p_value: float
    n_sets: int


def rank(models: list[str], accuracy: NDArray[Any]) -> Ranks:
    """Compute ranks from accuracies, (models, sets); ties share the mean of their ranks.

    >>> ranks = rank(["a", "b", "c"], np.array([[1.0, 2.0, 3.0], [0.0, 2.0, 2.0], [0.5, 1.0, 1.0]]))
    >>> ranks.models, ranks.means.round(2).tolist()
    (['a', 'b', 'c'], [1.17, 2.17, 2.67])
    """
    n_models, n_sets = accuracy.shape
    if n_models < 3 or n_sets < 2:
        raise ValueError(f"ranks need at least three models and two sets, got {n_models} and {n_sets}")
    # Equal accuracies may differ in their last digit by the order of summation.
    means = stats.rankdata(-accuracy.round(6), axis=0).mean(1)
    statistic, p_value = stats.friedmanchisquare(*accuracy.round(6))
    order = np.argsort(means, kind="stable")
    return Ranks(
        [models[i] for i in order],
        means[order],
        critical_difference(n_models, n_sets),
        float(statistic),
        float(p_value),
        n_sets,
    )


def critical_difference(n_models: int, n_sets: int) -> float:
    """Return Nemenyi's critical difference: mean ranks further apart differ.

    >>> round(critical_difference(4, 24), 2)  # Demsar has 2.569 * sqrt(4 * 5 / (6 * 24))
    0.96
    """
    quantile = stats.studentized_range.ppf(1 - LEVEL, n_models, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(n_models * (n_models + 1) / (6 * n_sets)))


def groups(ranks: Ranks) -> list[tuple[int, int]]:
    """Return first and last of each maximal series of models that do not differ."""
    series: list[tuple[int, int]] = []
    for first in range(len(ranks.models)):
        last = int(np.flatnonzero(ranks.means - ranks.means[first] <= ranks.critical)[-1])
        if last > first and not any(last <= other for _, other in series):
            series.append((first, last))
    return series


def draw(ranks: Ranks, labels: list[str], path: Path) -> None:
    """Draw an axis of ranks, a line to each model, and bars over models that do not differ."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    n = len(labels)
    half, bars = (n + 1) // 2, groups(ranks)
    step, top = 0.3, 0.45 + 0.16 * len(bars)
    low, high = np.floor(ranks.means[0]), np.ceil(ranks.means[-1])
    width = high - low
    height = top + step * half + 0.9
    figure, axes = plt.subplots(figsize=(9, height), layout="constrained")
    axes.set(xlim=(low - 0.45 * width, high + 0.45 * width), ylim=(top + step * half + 0.2, -0.7))
    axes.axis("off")
    axes.plot([low, high], [0, 0], color="black", lw=1)
    for tick in np.arange(low, high + 1):
        axes.plot([tick, tick], [0, -0.08], color="black", lw=1)
        axes.text(tick, -0.13, f"{tick:.0f}", ha="center", va="bottom", fontsize=9)
    for i, (label, mean) in enumerate(zip(labels, ranks.means, strict=True)):
        left = i < half
        y = top + step * (i if left else n - 1 - i)
        edge = low - 0.03 * width if left else high + 0.03 * width
        axes.plot([mean, mean, edge], [0, y, y], color="#555555", lw=0.8)
        text = f"{label}  {mean:.2f}" if left else f"{mean:.2f}  {label}"
        axes.text(edge, y, f" {text} ", ha="right" if left else "left", va="center", fontsize=9)
    for i, (first, last) in enumerate(bars):
        y = 0.2 + 0.16 * i
        ends = [ranks.means[first] - 0.01 * width, ranks.means[last] + 0.01 * width]
        axes.plot(ends, [y, y], color="#b03a2e", lw=3, solid_capstyle="round")
    axes.plot([low, low + ranks.critical], [-0.5, -0.5], color="#b03a2e", lw=2)
    axes.text(low + ranks.critical, -0.5, f"  critical difference {ranks.critical:.2f}", va="center", fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)
