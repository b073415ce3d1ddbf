"""ColumnGroups: the weights of linear functions by function and column of the table."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class ColumnGroups(nn.Module):
    """Groups the weights of linear functions: what one column adds to one function is a term.

    All features of a column belong together: the levels of a category, or a number and the bins of its curve. So do
    several outputs of one function.

    Parameters
    ----------
    functions : sequence of int
        The function of each output.
    columns : sequence of int
        The column of each feature.

    Examples
    --------
    >>> groups = ColumnGroups(functions=[0], columns=[0, 0, 1])
    >>> groups.squares(torch.tensor([[[3.0, 4.0, 1.0]]]))
    tensor([[[25.,  1.]]])
    >>> groups.spread(torch.tensor([[[2.0, 5.0]]]))
    tensor([[[2., 2., 5.]]])
    """

    _function: Tensor
    _column: Tensor

    def __init__(self, functions: Sequence[int], columns: Sequence[int]) -> None:
        super().__init__()
        function = torch.as_tensor(functions, dtype=torch.long).reshape(-1)
        column = torch.as_tensor(columns, dtype=torch.long).reshape(-1).unique(return_inverse=True)[1]
        self.n_columns = int(column.max()) + 1 if len(column) else 0
        self.n_functions = int(function.max()) + 1 if len(function) else 0
        self.register_buffer("_function", function, persistent=False)
        self.register_buffer("_column", column, persistent=False)

    def squares(self, weight: Tensor) -> Tensor:
        """Return the squared norm of each term.

        Parameters
        ----------
        weight : Tensor of shape (members, outputs, features)

        Returns
        -------
        Tensor of shape (members, functions, columns)
        """
        squares = weight.square()
        members, n_outputs, _ = squares.shape
        by_column = squares.new_zeros(members, n_outputs, self.n_columns).index_add_(2, self._column, squares)
        return squares.new_zeros(members, self.n_functions, self.n_columns).index_add_(1, self._function, by_column)

    def spread(self, terms: Tensor) -> Tensor:
        """Return a value of each term for all of its weights.

        Parameters
        ----------
        terms : Tensor of shape (members, functions, columns)

        Returns
        -------
        Tensor of shape (members, outputs, features)
        """
        return terms.index_select(1, self._function).index_select(2, self._column)
