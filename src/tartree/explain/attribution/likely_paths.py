"""The ways of a row through a tree or graph, the most probable first."""

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
    """One way from the root to a leaf: nodes by their numbers within the layers, and the edge taken below each."""

    probability: float
    nodes: tuple[int, ...]
    edges: tuple[int, ...]  # numbers within the layer's edges


def likely_paths(structure: Structure, shares: Sequence[FloatArray], share: float, max_paths: int) -> list[TreePath]:
    """Ways in falling order of probability, until together they have `share` of it or there are `most`.

    `shares` are, for each layer, what each edge gets of its parent's arrival, (edges,).
    """
    edges = [structure.edges(d) for d in range(structure.depth)]
    # The best that can still come from each node: with it, ways come out of the queue in order.
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
