"""The shape of a tree: how many layers, how many nodes in each, and which nodes are whose children."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
ChildLists = tuple[tuple[tuple[int, ...], ...], ...]


@dataclass(frozen=True, repr=False)
class Structure:
    """The geometry of a tree or layered graph: nodes in layers, each with its children in the next layer.

    A regular structure is three numbers. Node ``i`` of a layer has the children ``i * stride + j`` for ``j`` below
    ``window``, so neighbours share ``window - stride`` children, and the layers have the widths ``1, window, ...``:
    ``widths[d + 1] = (widths[d] - 1) * stride + window``. The paper calls them D, W, S and N_d.

    Any other layered tree or graph is made by `from_children`, `from_tree` or `without`. A node with one child passes
    all its arrival on; so does a leaf above the last layer. Lists that happen to be regular give the regular structure.

    Parameters
    ----------
    depth : int
        Number of layers of decisions. 0 is a single leaf.
    window : int, default=2
        Number of children of each node. For an irregular structure, the largest number of children.
    stride : int, optional
        How far the window slides from one node to the next; ``window``, so that no children are shared, by default.
        None for an irregular structure.

    Examples
    --------
    >>> from tartree import Structure
    >>> Structure(3).widths
    (1, 2, 4, 8)
    >>> Structure(3, window=3, stride=2).n_leaves
    15
    >>> Structure.from_children([[[0, 1]], [[0, 1], [2]]])
    Structure(depth=2, leaves=3, irregular)
    """

    depth: int
    window: int = 2
    stride: int | None = None
    _lists: ChildLists | None = field(default=None, init=False)  # of an irregular structure

    def __post_init__(self) -> None:
        depth = _integer("depth", self.depth)
        window = _integer("window", self.window)
        stride = window if self.stride is None else _integer("stride", self.stride)
        if depth < 0:
            raise ValueError(f"depth must be at least 0, got {depth!r}")
        if window < 2:
            raise ValueError(f"window must be at least 2, got {window!r}; without decisions use depth=0")
        if not 1 <= stride <= window:
            raise ValueError(
                f"stride must be from 1 to the window ({window}), so that every node has a parent, got {stride!r}"
            )
        object.__setattr__(self, "depth", depth)
        object.__setattr__(self, "window", window)
        object.__setattr__(self, "stride", stride)

    @classmethod
    def from_children(cls, layers: Iterable[Iterable[Iterable[int]]]) -> Structure:
        """Make a structure from lists of children: ``layers[d][i]`` are the children of node ``i`` of layer ``d``.

        Children are numbers of nodes of the next layer. Every node needs at least one child (a leaf above the last
        layer passes its arrival on to one) and every node but the root at least one parent.
        """
        try:
            lists = tuple(tuple(tuple(_integer("a child", c) for c in node) for node in layer) for layer in layers)
        except TypeError:
            raise ValueError(
                f"children must be lists of children, for each node of each layer, got {layers!r}"
            ) from None
        _check_lists(lists)
        return _regular_like(lists) or cls._irregular(lists)

    @classmethod
    def from_tree(cls, children: Sequence[Sequence[int]]) -> Structure:
        """Make a structure from a tree: ``children[i]`` are the nodes below node ``i``, none for a leaf; 0 is the root.

        Leaves above the deepest layer are passed on, so the leaves stand in the last layer from left to right.

        Examples
        --------
        >>> Structure.from_tree([[1, 2], [], [3, 4], [], []]).widths
        (1, 2, 3)
        """
        lists = []
        layers = cls.layers_of_tree(children)
        for layer in layers[:-1]:
            ends = list(accumulate(max(1, len(children[i])) for i in layer))
            lists.append([range(end - max(1, len(children[i])), end) for i, end in zip(layer, ends, strict=True)])
        return cls.from_children(lists)

    @staticmethod
    def layers_of_tree(children: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
        """Numbers of a tree's nodes layer by layer, left to right, a leaf repeated in every layer below its own."""
        n_nodes = len(children)
        seen = [0]
        layers: list[tuple[int, ...]] = [(0,)]
        if n_nodes == 0:
            raise ValueError("a tree must have a root, got no children; a single leaf is [[]]")
        while any(len(children[i]) for i in layers[-1]):
            below: list[int] = []
            for i in layers[-1]:
                new = [_integer("a child", c) for c in children[i]]
                if outside := [c for c in new if not 0 < c < n_nodes]:
                    raise ValueError(
                        f"children must be nodes from 1 to {n_nodes - 1}, got child {outside[0]} of node {i}"
                    )
                seen += new
                below += new or [i]
            if len(seen) > n_nodes or len(set(seen)) < len(seen):
                twice = next(c for c in seen if seen.count(c) > 1)
                raise ValueError(
                    f"each node of a tree must have one parent, got several for node {twice}; use from_children"
                )
            layers.append(tuple(below))
        if lost := sorted(set(range(n_nodes)) - set(seen)):
            raise ValueError(f"every node must be reached from the root (node 0), but node {lost[0]} is not")
        return tuple(layers)

    @classmethod
    def _irregular(cls, lists: ChildLists) -> Structure:
        structure = cls(len(lists), max(2, *(len(node) for layer in lists for node in layer)))
        object.__setattr__(structure, "stride", None)
        object.__setattr__(structure, "_lists", lists)
        return structure

    def without(self, nodes: Iterable[tuple[int, int]]) -> Structure:
        """This structure less some nodes, given as ``(layer, node)``.

        What can only be reached through them goes too, and so does a node that loses all its children. A node that is
        left with one child passes its arrival on. `survivors` says which nodes are left.

        Examples
        --------
        >>> Structure(2).without([(2, 3)])
        Structure(depth=2, leaves=3, irregular)
        """
        kept = self.survivors(nodes)
        if all(len(layer) == width for layer, width in zip(kept, self.widths, strict=True)):
            return self
        lists = []
        for d in range(self.depth):
            number = {old: new for new, old in enumerate(kept[d + 1])}
            children = self.children(d)
            lists.append([[number[c] for c in children[i] if c in number] for i in kept[d]])
        return Structure.from_children(lists)

    def survivors(self, nodes: Iterable[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
        """The nodes of each layer, by their numbers here, that `without` of the same nodes keeps."""
        alive = [np.ones(width, dtype=bool) for width in self.widths]
        for layer, node in nodes:
            if not 0 <= layer <= self.depth or not 0 <= node < self.widths[layer]:
                raise ValueError(f"nodes to remove must exist in {self!r}, got layer {layer}, node {node}")
            alive[layer][node] = False
        for d in reversed(range(self.depth)):  # a node needs a child
            parents, children, _ = self.edges(d)
            has_child = np.zeros_like(alive[d])
            has_child[parents[alive[d + 1][children]]] = True
            alive[d] &= has_child
        if not alive[0][0]:
            raise ValueError("a path from the root to a leaf must be left, but these nodes cut all of them")
        for d in range(self.depth):  # and a parent
            parents, children, _ = self.edges(d)
            has_parent = np.zeros_like(alive[d + 1])
            has_parent[children[alive[d][parents]]] = True
            alive[d + 1] &= has_parent
        return tuple(tuple(np.flatnonzero(layer).tolist()) for layer in alive)

    @property
    def is_regular(self) -> bool:
        """Whether depth, window and stride say everything."""
        return self._lists is None

    @property
    def is_binary(self) -> bool:
        """Whether every node has two children of its own."""
        return self.is_regular and self.window == self.stride == 2

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Number of nodes of each layer, from the root (1) to the leaves."""
        if self._lists is not None:
            return (*(len(layer) for layer in self._lists), 1 + max(c for node in self._lists[-1] for c in node))
        assert self.stride is not None
        widths = [1]
        for _ in range(self.depth):
            widths.append((widths[-1] - 1) * self.stride + self.window)
        return tuple(widths)

    @property
    def n_leaves(self) -> int:
        """Number of nodes of the last layer."""
        return self.widths[-1]

    @cached_property
    def n_decisions(self) -> int:
        """Number of nodes that decide, that is, have more than one child."""
        return (
            sum(int((self.n_children(d) > 1).sum()) for d in range(self.depth))
            if self._lists
            else sum(self.widths[:-1])
        )

    @cached_property
    def layer_branches(self) -> tuple[int, ...]:
        """Number of branches, the edges below nodes that decide, of each layer of decisions."""
        if self._lists is None:
            return tuple(width * self.window for width in self.widths[:-1])
        return tuple(int(counts[counts > 1].sum()) for counts in map(self.n_children, range(self.depth)))

    @cached_property
    def layer_logits(self) -> tuple[int, ...]:
        """Number of logits of each layer of decisions: one for two children, otherwise one a child, none for one."""
        if self._lists is None:
            return tuple(width * int(logits_of(self.window)) for width in self.widths[:-1])
        return tuple(int(logits_of(self.n_children(d)).sum()) for d in range(self.depth))

    @property
    def n_branches(self) -> int:
        """Number of branches; a tensor of branching probabilities lists them by layer, node and child."""
        return sum(self.layer_branches)

    @property
    def n_logits(self) -> int:
        """Number of logits; a tensor of logits lists them by layer, node and child."""
        return sum(self.layer_logits)

    def n_children(self, layer: int) -> IntArray:
        """Number of children of each node of a layer."""
        self._check_layer(layer)
        if self._lists is not None:
            return np.array([len(node) for node in self._lists[layer]], dtype=np.int64)
        return np.full(self.widths[layer], self.window, dtype=np.int64)

    def children(self, layer: int) -> tuple[tuple[int, ...], ...]:
        """Children of each node of a layer, as numbers of nodes of the next layer."""
        self._check_layer(layer)
        if self._lists is not None:
            return self._lists[layer]
        assert self.stride is not None
        return tuple(tuple(range(i * self.stride, i * self.stride + self.window)) for i in range(self.widths[layer]))

    def _check_layer(self, layer: int) -> None:
        if not 0 <= _integer("layer", layer) < self.depth:
            raise ValueError(f"layer must be one of the {self.depth} with decisions, counted from 0, got {layer!r}")

    def edges(self, layer: int) -> tuple[IntArray, IntArray, IntArray]:
        """Parent, child and branch of each edge below a layer, by parent; an edge that passes on has the branch -1."""
        counts = self.n_children(layer)
        parents = np.repeat(np.arange(len(counts)), counts)
        if self._lists is not None:
            children = np.array([c for node in self._lists[layer] for c in node], dtype=np.int64)
        else:
            assert self.stride is not None
            children = parents * self.stride + np.tile(np.arange(self.window), len(counts))
        branches = np.full(len(parents), -1, dtype=np.int64)
        decides = counts[parents] > 1
        branches[decides] = sum(self.layer_branches[:layer]) + np.arange(decides.sum())
        return parents, children, branches

    @cached_property
    def fans(self) -> tuple[Fan, ...]:
        """Nodes that decide, grouped by their number of children: where their logits and branches stand."""
        counts = np.concatenate([np.zeros(0, np.int64), *(self.n_children(d) for d in range(self.depth))])
        counts = counts[counts > 1]
        n_logits = logits_of(counts)
        first_branch = np.cumsum(counts) - counts
        first_logit = np.cumsum(n_logits) - n_logits
        return tuple(
            Fan(
                int(k),
                np.flatnonzero(counts == k),
                first_logit[counts == k, None] + np.arange(logits_of(k)),
                first_branch[counts == k, None] + np.arange(k),
            )
            for k in np.unique(counts)
        )

    @cached_property
    def routes(self) -> Routes:
        """The same graph without its chains of single children, for programs that walk an irregular structure."""
        return _contract(self)

    def check_last_axis(self, what: str, shape: Sequence[int], size: int) -> None:
        """Raise unless a tensor of this structure (`what`: logits, branching, ...) ends in an axis of `size`."""
        if not shape or shape[-1] != size:
            raise ValueError(f"{what} must end in an axis of {size} for {self!r}, got shape {tuple(shape)}")

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON; `from_dict` reads it."""
        if self._lists is not None:
            return {"children": [[list(node) for node in layer] for layer in self._lists]}
        return {"depth": self.depth, "window": self.window, "stride": self.stride}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Structure:
        """Read what `to_dict` wrote, with all checks."""
        if set(data) == {"children"}:
            return cls.from_children(data["children"])
        if set(data) == {"depth", "window", "stride"}:
            return cls(data["depth"], data["window"], data["stride"])
        raise ValueError(
            f"a structure must have the keys depth, window and stride, or children, got {sorted(data)}"
        )

    def __repr__(self) -> str:
        if self.is_regular:
            return f"Structure(depth={self.depth}, window={self.window}, stride={self.stride})"
        return f"Structure(depth={self.depth}, leaves={self.n_leaves}, irregular)"


@dataclass(frozen=True)
class Fan:
    """All nodes of a structure that have the same number of children, two or more."""

    n_children: int
    nodes: IntArray  # (nodes,): positions among all nodes that decide
    logits: IntArray  # (nodes, logits of a node): positions among all logits
    branches: IntArray  # (nodes, children): positions among all branches


@dataclass(frozen=True)
class Routes:
    """A structure with one slot for each chain of nodes that pass all their arrival on.

    A leaf above the last layer thus takes one slot, not one a layer, so that a tree needs memory for its own nodes.
    """

    n_slots: int
    slots: tuple[IntArray, ...]  # for each layer, (width,): the slot of each node
    # For each layer of decisions: parent slots and child slots of its edges, and the branches of the first of them;
    # edges beyond those pass on to a child that has other parents too.
    steps: tuple[tuple[IntArray, IntArray, IntArray], ...]


def logits_of(n_children: Any) -> Any:
    """Number of logits of nodes with so many children: two children need the difference of their logits only."""
    return np.where(np.asarray(n_children) == 2, 1, np.where(np.asarray(n_children) == 1, 0, n_children))


def _integer(name: str, value: Any) -> int:
    if isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be an integer, got {value!r}")
    try:
        return operator.index(value)
    except TypeError:
        raise ValueError(f"{name} must be an integer, got {value!r}") from None


def _check_lists(lists: ChildLists) -> None:
    width = 1
    for d, layer in enumerate(lists):
        if len(layer) != width:
            raise ValueError(
                f"layer {d} must list the children of its {width} node(s), got {len(layer)} lists"
                + ("; the first layer holds the root alone" if d == 0 else "")
            )
        for i, node in enumerate(layer):
            if not node:
                raise ValueError(
                    f"every node above the last layer must have a child, got none for node {i} of layer {d}; "
                    "a leaf is passed on to one child of its own"
                )
            if min(node) < 0 or len(set(node)) < len(node):
                raise ValueError(
                    f"children must be different indices from 0, got {list(node)} for node {i} of layer {d}"
                )
        reached = {c for node in layer for c in node}
        width = max(reached) + 1
        if len(reached) < width:
            missing = next(c for c in range(width) if c not in reached)
            raise ValueError(
                f"children lists must name every node, but node {missing} of layer {d + 1} has no parent, "
                f"although layer {d} names node {width - 1}"
            )


def _regular_like(lists: ChildLists) -> Structure | None:
    """The regular structure with the same children, if there is one."""
    if not lists:
        return Structure(0)
    window = len(lists[0][0])
    stride = lists[1][1][0] if len(lists) > 1 and len(lists[1]) > 1 else window
    if window < 2 or not 1 <= stride <= window:
        return None
    regular = Structure(len(lists), window, stride)
    same = regular.widths[:-1] == tuple(len(layer) for layer in lists) and all(
        regular.children(d) == layer for d, layer in enumerate(lists)
    )
    return regular if same else None


def _contract(structure: Structure) -> Routes:
    slots = [np.zeros(1, dtype=np.int64)]
    steps = []
    n_slots = 1
    for d in range(structure.depth):
        parents, children, branches = structure.edges(d)
        n_parents = np.bincount(children)
        same = (branches < 0) & (n_parents[children] == 1)
        below = np.full(len(n_parents), -1, dtype=np.int64)
        below[children[same]] = slots[d][parents[same]]
        new = below < 0
        below[new] = n_slots + np.arange(new.sum())
        n_slots += int(new.sum())
        walked = np.concatenate([np.flatnonzero(branches >= 0), np.flatnonzero((branches < 0) & ~same)])
        decided = branches[branches >= 0]
        steps.append((slots[d][parents[walked]], below[children[walked]], decided))
        slots.append(below)
    return Routes(n_slots, tuple(slots), tuple(steps))
