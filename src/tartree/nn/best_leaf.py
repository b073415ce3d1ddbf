"""The leaf of the largest arrival, found without looking at all nodes.

Arrival is a product of branch probabilities from the root down, so the arrival at a node bounds that at every leaf
below it. A search that follows the largest arrival first has found the best leaf as soon as nothing that waits is
larger: a sharp tree answers after little more than one path. Ties go to the first leaf, as ``argmax`` takes them.
"""

from __future__ import annotations

import math
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from tartree import ops
from tartree.nn.hooks import has_hooks
from tartree.nn.leaves import ConstantLeaf, MLPLeaf
from tartree.nn.products import GroupedMLP
from tartree.nn.search import Searcher, Unsearchable, search_blocks

if TYPE_CHECKING:
    from tartree.nn.tree import Tree

#: Rough microseconds on a CPU, to choose between ways to the same result.
ROW = 5.0  # a row searched alone
VISIT, OTHER_VISIT = 1.5, 8.0  # a node that it visits, linear and binary or not
BLOCK = 250.0  # a block of nodes for some rows
PASS, LAYER = 100.0, 8.0  # all nodes at once: to begin with, and for each layer
READ, PRODUCT, WALK = 5e-5, 6e-6, 1.5e-3  # of weights, a byte read and a byte multiplied; a branch of one row
#: A search gives a row up, to look at all its nodes, after this share of what that costs.
PATIENCE = 0.2
#: Microseconds of a multiplication for all leaves at once, and of one leaf for its rows.
MULTIPLY, ONE_LEAF = 2.5e-5, 25.0

_searchers: weakref.WeakKeyDictionary[Tree, Searcher] = weakref.WeakKeyDictionary()


