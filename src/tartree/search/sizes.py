"""The size of a model for a reader: used leaves, conditions on a path, features per condition.

A leaf is *used*, on a set of rows, if predictions depend on it:

- ``selection="single"``: it is the leaf of the largest arrival of at least one row;
- ``selection="multi"``: it is one of the fewest leaves that together get 99 % of the arrival of these rows.

*Conditions* are counted on the longest path to a used leaf, at nodes with more than one child that leads to a used
leaf. *Features* of a condition are the fewest that have 90 % of the sum of its absolute weights, averaged over the
nodes; of a condition that is not linear, all. Both are means over the trees of a model; leaves and parameters are sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tartree.model import FittedModel, HasModel, fitted_model
from tartree.nn import Selection, Tree
from tartree.nn.families import is_fixed, linear_parameters, step_parameters
from tartree.structure import Structure

#: Share of the arrival that the used leaves get together, with selection "multi".
ARRIVAL_SHARE = 0.99
#: Share of the absolute weights that the features of a condition have together.
WEIGHT_SHARE = 0.9


@dataclass(frozen=True)
class Size:
    """The size of a model.

    Parameters
    ----------
    leaves : float
        Used leaves of all trees.
    conditions : float
        On the longest path to a used leaf, the mean over the trees.
    features : float
        Features per condition.
    parameters : int
        Trained weights.

    Examples
    --------
    >>> Size(leaves=4.0, conditions=2.0, features=1.5, parameters=75).leaves
    4.0
    """

    leaves: float
    conditions: float
    features: float
    parameters: int


def size_of(model: FittedModel | HasModel, X: Any) -> Size:
    """Measure a fitted model on the rows of a table.

    Parameters
    ----------
    model : FittedModel, TartClassifier or TartRegressor
    X : table of shape (rows, columns)
        Rows on which used leaves are counted.

    Returns
    -------
    Size

    Raises
    ------
    ValueError
        If the table has no rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> size = size_of(TartClassifier(depth=2, epochs=5, random_state=0).fit(X, y), X)
    >>> size.leaves <= 4, size.conditions <= 2, size.parameters
    (True, True, 75)
    """
    fitted = fitted_model(model)
    counts = None
    for tree, x in fitted.chunks(X):
        part = count_arrivals(tree, x)
        counts = part if counts is None else counts + part
    if counts is None:
        raise ValueError("X must have at least one row, got none")
    is_used = used_leaves(counts, fitted.selection)
    return Size(
        float(is_used.sum()),
        float(np.mean([longest_path(fitted.structure, leaves) for leaves in is_used.numpy()])),
        float(features_per_condition(fitted.tree).mean()),
        fitted.n_parameters,
    )


@torch.no_grad()
def count_arrivals(tree: Tree, x: Tensor, weight: Tensor | None = None) -> Tensor:
    """Return sums over rows of the arrival at each leaf, and of its being the largest: (2, members, leaves), CPU.

    Rows of weight 0, (members, batch), are not counted.
    """
    arrival = tree.branching(tree.decision(x))  # (members, batch, leaves)
    best = torch.nn.functional.one_hot(arrival.argmax(-1), arrival.shape[-1]).to(arrival)
    if weight is not None:
        is_counted = (weight > 0).to(arrival).unsqueeze(-1)
        arrival, best = arrival * is_counted, best * is_counted
    return torch.stack([arrival.sum(1), best.sum(1)]).double().cpu()


def used_leaves(counts: Tensor, selection: Selection) -> Tensor:
    """Return which leaves are used, (members, leaves) of bool, from sums of `count_arrivals`."""
    arrival, best = counts
    if selection == "single":
        is_best: Tensor = best > 0
        return is_best
    share, order = (arrival / arrival.sum(-1, keepdim=True)).sort(descending=True, stable=True)
    is_needed = share.cumsum(-1) - share < ARRIVAL_SHARE - 1e-9  # larger leaves alone are not enough
    is_used: Tensor = torch.zeros_like(is_needed).scatter_(-1, order, is_needed)
    return is_used


def longest_path(structure: Structure, is_used: NDArray[np.bool_]) -> int:
    """Return the most conditions on a path to a used leaf."""
    is_alive = [bool(leaf) for leaf in is_used]
    longest = [0] * len(is_alive)  # below each node of a layer
    for layer in reversed(range(structure.depth)):
        alive = [[child for child in children if is_alive[child]] for children in structure.children(layer)]
        longest = [max((longest[child] for child in nodes), default=0) + (len(nodes) > 1) for nodes in alive]
        is_alive = [bool(nodes) for nodes in alive]
    return longest[0]


def features_per_condition(tree: Tree) -> NDArray[np.float64]:
    """Return the mean number of features of a condition, (members,)."""
    members = len(next(iter(tree.parameters()), torch.empty(1)))
    if not tree.structure.n_logits or is_fixed(tree.decision):
        return np.zeros(members)
    if step_parameters(tree.decision) is not None:
        return np.ones(members)
    linear = linear_parameters(tree.decision)
    if linear is None:
        return np.full(members, _n_features(tree))
    weight = linear[0].abs().double().sort(descending=True).values  # (members, logits, features)
    total = weight.sum(-1, keepdim=True)
    is_needed = weight.cumsum(-1) - weight < WEIGHT_SHARE * total
    features: NDArray[np.float64] = is_needed.sum(-1).double().mean(-1).cpu().numpy()
    return features


def _n_features(tree: Tree) -> float:
    """Return the number of features of a decision that is not linear, or NaN if it is not known."""
    mlp = getattr(tree.decision, "mlp", None)
    return float(mlp.weights[0].shape[-1]) if mlp is not None else float("nan")
