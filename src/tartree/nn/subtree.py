"""Smaller trees with the parameters of a larger one: nodes removed, chains of single children joined.

The origin of the nodes (`Origin`) is kept for the certificate.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tartree.nn import ConstantLeaf, MLPDecision, MLPLeaf, Tree, UniformDecision
from tartree.nn.products import GroupedMLP
from tartree.structure import Structure

Node = tuple[int, int]  # layer, number within it


@dataclass(frozen=True)
class Origin:
    """The node of the larger structure that each node of a smaller one comes from."""

    structure: Structure
    nodes: dict[Node, Node]  # new to old; deciding nodes have the same children, except those removed
    children: dict[Node, tuple[int, ...]]  # of each new node above the leaves: which old children it kept, in order
    leaves: tuple[int, ...]  # old number of each leaf


def shrink_structure(structure: Structure, nodes: Iterable[Node]) -> Origin:
    """Return the structure without some nodes, and without layers or chains that decide nothing."""
    removed = list(nodes)
    kept = structure.survivors(removed)
    pruned = structure.without(removed)
    old = {(d, i): (d, before) for d, layer in enumerate(kept) for i, before in enumerate(layer)}
    parents = [np.bincount(pruned.edges(d)[1], minlength=1) for d in range(pruned.depth)]
    if all((count == 1).all() for count in parents):
        return _joined_tree(pruned, old)
    return _without_idle_layers(pruned, old)


def _joined_tree(structure: Structure, old: dict[Node, Node]) -> Origin:
    """Return a tree in which every node decides or is a leaf."""
    children: list[list[int]] = []
    sources: list[Node] = []

    def add(layer: int, node: int) -> int:
        while layer < structure.depth and len(structure.children(layer)[node]) == 1:
            layer, node = layer + 1, structure.children(layer)[node][0]
        number = len(children)
        children.append([])
        sources.append((layer, node))
        if layer < structure.depth:
            children[number] = [add(layer + 1, child) for child in structure.children(layer)[node]]
        return number

    add(0, 0)
    layers = Structure.layers_of_tree(children)
    joined = Structure.from_tree(children)
    pruned = {(d, i): sources[k] for d, layer in enumerate(layers) for i, k in enumerate(layer)}
    return _origin(joined, structure, pruned, old)


def _without_idle_layers(structure: Structure, old: dict[Node, Node]) -> Origin:
    """Return a graph without the layers whose nodes all have one child that no other node has."""
    lists: list[Any] = []
    layers = [0]
    for d in range(structure.depth):
        children = structure.children(d)
        if [list(child_list) for child_list in children] == [[i] for i in range(len(children))]:
            layers[-1] = d + 1
            continue
        lists.append(children)
        layers.append(d + 1)
    shorter = Structure.from_children(lists)
    pruned = {(d, i): (layer, i) for d, layer in enumerate(layers) for i in range(structure.widths[layer])}
    return _origin(shorter, structure, pruned, old)


def _origin(structure: Structure, pruned: Structure, sources: dict[Node, Node], old: dict[Node, Node]) -> Origin:
    """Return where nodes come from: `sources` maps to the pruned structure, `old` from there to the one before."""
    nodes = {node: old[source] for node, source in sources.items()}
    children = {
        node: tuple(old[layer + 1, child][1] for child in pruned.children(layer)[source])
        for node, (layer, source) in sources.items()
        if layer < pruned.depth
    }
    return Origin(structure, nodes, children, tuple(nodes[structure.depth, u][1] for u in range(structure.n_leaves)))


def check_shrinkable(tree: Tree) -> None:
    """Raise unless the parameters of decisions and leaves belong to single nodes, as those of the library's do."""
    if (obstacle := _obstacle(tree)) is not None:
        raise ValueError(obstacle)


def _obstacle(tree: Tree) -> str | None:
    """Return why no node can be removed, or None."""
    decision_fits = isinstance(tree.decision, UniformDecision) or (
        type(tree.decision) is MLPDecision and _by_node(tree.decision.mlp, tree.structure)
    )
    if not decision_fits:
        return (
            "decisions must be linear, perceptrons of single nodes, or uniform to be simplified, got "
            f"{type(tree.decision).__name__}, whose parameters do not belong to single nodes"
        )
    if type(tree.leaf) not in (ConstantLeaf, MLPLeaf):
        return f"leaves must be constant, linear or perceptrons to be simplified, got {type(tree.leaf).__name__}"
    return None


def _by_node(mlp: GroupedMLP, structure: Structure) -> bool:
    from tartree.nn.decisions import logits_per_node

    return len(mlp.weights) == 1 or mlp.sizes == logits_per_node(structure)


