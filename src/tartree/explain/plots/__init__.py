"""Pictures of fitted trees, drawn with matplotlib (extra `plot`) from a `TreeView`."""

try:
    import matplotlib as _matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError("pictures need matplotlib, which is not installed: pip install 'tartree[plot]'") from error

from tartree.explain.plots.attribution_bars import plot_contributions, plot_importances
from tartree.explain.plots.curve_panels import plot_curves
from tartree.explain.plots.leaf_heatmap import plot_leaves
from tartree.explain.plots.loss_curves import plot_history
from tartree.explain.plots.matrices import plot_assignment, plot_transition_matrices
from tartree.explain.plots.node_bars import plot_condition
from tartree.explain.plots.tree_diagram import plot_tree

__all__ = [
    "plot_assignment",
    "plot_condition",
    "plot_contributions",
    "plot_curves",
    "plot_history",
    "plot_importances",
    "plot_leaves",
    "plot_transition_matrices",
    "plot_tree",
]
