"""Curves of a readable model: a panel for each column, with what the column adds and where the rows are."""

from __future__ import annotations

import math
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from tartree.checks import check_integer
from tartree.explain.arguments import check_index
from tartree.explain.plots.curve_lines import (
    Series,
    level_amounts,
    level_names,
    make_lines,
    shown_amounts,
    strongest_columns,
    visible_lines,
)
from tartree.explain.plots.shown_values import SHOWN_ROWS, level_shares, shown_range, values_of
from tartree.explain.plots.style import (
    LINE,
    PAGE,
    QUIET,
    TRACK,
    fit,
    percent,
    plain,
    styled,
    text_width,
)
from tartree.explain.text.column_effects import MISSING, ColumnEffect
from tartree.explain.text.number_text import format_rounded
from tartree.explain.tree_view.assembly import node_data, view
from tartree.explain.tree_view.node_corrections import obstacle
from tartree.explain.tree_view.views import CorrectionView, TreeView
from tartree.model import FittedModel, HasModel, fitted_model
from tartree.table.quantities import QUANTITIES

FloatArray = NDArray[np.float64]
#: Size of a panel with its title, and height of a title and of a line of the legend, in inches.
PANEL_WIDTH, PANEL_HEIGHT, TITLE, LEGEND_LINE = 2.9, 1.8, 0.28, 0.19
ACROSS = 4
#: Levels of a panel, at most.
MOST_LEVELS = 8
#: Height of the density of the rows, as a share of a panel.
DENSITY = 0.16
BINS = 32


@styled
def plot_curves(
    estimator: FittedModel | HasModel,
    X: Any = None,
    *,
    member: int = 0,
    output: int | None = None,
    max_columns: int = 12,
    title: str | None = None,
) -> Any:
    """Draw what each column adds to the prediction of a readable model: a panel a column, the strongest first.

    Numbers are curves in original units, levels are bars, and missing values a point of their own. Coloured lines are
    the curves of rows below a node that changes them. Grey bars at the bottom show where the rows are.

    Parameters
    ----------
    estimator : fitted estimator or FittedModel
        Its leaves must be linear and share terms, as those of `TartClassifier(readable=True)`.
    X : table, optional
        Rows whose values are shown; by default the training rows that the model keeps until it is saved.
    member : int, default=0
        Index of the tree, if the model has several.
    output : int, optional
        Index of the class, if there are more than two, or of the target. By default the curves of all classes are
        drawn, without what nodes change, and those of the first target.
    max_columns : int, default=12
        Maximum number of panels; the other columns are counted.
    title : str, optional
        Text above the picture, instead of the default one.

    Returns
    -------
    matplotlib Figure
        The figure, with axes for each panel.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier
    >>> from tartree.explain import plots
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TartClassifier(readable=True, depth=1, epochs=5, random_state=0).fit(X, y)
    >>> len(plots.plot_curves(model, max_columns=3).axes)
    3
    """
    check_integer("max_columns", max_columns, 1)
    model = fitted_model(estimator)
    tree = view(model, max_terms=max(1, len(model.encoder.features_)))
    check_index("member", member, len(tree.members))
    corrections = tree.members[member].corrections
    if corrections is None:
        reason = obstacle(model.tree) or (
            f"a row must take one path or leaves must share terms, got branching={tree.activation!r}, by which a row "
            "is divided among leaves with terms of their own"
        )
        raise ValueError(f"{reason}; fit with readable=True and other defaults, or use plot_tree and plot_condition")
    functions = len(corrections[0])
    if output is not None:
        check_index("output", output, max(functions, len(tree.outputs) if functions == 1 else 0))
    chosen = list(range(functions)) if output is None and tree.output.is_classes else [output or 0]
    chosen = [min(k, functions - 1) for k in chosen]
    rows = _rows(model, X)
    arrivals = np.ones(len(tree.nodes)) if rows is None else _arrivals(model, rows, member)
    series, n_nodes = make_lines(tree, member, corrections, chosen, arrivals)
    columns = strongest_columns(series)
    shown = columns[:max_columns]
    series = visible_lines(tree, series, shown, rows)
    entries = _legend(series, n_nodes)
    figure = _draw(tree, series, shown, rows, len(entries) if any(not line.is_main for line in series) else 1)
    texts = _texts(tree, corrections, chosen, (len(shown), len(columns)), title, rows is not None)
    _annotate(figure, texts, entries, ncols=len(entries) if len(chosen) > 1 else 1)
    return figure