@torch.no_grad()
def shrink_tree(tree: Tree, origin: Origin) -> Tree:
    """Return the tree of the smaller structure with the parameters of the nodes it kept, in float64.

    A node that lost children keeps the logits of the others; two left have the difference of theirs.
    """
    check_shrinkable(tree)
    structure = origin.structure
    members = next((len(p) for p in tree.parameters()), 1)
    decision = tree.decision
    layers = len(decision.mlp.weights) if isinstance(decision, MLPDecision) else 0
    leaf_layers = len(tree.leaf.mlp.weights) if isinstance(tree.leaf, MLPLeaf) else 0
    hidden = [m.mlp.hidden for m in (decision, tree.leaf) if isinstance(m, MLPDecision | MLPLeaf)]
    dropout = [m.mlp.dropout for m in (decision, tree.leaf) if isinstance(m, MLPDecision | MLPLeaf)]
    learned = tree.branching.log_scale is not None
    small = Tree.build(
        structure,
        _n_features(tree),
        tree.output,
        decision_layers=layers,
        leaf_layers=leaf_layers,
        hidden=hidden[0] if hidden else 1,
        dropout=dropout[0] if dropout else 0.0,
        branching=tree.branching.activation,
        temperature="learned" if learned else tree.branching.temperature,
        members=members,
    ).double()
    if isinstance(decision, MLPDecision) and isinstance(small.decision, MLPDecision):
        _copy_decisions(tree, small, origin)
    if learned and structure.n_decisions:
        rows = [_decision_number(tree.structure)[origin.nodes[node]] for node in _decision_number(structure)]
        assert tree.branching.log_scale is not None
        assert small.branching.log_scale is not None
        small.branching.log_scale.copy_(tree.branching.log_scale[:, rows])
    leaves = torch.tensor(origin.leaves)
    if isinstance(tree.leaf, ConstantLeaf):
        assert isinstance(small.leaf, ConstantLeaf)
        small.leaf.values.copy_(tree.leaf.values[:, leaves])
    else:
        assert isinstance(tree.leaf, MLPLeaf)
        assert isinstance(small.leaf, MLPLeaf)
        _copy_groups(tree.leaf.mlp, small.leaf.mlp, leaves)
        per = tree.output.n_numbers
        rows = (leaves[:, None] * per + torch.arange(per)).flatten().tolist()
        _copy_last(tree.leaf.mlp, small.leaf.mlp, torch.eye(tree.structure.n_leaves * per)[rows].double())
    return small.eval()


def _n_features(tree: Tree) -> int:
    for module in (tree.decision, tree.leaf):
        if isinstance(module, MLPDecision | MLPLeaf):
            return int(module.mlp.weights[0].shape[-1])
    return 0


def _decision_number(structure: Structure) -> dict[Node, int]:
    """Return the index of each deciding node among them."""
    deciding = [(d, i) for d in range(structure.depth) for i, count in enumerate(structure.n_children(d)) if count > 1]
    return {node: k for k, node in enumerate(deciding)}


def _copy_decisions(tree: Tree, small: Tree, origin: Origin) -> None:
    assert isinstance(tree.decision, MLPDecision)
    assert isinstance(small.decision, MLPDecision)
    numbers, small_numbers = _decision_number(tree.structure), _decision_number(origin.structure)
    _copy_groups(
        tree.decision.mlp, small.decision.mlp, torch.tensor([numbers[origin.nodes[node]] for node in small_numbers])
    )
    _copy_last(tree.decision.mlp, small.decision.mlp, logit_map(tree.structure, origin))


def logit_map(structure: Structure, origin: Origin) -> Tensor:
    """Return the linear map from logits of the larger structure to the smaller, (new logits, old logits)."""
    before, after = logits_by_node(structure), logits_by_node(origin.structure)
    matrix = torch.zeros(origin.structure.n_logits, structure.n_logits, dtype=torch.float64)
    for node, rows in after.items():
        layer, index = origin.nodes[node]
        columns = before[layer, index]
        children = structure.children(layer)[index]
        kept = [children.index(child) for child in origin.children[node]]
        if len(columns) == 1:  # two children then and now
            matrix[rows[0], columns[0]] = 1.0
        elif len(rows) == 1:
            matrix[rows[0], columns[kept[0]]] = 1.0
            matrix[rows[0], columns[kept[1]]] = -1.0
        else:
            for row, child in zip(rows, kept, strict=True):
                matrix[row, columns[child]] = 1.0
    return matrix


def logits_by_node(structure: Structure) -> dict[Node, tuple[int, ...]]:
    """Return the logits of each deciding node, in order."""
    numbers = {k: node for node, k in _decision_number(structure).items()}
    logits: dict[Node, tuple[int, ...]] = {}
    for fan in structure.fans:
        logits |= {
            numbers[int(k)]: tuple(logits_of_node.tolist())
            for k, logits_of_node in zip(fan.nodes, fan.logits, strict=True)
        }
    return dict(sorted(logits.items()))


