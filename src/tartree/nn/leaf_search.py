"""Searches for the leaf of the largest arrival: one row at a time from node to node, or many rows by blocks of layers.

`best_leaf` chooses between them. Both see the weights of a tree through views, so nothing is copied.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import accumulate
from math import exp
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tartree import ops
from tartree.nn.branching import Branching
from tartree.nn.decisions import MLPDecision, logits_per_node
from tartree.nn.products import GroupedMLP
from tartree.structure import Structure

if TYPE_CHECKING:
    from tartree.nn.tree import Tree

LARGEST = float(np.finfo(np.float64).max)
DTYPES = (torch.float32, torch.float64)
#: A row that may have its best leaf in more than this share of the blocks is cheaper to look at as a whole.
MOST_BLOCKS = 0.2
#: With fewer rows in a block, a second thread costs more than it brings.
ROWS_FOR_THREADS = 256
Scale = Callable[[int], float]  # of a node that decides


class Unsearchable(ArithmeticError):
    """A logit is not finite; the full computation says so properly."""


class Nodes(NamedTuple):
    """A tree as its nodes that decide, counted from 0 in order; what passes its arrival on is left out.

    A leaf stands as ``~leaf``, a negative number.
    """

    root: int
    children: list[tuple[int, ...]]
    lowest: list[int]  # the lowest leaf below each node; of the leaf ``~leaf`` itself, counted from the end, the leaf


def nodes_of(structure: Structure) -> Nodes | None:
    """The nodes of a tree; None where some node has several parents or none decides.

    >>> nodes_of(Structure.from_tree([[1, 2], [], [3, 4], [], []]))
    Nodes(root=0, children=[(-1, 1), (-2, -3)], lowest=[0, 1, 2, 1, 0])
    """
    if structure.n_decisions == 0 or (structure.is_regular and structure.stride != structure.window):
        return None
    below = [~leaf for leaf in range(structure.n_leaves)]  # what stands for each node of the layer below
    children: list[tuple[int, ...]] = []
    lowest = list(range(structure.n_leaves))[::-1]
    first = structure.n_decisions
    for d in reversed(range(structure.depth)):
        lists = structure.children(d)
        if sum(map(len, lists)) > len(below):
            return None
        deciding = [tuple(below[c] for c in own) for own in lists if len(own) > 1]
        # Negative places stay what they are when a layer is put in front; others have to be counted from `first`.
        lowest = [min(lowest[c if c < 0 else c - first] for c in own) for own in deciding] + lowest
        children = deciding + children
        first -= len(deciding)
        numbers = iter(range(first, first + len(deciding)))
        below = [next(numbers) if len(own) > 1 else below[own[0]] for own in lists]
    return Nodes(below[0], children, lowest)


_nodes: weakref.WeakKeyDictionary[Structure, Nodes | None] = weakref.WeakKeyDictionary()


def _remembered_nodes(structure: Structure) -> Nodes | None:
    """`nodes_of`, once for a structure: of a deep tree it takes longer than many searches."""
    if structure not in _nodes:
        _nodes[structure] = nodes_of(structure)
    return _nodes[structure]


class Searcher:
    """What a search needs of one tree: its nodes, and views of the weights of its decisions.

    `usable` says whether there is a way to search it at all: every node must have one parent, softmax must make the
    branches, and logits must come from weights of each node's own.
    """

    def __init__(self, tree: Tree) -> None:
        self.structure, self.decision, self.branching = tree.structure, tree.decision, tree.branching
        self.usable = False
        self.plans: dict[int, Any] = {}  # of a batch size, made by `dispatch`
        mlp: Any = self.decision._modules.get("mlp")
        self.mlp: Any = mlp
        self.searchable: bool = (
            type(self.decision) is MLPDecision
            and type(mlp) is GroupedMLP
            and type(self.branching) is Branching
            and mlp.sizes == logits_per_node(self.structure)
        )
        if not self.searchable or not self._weights_are_within_reach():
            return
        nodes = _remembered_nodes(self.structure)
        self.usable = self.searchable = nodes is not None
        if nodes is None:
            return
        # Views follow weights that change in place. Other tensors in their place are told by address; since the old
        # ones are held here, no other can come to lie there.
        self.held = [p.detach() for p in (*self.mlp.weights, *self.mlp.biases)]
        self.addresses = [p.data_ptr() for p in self.held]
        self.nodes = nodes
        layers = len(self.mlp.weights)
        self.dtype = self.held[0].dtype
        self.members, _, self.n_features = self.held[0].shape
        self.weights: list[NDArray[Any]] = [w.numpy() for w in self.held[:layers]]
        self.biases: list[NDArray[Any]] = [b.numpy() for b in self.held[layers:]]
        self.linear = layers == 1
        self.binary = self.linear and max(self.mlp.sizes) == 1
        ends = accumulate(self.mlp.sizes)
        self.slices = [slice(end - size, end) for end, size in zip(ends, self.mlp.sizes, strict=True)]
        # One view a node: to make it at each visit would take as long as its product.
        self.rows = [list(own) for own in self.weights[0]] if self.binary else []

    def sees(self, tree: Tree) -> bool:
        """Whether the tree still has the parts seen here, and they their weights."""
        modules = tree._modules
        if (
            modules["decision"] is not self.decision
            or self.decision._modules.get("mlp") is not self.mlp
            or modules["branching"] is not self.branching
            or tree.structure is not self.structure
        ):
            return False
        if not self.usable:
            return not (self.searchable and self._weights_are_within_reach())
        return [p.data_ptr() for p in self._weights_now()] == self.addresses

    def _weights_now(self) -> tuple[Any, ...]:
        # The own ways of modules to what they hold take longer than the search.
        lists = self.mlp._modules
        return *lists["weights"]._parameters.values(), *lists["biases"]._parameters.values()

    def _weights_are_within_reach(self) -> bool:
        return all(p.device.type == "cpu" and p.dtype in DTYPES for p in self._weights_now())

    def takes(self, x: Tensor) -> bool:
        """Whether x, on a CPU, is rows of this tree; where it is not, the full way says what is wrong."""
        return (
            self.usable
            and self.branching.is_softmax
            and x.dtype == self.dtype
            and x.dim() in (2, 3)
            and x.shape[-1] == self.n_features
            and (x.dim() == 2 or x.shape[0] == self.members)
        )

    def search(self, member: int, x: NDArray[Any], budget: int) -> tuple[float, int] | None:
        """Arrival and number of the best leaf of one row, (features,); None after more nodes than `budget`."""
        scale = _scale(self.branching, member)
        rows, offset = (self.rows[member], self.biases[0][member].item) if self.binary else (None, None)
        node, children, lowest = self.nodes
        arrival, best, best_leaf = 1.0, -1.0, -1
        waiting: list[tuple[float, int, int]] = []  # less the arrival, the lowest leaf below, the node
        while True:
            # Down the largest branches; the others wait, unless they are too small already.
            while node >= 0 and arrival >= best:
                if budget == 0:
                    return None
                budget -= 1
                if rows is not None and offset is not None:  # a call here would take as long as the product
                    z = float(rows[node].dot(x)) + offset(node)
                    if scale is not None:
                        z *= scale(node)
                    if not -LARGEST < z < LARGEST:
                        raise Unsearchable
                    chosen, left = children[node] if z >= 0 else children[node][::-1]
                    small = exp(-abs(z))
                    arrival /= 1 + small
                    there = arrival * small  # 1 less the other would round to 0 too early
                    if there >= best:
                        heappush(waiting, (-there, lowest[left], left))
                    node = chosen
                    continue
                largest, chosen = -1.0, 0
                for probability, child in zip(self._branches(member, node, x, scale), children[node], strict=True):
                    there = arrival * probability
                    if there > largest:
                        largest, there, chosen, child = there, largest, child, chosen
                    if there >= best and there >= 0.0:
                        heappush(waiting, (-there, lowest[child], child))
                arrival, node = largest, chosen
            if node < 0 and (arrival > best or (arrival == best and ~node < best_leaf)):
                best, best_leaf = arrival, ~node
            while True:
                if not waiting or -waiting[0][0] < best:
                    return best, best_leaf
                negative, lowest_leaf, node = heappop(waiting)
                arrival = -negative
                if arrival > best or lowest_leaf < best_leaf:
                    break

    def _branches(self, member: int, node: int, x: NDArray[Any], scale: Scale | None) -> tuple[float, ...]:
        """The branch probabilities of one node for one row, (features,)."""
        logits = self._logits(member, node, x)
        return _softmax((logits if scale is None else logits * scale(node)).tolist())

    def _logits(self, member: int, node: int, x: NDArray[Any]) -> NDArray[Any]:
        units, hidden = x, self.mlp.hidden
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            here: Any = slice(node * hidden, (node + 1) * hidden) if layer == 0 else node
            if layer == len(self.weights) - 1:
                here = self.slices[node]
            if layer:
                units = np.where(units > 0, units, np.expm1(np.minimum(units, 0)))  # ELU
            units = weight[member, here] @ units + bias[member, here]
        return units


def _softmax(logits: list[float]) -> tuple[float, ...]:
    """Probabilities of the children of one node; one logit stands for two children."""
    if len(logits) == 1:
        logits = [logits[0] / 2, logits[0] / -2]
    largest = max(logits)
    if not -LARGEST < sum(logits) < LARGEST:
        raise Unsearchable
    parts = [exp(z - largest) for z in logits]
    total = sum(parts)
    return tuple(part / total for part in parts)


def _scale(branching: Branching, member: int) -> Scale | None:
    """What the logits of a node are multiplied by; None for 1."""
    if branching.log_scale is not None:
        log_scale = branching.log_scale.detach().numpy()[member]
        return lambda node: exp(log_scale.item(node))
    return None if branching.temperature == 1 else lambda node: 1 / branching.temperature


def search_blocks(searcher: Searcher, x: Tensor, leaf: Tensor, arrival: Tensor) -> list[int]:
    """Fill in leaf and arrival, (members, batch), by blocks of nodes; the rows that were given up.

    The upper half of the layers is evaluated for all rows. Below each of its ends stands a block: first each row goes
    into the block where it arrives most, then into all others that may still hold something better.
    """
    given_up = torch.zeros(x.shape[-2], dtype=torch.bool)
    n_blocks = searcher.structure.window ** (searcher.structure.depth // 2)
    threads = torch.get_num_threads()
    if x.shape[-2] < ROWS_FOR_THREADS * n_blocks:
        torch.set_num_threads(1)
    try:
        for member in range(searcher.members):
            own = x if x.dim() == 2 else x[member]
            given_up |= _Blocks(searcher, member, own, leaf[member], arrival[member]).search()
    finally:
        torch.set_num_threads(threads)
    numbers: list[int] = given_up.nonzero().squeeze(1).tolist()
    return numbers


class _Blocks:
    """The search of one member of a regular tree with linear decisions, by blocks of nodes."""

    def __init__(self, searcher: Searcher, member: int, x: Tensor, best_leaf: Tensor, best: Tensor) -> None:
        self.branching, self.member, self.x = searcher.branching, member, x
        self.weight, self.bias = searcher.held[0][member], searcher.held[1][member]
        self.best, self.best_leaf = best, best_leaf
        structure, window = searcher.structure, searcher.structure.window
        upper = structure.depth // 2
        self.above, self.below = Structure(upper, window), Structure(structure.depth - upper, window)
        # Logits of the first block, and how far those of the next one are from them: each layer of it lies together.
        firsts = [sum(structure.layer_logits[:d]) for d in range(upper, structure.depth)]
        sizes = self.below.layer_logits
        spans = [torch.arange(first, first + size) for first, size in zip(firsts, sizes, strict=True)]
        self.first_block = torch.cat(spans)
        self.step = torch.tensor(sizes).repeat_interleave(torch.tensor(sizes))

    def search(self) -> Tensor:
        """Which rows were given up, (batch,): those with too many blocks to look into."""
        self.best.fill_(-1.0)
        above = self._arrival(self.x, None)  # (batch, blocks)
        n_blocks = above.shape[1]
        first = above.argmax(1)
        order = first.argsort()
        used, counts = first[order].unique_consecutive(return_counts=True)
        for block, rows in zip(used.tolist(), order.split(counts.tolist()), strict=True):
            self._visit(block, rows, above[rows, block])
        waiting = self._may_hold_better(above, torch.arange(n_blocks) * self.below.n_leaves, self.best, self.best_leaf)
        waiting[torch.arange(len(first)), first] = False
        given_up = waiting.sum(1) > MOST_BLOCKS * n_blocks
        waiting[given_up] = False
        for block in waiting.any(0).nonzero().squeeze(1).tolist():
            rows = waiting[:, block].nonzero().squeeze(1)
            there = above[rows, block]
            still = self._may_hold_better(there, block * self.below.n_leaves, self.best[rows], self.best_leaf[rows])
            self._visit(block, rows[still], there[still])
        return given_up

    @staticmethod
    def _may_hold_better(there: Tensor, first_leaf: Tensor | int, best: Tensor, best_leaf: Tensor) -> Tensor:
        if there.dim() == 2:
            best, best_leaf = best.unsqueeze(1), best_leaf.unsqueeze(1)
        return (there > best) | ((there == best) & (first_leaf < best_leaf))

    def _visit(self, block: int, rows: Tensor, there: Tensor) -> None:
        """Look at all leaves of a block for some rows, which arrive at its root with `there`."""
        if not len(rows):
            return
        arrival = self._arrival(self.x[rows], block) * there.unsqueeze(1)
        largest, leaf = arrival.max(1)
        leaf = leaf + block * self.below.n_leaves
        best, best_leaf = self.best[rows], self.best_leaf[rows]
        better = (largest > best) | ((largest == best) & (leaf < best_leaf))
        self.best[rows] = torch.where(better, largest.to(best.dtype), best)
        self.best_leaf[rows] = torch.where(better, leaf, best_leaf)

    def _arrival(self, x: Tensor, block: int | None) -> Tensor:
        """Arrival below the root of a block, or for None of the tree, (rows, ends)."""
        if block is None:
            here: Any = slice(0, sum(self.above.layer_logits))
        else:
            here = self.first_block + block * self.step
        # Memory with the batch last, as ops wants it.
        logits = torch.addmm(self.bias[here].unsqueeze(1), self.weight[here], x.t()).t()
        if self.branching.log_scale is not None:
            logits = logits * self.branching.log_scale[self.member, self.branching._owner[here]].exp()
        elif self.branching.temperature != 1:
            logits = logits / self.branching.temperature
        return ops.arrival(logits, self.above if block is None else self.below)