def _arrivals(model: FittedModel, rows: FloatArray, member: int) -> FloatArray:
    """Return the share of the rows that arrives at each node."""
    data = node_data(model, model.double_tree(), torch.from_numpy(rows), None, None, 0)
    return np.array([node.arrival for node in data[member][0]])


def _rows(model: FittedModel, X: Any) -> FloatArray | None:
    """Return encoded rows to show."""
    if X is not None:
        return np.asarray(model.encode(X).numpy(), dtype=np.float64)
    kept = model.training_rows
    return None if kept is None or not len(kept[0]) else kept[0].numpy()


def _draw(tree: TreeView, series: list[Series], shown: list[int], rows: FloatArray | None, legend: int) -> Any:
    down = max(1, math.ceil(len(shown) / ACROSS))
    across = max(1, math.ceil(len(shown) / down))
    width = max(across * PANEL_WIDTH + 0.5, 5.6)  # inches, as all that follows
    each = (width - 0.7) / across
    below = 0.36 + 0.24 * any(_is_tight(level_names(series, column), (each - 0.3) * 72) for column in shown)
    top, bottom = 0.72, 0.1 + LEGEND_LINE * legend
    cell = PANEL_HEIGHT + below
    height = top + down * cell + bottom
    figure = plt.figure(figsize=(width, height), facecolor=PAGE)
    amounts = [
        part
        for line in series
        for column in shown
        if column in line.effects
        for part in shown_amounts(tree, line.effects[column], rows)
    ]
    low, high = min([*amounts, 0.0]), max([*amounts, 0.0])
    if high <= low:
        low, high = -1.0, 1.0
    limits = (low - (high - low) * (DENSITY + 0.09), high + 0.1 * (high - low))
    for k, column in enumerate(shown):
        row, place = divmod(k, across)
        left, lower = 0.62 + place * each, height - top - (row + 1) * cell + below
        box = (left / width, lower / height, (each - 0.3) / width, (PANEL_HEIGHT - TITLE) / height)
        ax = figure.add_axes(box)
        ax.set_ylim(limits)
        ax.axhline(0, color=LINE, linewidth=0.8, zorder=0)
        ax.set_title(fit(tree.columns[column].name, (each - 0.3) * 72, 10, "bold"), fontsize=10, pad=4)
        ax.tick_params(labelsize=8, length=2)
        if place:
            ax.tick_params(axis="y", length=0, labelleft=False)
        ax.yaxis.set_major_locator(MaxNLocator(4))
        _panel(ax, tree, column, series, rows)
    if not shown:
        ax = figure.add_axes((0, 0, 1, 1))
        ax.text(0.5, 0.5, "no column has an effect", ha="center", va="center", color=QUIET)
        ax.set_axis_off()
    return figure


def _panel(ax: Any, tree: TreeView, column: int, series: list[Series], rows: FloatArray | None) -> None:
    lines = [(line, line.effects[column]) for line in series if column in line.effects]
    if lines[0][1].kind == "levels":
        _levels(ax, tree, column, lines, rows)
    else:
        _curve(ax, tree, column, lines, rows)


