"""Transition matrices and assignment vectors of a tree, as the paper draws them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from tartree.explain.plots.scene import Scene, make_scene, row_view, view_with_rows
from tartree.explain.plots.style import (
    INK,
    MASS,
    PAGE,
    QUIET,
    TRACK,
    axes_for,
    ink_on,
    percent,
    points_of,
    styled,
    text_width,
)
from tartree.explain.tree_view.assembly import ViewSource

FloatArray = NDArray[np.float64]
TALLEST, LARGEST_CELL = 3.6, 0.42  # inches


def transition_matrix(scene: Scene, layer: int) -> FloatArray:
    """Return T_d, (nodes of layer d + 1, nodes of layer d): each column holds how a node shares its arrival.

    It is NaN where the structure has no edge, and in the columns of nodes without arrival. For all rows, a column is
    the mean over rows by their arrival at the node, so that the mean arrivals are ``p_{d+1} = T_d p_d``.
    """
    tree = scene.tree
    first = np.cumsum([0, *tree.widths])
    matrix = np.full((tree.widths[layer + 1], tree.widths[layer]), np.nan)
    for node in tree.nodes[first[layer] : first[layer + 1]]:
        arrival = scene.arrival(node.number)
        for child, edge in zip(node.children, node.edges, strict=True):
            if arrival > 0:
                matrix[child - first[layer + 1], node.index] = scene.flows[edge] / arrival
    return matrix


@styled
def plot_transition_matrices(
    source: ViewSource,
    X: Any = None,
    *,
    row: Any = None,
    member: int = 0,
    layers: Sequence[int] | None = None,
    figure: Any = None,
) -> Any:
    """Draw the transition matrices T_d as heat maps, for the mean of all rows or for one.

    Column j of T_d shows how node j of layer d shares its arrival among the nodes of the next layer. Grey cells are
    zero by the structure, whatever the row.

    Parameters
    ----------
    source : TreeView, fitted estimator or FittedModel
        Tree to draw.
    X : table, optional
        With a model only.
    row : int or TreeView, optional
        One row instead of all: its index in X, or a view of that row alone.
    member : int, default=0
        Index of the tree, if the model has several.
    layers : sequence of int, optional
        Which d; all by default.
    figure : matplotlib Figure, optional
        An empty figure or subfigure to draw in.

    Returns
    -------
    matplotlib Figure
        The figure drawn on.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier
    >>> from tartree.explain import plots
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TartClassifier(depth=1, epochs=2, random_state=0).fit(X, y)
    >>> len(plots.plot_transition_matrices(model, X).axes)  # one layer, and the colour scale
    2
    """
    tree = view_with_rows(source, X, None)
    scene = make_scene(tree, member, 0, row_view(source, X, row))
    wanted = list(range(tree.depth)) if layers is None else [int(layer) for layer in layers]
    if not wanted or not all(0 <= layer < tree.depth for layer in wanted):
        raise ValueError(f"layers must be some of the {tree.depth} with decisions, counted from 0, got {wanted}")
    matrices = [transition_matrix(scene, layer) for layer in wanted]
    cells = [min(LARGEST_CELL, TALLEST / len(matrix)) for matrix in matrices]
    widths = [max(0.62, matrix.shape[1] * cell) for matrix, cell in zip(matrices, cells, strict=True)]
    tallest = max(len(matrix) * cell for matrix, cell in zip(matrices, cells, strict=True))
    whose = f"mean of {tree.n_rows:,} rows" if scene.row is None else "one row"
    heading = f"Transition matrices, {whose}"
    width = max(sum(widths) + 0.75 * len(widths) + 0.9, text_width(heading, 12, "bold") / 72 + 0.8)
    height = tallest + 1.35
    if figure is None:
        figure = plt.figure(figsize=(width, height), facecolor=PAGE)
    left = 0.6
    for layer, matrix, cell, room in zip(wanted, matrices, cells, widths, strict=True):
        across, down = matrix.shape[1] * cell, len(matrix) * cell
        bottom = 0.55 + (tallest - down) / 2
        ax = figure.add_axes((left / width, bottom / height, across / width, down / height))
        _heat_map(ax, matrix, cell)
        ax.set_title(f"$T_{{{layer}}}$", parse_math=True, loc="center", pad=6)
        ax.set_xlabel(f"layer {layer}", labelpad=3)
        ax.set_ylabel(f"layer {layer + 1}", labelpad=3)
        left += room + 0.75
    bar = figure.add_axes(((left - 0.3) / width, 0.55 / height, 0.12 / width, tallest / height))
    bar.imshow(np.linspace(1, 0, 128)[:, None], cmap=MASS, vmin=0, vmax=1, aspect="auto", extent=(0, 1, 0, 1))
    bar.set(xticks=[], yticks=[0, 1])
    bar.yaxis.tick_right()
    bar.spines[:].set_visible(False)
    figure.text(0.6 / width, 1 - 0.24 / height, heading, fontsize=12, weight="bold", va="center")
    return figure


def _heat_map(ax: Any, matrix: FloatArray, cell: float) -> None:
    """Draw cells of a matrix: shares in blue, grey where the structure has no edge, numbers where they fit."""
    n_rows, n_columns = matrix.shape
    shown = np.ma.masked_invalid(matrix)
    ax.set_facecolor(TRACK)
    ax.imshow(shown, cmap=MASS, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    if cell > 0.1:
        ax.set_xticks(np.arange(n_columns + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(n_rows + 1) - 0.5, minor=True)
        ax.grid(True, which="minor", color=PAGE, linewidth=1)
    ax.tick_params(which="both", length=0)
    ax.spines[:].set_visible(False)
    for axis, count in ((ax.xaxis, n_columns), (ax.yaxis, n_rows)):
        axis.set_ticks([])
        if 1 < count <= 8 and cell > 0.2:
            axis.set_ticks(range(count), [str(k) for k in range(count)])
        elif count > 1:
            axis.set_ticks([0, count - 1], ["0", str(count - 1)] if count * cell > 0.4 else ["0", ""])
    size = 7.5
    if cell * 72 > text_width("0.88", size):
        for (i, j), share in np.ndenumerate(matrix):
            if np.isfinite(share):
                colour = ink_on(MASS(float(share)))
                ax.text(j, i, f"{share:.2f}", fontsize=size, color=colour, ha="center", va="center")


@styled
def plot_assignment(source: ViewSource, X: Any = None, *, row: Any = None, member: int = 0, ax: Any = None) -> Any:
    """Draw the assignment vectors p_0, ..., p_D: how the arrival spreads over the nodes from layer to layer.

    Parameters
    ----------
    source : TreeView, fitted estimator or FittedModel
        Tree to draw.
    X : table, optional
        With a model only.
    row : int or TreeView, optional
        One row: its index in X, or a view of that row alone; its most probable path is framed. The mean of all rows by
        default.
    member : int, default=0
        Index of the tree, if the model has several.
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
    >>> plots.plot_assignment(model, X).get_title("left")
    'Arrival by layer, mean of 150 rows'
    """
    tree = view_with_rows(source, X, None)
    scene = make_scene(tree, member, 0, row_view(source, X, row))
    width = min(max(0.55 * tree.n_leaves, 5.0), 14.0)
    ax = axes_for(ax, width, 0.46 * (tree.depth + 1) + 0.75)
    points = points_of(ax)[0] / 1.1
    patches, colours, framed = [], [], []
    for node in tree.nodes:
        across = 1 / tree.widths[node.layer]
        share = scene.arrival(node.number)
        box = Rectangle((node.index * across, node.layer - 0.41), across, 0.82)
        patches.append(box)
        colours.append(MASS(min(share, 1.0)))
        if scene.row is not None and scene.on_path(node.number):
            framed.append(Rectangle((node.index * across, node.layer - 0.41), across, 0.82))
        text = f"{share:.2f}"
        if text_width(text, 8) + 3 < across * points:
            style = {"color": ink_on(colours[-1]), "ha": "center", "va": "center"}
            ax.text((node.index + 0.5) * across, node.layer, text, fontsize=8, **style)
    line = 0.8 if tree.n_leaves <= 64 else 0.2
    ax.add_collection(PatchCollection(patches, facecolors=colours, edgecolors=TRACK, linewidths=line))
    ax.add_collection(PatchCollection(framed, facecolors="none", edgecolors=INK, linewidths=1.6))
    ax.set(xlim=(-0.005, 1.005), ylim=(tree.depth + 0.5, -0.5), xticks=[])
    names = [f"$p_{{{layer}}}$" for layer in range(tree.depth + 1)]
    ax.set_yticks(range(tree.depth + 1), names, parse_math=True, fontsize=11)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    whose = f"mean of {tree.n_rows:,} rows" if scene.row is None else "one row"
    ax.set_title(f"Arrival by layer, {whose}")
    most = max(tree.leaves, key=lambda node: scene.arrival(node.number))
    ax.set_xlabel(f"most at leaf {most.leaf}: {percent(scene.arrival(most.number))}", color=QUIET)
    return ax