def _copy_groups(before: GroupedMLP, after: GroupedMLP, groups: Tensor) -> None:
    """Copy the hidden layers of some groups."""
    for layer in range(len(before.weights) - 1):
        for old, new in ((before.weights[layer], after.weights[layer]), (before.biases[layer], after.biases[layer])):
            if layer == 0:
                new.copy_(old.unflatten(1, (-1, before.hidden))[:, groups].flatten(1, 2))
            else:
                new.copy_(old[:, groups])


def _copy_last(before: GroupedMLP, after: GroupedMLP, outputs: Tensor) -> None:
    """Copy the last layer: each new output is a sum of old ones, (new outputs, old outputs)."""
    after.weights[-1].copy_(torch.einsum("no,moh->mnh", outputs, before.weights[-1].double()))
    after.biases[-1].copy_(before.biases[-1].double() @ outputs.T)


@torch.no_grad()
def without_empty_leaves(tree: Tree, arrives: NDArray[np.bool_]) -> Tree:
    """Return a tree without the leaves that no row arrives at, in the precision and on the device of it.

    Parameters
    ----------
    tree : Tree
        With decisions and leaves whose parameters belong to single nodes.
    arrives : ndarray of bool of shape (leaves,)
        Whether rows arrive at each leaf.

    Returns
    -------
    Tree
        The same one if no leaf is empty, or all are, or other decisions and leaves forbid it.

    Examples
    --------
    >>> from tartree.nn import Classes
    >>> tree = Tree.build(Structure(2), 3, Classes(2))
    >>> without_empty_leaves(tree, np.array([True, False, True, True])).structure.n_leaves
    3
    """
    if arrives.all() or not arrives.any() or _obstacle(tree) is not None:
        return tree
    depth = tree.structure.depth
    return _without(tree, [(depth, int(leaf)) for leaf in np.flatnonzero(~arrives)])


def _without(tree: Tree, nodes: list[Node]) -> Tree:
    """Return a tree without some nodes, in the precision and on the device of it."""
    like = next(tree.leaf.parameters())
    on_cpu = copy.deepcopy(tree).cpu()
    return shrink_tree(on_cpu, shrink_structure(tree.structure, nodes)).to(like.device, like.dtype)


@torch.no_grad()
def without_idle_decisions(tree: Tree) -> Tree:
    """Return a tree without the decisions below which all leaves are equal, in the precision and on the device of it.

    Such leaves are joined to one. A graph, in which a node may have several parents, stays as it is.

    Parameters
    ----------
    tree : Tree
        With decisions and leaves whose parameters belong to single nodes.

    Returns
    -------
    Tree
        The same one if nothing can be removed.

    Examples
    --------
    >>> from tartree.nn import Classes
    >>> tree = Tree.build(Structure(2), 3, Classes(2), leaf_layers=0)
    >>> _ = tree.leaf.values.data[:, 1:].copy_(tree.leaf.values[:, :1] + torch.tensor([[[0.0], [1.0], [2.0]]]))
    >>> without_idle_decisions(tree).structure.n_leaves
    3
    """
    structure, leaf = tree.structure, tree.leaf
    if isinstance(leaf, MLPLeaf) and len(leaf.mlp.weights) == 1:
        shape = (-1, structure.n_leaves, tree.output.n_numbers)
        weights, biases = leaf.mlp.weights[0], leaf.mlp.biases[0]
        numbers = torch.cat([weights.unflatten(1, shape[1:]).flatten(2), biases.unflatten(1, shape[1:])], dim=-1)
    elif isinstance(leaf, ConstantLeaf):
        numbers = leaf.values
    else:
        return tree
    _, kinds = torch.unique(numbers.transpose(0, 1).flatten(1).cpu(), dim=0, return_inverse=True)
    idle = _idle_nodes(structure, kinds.tolist())
    if not idle or type(tree.decision) is not MLPDecision:
        return tree
    return _without(tree, idle)


def _idle_nodes(structure: Structure, kinds: list[int]) -> list[Node]:
    """Return the nodes to remove so that no node has children of one kind, from the kinds of the leaves."""
    idle: list[Node] = []
    below: list[object] = list(kinds)
    for layer in reversed(range(structure.depth)):
        above: list[object] = []
        children = structure.children(layer)
        if sum(map(len, children)) > len(below):
            return []
        for child_list in children:
            kinds_below = [below[child] for child in child_list]
            is_idle = all(kind == kinds_below[0] for kind in kinds_below)
            above.append(kinds_below[0] if is_idle else (layer, child_list))  # else a kind of its own
            if is_idle:
                idle += [(layer + 1, child) for child in child_list[1:]]
        below = above
    return idle
