"""The definition: dense transition matrices, one node at a time. Slow and obvious; every other backend equals it."""

from __future__ import annotations

import torch
from torch import Tensor

from tartree.structure import Structure


def branch(logits: Tensor, structure: Structure) -> Tensor:
    """Branching probabilities of all nodes: the softmax of each node's logits, a binary node's being ``(z, 0)``."""
    probabilities = []
    position = 0
    for d in range(structure.depth):
        for n_children in structure.n_children(d):
            if n_children == 1:
                continue
            if n_children == 2:
                z = logits[..., position : position + 1]  # (..., 1)
                node_logits = torch.cat([z, torch.zeros_like(z)], dim=-1)
                position += 1
            else:
                node_logits = logits[..., position : position + n_children]  # (..., children)
                position += n_children
            probabilities.append(torch.softmax(node_logits, dim=-1))
    return torch.cat([logits[..., :0], *probabilities], dim=-1)  # (..., branches)


def transition_matrices(branching: Tensor, structure: Structure) -> list[Tensor]:
    """T_d of each layer, (..., nodes of layer d + 1, nodes of layer d): each column is a distribution."""
    matrices = []
    for d in range(structure.depth):
        parents, children, branches = structure.edges(d)
        shape = (*branching.shape[:-1], structure.widths[d + 1], structure.widths[d])
        matrix = branching.new_zeros(shape)
        decides = branches >= 0
        matrix[..., children[~decides], parents[~decides]] = 1.0
        matrix[..., children[decides], parents[decides]] = branching[..., branches[decides]]
        matrices.append(matrix)
    return matrices


def spread(branching: Tensor, structure: Structure, layers: bool = True) -> list[Tensor]:
    """Arrival at each layer, (..., nodes of layer d), or at the last: p_0 = 1 and p_{d+1} = T_d p_d."""
    arrivals = [branching.new_ones((*branching.shape[:-1], 1))]
    for matrix in transition_matrices(branching, structure):
        arrivals.append((matrix @ arrivals[-1].unsqueeze(-1)).squeeze(-1))
    return arrivals if layers else arrivals[-1:]


def arrival(logits: Tensor, structure: Structure, layers: bool = True) -> list[Tensor]:
    """Arrival at each layer, or at the last, from the logits of all nodes."""
    return spread(branch(logits, structure), structure, layers)
