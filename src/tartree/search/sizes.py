"""The size of a model as a reader meets it: leaves that are used, conditions on a path, features a condition.

A leaf is *used*, on some rows, by what is predicted from it:

- ``selection="single"``: it is the leaf of the largest arrival of at least one row;
- ``selection="multi"``: it is one of the fewest leaves that together get 99 % of the arrival of these rows.

*Conditions* are those of the longest path to a used leaf at which the way parts: a node that sends everything the same
way asks nothing of a reader. *Features* of a condition are the fewest that have 90 % of the sum of its absolute
weights, averaged over the nodes; of a condition that is not linear, all. Both are means over the trees of a model,
leaves and parameters are sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tartree.explain.tree_view.function_views import linear_parameters, step_parameters
from tartree.nn import Selection, Tree, UniformDecision
from tartree.structure import Structure

#: Share of the arrival that the used leaves of a mixture get together.
ARRIVAL_SHARE = 0.99
#: Share of the absolute weights that the features of a condition have together.
WEIGHT_SHARE = 0.9


@dataclass(frozen=True)
class Size:
    """What there is to read: leaves that are used, conditions on the longest path, features a condition, parameters."""

    leaves: float
    conditions: float
    features: float
    parameters: int


def size_of(model: Any, X: Any) -> Size:
    """The size of a fitted `TartClassifier` or `TartRegressor` on the rows of a table.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> found = size_of(TartClassifier(depth=2, epochs=5, random_state=0).fit(X, y), X)
    >>> found.leaves <= 4, found.conditions <= 2, found.parameters
    (True, True, 75)
    """
    counted = None
    for tree, x in model._each_chunk(X):
        part = count_arrivals(tree, x)
        counted = part if counted is None else counted + part
    if counted is None:
        raise ValueError("X must have rows, however: it has none")
    tree = model.tree_
    used = used_leaves(counted, model.selection)
    return Size(
        float(used.sum()),
        float(np.mean([longest_path(tree.structure, own) for own in used.numpy()])),
        float(features_a_condition(tree).mean()),
        int(model.n_parameters_),
    )


@torch.no_grad()
def count_arrivals(tree: Tree, x: Tensor, weight: Tensor | None = None) -> Tensor:
    """Sums over rows of the arrival at each leaf, and of its being the largest: (2, members, leaves), on the CPU.

    `weight` is (members, batch); rows of weight 0 do not count.
    """
    arrival = tree.branching(tree.decision(x))  # (members, batch, leaves)
    best = torch.nn.functional.one_hot(arrival.argmax(-1), arrival.shape[-1]).to(arrival)
    if weight is not None:
        there = (weight > 0).to(arrival).unsqueeze(-1)
        arrival, best = arrival * there, best * there
    return torch.stack([arrival.sum(1), best.sum(1)]).double().cpu()


def used_leaves(counted: Tensor, selection: Selection) -> Tensor:
    """Which leaves are used, (members, leaves) of bool, from what `count_arrivals` gave."""
    arrived, chosen = counted
    if selection == "single":
        some: Tensor = chosen > 0
        return some
    share, order = (arrived / arrived.sum(-1, keepdim=True)).sort(descending=True, stable=True)
    needed = share.cumsum(-1) - share < ARRIVAL_SHARE - 1e-9  # what those before it have is not enough
    used: Tensor = torch.zeros_like(needed).scatter_(-1, order, needed)
    return used


def longest_path(structure: Structure, used: NDArray[np.bool_]) -> int:
    """The most conditions on a path to a used leaf, among those at which more than one child leads to one."""
    alive = [bool(leaf) for leaf in used]
    longest = [0] * len(alive)  # below each node of a layer
    for layer in reversed(range(structure.depth)):
        children = [[child for child in own if alive[child]] for own in structure.children(layer)]
        longest = [max((longest[child] for child in own), default=0) + (len(own) > 1) for own in children]
        alive = [bool(own) for own in children]
    return longest[0]


def features_a_condition(tree: Tree) -> NDArray[np.float64]:
    """Features of a condition, the mean of each member, (members,)."""
    members = len(next(iter(tree.parameters()), torch.empty(1)))
    if not tree.structure.n_logits or isinstance(tree.decision, UniformDecision):
        return np.zeros(members)
    if step_parameters(tree.decision) is not None:
        return np.ones(members)
    found = linear_parameters(tree.decision)
    if found is None:
        return np.full(members, _n_features(tree))
    weight = found[0].abs().double().sort(descending=True).values  # (members, logits, features)
    total = weight.sum(-1, keepdim=True)
    needed = weight.cumsum(-1) - weight < WEIGHT_SHARE * total
    features: NDArray[np.float64] = needed.sum(-1).double().mean(-1).cpu().numpy()
    return features


def _n_features(tree: Tree) -> float:
    """Features that the decisions of a tree could look at, where weights do not say which."""
    mlp = getattr(tree.decision, "mlp", None)
    return float(mlp.weights[0].shape[-1]) if mlp is not None else float("nan")