def best_leaf(tree: Tree, x: Tensor) -> tuple[Tensor, Tensor]:
    """The leaf of the largest arrival and that arrival, of each row.

    Exact for every tree: up to rounding of the arrivals it is ``tree(x).arrival.max(-1)``. Where a search can win (see
    `applies`), only the nodes that it needs are evaluated.

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
    return _best_leaf(tree, _usable(tree, x), x)


def said_by_best_leaf(tree: Tree, x: Tensor) -> Tensor | None:
    """The numbers of the best leaf of each row, (members, batch, 1, numbers), if it may be searched for; else None."""
    searcher = _usable(tree, x)
    if searcher is None:
        return None
    g: Any = tree._modules["leaf"]
    if x.shape[-2] == searcher.members == 1 and searcher.binary and type(g) is ConstantLeaf:
        # The most frequent case by a short way: tensors around the search would take longer than it does.
        leaf = _leaf_of_one(searcher, x)
        if leaf is None:
            return chosen_numbers(tree, x, _full(tree, x)[0])
        values: Any = g._parameters["values"]
        chosen: Tensor = values[:, leaf : leaf + 1].unsqueeze(2)
        return chosen
    return chosen_numbers(tree, x, _best_leaf(tree, searcher, x)[0])


def _leaf_of_one(searcher: Searcher, x: Tensor) -> int | None:
    """The best leaf of a single row, (1, features) or (1, 1, features); None where all nodes are to be looked at."""
    full, alone, blocks = _costs_of(searcher, 1)
    if alone > min(blocks, 0.7 * full):
        return None
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            found = searcher.search(0, x.detach().numpy().ravel(), _budget(searcher, full))
    except Unsearchable:
        return None
    return None if found is None else found[1]


def _best_leaf(tree: Tree, searcher: Searcher | None, x: Tensor) -> tuple[Tensor, Tensor]:
    if searcher is None:
        return _full(tree, x)
    batch = x.shape[-2]
    full, alone, blocks = _costs_of(searcher, batch)
    if min(alone, blocks) > 0.7 * full:
        return _full(tree, x)
    rows = x.detach()
    # Rows that are searched one by one are found out by their first logit, as far as logits are linear.
    if not (searcher.linear and alone <= blocks) and not math.isfinite(rows.sum()):
        ops.check_finite("input", x)
    leaf = np.empty((searcher.members, batch), dtype=np.int64)
    arrival = np.empty((searcher.members, batch), dtype=np.float64)
    found = torch.from_numpy(leaf), torch.from_numpy(arrival)
    with np.errstate(over="ignore", invalid="ignore"):  # a row that is too large is given up: the full way says so
        if alone <= blocks:
            given_up, is_soft = _search_rows(searcher, rows.numpy(), leaf, arrival, full / batch), False
        else:
            given_up, is_soft = [], _is_soft(searcher, rows.numpy())
    if is_soft:
        return _full(tree, x)
    if alone > blocks:
        given_up = search_blocks(searcher, rows, *found)
    if given_up:
        some = torch.tensor(given_up)
        found[0][:, some], found[1][:, some] = _full(tree, x.index_select(-2, some), torch.float64)
    return found[0], found[1].to(x.dtype)


def applies(tree: Tree, x: Tensor) -> bool:
    """Whether the best leaf may be searched for: in inference (eval, without gradients) on a CPU, on a tree as follows.

    Every node has one parent (a stride equal to the window, or an irregular tree), softmax makes its branches, and its
    logits come from weights of its own: linear decisions, or perceptrons that no two nodes share. Nor may any of its
    modules have forward hooks, which a search would pass by.
    """
    return _usable(tree, x) is not None


def chosen_numbers(tree: Tree, x: Tensor, leaf: Tensor) -> Tensor:
    """What the chosen leaf of each row says, (members, batch, 1, numbers), from leaves, (members, batch)."""
    g: Any = tree._modules["leaf"]  # here and below: the own ways of modules to what they hold take long for one row
    if type(g) is ConstantLeaf:
        values: Any = g._parameters["values"]
        if len(leaf) == 1:
            chosen: Tensor = values.index_select(1, leaf[0]).unsqueeze(2)
            return chosen
        return torch.take_along_dim(values, leaf.unsqueeze(-1), dim=1).unsqueeze(2)
    if type(g) is MLPLeaf and type(g.mlp) is GroupedMLP and _work(g.mlp, x) * MULTIPLY > len(g.mlp.sizes) * ONE_LEAF:
        own = [_of_groups(g.mlp, m, x if x.dim() == 2 else x[m], leaf[m]) for m in range(len(leaf))]
        return torch.stack(own).unsqueeze(2)
    said: Tensor = g(x)
    return torch.take_along_dim(said, leaf[..., None, None], dim=2)


def _full(tree: Tree, x: Tensor, dtype: torch.dtype | None = None) -> tuple[Tensor, Tensor]:
    ops.check_finite("input", x)
    arrival, leaf = tree.branching(tree.decision(x)).max(-1)
    return leaf, arrival if dtype is None else arrival.to(dtype)


def _usable(tree: Tree, x: Tensor) -> Searcher | None:
    if tree.training or torch.is_grad_enabled() or torch.compiler.is_compiling() or x.device.type != "cpu":
        return None
    if has_hooks(tree):
        return None
    searcher = _searchers.get(tree)
    if searcher is None or not searcher.sees(tree):
        searcher = _searchers[tree] = Searcher(tree)
    return searcher if searcher.takes(x) and x.shape[-2] else None


def _costs_of(searcher: Searcher, batch: int) -> tuple[float, float, float]:
    """`_costs`, remembered for one size: most calls have rows in chunks of one."""
    if batch not in searcher.costs:
        searcher.costs = {batch: _costs(searcher, batch)}
    return searcher.costs[batch]


def _costs(searcher: Searcher, batch: int) -> tuple[float, float, float]:
    """What it costs to look at all nodes, to search row by row, and by blocks, where a path and a little is enough."""
    structure = searcher.structure
    bytes_read = sum(w[0].nbytes for w in searcher.weights)
    row = bytes_read * PRODUCT + structure.n_branches * WALK
    full = PASS + LAYER * structure.depth + searcher.members * (bytes_read * READ + batch * row)
    visit = (VISIT if searcher.binary else OTHER_VISIT) + bytes_read / structure.n_decisions * READ / 4
    alone = searcher.members * batch * (ROW + 2 * structure.depth * visit)
    blocks = math.inf
    if structure.is_regular and searcher.linear and structure.depth > 3:
        n_blocks = structure.window ** (structure.depth // 2)
        lower = structure.window ** (structure.depth // 2 - structure.depth)
        blocks = searcher.members * (min(batch, 2 * n_blocks) * BLOCK + batch * row * (1 / n_blocks + 2 * lower))
    return full, alone, blocks


def _is_soft(searcher: Searcher, x: NDArray[Any]) -> bool:
    """Whether most of a few rows, taken from all over the batch, need much more than a path."""
    budget = max(4 * searcher.structure.depth, searcher.structure.n_decisions // 20)
    few = range(0, x.shape[-2], max(1, x.shape[-2] // 16))
    try:
        found = [searcher.search(0, x[row] if x.ndim == 2 else x[0, row], budget) for row in few]
    except Unsearchable:
        return True
    return 2 * found.count(None) > len(found)


def _budget(searcher: Searcher, full: float) -> int:
    """Nodes that a search of one row may visit, from the microseconds that all nodes of a row take."""
    visit = VISIT if searcher.binary else OTHER_VISIT
    least = 32 if searcher.binary else 2 * searcher.structure.depth + 4
    return max(least, int(PATIENCE * full / searcher.members / visit))


def _search_rows(
    searcher: Searcher, x: NDArray[Any], leaf: NDArray[Any], arrival: NDArray[Any], full: float
) -> list[int]:
    """Fill in leaf and arrival, (members, batch), row by row; the rows that were given up."""
    budget, batch = _budget(searcher, full), x.shape[-2]
    given_up: list[int] = []
    for row in range(batch):
        for member in range(searcher.members):
            try:
                found = searcher.search(member, x[row] if x.ndim == 2 else x[member, row], budget)
            except Unsearchable:
                found = None
            if found is None:
                given_up.append(row)
                break
            arrival[member, row], leaf[member, row] = found
        if len(given_up) >= 4 and 2 * len(given_up) > row:  # a soft tree: the other rows will be as hard
            given_up.extend(range(row + 1, batch))
            break
    return given_up


def _work(mlp: GroupedMLP, x: Tensor) -> int:
    """Multiplications of all its perceptrons for all rows."""
    weights: list[Tensor] = list(mlp.weights)
    return x.shape[-2] * sum(weight.numel() for weight in weights)


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
            here = g if weight.dim() == 4 else slice(g * width, g * width + width)
            units = torch.addmm(bias[member][here], F.elu(units) if layer else units, weight[member][here].t())
        out[rows] = units
    return out
