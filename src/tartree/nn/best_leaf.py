"""The leaf of the largest arrival, found without looking at all nodes.

Arrival is a product of branch probabilities from the root down, so the arrival at a node bounds that at every leaf
below it. A search that follows the largest arrival first has found the best leaf as soon as nothing that waits is
larger: a sharp tree answers after little more than one path. Ties go to the first leaf, as ``argmax`` takes them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from tartree import ops
from tartree.nn import dispatch
from tartree.nn.leaf_search import Searcher, Unsearchable, search_blocks
from tartree.nn.leaves import ConstantLeaf
from tartree.nn.products import GroupedMLP

if TYPE_CHECKING:
    from tartree.nn.tree import Tree


def best_leaf(tree: Tree, x: Tensor) -> tuple[Tensor, Tensor]:
    """The leaf of the largest arrival and that arrival, of each row.

    Exact for every tree: up to rounding of the arrivals it is ``tree(x).arrival.max(-1)``. Where a search can win (see
    `dispatch.searcher_of`), only the nodes that it needs are evaluated.

    Parameters
    ----------
    tree : Tree
    x : Tensor of shape (batch, features) or (members, batch, features)

    Returns
    -------
    leaf : Tensor of int64 of shape (members, batch)
    arrival : Tensor of shape (members, batch)

    Examples
    --------
    >>> from tartree import Structure
    >>> from tartree.nn import Classes, Tree
    >>> tree, x = Tree.build(Structure(8), n_features=4, output=Classes(3)).eval(), torch.randn(5, 4)
    >>> with torch.no_grad():
    ...     leaf, arrival = best_leaf(tree, x)
    >>> torch.equal(leaf, tree(x).arrival.argmax(-1))
    True
    """
    return _best_leaf(tree, dispatch.searcher_of(tree, x), x)


def best_leaf_logits(tree: Tree, x: Tensor) -> Tensor | None:
    """Return the raw output of the best leaf of each row, (members, batch, 1, logits); None if it is not searched."""
    searcher = dispatch.searcher_of(tree, x)
    if searcher is None:
        return None
    g: Any = tree._modules["leaf"]
    if dispatch.searches_one_row(searcher, g, x):
        leaf = _leaf_of_one(searcher, x)
        if leaf is None:
            return chosen_logits(tree, x, _full(tree, x)[0])
        values: Any = g._parameters["values"]
        chosen: Tensor = values[:, leaf : leaf + 1].unsqueeze(2)
        return chosen
    return chosen_logits(tree, x, _best_leaf(tree, searcher, x)[0])


def _leaf_of_one(searcher: Searcher, x: Tensor) -> int | None:
    """Return the best leaf of a single row, (1, features) or (1, 1, features); None to look at all nodes."""
    path, budget = dispatch.search_plan(searcher, 1)
    if path != "rows":
        return None
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            best = searcher.search(0, x.detach().numpy().ravel(), budget)
    except Unsearchable:
        return None
    return None if best is None else best[1]


def _best_leaf(tree: Tree, searcher: Searcher | None, x: Tensor) -> tuple[Tensor, Tensor]:
    if searcher is None:
        return _full(tree, x)
    batch = x.shape[-2]
    path, budget = dispatch.search_plan(searcher, batch)
    if path == "all":
        return _full(tree, x)
    rows = x.detach()
    # Where rows are searched one by one, the first logit tells, as far as logits are linear.
    if not (searcher.linear and path == "rows") and not math.isfinite(rows.sum()):
        ops.check_finite("input", x)
    leaf = np.empty((searcher.members, batch), dtype=np.int64)
    arrival = np.empty((searcher.members, batch), dtype=np.float64)
    best = torch.from_numpy(leaf), torch.from_numpy(arrival)
    with np.errstate(over="ignore", invalid="ignore"):  # a row that is too large is given up: the full path raises
        if path == "rows":
            given_up, is_soft = _search_rows(searcher, rows.numpy(), leaf, arrival, budget), False
        else:
            given_up, is_soft = [], _is_soft(searcher, rows.numpy())
    if is_soft:
        return _full(tree, x)
    if path == "blocks":
        given_up = search_blocks(searcher, rows, *best)
    if given_up:
        some = torch.tensor(given_up)
        best[0][:, some], best[1][:, some] = _full(tree, x.index_select(-2, some), torch.float64)
    return best[0], best[1].to(x.dtype)


def chosen_logits(tree: Tree, x: Tensor, leaf: Tensor) -> Tensor:
    """Return the raw output of the chosen leaf of each row, (members, batch, 1, logits), from (members, batch)."""
    g: Any = tree._modules["leaf"]  # here and below: the attributes of modules take long for one row
    if type(g) is ConstantLeaf:
        values: Any = g._parameters["values"]
        if len(leaf) == 1:
            chosen: Tensor = values.index_select(1, leaf[0]).unsqueeze(2)
            return chosen
        return torch.take_along_dim(values, leaf.unsqueeze(-1), dim=1).unsqueeze(2)
    if dispatch.computes_chosen_leaves(g, x):
        by_member = [_of_groups(g.mlp, m, x if x.dim() == 2 else x[m], leaf[m]) for m in range(len(leaf))]
        return torch.stack(by_member).unsqueeze(2)
    every: Tensor = g(x)
    return torch.take_along_dim(every, leaf[..., None, None], dim=2)


def _full(tree: Tree, x: Tensor, dtype: torch.dtype | None = None) -> tuple[Tensor, Tensor]:
    ops.check_finite("input", x)
    arrival, leaf = tree.branching(tree.decision(x)).max(-1)
    return leaf, arrival if dtype is None else arrival.to(dtype)


def _is_soft(searcher: Searcher, x: NDArray[Any]) -> bool:
    """Whether most of a few rows, taken from all over the batch, need much more than a path."""
    budget = max(4 * searcher.structure.depth, searcher.structure.n_decisions // 20)
    few = range(0, x.shape[-2], max(1, x.shape[-2] // 16))
    try:
        result = [searcher.search(0, x[row] if x.ndim == 2 else x[0, row], budget) for row in few]
    except Unsearchable:
        return True
    return 2 * result.count(None) > len(result)


def _search_rows(
    searcher: Searcher, x: NDArray[Any], leaf: NDArray[Any], arrival: NDArray[Any], budget: int
) -> list[int]:
    """Fill in leaf and arrival, (members, batch), row by row; return the rows that were given up."""
    batch = x.shape[-2]
    given_up: list[int] = []
    for row in range(batch):
        for member in range(searcher.members):
            try:
                result = searcher.search(member, x[row] if x.ndim == 2 else x[member, row], budget)
            except Unsearchable:
                result = None
            if result is None:
                given_up.append(row)
                break
            arrival[member, row], leaf[member, row] = result
        if len(given_up) >= 4 and 2 * len(given_up) > row:  # a soft tree: the other rows will be as hard
            given_up.extend(range(row + 1, batch))
            break
    return given_up


def _of_groups(mlp: GroupedMLP, member: int, x: Tensor, group: Tensor) -> Tensor:
    """One perceptron of many for each row, (batch, numbers), from (batch, features) and (batch,).

    Only the perceptrons that some row asks for are evaluated, each for all its rows.
    """
    size = mlp.sizes[0]
    out = x.new_empty((len(x), size))
    order = group.argsort(stable=True)
    used, counts = group[order].unique_consecutive(return_counts=True)
    for g, rows in zip(used.tolist(), order.split(counts.tolist()), strict=True):
        units = x[rows]
        for layer, (weight, bias) in enumerate(zip(mlp.weights, mlp.biases, strict=True)):
            width = size if layer == len(mlp.weights) - 1 else mlp.hidden
            # The first and the last layer have the units of all groups in one axis, those between an axis of groups.
            group_units = g if weight.dim() == 4 else slice(g * width, g * width + width)
            units = F.elu(units) if layer else units
            units = torch.addmm(bias[member][group_units], units, weight[member][group_units].t())
        out[rows] = units
    return out
