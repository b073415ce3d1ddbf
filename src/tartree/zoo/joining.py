"""Several trees as one: below a root that splits evenly."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tartree.nn import ConstantLeaf, SplitDecision, Tree
from tartree.structure import Structure


class JoinedDecision(nn.Module):
    """The decisions of several trees below a root whose logits are all equal."""

    order: Tensor

    def __init__(self, structure: Structure, decisions: Sequence[nn.Module], order: Tensor) -> None:
        super().__init__()
        self.structure = structure
        self.decisions = nn.ModuleList(decisions)
        self.register_buffer("order", order)  # (logits below the root,): where each stands when all are in a row

    def forward(self, x: Tensor) -> Tensor:
        below = torch.cat([decision(x) for decision in self.decisions], dim=-1)  # (1, batch, logits)
        root = below.new_zeros((*below.shape[:-1], self.structure.n_logits - below.shape[-1]))
        return torch.cat([root, below.index_select(-1, self.order)], dim=-1)


def join(trees: Sequence[Tree]) -> Tree:
    """One tree whose root sends an equal share of every row to each of the trees: its prediction is their mean.

    The trees must have splits of one feature, constant leaves and one member, as imported trees have; members of an
    ensemble are thus a tree with H = 0 at its root.
    """
    if len(trees) < 2 or not all(isinstance(tree.decision, SplitDecision) for tree in trees):
        raise ValueError(f"join needs two imported trees or more, however: {len(trees)}")
    depth = max(tree.structure.depth for tree in trees)
    lists: list[list[list[int]]] = [[list(range(len(trees)))]]
    for d in range(depth):
        layer, first = [], 0
        for tree in trees:
            own = tree.structure
            if d < own.depth:
                layer += [[first + child for child in node] for node in own.children(d)]
                first += own.widths[d + 1]
            else:  # its leaves are passed on
                layer += [[first + leaf] for leaf in range(own.n_leaves)]
                first += own.n_leaves
        lists.append(layer)
    structure = Structure.from_children(lists)
    order, first = [], 0
    starts = []
    for tree in trees:
        starts.append(first)
        first += tree.structure.n_logits
    for d in range(depth):
        for tree, start in zip(trees, starts, strict=True):
            if d < tree.structure.depth:
                before = start + sum(tree.structure.layer_logits[:d])
                order += list(range(before, before + tree.structure.layer_logits[d]))
    decision = JoinedDecision(structure, [tree.decision for tree in trees], torch.tensor(order, dtype=torch.long))
    leaf = ConstantLeaf(structure, trees[0].output.n_numbers)
    values = torch.cat([tree.leaf(torch.empty(0)).squeeze(1) for tree in trees], dim=1)  # (1, leaves, numbers)
    leaf.values = nn.Parameter(values, requires_grad=False)
    return Tree(structure, decision, leaf, trees[0].output).eval()
