"""Most probable paths from the root to a leaf."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tartree.structure import Structure


def hard_paths(structure: Structure, arrivals: list[Tensor], branching: Tensor) -> NDArray[np.int64]:
    """Return the node of each layer on the most probable path to the best leaf, (members, rows, layers).

    Nodes are indices within their layer. Going up, the parent is the one that sends most to the node.
    """
    path = [arrivals[-1].argmax(-1)]  # (members, rows)
    for d in reversed(range(structure.depth)):
        parents, children, branches = (torch.from_numpy(part).to(branching.device) for part in structure.edges(d))
        flow = arrivals[d].index_select(-1, parents) * edge_shares(branching, branches)  # (members, rows, edges)
        flow = flow.masked_fill(children != path[-1].unsqueeze(-1), -1.0)
        path.append(parents[flow.argmax(-1)])
    return torch.stack(path[::-1], dim=-1).cpu().numpy()


def edge_shares(branching: Tensor, branches: Tensor) -> Tensor:
    """Return the share of its parent's arrival that each edge of a layer gets, (..., edges)."""
    share = branching.new_ones((*branching.shape[:-1], len(branches)))
    decides = branches >= 0
    share[..., decides] = branching.index_select(-1, branches[decides])
    return share
