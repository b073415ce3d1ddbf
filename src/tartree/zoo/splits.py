"""A tree with one feature a split, as plain arrays: what other libraries' trees become first."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from tartree.nn import Classes, ConstantLeaf, SplitDecision, Tree, Values
from tartree.nn.split_decision import ZERO, level_table
from tartree.structure import Structure

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True)
class SplitTree:
    """Nodes of a tree in any order, the root first; a row goes left where its feature is at most the threshold.

    Attributes
    ----------
    left, right : array of int of shape (nodes,)
        Children; -1 for a leaf.
    feature : array of int of shape (nodes,)
    threshold : array of float of shape (nodes,)
    value : array of float of shape (nodes, outputs)
        What a leaf gives; that of other nodes is not used.
    gap_left : array of bool of shape (nodes,)
        Where a gap goes.
    zero_is_gap : array of bool of shape (nodes,)
        Whether zero counts as a gap.
    levels : dict of int to array of int
        For nodes that split levels, those that go left.
    source : array of int of shape (nodes,)
        The number of each node where it comes from.
    statistics : dict of str to array of shape (nodes of the source, ...)
        What the source knows of all its nodes, in its own order; for `to_sklearn`.
    """

    left: Integers
    right: Integers
    feature: Integers
    threshold: Floats
    value: Floats
    gap_left: Booleans
    zero_is_gap: Booleans
    levels: dict[int, Integers] = field(default_factory=dict)
    source: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    statistics: dict[str, NDArray[np.generic]] = field(default_factory=dict)

    @classmethod
    def make(
        cls,
        left: Integers,
        right: Integers,
        feature: NDArray[np.generic],
        threshold: NDArray[np.generic],
        value: NDArray[np.generic],
        *,
        gap_left: NDArray[np.generic] | None = None,
        zero_is_gap: NDArray[np.generic] | None = None,
        levels: dict[int, Integers] | None = None,
        statistics: dict[str, NDArray[np.generic]] | None = None,
    ) -> SplitTree:
        """Nodes that the root reaches, layer by layer; a tree may hold others, that were pruned."""
        left, right = left.astype(np.int64), right.astype(np.int64)
        reached, layer = [np.zeros(1, dtype=np.int64)], np.zeros(1, dtype=np.int64)
        while len(layer := layer[left[layer] >= 0]):
            layer = np.stack([left[layer], right[layer]], axis=1).ravel()
            reached.append(layer)
        source = np.concatenate(reached)
        number = np.full(len(left), -1, dtype=np.int64)
        number[source] = np.arange(len(source))
        inner = left[source] >= 0
        return cls(
            left=np.where(inner, number[left[source]], -1),
            right=np.where(inner, number[right[source]], -1),
            feature=np.where(inner, np.asarray(feature, dtype=np.int64)[source], 0),
            threshold=np.asarray(threshold, dtype=np.float64)[source],
            value=np.asarray(value, dtype=np.float64).reshape(len(left), -1)[source],
            gap_left=_flags(gap_left, source),
            zero_is_gap=_flags(zero_is_gap, source),
            levels={int(number[node]): own for node, own in (levels or {}).items() if number[node] >= 0},
            source=source,
            statistics=statistics or {},
        )

    @property
    def n_leaves(self) -> int:
        return int((self.left < 0).sum())

    @property
    def depth(self) -> int:
        """Decisions on the longest way to a leaf."""
        depth, layer = 0, np.zeros(1, dtype=np.int64)
        while len(layer := layer[self.left[layer] >= 0]):
            layer = np.concatenate([self.left[layer], self.right[layer]])
            depth += 1
        return depth

    def route(self, values: Floats, gaps: Booleans | None) -> Integers:
        """The leaf of each row, (rows,), by walking down; `values` and `gaps` are (rows, features)."""
        nodes, table = level_table(self.levels)
        row_of = np.full(len(self.left), -1, dtype=np.int64)
        row_of[nodes] = np.arange(len(nodes))
        at = np.zeros(len(values), dtype=np.int64)
        rows = np.arange(len(values)) if self.left[0] >= 0 else np.zeros(0, dtype=np.int64)
        while len(rows):
            node = at[rows]
            feature = self.feature[node]
            value = values[rows, feature]
            goes_left = value <= self.threshold[node]
            if len(nodes) and len(own := np.flatnonzero(row_of[node] >= 0)):
                last = table.shape[1] - 1
                inside = (value[own] > -1) & (value[own] < last)
                level = np.where(inside, value[own], last).astype(np.int64)
                goes_left[own] = table[row_of[node[own]], level]
            if gaps is not None:
                gap = gaps[rows, feature] | (self.zero_is_gap[node] & (value >= -ZERO) & (value <= ZERO))
                goes_left = np.where(gap, self.gap_left[node], goes_left)
            at[rows] = np.where(goes_left, self.left[node], self.right[node])
            rows = rows[self.left[at[rows]] >= 0]
        return at

    def layout(self) -> tuple[Structure, Integers, Integers]:
        """The structure, and which nodes its decisions and its leaves are."""
        pairs = zip(self.left.tolist(), self.right.tolist(), strict=True)
        children = [[a, b] if a >= 0 else [] for a, b in pairs]
        layers = Structure.layers_of_tree(children)
        decisions = [node for layer in layers for node in layer if children[node]]
        return Structure.from_tree(children), np.array(decisions, dtype=np.int64), np.array(layers[-1])

    def to_tree(self, n_features: int, *, gaps: bool, probabilities: bool) -> Tree:
        """The same as a `Tree`: an irregular structure, f an indicator of one feature, g constant."""
        structure, decisions, leaves = self.layout()
        places = {int(node): place for place, node in enumerate(decisions)}
        decision = SplitDecision(
            structure,
            n_features,
            self.feature[decisions],
            self.threshold[decisions],
            gap_first=self.gap_left[decisions] if gaps else None,
            zero_is_gap=self.zero_is_gap[decisions],
            levels={places[node]: own for node, own in self.levels.items()},
        )
        numbers = self.value[leaves]  # (leaves, outputs)
        leaf = ConstantLeaf(structure, numbers.shape[1])
        with np.errstate(divide="ignore"):
            said = torch.from_numpy(np.log(numbers) if probabilities else numbers)
        leaf.values = torch.nn.Parameter(said.unsqueeze(0), requires_grad=False)
        output = Classes(numbers.shape[1]) if probabilities else Values(numbers.shape[1])
        return Tree(structure, decision, leaf, output).eval()


def _flags(given: NDArray[np.generic] | None, source: Integers) -> Booleans:
    return np.zeros(len(source), dtype=bool) if given is None else np.asarray(given, dtype=bool)[source]
