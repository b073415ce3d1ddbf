"""Leaves side by side: share of rows that arrives, and predictions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tartree.explain.plots.scene import make_scene, row_view, view_with_rows
from tartree.explain.plots.style import (
    MASS,
    QUIET,
    TRACK,
    axes_for,
    fit,
    ink_on,
    percent,
    points_of,
    styled,
    text_width,
)
from tartree.explain.text.number_text import format_rounded
from tartree.explain.tree_view.assembly import ViewSource


@styled
def plot_leaves(
    source: ViewSource,
    X: Any = None,
    y: Any = None,
    *,
    row: Any = None,
    member: int = 0,
    sort: bool = False,
    ax: Any = None,
) -> Any:
    """Draw a heat map of classes and leaves, with the share of rows that arrives at each leaf above it.

    A cell is the share of a class among the rows of a leaf, by arrival: of the true classes where y is given, of the
    predicted ones otherwise. In regression, there is a row for each target, from its lowest to its highest leaf.

    Parameters
    ----------
    source : TreeView, fitted estimator or FittedModel
        Tree to draw.
    X, y : table and targets, optional
        With a model only.
    row : int or TreeView, optional
        One row instead of all: its index in X, or a view of that row alone.
    member : int, default=0
        Index of the tree, if the model has several.
    sort : bool, default=False
        Sort leaves by decreasing arrival, instead of the order of the tree.
    ax : matplotlib Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier
    >>> from tartree.explain import plots
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TartClassifier(depth=1, epochs=2, random_state=0).fit(X, y)
    >>> plots.plot_leaves(model, X, y).get_title("left")
    'Classes of the leaves'
    """
    tree = view_with_rows(source, X, y)
    scene = make_scene(tree, member, 0, row_view(source, X, row))
    leaves = sorted(tree.leaves, key=lambda node: -scene.arrival(node.number)) if sort else list(tree.leaves)
    arrival = np.array([scene.arrival(node.number) for node in leaves])
    classes = tree.output.is_classes
    values = np.stack([scene.mix(n.number) if classes else scene.nodes[n.number].predicted for n in leaves], axis=1)
    heat = values
    if not classes:
        low, high = values.min(axis=1, keepdims=True), values.max(axis=1, keepdims=True)
        heat = np.divide(values - low, high - low, out=np.full_like(values, 0.5), where=high > low)
    n_outputs, n_leaves = values.shape
    width = min(max(0.5 * n_leaves + 1.6, 5.0), 14.0)
    ax = axes_for(ax, width, min(max(0.34 * n_outputs, 0.7), 8.0) + 1.7)
    ax.imshow(heat, cmap=MASS, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    tall = max(1.0, n_outputs * 0.45)  # of the bars, in rows of the map
    top = arrival.max() or 1.0
    ax.bar(range(n_leaves), -tall * arrival / top, bottom=-0.6, width=0.8, color=QUIET)
    ax.axhline(-0.6, color=TRACK, linewidth=0.8)
    room = points_of(ax)[0] / n_leaves / 1.2
    texts = [[f"{v:.2f}" if classes else format_rounded(v) for v in line] for line in values]
    if max(text_width(text, 8) for line in texts for text in line) + 4 < room and n_outputs <= 24:
        for (i, j), share in np.ndenumerate(heat):
            ax.text(j, i, texts[i][j], fontsize=8, color=ink_on(MASS(float(share))), ha="center", va="center")
    if text_width("<1%", 8) + 4 < room:
        for j, share in enumerate(arrival):
            ax.text(j, -0.68 - tall * share / top, percent(share), fontsize=8, ha="center", va="bottom", color=QUIET)
    numbers = [str(node.leaf) for node in leaves]
    step = max(1, int(np.ceil((text_width(max(numbers, key=len), 9) + 5) / room)))
    ax.set_xticks(range(0, n_leaves, step), numbers[::step])
    shown = range(0, n_outputs, max(1, int(np.ceil(n_outputs / 40))))
    ax.set_yticks(list(shown), [fit(tree.outputs[k], 110, 9) for k in shown])
    ax.set_ylim(n_outputs - 0.5, -0.75 - tall - max(0.35, 0.12 * n_outputs))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    whose = f"share of {tree.n_rows:,} rows" if scene.row is None else "share of one row"
    ax.set_xlabel(f"leaf; bars: {whose}", color=QUIET)
    ax.set_title("Classes of the leaves" if classes else "Predictions of the leaves")
    return ax