def _curve(
    ax: Any, tree: TreeView, column: int, lines: list[tuple[Series, ColumnEffect]], rows: FloatArray | None
) -> None:
    view_column = tree.columns[column]
    values, is_missing = values_of(tree, column, rows)
    low, high = shown_range(tree, column, values)
    width = high - low
    missing_at = high + 0.13 * width
    has_missing = any(effect.missing is not None for _, effect in lines)
    ax.set_xlim(low - 0.03 * width, missing_at + 0.09 * width if has_missing else high + 0.03 * width)
    for line, effect in lines:
        style = {"color": line.colour, "linewidth": 1.8 if line.is_main else 1.3, "zorder": 3 if line.is_main else 2}
        if effect.points:
            x, parts = np.array(effect.points).T
            inside = np.unique(np.concatenate([x[(x > low) & (x < high)], [low, high]]))
            ax.plot(inside, np.interp(inside, x, parts), **style)
        if effect.missing is not None:
            marker = {"marker": "D", "markersize": 5 if line.is_main else 4, "linestyle": "none"}
            ax.plot([missing_at], [effect.missing], **style, **marker)
    if has_missing:
        top = max(effect.missing for _, effect in lines if effect.missing is not None)
        style = {"ha": "center", "va": "bottom", "fontsize": 7.5, "color": QUIET}
        ax.annotate(MISSING, (missing_at, top), (0, 5), textcoords="offset points", **style)
        ax.axvline(high + 0.05 * width, color=TRACK, linewidth=0.8, zorder=0)
    if values is not None and len(values):
        beyond = float(np.mean((values < low) | (values > high)))
        if beyond > 2 * (1 - SHOWN_ROWS):
            _remark(ax, f"{percent(beyond)} of rows beyond")
        counts, edges = np.histogram(values, bins=BINS, range=(low, high))
        most = max(1, counts.max())
        _density(ax, (edges[1:] + edges[:-1]) / 2, counts / most, (edges[1] - edges[0]) * 0.9)
        if has_missing and is_missing is not None and is_missing.any():
            _density(ax, np.array([missing_at]), np.array([min(1.0, is_missing.sum() / most)]), 0.06 * width)
    locator = MaxNLocator(4, integer=view_column.whole, min_n_ticks=1)
    ticks = [tick for tick in locator.tick_values(low, high) if low <= tick <= high]
    points = [x for x, _ in lines[0][1].points if low <= x <= high]
    if view_column.whole and 0 < len(points) <= 4:
        ticks = points  # few different values
    quantity = QUANTITIES[view_column.unit]
    if quantity.step is not None:
        ticks = [low + 0.12 * width, high - 0.12 * width]
    ax.set_xticks(ticks)
    if quantity.step is not None:
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: quantity.short_text(value)))
    else:
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format_rounded(value, 6) + quantity.suffix))


def _levels(
    ax: Any, tree: TreeView, column: int, lines: list[tuple[Series, ColumnEffect]], rows: FloatArray | None
) -> None:
    amounts = [level_amounts(effect) for _, effect in lines]
    levels = level_names([line for line, _ in lines], column)
    hidden = max(0, len(levels) - MOST_LEVELS)
    if hidden:
        sizes = {level: max(abs(values.get(level, 0.0)) for values in amounts) for level in levels}
        kept = sorted(levels, key=lambda level: -sizes[level])[:MOST_LEVELS]
        levels = [level for level in levels if level in kept]
    is_main = [line.is_main for line, _ in lines]
    each = 0.72 / max(1, sum(is_main))
    bars = 0
    for (line, _), values in zip(lines, amounts, strict=True):
        parts = [values.get(level, 0.0) for level in levels]
        at = np.arange(len(levels), dtype=float)
        if line.is_main:
            colour = QUIET if sum(is_main) == 1 else line.colour
            ax.bar(at - 0.36 + each * (bars + 0.5), parts, width=each, color=colour, zorder=2)
            bars += 1
        else:
            ax.plot(at, parts, "o", color=line.colour, markersize=5, markeredgecolor=PAGE, zorder=3)
    shares = level_shares(tree, column, rows, levels)
    if shares is not None:
        _density(ax, np.arange(len(levels)), shares / max(1e-12, shares.max()), 0.72)
    ax.set_xlim(-0.6, len(levels) - 0.4)
    room = ax.get_position().width * ax.figure.get_figwidth() * 72
    is_tight = _is_tight(levels, room)
    labels = [fit(level, 58 if is_tight else room / len(levels), 8) for level in levels]
    style = {"rotation": 25 if len(levels) <= 5 else 40, "ha": "right", "rotation_mode": "anchor"} if is_tight else {}
    ax.set_xticks(range(len(levels)), labels, **style)
    if hidden:
        ax.text(
            1.0,
            0.99,
            f"and {hidden} more levels",
            transform=ax.transAxes,
            ha="right",
            va="top",
            fontsize=7.5,
            color=QUIET,
        )


