"""Sparklines: small curves and bars of what a column adds, in a box of a canvas."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tartree.explain.plots.canvas import Box, Canvas
from tartree.explain.plots.style import INK, LINE, TRACK
from tartree.explain.text.column_effects import ColumnEffect

#: Levels of a sparkline, at most.
MOST_LEVELS = 12


def usual_size(effect: ColumnEffect) -> float:
    """Return the largest amount of an effect, without those at the ends of a curve, where few rows are."""
    amounts = [part for _, part in effect.points]
    inner = amounts[1:-1] if len(amounts) > 2 else amounts
    others = [part for _, part in effect.levels] + ([] if effect.missing is None else [effect.missing])
    return max(map(abs, [*inner, *others, 0.0]))


def draw_sparkline(
    canvas: Canvas,
    box: Box,
    effects: Sequence[ColumnEffect],
    colours: Sequence[tuple[str, str]],
    full: float,
    strong: float = 1.0,
) -> None:
    """Draw effects of one column, each with the colours of its negative and positive amounts.

    Points of a curve stand side by side at equal distances, so that each part of it has about as many rows; levels
    are bars, and a missing value is a point on the right.

    Parameters
    ----------
    canvas : Canvas
    box : Box
    effects : sequence of ColumnEffect
        One for each function.
    colours : sequence of (str, str)
    full : float
        The amount that is half as high as the box.
    strong : float, default=1.0
        Opacity.
    """
    canvas.rectangle(box, TRACK, alpha=0.6 * strong)
    middle, half = box.top + box.height / 2, box.height / 2
    canvas.rectangle((box.left, middle - 0.3, box.width, 0.6), LINE)
    is_missing = any(effect.missing is not None for effect in effects)
    width = box.width - (9 if is_missing and effects[0].kind == "curve" else 0)
    for effect, (negative, positive) in zip(effects, colours, strict=True):
        if effect.kind == "levels":
            missing = [] if effect.missing is None else [effect.missing]
            amounts = [part for _, part in effect.levels][: MOST_LEVELS - len(missing)] + missing
            each = width / max(1, len(amounts)) / len(effects)
            shift = effects.index(effect)
            for k, part in enumerate(amounts):
                left = box.left + (k * len(effects) + shift) * each
                bar = (left + each * 0.1, middle, each * 0.8, -half * min(max(part / full, -1.0), 1.0))
                canvas.rectangle(bar, positive if part > 0 else negative, alpha=strong)
            continue
        if effect.points:
            x = box.left + width * np.linspace(0, 1, len(effect.points))
            parts = np.array([part for _, part in effect.points])
            y = middle - half * np.clip(parts / full, -1.0, 1.0)
            if len(effects) == 1:
                style = {"interpolate": True, "linewidth": 0, "alpha": 0.45 * strong}
                canvas.ax.fill_between(x, y, middle, where=parts >= 0, color=positive, **style)
                canvas.ax.fill_between(x, y, middle, where=parts <= 0, color=negative, **style)
            colour = INK if len(effects) == 1 else positive
            canvas.ax.plot(x, y, color=colour, linewidth=1.1 * canvas.scale, alpha=strong, solid_capstyle="butt")
        if effect.missing is not None:
            colour = positive if effect.missing > 0 else negative
            y_missing = middle - half * min(max(effect.missing / full, -1.0), 1.0)
            size = 3.5 * canvas.scale
            canvas.ax.plot([box.left + box.width - 4], [y_missing], "D", color=colour, markersize=size, alpha=strong)
