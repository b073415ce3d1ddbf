"""Splits of trees grown elsewhere, as a decision function: exact, hard, and not trained."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from tartree.nn.axis_decision import SURE, check_two_children
from tartree.nn.families import Family
from tartree.structure import Structure

ZERO = float(np.float32(1e-35))  # up to here a number counts as zero, for splits that take zero for a gap


class SplitDecision(Family):
    """Each node sends a row to its first child where a feature is at most a threshold, or is one of a set of levels.

    The input is (batch, features), or (batch, 2 features): the features and, behind them, marks that are 1 where a
    feature has a gap. Numbers are buffers in double precision; there is nothing to train.

    Parameters
    ----------
    structure : Structure
        Every node that decides must have two children.
    n_features : int
        Without the marks.
    feature, threshold : array of shape (nodes,)
    gap_first : array of bool of shape (nodes,), optional
        Whether a gap goes to the first child; without it, the input has no marks.
    zero_is_gap : array of bool of shape (nodes,), optional
        Whether zero counts as a gap too.
    levels : mapping of int to array of int, optional
        For some nodes, the levels, numbers from 0, that go to the first child; the threshold is not looked at.

    Examples
    --------
    >>> split = SplitDecision(Structure(1), 1, feature=[0], threshold=[0.5], gap_first=[True])
    >>> split(torch.tensor([[0.5, 0.0], [0.6, 0.0], [0.0, 1.0]])).squeeze().tolist()
    [1000.0, -1000.0, 1000.0]
    """

    feature: Tensor
    threshold: Tensor
    gap_first: Tensor
    zero_is_gap: Tensor
    level_nodes: Tensor
    level_table: Tensor

    def __init__(
        self,
        structure: Structure,
        n_features: int,
        feature: ArrayLike,
        threshold: ArrayLike,
        *,
        gap_first: ArrayLike | None = None,
        zero_is_gap: ArrayLike | None = None,
        levels: Mapping[int, NDArray[np.int64]] | None = None,
    ) -> None:
        super().__init__()
        check_two_children(structure)
        nodes = structure.n_logits
        self.n_features = n_features
        self.has_gaps = gap_first is not None
        for name, values, kind in (
            ("feature", feature, np.int64),
            ("threshold", threshold, np.float64),
            ("gap_first", np.zeros(nodes) if gap_first is None else gap_first, np.bool_),
            ("zero_is_gap", np.zeros(nodes) if zero_is_gap is None else zero_is_gap, np.bool_),
        ):
            array = np.asarray(values).astype(kind)
            if array.shape != (nodes,):
                raise ValueError(f"{name} must have the shape ({nodes},) for {structure}, got {array.shape}")
            self.register_buffer(name, torch.from_numpy(array))
        if nodes and not 0 <= int(self.feature.min()) <= int(self.feature.max()) < n_features:
            raise ValueError(f"feature must be from 0 to {n_features - 1}, got {self.feature.tolist()}")
        own, table = level_table(levels or {})
        self.register_buffer("level_nodes", torch.from_numpy(own))
        self.register_buffer("level_table", torch.from_numpy(table))

    def step_parameters(self) -> tuple[Tensor, Tensor] | None:
        if len(self.level_nodes):  # which test sets of levels instead
            return None
        return self.feature.unsqueeze(0), self.threshold.double().unsqueeze(0)

    def forward(self, x: Tensor) -> Tensor:
        n_inputs = self.n_features * (2 if self.has_gaps else 1)
        if x.dim() != 2 or x.shape[1] != n_inputs:
            raise ValueError(f"input must be (batch, {n_inputs}), got shape {tuple(x.shape)}")
        values = x[:, self.feature]  # (batch, nodes)
        first = values <= self.threshold
        if len(self.level_nodes):
            own = values[:, self.level_nodes]
            last = self.level_table.shape[1] - 1  # the column of levels that are in no set
            level = torch.where((own > -1) & (own < last), own, float(last)).long()
            first[:, self.level_nodes] = self.level_table.gather(1, level.t()).t()
        if self.has_gaps:
            gap = x[:, self.n_features + self.feature] > 0
            gap |= self.zero_is_gap & (values >= -ZERO) & (values <= ZERO)
            first = torch.where(gap, self.gap_first, first)
        return torch.where(first, SURE, -SURE).to(x.dtype).unsqueeze(0)


def level_table(levels: Mapping[int, NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The nodes with sets of levels, and who goes to the first child, (those nodes, levels and one for all others).

    >>> nodes, table = level_table({1: np.array([0, 2])})
    >>> nodes.tolist(), table.tolist()
    ([1], [[True, False, True, False]])
    """
    nodes = np.array(sorted(levels), dtype=np.int64)
    size = 1 + max((int(np.max(sets)) for sets in levels.values() if len(sets)), default=-1)
    table = np.zeros((len(nodes), size + 1), dtype=bool)
    for row, node in enumerate(nodes):
        table[row, levels[node]] = True
    return nodes, table
