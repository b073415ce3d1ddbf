"""Paths of a row through a tree or graph, the most probable first."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tartree.structure import Structure

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class TreePath:
    """A path from the root to a leaf: the index of the node within each layer, and of the edge below it."""

    probability: float
    nodes: tuple[int, ...]
    edges: tuple[int, ...]  # numbers within the layer's edges


def likely_paths(structure: Structure, shares: Sequence[FloatArray], share: float, max_paths: int) -> list[TreePath]:
    """Return paths in decreasing order of probability, until they have `share` of it together or there are `max_paths`.

    `shares` are the shares of the parent's arrival, (edges,), for each layer.
    """
    edges = [structure.edges(d) for d in range(structure.depth)]
    # The largest share from each node to a leaf: with it, paths leave the queue in order.
    best = [np.ones(structure.n_leaves)]
    below: list[list[list[int]]] = []
    for d in reversed(range(structure.depth)):
        parents, children, _ = edges[d]
        level = np.zeros(structure.widths[d])
        np.maximum.at(level, parents, shares[d] * best[-1][children])
        best.append(level)
        edges_of_node: list[list[int]] = [[] for _ in range(structure.widths[d])]
        for e, parent in enumerate(parents.tolist()):
            edges_of_node[parent].append(e)
        below.append(edges_of_node)
    best, below = best[::-1], below[::-1]
    queue: list[tuple[float, float, tuple[int, ...], tuple[int, ...]]] = [(-float(best[0][0]), 1.0, (0,), ())]
    paths: list[TreePath] = []
    total = 0.0
    while queue and len(paths) < max_paths and total < share - 1e-12:
        _, probability, nodes, edge_path = heapq.heappop(queue)
        d = len(edge_path)
        if d == structure.depth:
            paths.append(TreePath(probability, nodes, edge_path))
            total += probability
            continue
        for e in below[d][nodes[-1]]:
            child = int(edges[d][1][e])
            onward = probability * float(shares[d][e])
            if onward > 0:
                heapq.heappush(queue, (-onward * float(best[d + 1][child]), onward, (*nodes, child), (*edge_path, e)))
    return paths
