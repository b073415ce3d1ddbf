"""Linear decisions on few columns of the table: training removes the weakest columns of each node, step by step."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from tartree.checks import check_integer
from tartree.nn.decisions import MLPDecision, logits_per_node
from tartree.structure import Structure

#: Shares of a training between which columns are removed; before, weights grow apart, and afterwards they settle.
FIRST, LAST = 0.1, 0.5


class SparseDecision(MLPDecision):
    """Decides by linear functions of a few columns of the table each.

    A node starts with all columns. `prune` removes those whose weights have the smallest norm, and `project` sets their
    weights to 0 after each training step. All features of a column are removed together: the levels of a category, or
    a number and the bins of its curve. Fast paths see plain linear decisions.

    Parameters
    ----------
    structure : Structure
    n_features : int
    columns : sequence of int
        The column of each feature.
    most : int
        Columns that a decision may use in the end.
    members : int, default=1

    Examples
    --------
    >>> decision = SparseDecision(Structure(1), 3, columns=[0, 0, 1], most=1)
    >>> _ = decision.mlp.weights[0].data.copy_(torch.tensor([1.0, 1.0, 0.5]))
    >>> decision.prune(1.0)
    >>> decision.mlp.weights[0].tolist()
    [[[1.0, 1.0, 0.0]]]
    """

    mask: Tensor  # (members, logits, features)
    _column: Tensor
    _node: Tensor

    def __init__(
        self, structure: Structure, n_features: int, *, columns: Sequence[int], most: int, members: int = 1
    ) -> None:
        super().__init__(structure, n_features, members=members)
        check_integer("most", most, 1)
        if len(columns) != n_features:
            raise ValueError(f"columns must have one entry for each of {n_features} features, got {len(columns)}")
        self.most = most
        sizes = torch.tensor(logits_per_node(structure), dtype=torch.long)
        column = torch.as_tensor(columns, dtype=torch.long).reshape(-1)
        self.register_buffer("_column", column.unique(return_inverse=True)[1], persistent=False)
        self.register_buffer("_node", torch.repeat_interleave(torch.arange(len(sizes)), sizes), persistent=False)
        self.register_buffer("mask", torch.ones_like(self.mlp.weights[0]), persistent=False)

    @property
    def n_columns(self) -> int:
        """Columns of the table that have features."""
        return int(self._column.max()) + 1 if len(self._column) else 0

    def reset_parameters(self, generators: Sequence[torch.Generator] | None = None) -> None:
        """Draw weights, and take all columns again.

        Parameters
        ----------
        generators : sequence of torch.Generator, optional
            One for each member.
        """
        super().reset_parameters(generators)
        self.mask.fill_(1.0)

    def n_left(self, progress: float) -> int:
        """Return how many columns a decision has after a share of the training.

        Parameters
        ----------
        progress : float
            From 0 to 1.

        Returns
        -------
        int
        """
        if self.n_columns <= self.most or progress < FIRST:
            return self.n_columns
        done = min(1.0, (progress - FIRST) / (LAST - FIRST))
        return max(self.most, round(math.exp((1 - done) * math.log(self.n_columns) + done * math.log(self.most))))

    @torch.no_grad()
    def prune(self, progress: float) -> None:
        """Remove the weakest columns of each node, as many as are due.

        Parameters
        ----------
        progress : float
            Share of the training, from 0 to 1.
        """
        n_left = self.n_left(progress)
        if n_left >= self.n_columns:
            return
        squares = self.mlp.weights[0].square() * self.mask  # (members, logits, features)
        members, n_logits, _ = squares.shape
        by_column = squares.new_zeros(members, n_logits, self.n_columns).index_add_(2, self._column, squares)
        n_nodes = int(self._node.max()) + 1
        norms = squares.new_zeros(members, n_nodes, self.n_columns).index_add_(1, self._node, by_column)
        strongest = norms.topk(n_left, dim=-1).indices
        kept = torch.zeros_like(norms).scatter_(2, strongest, 1.0)
        self.mask.mul_(kept.index_select(1, self._node).index_select(2, self._column))
        self.project()

    @torch.no_grad()
    def project(self) -> None:
        """Set the weights of removed columns to 0."""
        self.mlp.weights[0].mul_(self.mask)

    def plain(self) -> MLPDecision:
        """Return the same decisions without a limit, which share the parameters.

        Returns
        -------
        MLPDecision
        """
        decision = MLPDecision.__new__(MLPDecision)
        torch.nn.Module.__init__(decision)
        decision.mlp = self.mlp
        return decision
