"""Several trees as one, below a root that splits evenly."""

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
        self.register_buffer("order", order)  # (logits below the root,): positions in the logits of all trees

    def forward(self, x: Tensor) -> Tensor:
        below = torch.cat([decision(x) for decision in self.decisions], dim=-1)  # (1, batch, logits)
        root = below.new_zeros((*below.shape[:-1], self.structure.n_logits - below.shape[-1]))
        return torch.cat([root, below.index_select(-1, self.order)], dim=-1)


def join(trees: Sequence[Tree]) -> Tree:
    """Return one tree whose root sends an equal share of every row to each tree: its prediction is their mean.

    The trees must have splits of one feature, constant leaves and one member, as imported trees have. An ensemble is
    thus a tree with H = 0 at its root.
    """
    if len(trees) < 2 or not all(isinstance(tree.decision, SplitDecision) for tree in trees):
        raise ValueError(f"join needs two imported trees or more, got {len(trees)}")
    depth = max(tree.structure.depth for tree in trees)
    layers: list[list[list[int]]] = [[list(range(len(trees)))]]
    for d in range(depth):
        layer, first = [], 0
        for structure in (tree.structure for tree in trees):
            if d < structure.depth:
                layer += [[first + child for child in node] for node in structure.children(d)]
                first += structure.widths[d + 1]
            else:  # its leaves are passed on
                layer += [[first + leaf] for leaf in range(structure.n_leaves)]
                first += structure.n_leaves
        layers.append(layer)
    joined = Structure.from_children(layers)
    decision = JoinedDecision(joined, [tree.decision for tree in trees], _logit_order(trees, depth))
    leaf = ConstantLeaf(joined, trees[0].output.n_numbers)
    values = torch.cat([tree.leaf(torch.empty(0)).squeeze(1) for tree in trees], dim=1)  # (1, leaves, numbers)
    leaf.values = nn.Parameter(values, requires_grad=False)
    return Tree(joined, decision, leaf, trees[0].output).eval()


def _logit_order(trees: Sequence[Tree], depth: int) -> Tensor:
    """Return the positions of the joined tree's logits, layer by layer, in the logits of tree after tree."""
    order: list[int] = []
    for d in range(depth):
        start = 0
        for structure in (tree.structure for tree in trees):
            if d < structure.depth:
                first = start + sum(structure.layer_logits[:d])
                order += range(first, first + structure.layer_logits[d])
            start += structure.n_logits
    return torch.tensor(order, dtype=torch.long)
