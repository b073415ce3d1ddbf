"""Linear decisions on few columns of the table: training removes the weakest columns of each node, step by step."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tartree.checks import check_integer
from tartree.nn.column_mask import ColumnMask
from tartree.nn.decisions import MLPDecision, logits_per_node
from tartree.structure import Structure


class SparseDecision(MLPDecision):
    """Decides by linear functions of a few columns of the table each; see `ColumnMask`.

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

    def __init__(
        self, structure: Structure, n_features: int, *, columns: Sequence[int], most: int, members: int = 1
    ) -> None:
        super().__init__(structure, n_features, members=members)
        check_integer("most", most, 1)
        node = [node for node, size in enumerate(logits_per_node(structure)) for _ in range(size)]
        self.terms = ColumnMask(self.mlp.weights[0], functions=node, columns=columns, most=most)

    def reset_parameters(self, generators: Sequence[torch.Generator] | None = None) -> None:
        """Draw weights, and take all columns again.

        Parameters
        ----------
        generators : sequence of torch.Generator, optional
            One for each member.
        """
        super().reset_parameters(generators)
        self.terms.reset()

    def prune(self, progress: float) -> None:
        self.terms.prune(self.mlp.weights[0], progress)

    def project(self) -> None:
        self.terms.project(self.mlp.weights[0])

    def is_settled(self, progress: float) -> bool:
        return self.terms.is_settled(progress)

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
