"""The condition of one node, or the model of one leaf, as bars."""

from __future__ import annotations

from typing import Any

from tartree.checks import check_integer
from tartree.explain.arguments import check_index
from tartree.explain.plots.bars import Bars, condition_bars, leaf_bars
from tartree.explain.plots.painters import name_of
from tartree.explain.plots.scene import row_view, tree_view
from tartree.explain.plots.style import (
    INK,
    MOST_NAME,
    QUIET,
    axes_for,
    branch_colours,
    class_colours,
    fit,
    legend_of,
    plain,
    styled,
)
from tartree.explain.tree_view.assembly import ViewSource
from tartree.explain.tree_view.views import TreeView


@styled
def plot_condition(
    source: ViewSource,
    X: Any = None,
    *,
    node: int = 0,
    row: Any = None,
    member: int = 0,
    output: int = 0,
    max_terms: int = 10,
    ax: Any = None,
) -> Any:
    """Draw the strongest features of a node or a leaf as bars, with the values where their push changes sign.

    The length of a bar is the change by one standard deviation of the feature, in logits, or in units of the target for
    a leaf in regression; for one row, the change by its value, compared with the mean of training.

    Parameters
    ----------
    source : TreeView, fitted estimator or FittedModel
        Tree to draw.
    X : table, optional
        With a model only; strengths take the spread of its rows.
    node : int, default=0
        Number of the node, layer by layer from the root, 0, as `apply` and `decision_path` count.
    row : int or TreeView, optional
        One row: its index in X, or a view of that row alone.
    member : int, default=0
        Index of the tree, if the model has several.
    output : int, default=0
        Index of the target, in regression.
    max_terms : int, default=10
        Maximum number of features with a bar; for a decision or leaf that is not linear, a `TreeView` has at most as
        many as it was made with.
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
    >>> plots.plot_condition(model, X, max_terms=2).get_title("left")
    'Node 0: decision, by 2 of 4 features'
    """
    check_integer("max_terms", max_terms, 1)
    tree = tree_view(source, X)
    check_index("member", member, len(tree.members))
    check_index("node", node, len(tree.nodes))
    if len(tree.nodes[node].children) == 1:
        raise ValueError(f"node must decide or be a leaf, got {node}, which has one child")
    single_row = row_view(source, X, row)
    options: Any = {"member": member, "max_terms": max_terms, "row": single_row}
    is_leaf = tree.nodes[node].leaf is not None
    bars = leaf_bars(tree, node, output=output, **options) if is_leaf else condition_bars(tree, node, **options)
    parts = max((len(bar.parts) for bar in bars.bars), default=1)
    ax = axes_for(ax, 7.2, max(1, len(bars.bars)) * (0.3 if parts == 1 else 0.16 + 0.11 * parts) + 1.3)
    count = f"{len(bars.bars)} of {bars.n_features} features"
    title = f"{name_of(tree.nodes[node])}: {'prediction' if is_leaf else 'decision'}, by {count}"
    ax.set_title(title, pad=24 if bars.left is not None and bars.bars else 8)
    if not bars.bars:
        ax.text(
            0.5, 0.5, "no feature has an effect here", ha="center", va="center", color=QUIET, transform=ax.transAxes
        )
        ax.set_axis_off()
        return ax
    _draw(ax, bars)
    legend = _legend(tree, node, member)
    if bars.left is None:
        legend_of(ax, [name for name, _ in legend], [colour for _, colour in legend], **_beside())
    unit = "logits"
    if is_leaf and not tree.output.is_classes:
        unit = plain(tree.outputs[output])
    what = "one standard deviation" if single_row is None else "the value, from the mean"
    ax.set_xlabel(f"change by {what}, in {fit(unit, 160, 10)}", color=QUIET)
    return ax


def _draw(ax: Any, bars: Bars) -> None:
    for k, bar in enumerate(bars.bars):
        each = 0.72 / len(bar.parts)
        for j, (length, colour) in enumerate(bar.parts):
            ax.barh(k - 0.36 + each * (j + 0.5), length, height=each, color=colour)
    labels = [fit(bar.label, MOST_NAME, 9, keep=bar.turn) for bar in bars.bars]
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    reach = bars.reach * 1.08
    ax.set_xlim(-reach, reach)
    ax.axvline(0, color=INK, linewidth=1)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    for side, x, align in ((bars.left, 0.0, "left"), (bars.right, 1.0, "right")):
        if side is not None:
            name = fit(side[0], 150, 10, "bold")
            text = f"← {name}" if align == "left" else f"{name} →"
            style = {"color": side[1], "weight": "bold", "transform": ax.transAxes, "fontsize": 10}
            ax.text(x, 1.0, text, ha=align, va="bottom", **style)


def _legend(tree: TreeView, node: int, member: int) -> list[tuple[str, str]]:
    if tree.nodes[node].leaf is None:
        children = tree.nodes[node].children
        names = [f"to {name_of(tree.nodes[child]).lower()}" for child in children]
        return list(zip(names, branch_colours(len(children)), strict=True))
    names = [fit(name, 120, 9) for name in tree.outputs]
    return list(zip(names, class_colours(len(tree.outputs)), strict=True))[:8]


def _beside() -> dict[str, Any]:
    return {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
