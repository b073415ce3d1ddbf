"""A fitted tree as plain data, for pictures, pages and texts.

`view` makes a `TreeView`: frozen records of numbers, text and numpy arrays. `TreeView.to_dict` is ready for JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tartree.explain.text.column_effects import ColumnEffect
from tartree.explain.text.terms import LinearView
from tartree.explain.tree_view.function_views import FunctionView
from tartree.table.texts.text_forms import TextForm

FloatArray = NDArray[np.float64]
Plain = str | bool | int | float


@dataclass(frozen=True)
class ColumnView:
    """A column of the table: kind, unit, range and levels.

    Numbers are in original units, dates and times in seconds; the texts say the same in ISO form.
    """

    name: str
    kind: str  # of `tartree.table.columns.COLUMNS`: "numeric", "boolean", "category", "constant"
    unit: str  # of `tartree.table.quantities.QUANTITIES`: "number", "date", "duration", ...
    whole: bool  # whole numbers only
    low: float | None
    high: float | None
    low_text: str
    high_text: str
    levels: tuple[Plain, ...]  # of a category, the most frequent first
    other: bool  # whether levels were grouped as rare
    gaps: bool  # whether values were missing in training
    typical: Plain | None  # the median, or the most frequent level; None for a missing value
    typical_text: str
    features: tuple[int, ...]  # indices of its encoded features
    form: TextForm | None = None  # of numbers and dates that are text in the table


@dataclass(frozen=True)
class FeatureView:
    """An encoded feature, and how to compute it from its column.

    kind "value": the number (`fill`, the column's median, if missing), then ``(value - center) / scale`` clipped to
    +-1e6, or with `knots` the piecewise linear map through (knots, heights), constant beyond its ends. With `ends`, an
    encoded value d beyond one of them becomes d / (1 + d / reach) beyond it. kind "bin": that number v on the bin
    (start, end, offset), ``2 * (v - start) / (end - start)`` limited to 0 and 2, less the offset. Other kinds: 1
    where the column has the `level`, a rare or unseen level ("other"), or no value ("missing"), else 0; a boolean's
    feature is 1 where true; without the feature "missing", a missing value counts as `fill` (boolean) or "other".
    All encoded values are rounded to float32.
    """

    column: int
    name: str  # unique, as the encoder's get_feature_names_out
    label: str  # as text: "age", "colour = red", "age is missing"
    kind: Literal["value", "bin", "level", "other", "missing"]
    level: Plain | None
    fill: Plain | None
    center: float
    scale: float
    knots: tuple[float, ...]
    heights: tuple[float, ...]
    ends: tuple[float, float] | None
    reach: float
    mean: float  # of the encoded feature on the given rows; 0 without rows
    spread: float  # its standard deviation on the given rows; that of training if they do not vary
    low: float | None  # its range on the given rows
    high: float | None
    bin: tuple[float, float, float] | None = None


@dataclass(frozen=True)
class NodeView:
    """A node of the structure, the same for all members. Nodes are numbered layer by layer from the root, 0."""

    number: int
    layer: int
    index: int  # within its layer
    parents: tuple[int, ...]  # numbers of nodes
    children: tuple[int, ...]  # numbers of nodes; one child: all arrival is passed on; none: a leaf
    edges: tuple[int, ...]  # numbers of the edges to the children
    logits: tuple[int, ...]  # its logits among all: one for two children, otherwise one for each child
    branches: tuple[int, ...]  # its branches among all, in the order of its children
    leaf: int | None  # number among the leaves, for nodes of the last layer
    chain: int  # number of the first node of its chain of single children, which a picture draws as one


@dataclass(frozen=True)
class EdgeView:
    """An edge from a node to a child."""

    number: int
    parent: int  # number of the node
    child: int
    position: int  # among the children of the parent
    branch: int | None  # among all branches; None where all arrival is passed on


@dataclass(frozen=True)
class ConditionView:
    """The decision of a node.

    Attributes
    ----------
    kind : {"linear", "gradient", "even", "pass"}
        "linear": `functions` are exact. "gradient": the decision is not linear and they are mean gradients on the data,
        none without data. "even": every child gets the same share. "pass": one child, which gets all.
    functions : tuple of LinearView
        With two children one: above 0 the first child is the more probable. With more, one for each child: the largest
        is the most probable (for activations that rise with the logit, that is, all but "spherical").
    texts : tuple of str
        For each child, when it is the most probable, as text.
    """

    kind: Literal["linear", "gradient", "even", "pass"]
    functions: tuple[LinearView, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True)
class LeafModelView:
    """The model of a leaf: one function for each output.

    For classes, the functions are logits less their mean over the classes; with two classes there is one, the log odds
    of the second. For values, they are the mean in units of the target.
    """

    kind: Literal["linear", "gradient", "constant"]
    functions: tuple[LinearView, ...]
    names: tuple[str, ...]  # of the functions: "logit of setosa", "log odds of True", "target"
    texts: tuple[str, ...]  # "logit of setosa = 0.3 * petal length - 1.2"


@dataclass(frozen=True)
class CorrectionView:
    """What a node adds to one function of all leaves below it; at the root, the model for all rows.

    A leaf is the sum along its path: constants and effects, in the units of `LeafModelView`.
    """

    name: str  # of the function: "log odds of True"
    constant: float
    effects: tuple[ColumnEffect, ...]  # the strongest first
    n_effects: int  # with those that are not listed


@dataclass(frozen=True)
class NodeData:
    """Statistics of the given rows at a node of a member, weighted if rows have weights."""

    arrival: float  # mean arrival, a share of all rows
    rows: int  # number of rows whose most probable path leads through the node
    predicted: FloatArray  # (outputs,): mean prediction from the node down, weighted by arrival
    classes: FloatArray | None  # (classes,): shares of the true classes, weighted by arrival
    target_mean: FloatArray | None  # (targets,): of the true target, weighted by arrival
    target_spread: FloatArray | None  # (targets,): its standard deviation
    typical_rows: tuple[int, ...]  # of a leaf: indices of the rows with the largest arrival


@dataclass(frozen=True)
class MemberView:
    """A tree of the model."""

    decision: FunctionView
    leaf: FunctionView
    logit_scales: FloatArray  # (logits,): factors of the logits by the temperature
    conditions: tuple[ConditionView | None, ...]  # for each node; None for leaves
    leaf_models: tuple[LeafModelView, ...]  # for each leaf
    nodes: tuple[NodeData, ...] | None  # for each node; None without rows
    flows: FloatArray | None  # (edges,): mean share of all rows in each edge
    corrections: tuple[tuple[CorrectionView, ...], ...] | None = None  # for each node, if leaves share terms


@dataclass(frozen=True)
class OutputView:
    """The meaning of the raw outputs of a leaf.

    kind "classes": their softmax are probabilities. "values": they are values. "gaussian": the first `n_targets` are
    means, clipped to `limits` if there are any, the others raw spreads,
    ``softplus(raw) + floor``. Values in units of the target are
    ``center + scale * value``. The prediction is the mean over members of each member's mean over leaves by arrival
    (selection "multi") or of its leaf of the largest arrival, the first of equal ones ("single").
    """

    kind: str
    n_targets: int
    n_numbers: int
    center: FloatArray  # (outputs,)
    scale: FloatArray  # (outputs,)
    function_scale: FloatArray  # (functions,): units of the functions of leaves
    floor: float
    limits: tuple[tuple[float, float], ...] | None = None  # of the means of leaves, (targets, 2)
    is_classes: bool = False
    has_spread: bool = False
    has_linear_mean: bool = True
    mean_text: str = "the sum"


@dataclass(frozen=True)
class TreeView:
    """A fitted tree as plain data; see `view`.

    Parameters
    ----------
    task : {"classification", "regression"}
        Kind of the target.
    target : str
        Name of the target column, "target" if it is not known.
    outputs : tuple of str
        Class labels, or names of target columns.
    labels : tuple
        Class labels as they are; empty for regression.
    output : OutputView
        Meaning of the raw outputs of leaves.
    columns : tuple of ColumnView
        Columns of the table.
    features : tuple of FeatureView
        Encoded features.
    structure : dict
        Result of `Structure.to_dict`.
    widths : tuple of int
        Number of nodes of each layer.
    nodes : tuple of NodeView
        Nodes, layer by layer.
    edges : tuple of EdgeView
        Edges, layer by layer.
    selection : {"multi", "single"}
        Whether all leaves predict or the one of the largest arrival.
    activation : str
        A name of `tartree.nn.ACTIVATIONS`, or "custom". The one logit ``z`` of a node with two children reaches it as
        the pair ``(z / 2, -z / 2)``; for "softmax" the first child gets ``sigmoid(z)``.
    temperature : float or None
        Temperature of all nodes; None if each node has learnt one (see `MemberView.logit_scales`).
    members : tuple of MemberView
        Trees of the model.
    n_rows : int
        Number of rows given, 0 without.
    recomputable : bool
        Whether predictions can be computed from this view alone, without user code.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier, explain
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TartClassifier(depth=1, epochs=5, random_state=0).fit(X, y)
    >>> tree = explain.view(model)
    >>> tree.depth, tree.n_leaves, tree.members[0].conditions[0].kind
    (1, 2, 'linear')
    """

    task: Literal["classification", "regression"]
    target: str
    outputs: tuple[str, ...]
    labels: tuple[Plain, ...]
    output: OutputView
    columns: tuple[ColumnView, ...]
    features: tuple[FeatureView, ...]
    structure: dict[str, Any]
    widths: tuple[int, ...]
    nodes: tuple[NodeView, ...]
    edges: tuple[EdgeView, ...]
    selection: Literal["multi", "single"]
    activation: str
    temperature: float | None
    members: tuple[MemberView, ...]
    n_rows: int
    recomputable: bool

    @property
    def depth(self) -> int:
        """Number of layers of decisions."""
        return len(self.widths) - 1

    @property
    def n_leaves(self) -> int:
        """Number of leaves of a member."""
        return self.widths[-1]

    @property
    def leaves(self) -> tuple[NodeView, ...]:
        """Nodes of the last layer."""
        return self.nodes[len(self.nodes) - self.n_leaves :]

    def to_dict(self, digits: int | None = None) -> dict[str, Any]:
        """Return lists, text and numbers, ready for JSON.

        Parameters
        ----------
        digits : int, optional
            Round all numbers to so many significant digits; nine keep a float32 weight exactly.

        Returns
        -------
        dict
            Fields of the view.
        """
        plain: dict[str, Any] = _plain(self, digits)
        return plain


def _plain(value: Any, digits: int | None) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name), digits) for field in fields(value)}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist(), digits)
    if isinstance(value, dict):
        return {str(key): _plain(item, digits) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, digits) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        if not np.isfinite(value):
            return None
        return value if digits is None else float(f"{value:.{digits}g}")
    return value