def _is_tight(levels: list[str], room: float) -> bool:
    """Return whether levels, whose number may be limited, do not fit side by side into a width in points."""
    shown = levels[: MOST_LEVELS + 1]
    return any(text_width(level, 8) > room / len(shown) - 3 for level in shown)


def _remark(ax: Any, text: str) -> None:
    ax.text(1.0, 0.99, text, transform=ax.transAxes, ha="right", va="top", fontsize=7.5, color=QUIET)


def _density(ax: Any, at: Any, heights: Any, width: float) -> None:
    """Draw where the rows are, at the bottom of a panel."""
    ax.bar(at, np.asarray(heights) * DENSITY, width=width, color=LINE, zorder=1, transform=ax.get_xaxis_transform())


def _texts(
    tree: TreeView,
    corrections: tuple[tuple[CorrectionView, ...], ...],
    chosen: list[int],
    counts: tuple[int, int],
    title: str | None,
    has_rows: bool,
) -> tuple[str, str]:
    """Return the title and the line below it."""
    root = corrections[0][chosen[0]]
    if not tree.output.is_classes:
        name = f"the prediction of {plain(root.name)}"
    else:
        name = "the logit of each class" if len(chosen) > 1 else f"the {plain(root.name)}"
    shown, total = counts
    below = [] if len(chosen) > 1 else [f"from {format_rounded(root.constant, 4)} for all rows"]
    below.append(
        f"{total} column{'s' * (total != 1)}" if shown == total else f"the {shown} strongest of {total} columns"
    )
    if has_rows:
        below.append(f"grey: where {SHOWN_ROWS:.0%} of the rows are")
    return f"What each column adds to {name}" if title is None else plain(title), "; ".join(below)


def _legend(series: list[Series], n_nodes: int) -> list[tuple[str, str]]:
    """Return names and colours of the lines, and how many nodes are not drawn; nothing if there is only one line."""
    if len(series) == 1:
        return []
    entries = [(line.name, line.colour) for line in series]
    hidden = n_nodes - sum(not line.is_main for line in series)
    if hidden:
        changes = f"{hidden} {'node changes' if hidden == 1 else 'nodes change'}"
        if series[1].is_main:
            entries.append((f"{changes} these curves; set output to a class to see how", "none"))
        else:
            entries.append((f"{changes} less".replace(" node", " other node", 1), "none"))
    return entries


def _annotate(figure: Any, texts: tuple[str, str], entries: list[tuple[str, str]], ncols: int) -> None:
    width, height = (72 * float(side) for side in figure.get_size_inches())
    room = width - 44
    for text, y, style in (
        (texts[0], 22, {"fontsize": 14, "weight": "bold"}),
        (texts[1], 41, {"fontsize": 9.5, "color": QUIET}),
    ):
        line = fit(text, room, style["fontsize"], style.get("weight", "normal"))  # type: ignore[arg-type]
        figure.text(22 / width, 1 - y / height, line, va="center", **style)
    if entries:
        figure.legend(
            [Line2D([], [], color=colour, linewidth=2) for _, colour in entries],
            [fit(name, room - 40, 9) for name, _ in entries],
            loc="lower left",
            bbox_to_anchor=(16 / width, 3 / height),
            ncols=ncols,
            handlelength=1.6,
            borderaxespad=0.3,
            labelspacing=0.35,
        )
