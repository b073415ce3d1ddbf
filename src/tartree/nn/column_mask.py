"""ColumnMask: the columns that linear functions of nodes use; training removes the weakest step by step."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tartree.nn.column_groups import ColumnGroups

#: Shares of a training between which columns are removed; before, weights grow apart, and afterwards they settle.
FIRST, LAST = 0.1, 0.5


class ColumnMask(nn.Module):
    """Removes terms, what a column adds to a function, from linear functions, until few are left.

    All features of a column are removed together: the levels of a category, or a number and the bins of its curve. The
    weakest terms, by the norm of their weights, go first. Weights stay plain parameters: `project` sets those of
    removed terms to 0 after each training step, so that fast paths see linear functions as usual.

    Parameters
    ----------
    weight : Tensor of shape (members, outputs, features)
        Of all functions; some outputs may belong to one function.
    functions : sequence of int
        The function of each output.
    columns : sequence of int
        The column of each feature.
    most : int
        Terms that are left in the end, of each function, or of all together if `importance` is given.
    importance : Tensor of shape (functions,), optional
        What the norms of the terms of each function are multiplied by to be compared with those of others.

    Examples
    --------
    >>> weight = nn.Parameter(torch.tensor([[[1.0, 1.0, 0.5]]]))
    >>> mask = ColumnMask(weight, functions=[0], columns=[0, 0, 1], most=1)
    >>> mask.prune(weight, 1.0)
    >>> weight.tolist()
    [[[1.0, 1.0, 0.0]]]
    """

    mask: Tensor  # (members, outputs, features)
    importance: Tensor | None

    def __init__(
        self,
        weight: Tensor,
        *,
        functions: Sequence[int],
        columns: Sequence[int],
        most: int,
        importance: Tensor | None = None,
    ) -> None:
        super().__init__()
        n_features = weight.shape[-1]
        if len(columns) != n_features:
            raise ValueError(f"columns must have one entry for each of {n_features} features, got {len(columns)}")
        self.most = most
        self.groups = ColumnGroups(functions, columns)
        self.register_buffer("importance", importance, persistent=False)
        self.register_buffer("mask", torch.ones_like(weight), persistent=False)

    @property
    def n_terms(self) -> int:
        """Terms at the start, of each function or of all together."""
        return self.groups.n_columns * (1 if self.importance is None else self.groups.n_functions)

    def n_left(self, progress: float) -> int:
        """Return how many terms are left after a share of the training.

        Parameters
        ----------
        progress : float
            From 0 to 1.

        Returns
        -------
        int
        """
        if self.n_terms <= self.most or progress < FIRST:
            return self.n_terms
        done = min(1.0, (progress - FIRST) / (LAST - FIRST))
        most = max(self.most, 1)
        left = round(math.exp((1 - done) * math.log(self.n_terms) + done * math.log(most)))
        return self.most if done == 1 else max(self.most, left)

    def is_settled(self, progress: float) -> bool:
        """Whether no more terms will be removed.

        Parameters
        ----------
        progress : float
            From 0 to 1.

        Returns
        -------
        bool
        """
        return self.n_left(progress) <= self.most

    def reset(self) -> None:
        """Take all terms again."""
        self.mask.fill_(1.0)

    @torch.no_grad()
    def prune(self, weight: Tensor, progress: float) -> None:
        """Remove the weakest terms, as many as are due.

        Parameters
        ----------
        weight : Tensor of shape (members, outputs, features)
        progress : float
            Share of the training, from 0 to 1.
        """
        n_left = self.n_left(progress)
        if n_left >= self.n_terms:
            return
        norms = self.groups.squares(weight * self.mask)
        shape = norms.shape
        if self.importance is not None:
            norms = (norms * self.importance[:, None]).flatten(1).unsqueeze(1)  # of all functions together
        strongest = norms.topk(n_left, dim=-1).indices
        kept = torch.zeros_like(norms).scatter_(2, strongest, 1.0).view(shape)
        self.mask.mul_(self.groups.spread(kept))
        self.project(weight)

    @torch.no_grad()
    def project(self, weight: Tensor) -> None:
        """Set the weights of removed terms to 0.

        Parameters
        ----------
        weight : Tensor of shape (members, outputs, features)
        """
        weight.mul_(self.mask)
