"""Assembly of a `TreeView`: columns of the encoder, nodes of the structure, functions, and statistics of rows."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tartree.checks import check_integer
from tartree.explain import tree_evaluation as ev
from tartree.explain.arguments import row_weights, true_outputs
from tartree.explain.text.number_text import format_number
from tartree.explain.text.terms import label_of
from tartree.explain.tree_view.function_views import activation_name, decision_view, leaf_view, logit_scales
from tartree.explain.tree_view.node_corrections import corrections_of
from tartree.explain.tree_view.node_models import conditions_of, leaf_models_of
from tartree.explain.tree_view.views import (
    ColumnView,
    EdgeView,
    FeatureView,
    MemberView,
    NodeData,
    NodeView,
    OutputView,
    TreeView,
)
from tartree.model import FittedModel, HasModel, fitted_model
from tartree.nn import Tree
from tartree.nn.paths import edge_shares, hard_paths
from tartree.structure import Structure
from tartree.table import Column

FloatArray = NDArray[np.float64]
#: Sources of texts and pictures.
ViewSource: TypeAlias = TreeView | FittedModel | HasModel


def view(
    estimator: FittedModel | HasModel,
    X: Any = None,
    y: Any = None,
    sample_weight: Any = None,
    *,
    max_terms: int = 12,
    typical: int = 3,
) -> TreeView:
    """Return a fitted model as plain data.

    Parameters
    ----------
    estimator : fitted estimator or FittedModel
        Model to view.
    X : table of shape (rows, columns), optional
        Rows to count, such as those of training. Without rows the view has no arrivals, and strengths take the spread
        of the columns in training.
    y : array of shape (rows,) or (rows, targets), optional
        True labels or values of the rows, for the class mix, or mean and spread of the target, of each node.
    sample_weight : array of shape (rows,), optional
        Weights of the rows.
    max_terms : int, default=12
        Maximum number of terms of a condition or leaf, the strongest first.
    typical : int, default=3
        Maximum number of typical rows of each leaf.

    Returns
    -------
    TreeView
        The view.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier, explain
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> tree = explain.view(TartClassifier(depth=1, epochs=5, random_state=0).fit(X, y), X, y)
    >>> tree.widths, tree.columns[0].name, round(float(tree.members[0].nodes[0].arrival), 3)
    ((1, 2), 'sepal length (cm)', 1.0)
    """
    return make_view(fitted_model(estimator), X, y, sample_weight, max_terms=max_terms, typical=typical)


def as_view(source: ViewSource, X: Any = None, y: Any = None, *, max_terms: int = 12) -> TreeView:
    """Return a view as it is, or the view of a model on X and y."""
    if not isinstance(source, TreeView):
        return view(source, X, y, max_terms=max_terms)
    if X is not None or y is not None:
        raise ValueError("X and y must be left out with a TreeView, which has its rows; give a model, or no rows")
    return source


def make_view(
    model: FittedModel,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    max_terms: int,
    typical: int,
    around: Tensor | None = None,
) -> TreeView:
    """Return the view of a model; see `tartree.explain.view`.

    Gradients are means over the given rows or, without any, over the encoded rows `around`.
    """
    tree = model.double_tree()
    check_integer("max_terms", max_terms, 1)
    check_integer("typical", typical, 0)
    if X is None and (y is not None or sample_weight is not None):
        raise ValueError("X must be given with y or sample_weight, got X=None")
    x = None if X is None else model.encode(X)
    truth = None if x is None or y is None else true_outputs(model, y, len(x))
    weight = row_weights(sample_weight, 0 if x is None else len(x))
    features = feature_views(model, x, weight)
    spread = np.array([feature.spread for feature in features])
    outputs = model.output_names
    columns = model.encoder.columns_
    nodes, edges = node_views(tree.structure)
    gradient_rows = around if x is None or not len(x) else x
    data: list[Any] = [(None, None)] * ev.n_members(tree)
    if x is not None and len(x):
        data = node_data(model, tree, x, truth, weight, typical)
    members = tuple(
        MemberView(
            decision_view(tree, m),
            leaf_view(tree, m),
            logit_scales(tree, m),
            conditions_of(tree, m, model.encoder.features_, spread, gradient_rows, nodes, max_terms, columns),
            leaf_models_of(model, tree, m, spread, gradient_rows, outputs, max_terms),
            data[m][0],
            data[m][1],
            corrections_of(model, tree, m, spread, max_terms),
        )
        for m in range(ev.n_members(tree))
    )
    kinds = {function.kind for member in members for function in (member.decision, member.leaf)}
    name = activation_name(tree)
    return TreeView(
        task=model.task,
        target=model.target_name or "target",
        outputs=outputs,
        labels=tuple(model.classes.tolist()) if model.is_classifier else (),
        output=output_view(model),
        columns=column_views(model),
        features=features,
        structure=tree.structure.to_dict(),
        widths=tree.structure.widths,
        nodes=nodes,
        edges=edges,
        selection=model.selection,
        activation=name,
        temperature=tree.branching.temperature if tree.branching.log_scale is None else None,
        members=members,
        n_rows=0 if x is None else len(x),
        recomputable=name != "custom" and "opaque" not in kinds,
    )


def output_view(model: FittedModel) -> OutputView:
    output = model.tree.output
    limits = None if output.limits is None else tuple(output.limits)
    return OutputView(
        output.kind,
        output.n_targets,
        output.n_numbers,
        *model.target_scaling,
        model.function_scaling[1],
        output.floor,
        limits,
        output.is_classes,
        output.has_spread,
        output.has_linear_mean,
        output.mean_text,
    )


def column_views(model: FittedModel) -> tuple[ColumnView, ...]:
    encoder = model.encoder
    names = model.column_names
    features_of_column: list[list[int]] = [[] for _ in encoder.columns_]
    for k, feature in enumerate(encoder.features_):
        features_of_column[feature.column].append(k)
    return tuple(
        _column_view(name, column, tuple(features))
        for name, column, features in zip(names, encoder.columns_, features_of_column, strict=True)
    )


def _column_view(name: str, column: Column, features: tuple[int, ...]) -> ColumnView:
    summary = column.summary
    texts = ["", "", "" if summary.typical is None else str(summary.typical)]
    if column.is_measured:
        originals = column.quantity.originals(
            np.array([summary.low, summary.high, summary.typical]), fine=column.is_fine
        )
        texts = [value if isinstance(value, str) else format_number(value) for value in originals.tolist()]
    return ColumnView(
        name,
        column.kind,
        summary.unit,
        summary.whole,
        summary.low,
        summary.high,
        texts[0],
        texts[1],
        summary.levels,
        summary.other,
        summary.gaps,
        summary.typical,
        texts[2],
        features,
        summary.form,
    )


def feature_views(model: FittedModel, x: Tensor | None, weight: FloatArray | None) -> tuple[FeatureView, ...]:
    encoder = model.encoder
    names = encoder.get_feature_names_out()
    usual = usual_spread(model)
    moments = None
    if x is not None and len(x):
        rows = x.numpy()
        means, spreads = _mean_and_spread(rows, weight)
        spreads = np.where(spreads > 0, spreads, usual)  # equal rows have no spread
        moments = np.stack([means, spreads, rows.min(axis=0), rows.max(axis=0)])
    views = []
    for k, feature in enumerate(encoder.features_):
        column = encoder.columns_[feature.column]
        mean, spread, low, high = (0.0, float(usual[k]), None, None) if moments is None else moments[:, k].tolist()
        scaling = feature.scaling
        part = None if feature.bin is None else (feature.bin.start, feature.bin.end, feature.bin.offset)
        views.append(
            FeatureView(
                feature.column, str(names[k]), label_of(feature), feature.kind, feature.level,
                getattr(column, "fill", None), scaling.center, scaling.scale, scaling.knots, scaling.heights,
                scaling.ends, scaling.reach, mean, spread, low, high, part,
            )
        )  # fmt: skip
    return tuple(views)


def usual_spread(model: FittedModel) -> FloatArray:
    """Return the standard deviation of each encoded feature in training, (features,), whatever rows are explained.

    If no training rows were kept, it is 1 for standardised numbers, a quarter of the range for others, 0.5 for levels.
    """
    encoder = model.encoder
    unit = np.array([encoder.columns_[feature.column].usual_spread(feature) for feature in encoder.features_])
    kept = model.training_rows
    if kept is None or not len(kept[0]):
        return unit
    _, spread = _mean_and_spread(kept[0].numpy(), kept[1])
    return np.where(spread > 0, spread, unit)


def _mean_and_spread(rows: FloatArray, weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    if not rows.shape[1]:  # np.average divides by the number of features
        return np.zeros(0), np.zeros(0)
    mean = np.average(rows, axis=0, weights=weight)
    return mean, np.sqrt(np.average(np.square(rows - mean), axis=0, weights=weight))


def node_views(structure: Structure) -> tuple[tuple[NodeView, ...], tuple[EdgeView, ...]]:
    """Return nodes and edges, numbered layer by layer."""
    first = np.concatenate([[0], np.cumsum(structure.widths)])
    parents: list[list[int]] = [[] for _ in range(first[-1])]
    below: list[list[EdgeView]] = [[] for _ in range(first[-1])]
    edges: list[EdgeView] = []
    for d in range(structure.depth):
        for parent, child, branch in zip(*(part.tolist() for part in structure.edges(d)), strict=True):
            above = int(first[d]) + parent
            edge = EdgeView(
                len(edges), above, int(first[d + 1]) + child, len(below[above]), branch if branch >= 0 else None
            )
            edges.append(edge)
            below[above].append(edge)
            parents[edge.child].append(above)
    logits: dict[int, tuple[int, ...]] = {}
    for fan in structure.fans:
        logits |= {
            int(node): tuple(edges_below.tolist()) for node, edges_below in zip(fan.nodes, fan.logits, strict=True)
        }
    chains: dict[int, int] = {}
    nodes, deciding = [], 0
    for d, width in enumerate(structure.widths):
        for i in range(width):
            number = int(first[d]) + i
            edges_below = below[number]
            decides = len(edges_below) > 1
            nodes.append(
                NodeView(
                    number, d, i, tuple(parents[number]), tuple(edge.child for edge in edges_below),
                    tuple(edge.number for edge in edges_below), logits[deciding] if decides else (),
                    tuple(edge.branch for edge in edges_below if edge.branch is not None),
                    i if d == structure.depth else None, chains.setdefault(int(structure.routes.slots[d][i]), number),
                )
            )  # fmt: skip
            deciding += decides
    return tuple(nodes), tuple(edges)


def node_data(
    model: FittedModel, tree: Tree, x: Tensor, truth: FloatArray | None, weight: FloatArray | None, typical: int
) -> list[tuple[tuple[NodeData, ...], FloatArray]]:
    """Return statistics of the rows at every node, and the mean flow of every edge, for each member."""
    structure, members, outputs = tree.structure, ev.n_members(tree), tree.output.n_targets
    nodes = sum(structure.widths)
    share = np.full(len(x), 1 / len(x)) if weight is None else weight / weight.sum()
    true = np.zeros((len(x), 0)) if truth is None else truth
    # Moments of the target are about its mean, so that a large offset keeps its digits.
    middle = true.mean(axis=0)
    moments = torch.from_numpy(np.concatenate([true - middle, np.square(true - middle)], axis=1) * share[:, None])
    mass = torch.zeros(members, nodes, dtype=torch.float64)
    predicted = torch.zeros(members, nodes, outputs, dtype=torch.float64)
    observed = torch.zeros(members, nodes, moments.shape[1], dtype=torch.float64)
    flows: list[Tensor] = []
    count = np.zeros((members, nodes), dtype=np.int64)
    first = np.concatenate([[0], np.cumsum(structure.widths)])[:-1]
    arrived, start = [], 0
    for part in ev.in_chunks(tree, x):
        rows = slice(start, start + len(part.x))
        start = rows.stop
        row_shares = torch.from_numpy(share[rows])
        arrival = torch.cat(part.arrivals, dim=-1)  # (members, rows, nodes)
        below = torch.cat(ev.expected_values(structure, part.branching, part.values), dim=-2)
        weighted = arrival * row_shares[:, None]
        mass += weighted.sum(1)
        predicted += torch.einsum("mrn,mrno->mno", weighted, below)
        observed += torch.einsum("mrn,rk->mnk", arrival, moments[rows])
        flows.append(_flows(structure, part, row_shares))
        paths = hard_paths(structure, part.arrivals, part.branching) + first  # (members, rows, layers)
        for m in range(members):
            count[m] += np.bincount(paths[m].ravel(), minlength=nodes)
        arrived.append(part.arrivals[-1].numpy())
    leaf_arrival = np.concatenate(arrived, axis=1)  # (members, rows, leaves)
    center, scale = model.target_scaling
    safe = mass.clamp_min(1e-300)[..., None]
    mean_predicted = center + scale * (predicted / safe).numpy()
    mean_observed = (observed / safe).numpy()
    flow = torch.stack(flows).sum(0).numpy()
    result = []
    for m in range(members):
        member_nodes = tuple(
            _node_data(
                float(mass[m, n]), int(count[m, n]), mean_predicted[m, n],
                None if truth is None else mean_observed[m, n], middle, model.is_classifier,
                () if n < first[-1] else _typical(leaf_arrival[m], n - int(first[-1]), typical),
            )
            for n in range(nodes)
        )  # fmt: skip
        result.append((member_nodes, flow[m]))
    return result


def _node_data(
    arrival: float,
    rows: int,
    predicted: FloatArray,
    observed: FloatArray | None,
    middle: FloatArray,
    classes: bool,
    typical: tuple[int, ...],
) -> NodeData:
    if observed is None:
        return NodeData(arrival, rows, predicted, None, None, None, typical)
    first, second = np.split(observed, 2)
    if classes:
        return NodeData(arrival, rows, predicted, np.clip(first + middle, 0, 1), None, None, typical)
    spread = np.sqrt(np.maximum(second - np.square(first), 0))
    return NodeData(arrival, rows, predicted, None, first + middle, spread, typical)


def _flows(structure: Structure, part: ev.Evaluation, share: Tensor) -> Tensor:
    """Return the mean flow of every edge, (members, edges)."""
    flows = [part.arrivals[0].new_zeros(len(part.arrivals[0]), 0)]
    for d in range(structure.depth):
        parents, _, branches = (torch.from_numpy(a) for a in structure.edges(d))
        flow = part.arrivals[d].index_select(-1, parents) * edge_shares(part.branching, branches)
        flows.append((flow * share[:, None]).sum(1))
    return torch.cat(flows, dim=-1)


def _typical(arrival: FloatArray, leaf: int, most: int) -> tuple[int, ...]:
    """Return the rows that belong to a leaf, those with the largest arrival first."""
    rows = np.flatnonzero(arrival.argmax(axis=1) == leaf)
    return tuple(rows[np.argsort(-arrival[rows, leaf], kind="stable")][:most].tolist())
