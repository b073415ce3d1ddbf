"""Layout of a tree or layered graph, without drawing: the row and the x coordinate of each node.

Two steps: `outline` leaves out nodes that only pass their arrival on, so that a leaf is in the row below its last
decision. `arrange` computes an x for each node: boxes of a row do not overlap, and parents are above their children.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tartree.structure import Structure

FloatArray = NDArray[np.float64]
Kind = Literal["decision", "leaf", "joint"]
SWEEPS = 12  # up and down; more make no visible difference


@dataclass(frozen=True)
class Spot:
    """A node to draw: its number (layer by layer from the root, 0), its kind, and its row (0 at the top)."""

    number: int
    kind: Kind
    row: int


@dataclass(frozen=True)
class Link:
    """An edge to draw between two spots, with its number among all edges of the structure, layer by layer."""

    parent: int
    child: int
    edge: int


@dataclass(frozen=True)
class Outline:
    """The nodes and edges to draw. A `joint` passes its arrival on to a child that has other parents too."""

    spots: tuple[Spot, ...]
    links: tuple[Link, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows of the drawing."""
        return 1 + max(spot.row for spot in self.spots)

    def links_below(self, spot: int) -> list[Link]:
        """Return the edges that leave a spot, in the order of its children."""
        return [link for link in self.links if link.parent == spot]


@dataclass(frozen=True)
class Layout:
    """The x of each spot, and of the bends of each link: one for each row that it passes, often none."""

    x: FloatArray  # (spots,)
    bends: tuple[tuple[float, ...], ...]  # of each link


def outline(structure: Structure) -> Outline:
    """Return what to draw of a structure: chains of nodes that pass all their arrival on become one spot.

    Examples
    --------
    >>> drawn = outline(Structure.from_tree([[1, 2], [], [3, 4], [], []]))
    >>> [(spot.kind, spot.row) for spot in drawn.spots]
    [('decision', 0), ('leaf', 1), ('decision', 1), ('leaf', 2), ('leaf', 2)]
    """
    slots = structure.routes.slots
    first = np.cumsum([0, *structure.widths])
    homes = [0] * structure.routes.n_slots  # the last node of each chain: it decides, or is a leaf
    kinds: list[Kind] = ["leaf"] * structure.routes.n_slots
    links = []
    n_edges = 0
    for layer, layer_slots in enumerate(slots):
        counts = structure.n_children(layer) if layer < structure.depth else np.zeros(len(layer_slots))
        for node, slot in enumerate(layer_slots):
            homes[slot] = int(first[layer]) + node
            kinds[slot] = "decision" if counts[node] > 1 else "joint" if counts[node] else "leaf"
        if layer == structure.depth:
            break
        parents, children, _ = structure.edges(layer)
        ends = zip(layer_slots[parents].tolist(), slots[layer + 1][children].tolist(), strict=True)
        links += [Link(above, below, n_edges + i) for i, (above, below) in enumerate(ends) if above != below]
        n_edges += len(parents)
    rows = [0] * len(homes)
    for link in links:  # sorted by layer, so that a parent's row is known before its children's
        rows[link.child] = max(rows[link.child], rows[link.parent] + 1)
    return Outline(tuple(map(Spot, homes, kinds, rows)), tuple(links))


def arrange(drawn: Outline, widths: Sequence[float] | FloatArray, gap: float = 0.0, bend_width: float = 0.0) -> Layout:
    """Arrange spots of the given widths: `x` are centres, the leftmost edge of a box is at 0.

    Boxes of a row keep `gap` between them, and links that pass a row count as boxes of `bend_width`. Parents are above
    the middle of their children if there is room.

    Examples
    --------
    >>> arrange(outline(Structure(2)), [1.0] * 7).x
    array([2. , 1. , 3. , 0.5, 1.5, 2.5, 3.5])
    """
    sizes = np.asarray(widths, dtype=np.float64)
    if sizes.shape != (len(drawn.spots),) or not (sizes >= 0).all() or gap < 0 or bend_width < 0:
        raise ValueError(
            f"widths must be {len(drawn.spots)} numbers of at least 0, gap and bend_width at least 0, "
            f"got widths of shape {sizes.shape}, {gap=}, {bend_width=}"
        )
    rows, pairs, chains, sizes = _with_bends(drawn, sizes, bend_width)
    rows = _uncrossed(rows, pairs)
    above, below = _neighbours(pairs, len(sizes))
    x = np.zeros(len(sizes))
    for row in rows:
        _settle(x, row, _packed(row, sizes, gap), sizes, gap)
    widest = max(range(len(rows)), key=lambda r: (_packed(rows[r], sizes, gap)[-1], r))
    for _ in range(SWEEPS):
        for row in rows[widest + 1 :]:
            _settle(x, row, _wished(x, row, above), sizes, gap)
        for row in rows[-2::-1]:
            _settle(x, row, _wished(x, row, below), sizes, gap)
    x -= (x - sizes / 2).min()
    bends = tuple(tuple(float(x[i]) for i in chain) for chain in chains)
    return Layout(x[: len(drawn.spots)], bends)


