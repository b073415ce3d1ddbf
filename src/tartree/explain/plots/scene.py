"""Data of a picture of a tree: arrivals, flows, colours, the path of a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.colors import to_hex, to_rgb
from numpy.typing import NDArray

from tartree.explain.arguments import check_index
from tartree.explain.plots.style import class_colours
from tartree.explain.tree_view.assembly import ViewSource, as_view, view
from tartree.explain.tree_view.views import NodeData, TreeView

FloatArray = NDArray[np.float64]
FALLING = "cividis"  # of values, in regression


@dataclass(frozen=True)
class Scene:
    """A member of a tree, on all rows or on one."""

    tree: TreeView
    member: int
    output: int  # shown in regression
    row: TreeView | None  # a view of one row
    nodes: tuple[NodeData, ...]  # of all rows, or of the row
    flows: FloatArray  # (edges,)
    colours: tuple[str, ...]  # of classes
    low: float  # range of what the nodes predict, in regression
    high: float

    def arrival(self, number: int) -> float:
        return self.nodes[number].arrival

    def on_path(self, number: int) -> bool:
        """Return whether a node is on the most probable path of the row; all are if all rows are shown."""
        return self.row is None or self.nodes[number].rows > 0

    def mix(self, number: int) -> FloatArray:
        """Return shares of classes at a node: true ones of the rows that arrive, or predicted ones."""
        node = self.nodes[number]
        return node.predicted if node.classes is None or self.row is not None else node.classes

    def value(self, number: int) -> float:
        """Return the prediction from a node down, in regression."""
        return float(self.nodes[number].predicted[self.output])

    def colour(self, number: int) -> str:
        """Return the colours of a node's classes, mixed by their shares; in regression, the colour of its value."""
        if not self.tree.output.is_classes:
            return self.value_colour(self.value(number))
        mixed = self.mix(number) @ np.array([to_rgb(colour) for colour in self.colours])
        return str(to_hex(np.clip(mixed, 0, 1)))

    def value_colour(self, value: float) -> str:
        part = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return str(to_hex(mpl.colormaps[FALLING](0.92 - 0.87 * min(max(part, 0.0), 1.0))))


def tree_view(source: ViewSource, X: Any = None, y: Any = None) -> TreeView:
    """Return the given view, or that of a model on X and y."""
    tree = as_view(source, X, y)
    if isinstance(source, TreeView):
        return tree
    kinds = {model.kind for m in tree.members for model in (*m.conditions, *m.leaf_models) if model is not None}
    if "gradient" in kinds or any(feature.bin is not None for feature in tree.features):
        # Bars of linear functions are made from weights, those of curves and others from the terms that the view lists:
        # all of them are needed, for the strongest terms of one row may be others than those of all rows.
        return view(source, X, y, max_terms=max(1, len(tree.features)))
    return tree


def view_with_rows(source: ViewSource, X: Any, y: Any) -> TreeView:
    """Return the same, or raise if it has no rows."""
    tree = tree_view(source, X, y)
    if tree.n_rows == 0:
        raise ValueError("rows are required to draw arrivals, got none; pass X, or a view made with view(model, X, y)")
    return tree


def row_view(source: ViewSource, X: Any, row: Any) -> TreeView | None:
    """Return the view of one row: the given view, or row `row` of X."""
    if row is None:
        return None
    if isinstance(row, TreeView):
        if row.n_rows != 1:
            raise ValueError(f"row must be a view of one row, got {row.n_rows} rows; use view(model, X[3:4])")
        return row
    if isinstance(source, TreeView):
        raise ValueError(f"row must be a view of one row, view(model, X[3:4]), if the tree is a view too, got {row!r}")
    return view(source, single_row(X, row))


def single_row(X: Any, row: int) -> Any:
    """Return row `row` of any table, as a table."""
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if isinstance(row, bool) or not isinstance(row, int | np.integer) or not -n_rows <= row < n_rows:
        raise ValueError(f"row must be the number of one of the {n_rows} rows, got {row!r}")
    start = int(row) % n_rows
    return X.iloc[start : start + 1] if hasattr(X, "iloc") else X[start : start + 1]


def make_scene(tree: TreeView, member: int, output: int, row: TreeView | None) -> Scene:
    """Return the data of a picture."""
    check_index("member", member, len(tree.members))
    if not tree.output.is_classes:
        check_index("output", output, len(tree.outputs))
    if row is not None and (row.structure != tree.structure or len(row.members) != len(tree.members)):
        raise ValueError("row must be a view of the same model, got another structure")
    shown = (tree if row is None else row).members[member]
    all_nodes = tree.members[member].nodes
    assert shown.nodes is not None
    assert shown.flows is not None
    assert all_nodes is not None
    values = [node.predicted[output] for node in all_nodes] if not tree.output.is_classes else [0.0]
    colours = tuple(class_colours(len(tree.outputs))) if tree.output.is_classes else ()
    return Scene(tree, member, output, row, shown.nodes, shown.flows, colours, float(min(values)), float(max(values)))
