"""Evaluation of a tree on rows, layer by layer, in double precision: the basis of every explanation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from tartree.nn import Tree
from tartree.nn.paths import edge_shares
from tartree.structure import Structure

#: Maximum number of elements of a chunk, about 64 MB.
CHUNK_NUMBERS = 2**23


@dataclass(frozen=True)
class Evaluation:
    """A tree evaluated on some rows; tensors are float64 on the CPU."""

    x: Tensor  # (rows, features)
    logits: Tensor  # (members, rows, logits), before the temperature
    branching: Tensor  # (members, rows, branches)
    arrivals: list[Tensor]  # for each layer, root first, (members, rows, nodes)
    values: Tensor  # (members, rows, leaves, outputs): predictions of the leaves


def n_members(tree: Tree) -> int:
    return next((len(p) for p in tree.parameters()), int(getattr(tree.decision, "members", 1)))


@torch.no_grad()
def evaluate(tree: Tree, x: Tensor) -> Evaluation:
    """Evaluate the tree on encoded rows, (rows, features); leaf values have the standardised units of training."""
    logits = tree.decision(x)
    branching = tree.branching.probabilities(logits)
    values = tree.output.mean(tree.leaf(x))[..., : tree.output.n_targets]
    values = values.expand(len(logits), len(x), -1, -1)  # constant leaves are the same for all rows
    return Evaluation(x, logits, branching, tree.branching.arrivals(logits), values)


def in_chunks(tree: Tree, x: Tensor) -> Iterator[Evaluation]:
    """Yield `evaluate` of chunks of rows that keep memory small; at least one chunk, so that shapes are known."""
    per_row = n_members(tree) * (sum(tree.structure.widths) * tree.output.n_targets + tree.structure.n_branches)
    for part in x.split(max(16, CHUNK_NUMBERS // max(1, per_row))):
        yield evaluate(tree, part)


def expected_values(structure: Structure, branching: Tensor, values: Tensor) -> list[Tensor]:
    """Return the prediction from each node down, for each layer, root first: (..., nodes, outputs).

    `branching` is (..., branches), `values` are of the leaves, (..., leaves, outputs); leading axes broadcast.
    """
    layers = [values]
    for d in reversed(range(structure.depth)):
        parents, children, branches = (torch.from_numpy(part) for part in structure.edges(d))
        share = edge_shares(branching, branches)  # (..., edges)
        flow = share.unsqueeze(-1) * layers[-1].index_select(-2, children)  # (..., edges, outputs)
        above = flow.new_zeros((*flow.shape[:-2], structure.widths[d], flow.shape[-1]))
        layers.append(above.index_add_(-2, parents, flow))
    return layers[::-1]


def first_child_share(tree: Tree, logit: Tensor) -> Tensor:
    """Return the share of the first of two children, from the logit over the temperature."""
    if tree.branching.is_softmax:
        return torch.sigmoid(logit)
    return tree.branching.activation(torch.stack([logit / 2, -logit / 2], dim=-1), -1)[..., 0]


def predicted(tree: Tree, evaluation: Evaluation, selection: str) -> Tensor:
    """Return the prediction of each member, (members, rows, outputs), in units of the tree."""
    arrival, values = evaluation.arrivals[-1], evaluation.values
    if selection == "single":
        arrival = torch.nn.functional.one_hot(arrival.argmax(-1), arrival.shape[-1]).to(arrival)
    return torch.einsum("mru,mruo->mro", arrival, values)