def _with_bends(
    drawn: Outline, sizes: FloatArray, bend_width: float
) -> tuple[list[list[int]], list[tuple[int, int]], list[list[int]], FloatArray]:
    """Return rows of spots and pairs of neighbours; a link that passes rows gets a spot in each of them."""
    rows: list[list[int]] = [[] for _ in range(drawn.n_rows)]
    for i, spot in enumerate(drawn.spots):
        rows[spot.row].append(i)
    pairs: list[tuple[int, int]] = []
    chains: list[list[int]] = []
    n_spots = len(drawn.spots)
    for link in drawn.links:
        chain = []
        for row in range(drawn.spots[link.parent].row + 1, drawn.spots[link.child].row):
            chain.append(n_spots)
            rows[row].append(n_spots)
            n_spots += 1
        pairs += pairwise([link.parent, *chain, link.child])
        chains.append(chain)
    return rows, pairs, chains, np.concatenate([sizes, np.full(n_spots - len(sizes), bend_width)])


def _neighbours(pairs: list[tuple[int, int]], n_spots: int) -> tuple[list[list[int]], list[list[int]]]:
    above: list[list[int]] = [[] for _ in range(n_spots)]
    below: list[list[int]] = [[] for _ in range(n_spots)]
    for parent, child in pairs:
        above[child].append(parent)
        below[parent].append(child)
    return above, below


def _uncrossed(rows: list[list[int]], pairs: list[tuple[int, int]]) -> list[list[int]]:
    """Order rows by the mean position of the parents, if fewer links cross then."""
    above, _ = _neighbours(pairs, sum(map(len, rows)))
    ordered = [rows[0]]
    for row in rows[1:]:
        position = {spot: i for i, spot in enumerate(ordered[-1])}
        ordered.append(sorted(row, key=lambda spot: float(np.mean([position[p] for p in above[spot]]))))
    return ordered if crossings(ordered, pairs) < crossings(rows, pairs) else rows


def crossings(rows: Sequence[Sequence[int]], pairs: Sequence[tuple[int, int]]) -> int:
    """Count pairs of crossing links between neighbouring rows."""
    row_of = {spot: r for r, row in enumerate(rows) for spot in row}
    position = {spot: i for row in rows for i, spot in enumerate(row)}
    ends: list[list[tuple[int, int]]] = [[] for _ in rows]
    for parent, child in pairs:
        ends[row_of[parent]].append((position[parent], position[child]))
    count = 0
    for links in ends:
        children_left: list[int] = []  # children of the parents to the left, sorted
        for _, siblings in groupby(sorted(links), key=itemgetter(0)):
            children = [child for _, child in siblings]
            count += sum(len(children_left) - bisect_right(children_left, child) for child in children)
            for child in children:
                insort(children_left, child)
    return count


def _packed(row: Sequence[int], sizes: FloatArray, gap: float) -> FloatArray:
    """Return centres of boxes side by side, from 0 on."""
    widths = sizes[row]
    return np.cumsum(widths + gap) - widths / 2 - gap


def _wished(x: FloatArray, row: Sequence[int], neighbours: Sequence[Sequence[int]]) -> FloatArray:
    """Return the best x of each spot of a row: the middle of its neighbours, or its x if it has none."""
    return np.array(
        [
            np.ptp(x[neighbours_of]) / 2 + x[neighbours_of].min() if (neighbours_of := neighbours[i]) else x[i]
            for i in row
        ]
    )


def _settle(x: FloatArray, row: Sequence[int], wished: FloatArray, sizes: FloatArray, gap: float) -> None:
    """Move a row as near to the wished positions (least squares) as its order and the gaps allow."""
    packed = _packed(row, sizes, gap)
    x[row] = _rising(wished - packed) + packed


def _rising(values: FloatArray) -> FloatArray:
    """Return the nearest sequence that never decreases: neighbours in the wrong order are pooled at their mean."""
    pools: list[tuple[float, int]] = []
    for value in values:
        mean, count = float(value), 1
        while pools and pools[-1][0] > mean:
            other, n = pools.pop()
            mean, count = (mean * count + other * n) / (count + n), count + n
        pools.append((mean, count))
    return np.repeat([mean for mean, _ in pools], [count for _, count in pools])
