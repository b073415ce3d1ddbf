"""Importances of columns: the impurity that their splits remove, weighted by arrival, as scikit-learn defines them.

Impurity is the squared error of the best constant: Gini's for classes, the variance for values. A node removes the
impurity decrease of its split. A leaf that depends on the row removes its decrease against a constant. Each decrease is
shared among the features that the node or leaf depends on, by the strength of their terms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tartree.explain import tree_evaluation as ev
from tartree.explain.arguments import row_weights, true_outputs
from tartree.explain.attribution.gradients import mean_gradients
from tartree.model import FittedModel, HasModel, fitted_model
from tartree.nn import Tree
from tartree.nn.families import is_fixed, linear_parameters, step_parameters
from tartree.nn.paths import edge_shares
from tartree.nn.subtree import logits_by_node
from tartree.structure import Structure

FloatArray = NDArray[np.float64]


def importances(estimator: FittedModel | HasModel, X: Any, y: Any = None, sample_weight: Any = None) -> FloatArray:
    """Compute the importance of each column on some rows.

    Parameters
    ----------
    estimator : fitted estimator or FittedModel
        Model whose columns are rated.
    X : table of shape (rows, columns)
        Rows to compute the importances on.
    y : array of shape (rows,) or (rows, targets), optional
        True labels or values; the predictions by default.
    sample_weight : array of shape (rows,), optional
        Weights of the rows.

    Returns
    -------
    ndarray of shape (columns,)
        Importances, which sum to 1, or are all 0 if the model is no better than a constant.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier, explain
    >>> X, y = load_iris(return_X_y=True)
    >>> shares = explain.importances(TartClassifier(depth=2, random_state=0).fit(X, y), X, y)
    >>> shares.shape, round(float(shares.sum()), 6), bool(shares[2:].sum() > 0.5)  # petals
    ((4,), 1.0, True)
    """
    model = fitted_model(estimator)
    x = model.encode(X)
    if not len(x):
        raise ValueError("X must have at least one row, got none")
    truth: Tensor | None = None
    if y is not None:
        center, scale = model.target_scaling
        truth = torch.from_numpy((true_outputs(model, y, len(x)) - center) / scale)
    return encoded_importances(model, x, truth, row_weights(sample_weight, len(x)))


def with_importances(model: FittedModel) -> FittedModel:
    """Return the model with its importances on the training rows; itself if it has some, or if no rows were kept."""
    sample = model.provenance.sample
    if model.provenance.importances is not None or sample is None:
        return model
    truth = torch.nn.functional.one_hot(sample.target, model.n_outputs) if model.is_classifier else sample.target
    weight = None if sample.weight is None else sample.weight.double().numpy()
    shares = encoded_importances(model, sample.x.double().cpu(), truth.double().cpu(), weight)
    return model.record(importances=shares)


@torch.no_grad()
def encoded_importances(
    model: FittedModel, x: Tensor, truth: Tensor | None, weight: FloatArray | None = None
) -> FloatArray:
    """Compute importances from encoded rows, (rows, features), and true outputs of the tree, (rows, outputs)."""
    tree = model.double_tree()
    row_shares = torch.full((len(x), 1), 1 / len(x), dtype=torch.float64)
    if weight is not None:
        row_shares = torch.from_numpy(weight / weight.sum())[:, None]
    removed = _removed(tree, x, truth, row_shares)  # (members, groups)
    columns: list[list[int]] = [[] for _ in range(model.encoder.n_features_in_)]
    for k, feature in enumerate(model.encoder.features_):
        columns[feature.column].append(k)
    strength = _strengths(tree, x, row_shares, columns)  # (members, groups, columns)
    parts = strength / strength.sum(-1, keepdim=True).clamp_min(1e-300)
    shares: FloatArray = torch.einsum("mg,mgc->c", removed, parts).numpy()
    total = float(shares.sum())
    return shares / total if total > 0 else shares


def _removed(tree: Tree, x: Tensor, truth: Tensor | None, row_shares: Tensor) -> Tensor:
    """Return the impurity that each deciding node, then each leaf, removes: (members, decisions + leaves)."""
    structure, members = tree.structure, ev.n_members(tree)
    leaves_look = not is_fixed(tree.leaf)
    start = 0
    total: dict[str, Tensor] = {}
    for evaluation in ev.in_chunks(tree, x):
        rows = slice(start, start + len(evaluation.x))
        start = rows.stop
        outputs = ev.predicted(tree, evaluation, "multi").mean(0) if truth is None else truth[rows]
        weighted = row_shares[rows] * torch.cat(
            [torch.ones_like(outputs[:, :1]), outputs, outputs.square()], dim=1
        )  # (rows, moments)
        edges = [evaluation.branching[..., :0]]
        for d in range(structure.depth):
            parents, _, branches = (torch.from_numpy(a) for a in structure.edges(d))
            decides = branches >= 0
            flow = evaluation.arrivals[d].index_select(-1, parents) * edge_shares(evaluation.branching, branches)
            edges.append(flow[..., decides])
        sums = {
            "branches": torch.einsum("mrb,rk->mbk", torch.cat(edges, dim=-1), weighted),
            "leaves": torch.einsum("mru,rk->muk", evaluation.arrivals[-1], weighted),
            "error": torch.einsum(
                "mru,mruo->mu",
                evaluation.arrivals[-1] * row_shares[rows, 0, None],
                (evaluation.values - outputs[:, None]).square(),
            ),
        }
        total = {name: value + total.get(name, 0.0) for name, value in sums.items()}
    mass = [torch.zeros(members, 0, dtype=torch.float64)]
    for children in _branches_by_node(structure):
        below = total["branches"][:, children]  # (members, children, moments)
        mass.append((_impurity(below.sum(1)) - _impurity(below).sum(-1)).clamp_min(0).unsqueeze(-1))
    leaves = (_impurity(total["leaves"]) - total["error"]).clamp_min(0) if leaves_look else 0 * total["error"]
    return torch.cat([*mass, leaves], dim=-1)


def _impurity(moments: Tensor) -> Tensor:
    """Return the squared error of the best constant, from mass, sums and sums of squares in the last axis."""
    n = (moments.shape[-1] - 1) // 2
    mass, first, second = moments[..., :1], moments[..., 1 : 1 + n], moments[..., 1 + n :]
    return (second - first.square() / mass.clamp_min(1e-300)).clamp_min(0).sum(-1)


def _branches_by_node(structure: Structure) -> list[list[int]]:
    branches_of_node: dict[int, list[int]] = {}
    for fan in structure.fans:
        branches_of_node |= {
            int(node): branches.tolist() for node, branches in zip(fan.nodes, fan.branches, strict=True)
        }
    return [branches_of_node[node] for node in sorted(branches_of_node)]


def _strengths(tree: Tree, x: Tensor, row_shares: Tensor, columns: list[list[int]]) -> Tensor:
    """Return how strongly each deciding node, then each leaf, depends on each column: (members, groups, columns).

    For a linear function, the standard deviation over the rows of the column's part; otherwise the size of its gradient
    times that of the features.
    """
    logits = [list(rows) for rows in logits_by_node(tree.structure).values()]
    per = tree.output.n_numbers
    used = range(tree.output.n_targets)  # of a Gaussian, the means
    leaves = [[u * per + k for k in used] for u in range(tree.structure.n_leaves)]
    centered = x - (row_shares * x).sum(0)
    covariance = (row_shares * centered).T @ centered  # (features, features)
    return torch.cat(
        [
            _group_strengths(tree, tree.decision, x, covariance, columns, logits, contrast=True),
            _group_strengths(tree, tree.leaf, x, covariance, columns, leaves, tree.output.is_classes),
        ],
        dim=1,
    )


def _group_strengths(
    tree: Tree,
    module: Any,
    x: Tensor,
    covariance: Tensor,
    columns: list[list[int]],
    groups: list[list[int]],
    contrast: bool,
) -> Tensor:
    """Return strengths of groups of outputs of a decision or leaf module, (members, groups, columns)."""
    members = ev.n_members(tree)
    strengths = torch.zeros(members, len(groups), len(columns), dtype=torch.float64)
    if not groups or is_fixed(module):
        return strengths
    parameters, thresholds = linear_parameters(module), step_parameters(module)
    if thresholds is not None:  # a node depends on one feature
        parameters = (torch.nn.functional.one_hot(thresholds[0], x.shape[1]).double(), thresholds[1])
    outputs = torch.tensor([k for rows in groups for k in rows])
    owner = torch.tensor([g for g, rows in enumerate(groups) for _ in rows])
    if parameters is None:
        some = x[:: max(1, len(x) // 64)]
        weight = torch.stack([mean_gradients(module, m, some)[1][outputs] for m in range(members)])
        covariance = torch.diag(covariance.diagonal())  # sizes have no signs to cancel
    else:
        weight = parameters[0][:, outputs]  # (members, outputs, features)
        if contrast:  # what all outputs of a group share changes nothing
            counts = torch.bincount(owner)
            mean = torch.zeros(members, len(groups), x.shape[1], dtype=torch.float64).index_add_(1, owner, weight)
            mean = torch.where(counts[:, None] > 1, mean / counts[:, None], torch.zeros_like(mean))
            weight = weight - mean[:, owner]
    for c, features in enumerate(columns):
        if features:
            part, within = weight[..., features], covariance[features][:, features]
            squares = torch.einsum("mof,fk,mok->mo", part, within, part)
            strengths[..., c].index_add_(1, owner, squares)
    return strengths.clamp_min(0).sqrt()
