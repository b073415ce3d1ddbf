"""A tree with one feature a split, as plain arrays: the form in which trees of other libraries are read."""

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
    """Nodes of a tree in any order, the root first; a row goes left if its feature is at most the threshold.

    Attributes
    ----------
    left, right : array of int of shape (nodes,)
        Children; -1 for a leaf.
    feature : array of int of shape (nodes,)
    threshold : array of float of shape (nodes,)
    value : array of float of shape (nodes, outputs)
        Output of a leaf; that of other nodes is not used.
    missing_left : array of bool of shape (nodes,)
        Whether missing values go left.
    zero_is_missing : array of bool of shape (nodes,)
        Whether zero counts as a missing value.
    levels : dict of int to array of int
        Levels that go left, of nodes that split a category.
    source : array of int of shape (nodes,)
        Index of each node in the source.
    statistics : dict of str to array of shape (nodes of the source, ...)
        Training statistics of all nodes, in the order of the source; for `to_sklearn`.
    """

    left: Integers
    right: Integers
    feature: Integers
    threshold: Floats
    value: Floats
    missing_left: Booleans
    zero_is_missing: Booleans
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
        missing_left: NDArray[np.generic] | None = None,
        zero_is_missing: NDArray[np.generic] | None = None,
        levels: dict[int, Integers] | None = None,
        statistics: dict[str, NDArray[np.generic]] | None = None,
    ) -> SplitTree:
        """Return the nodes that the root reaches, layer by layer; the source may hold others, which were pruned."""
        left, right = left.astype(np.int64), right.astype(np.int64)
        reached, layer = [np.zeros(1, dtype=np.int64)], np.zeros(1, dtype=np.int64)
        while len(layer := layer[left[layer] >= 0]):
            layer = np.stack([left[layer], right[layer]], axis=1).ravel()
            reached.append(layer)
        source = np.concatenate(reached)
        index = np.full(len(left), -1, dtype=np.int64)
        index[source] = np.arange(len(source))
        inner = left[source] >= 0
        return cls(
            left=np.where(inner, index[left[source]], -1),
            right=np.where(inner, index[right[source]], -1),
            feature=np.where(inner, np.asarray(feature, dtype=np.int64)[source], 0),
            threshold=np.asarray(threshold, dtype=np.float64)[source],
            value=np.asarray(value, dtype=np.float64).reshape(len(left), -1)[source],
            missing_left=_flags(missing_left, source),
            zero_is_missing=_flags(zero_is_missing, source),
            levels={int(index[node]): levels_left for node, levels_left in (levels or {}).items() if index[node] >= 0},
            source=source,
            statistics=statistics or {},
        )

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int((self.left < 0).sum())

    @property
    def depth(self) -> int:
        """Decisions on the longest path to a leaf."""
        depth, layer = 0, np.zeros(1, dtype=np.int64)
        while len(layer := layer[self.left[layer] >= 0]):
            layer = np.concatenate([self.left[layer], self.right[layer]])
            depth += 1
        return depth

    def route(self, values: Floats, missing: Booleans | None) -> Integers:
        """Return the leaf of each row, (rows,), by walking down; both arrays are (rows, features)."""
        nodes, table = level_table(self.levels)
        table_row = np.full(len(self.left), -1, dtype=np.int64)
        table_row[nodes] = np.arange(len(nodes))
        at = np.zeros(len(values), dtype=np.int64)
        rows = np.arange(len(values)) if self.left[0] >= 0 else np.zeros(0, dtype=np.int64)
        while len(rows):
            node = at[rows]
            feature = self.feature[node]
            value = values[rows, feature]
            goes_left = value <= self.threshold[node]
            if len(nodes) and len(at_levels := np.flatnonzero(table_row[node] >= 0)):
                last = table.shape[1] - 1
                inside = (value[at_levels] > -1) & (value[at_levels] < last)
                level = np.where(inside, value[at_levels], last).astype(np.int64)
                goes_left[at_levels] = table[table_row[node[at_levels]], level]
            if missing is not None:
                is_missing = missing[rows, feature] | (self.zero_is_missing[node] & (value >= -ZERO) & (value <= ZERO))
                goes_left = np.where(is_missing, self.missing_left[node], goes_left)
            at[rows] = np.where(goes_left, self.left[node], self.right[node])
            rows = rows[self.left[at[rows]] >= 0]
        return at

    def layout(self) -> tuple[Structure, Integers, Integers]:
        """Return the structure, and the nodes that its decisions and its leaves stand for."""
        pairs = zip(self.left.tolist(), self.right.tolist(), strict=True)
        children = [[a, b] if a >= 0 else [] for a, b in pairs]
        layers = Structure.layers_of_tree(children)
        decisions = [node for layer in layers for node in layer if children[node]]
        return Structure.from_tree(children), np.array(decisions, dtype=np.int64), np.array(layers[-1])

    def to_tree(self, n_features: int, *, marks_missing: bool, probabilities: bool) -> Tree:
        """Return the same as a `Tree`: an irregular structure, f an indicator of one feature, g constant."""
        structure, decisions, leaves = self.layout()
        decision_index = {int(node): k for k, node in enumerate(decisions)}
        decision = SplitDecision(
            structure,
            n_features,
            self.feature[decisions],
            self.threshold[decisions],
            gap_first=self.missing_left[decisions] if marks_missing else None,
            zero_is_gap=self.zero_is_missing[decisions],
            levels={decision_index[node]: levels for node, levels in self.levels.items()},
        )
        values = self.value[leaves]  # (leaves, outputs)
        leaf = ConstantLeaf(structure, values.shape[1])
        with np.errstate(divide="ignore"):
            raw = torch.from_numpy(np.log(values) if probabilities else values)
        leaf.values = torch.nn.Parameter(raw.unsqueeze(0), requires_grad=False)
        output = Classes(values.shape[1]) if probabilities else Values(values.shape[1])
        return Tree(structure, decision, leaf, output).eval()


def _flags(flags: NDArray[np.generic] | None, source: Integers) -> Booleans:
    """Return the flags of nodes of the source; False without flags."""
    return np.zeros(len(source), dtype=bool) if flags is None else np.asarray(flags, dtype=bool)[source]
