"""Lines of curve panels: the curves of all rows or of classes, and what nodes change of them, each with its colour."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tartree.explain.plots.shown_values import shown_range, values_of
from tartree.explain.plots.style import BRANCHES, INK, class_colours, plain
from tartree.explain.text.column_effects import MISSING, ColumnEffect
from tartree.explain.tree_view.path_sums import path_conditions, path_sum, path_to
from tartree.explain.tree_view.views import CorrectionView, TreeView

FloatArray = NDArray[np.float64]
#: Nodes whose corrections are drawn, at most; a panel with more lines cannot be read.
MOST_NODES = 5
#: Changes below this share of the height of a panel are not drawn.
VISIBLE = 0.015


@dataclass(frozen=True)
class Series:
    """A line in all panels: a name, a colour, and effects by column."""

    name: str
    colour: str
    effects: dict[int, ColumnEffect]
    is_main: bool
    node: int = 0


def make_lines(
    tree: TreeView,
    member: int,
    corrections: tuple[tuple[CorrectionView, ...], ...],
    chosen: list[int],
    arrivals: FloatArray,
) -> tuple[list[Series], int]:
    """Return the lines to draw, and the number of nodes that change something."""
    if len(chosen) > 1:
        colours = class_colours(len(tree.outputs))
        names = tree.outputs
        effects = [path_sum(corrections, [0], k)[0] for k in chosen]
        changing = sum(
            any(f.n_effects for f in functions) and arrivals[number] > 0
            for number, functions in enumerate(corrections)
            if number
        )
        series = [Series(plain(names[k]), colours[k], effects[k], is_main=True) for k in chosen]
        return series, changing
    (function,) = chosen
    series = [Series("all rows", INK, path_sum(corrections, [0], function)[0], is_main=True)]
    changes = {
        number: math.sqrt(arrivals[number] * sum(effect.strength**2 for effect in functions[function].effects))
        for number, functions in enumerate(corrections)
        if number and functions[function].n_effects and arrivals[number] > 0
    }
    for number in sorted(changes, key=lambda number: -changes[number]):
        total = path_sum(corrections, path_to(tree, number), function)[0]
        own = {effect.column for effect in corrections[number][function].effects}
        name = f"where {' and '.join(conditions)}" if (conditions := path_conditions(tree, member, number)) else ""
        name = name or f"at node {number} and below"
        series.append(Series(name, INK, {k: e for k, e in total.items() if k in own}, is_main=False, node=number))
    return series, len(changes)


def visible_lines(tree: TreeView, series: list[Series], shown: list[int], rows: FloatArray | None) -> list[Series]:
    """Return the lines that differ from that of all rows in some panel, each with its colour."""
    main = [line for line in series if line.is_main]
    amounts = [
        part for line in main for k in shown if k in line.effects for part in shown_amounts(tree, line.effects[k], rows)
    ]
    span = float(np.ptp([*amounts, 0.0])) or 1.0
    visible: list[Series] = []
    for line in series[len(main) :]:
        effects = {
            k: effect
            for k, effect in line.effects.items()
            if k in shown and (k not in main[0].effects or _difference(effect, main[0].effects[k]) > VISIBLE * span)
        }
        if effects and len(visible) < MOST_NODES:
            visible.append(replace(line, effects=effects))
    visible.sort(key=lambda line: line.node)
    return [*main, *(replace(line, colour=colour) for line, colour in zip(visible, BRANCHES, strict=False))]


def strongest_columns(series: list[Series]) -> list[int]:
    strength: dict[int, float] = {}
    for line in series:
        for column, effect in line.effects.items():
            strength[column] = max(strength.get(column, 0.0), effect.strength)
    return sorted(strength, key=lambda column: -strength[column])


def _difference(effect: ColumnEffect, main: ColumnEffect) -> float:
    """Return the largest distance between two effects."""
    differences = [abs((effect.missing or 0.0) - (main.missing or 0.0))]
    if effect.points and main.points:
        x = np.array([x for x, _ in effect.points])
        differences += np.abs([p for _, p in effect.points] - np.interp(x, *np.array(main.points).T)).tolist()
    elif effect.points or main.points:
        differences.append(max(effect.size, main.size))
    levels = dict(main.levels)
    differences += [abs(part - levels.get(level, 0.0)) for level, part in effect.levels]
    return max(differences)


def shown_amounts(tree: TreeView, effect: ColumnEffect, rows: FloatArray | None) -> list[float]:
    """Return the amounts of an effect that a panel shows."""
    parts = [part for _, part in effect.levels] + ([] if effect.missing is None else [effect.missing])
    if effect.points:
        low, high = shown_range(tree, effect.column, values_of(tree, effect.column, rows)[0])
        x, amounts = np.array(effect.points).T
        parts += [*amounts[(x > low) & (x < high)].tolist(), *np.interp([low, high], x, amounts).tolist()]
    return parts


def level_amounts(effect: ColumnEffect) -> dict[str, float]:
    return dict(effect.levels) | ({} if effect.missing is None else {MISSING: effect.missing})


def level_names(series: list[Series], column: int) -> list[str]:
    """Return the levels of a column that lines have amounts of, the missing value last; none for numbers."""
    effects = [line.effects[column] for line in series if column in line.effects]
    if not effects or effects[0].kind != "levels":
        return []
    names = list(dict.fromkeys(level for effect in effects for level in level_amounts(effect)))
    return sorted(names, key=lambda level: level == MISSING)
