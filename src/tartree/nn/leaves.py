"""Leaf functions g: the raw outputs of all leaves, ``(members, batch, leaves, numbers)``.

Their meaning (logits of classes, values, a mean and a spread) is that of `outputs`. Leaves that do not depend on the
input return a batch axis of 1, which broadcasts: nothing is expanded to the batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from tartree.nn.families import Family, last_layer
from tartree.nn.products import GroupedMLP, draw_uniform_
from tartree.structure import Structure


class ConstantLeaf(Family):
    """Holds raw outputs of each leaf that do not depend on the row (L = 0).

    Parameters
    ----------
    structure : Structure
    n_numbers : int
        Raw outputs of a leaf.
    members : int, default=1
    """

    is_fixed = True

    def __init__(self, structure: Structure, n_numbers: int, *, members: int = 1) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.empty(members, structure.n_leaves, n_numbers))
        self.reset_parameters()

    def reset_parameters(self, generators: Sequence[torch.Generator] | None = None) -> None:
        draw_uniform_(self.values, 1.0, generators)

    def forward(self, x: Tensor) -> Tensor:
        return self.values.unsqueeze(1)


class MLPLeaf(Family):
    """Computes linear leaves (one layer, L = 1) or perceptrons (L > 1) with ELU and dropout, one for each leaf.

    Parameters
    ----------
    structure : Structure
    n_features : int
    n_numbers : int
        Raw outputs of a leaf.
    layers : int, default=1
    hidden : int, default=100
        Hidden units of each leaf.
    dropout : float, default=0.0
    members : int, default=1
    """

    def __init__(
        self,
        structure: Structure,
        n_features: int,
        n_numbers: int,
        *,
        layers: int = 1,
        hidden: int = 100,
        dropout: float = 0.0,
        members: int = 1,
    ) -> None:
        super().__init__()
        if layers < 1:
            raise ValueError(f"layers must be at least 1, got {layers!r}; for constant leaves use ConstantLeaf")
        self.mlp = GroupedMLP(
            n_features,
            [n_numbers] * structure.n_leaves,
            layers=layers,
            hidden=hidden,
            dropout=dropout,
            members=members,
        )
        self.n_numbers = n_numbers

    def reset_parameters(self, generators: Sequence[torch.Generator] | None = None) -> None:
        self.mlp.reset_parameters(generators)

    @property
    def perceptrons(self) -> GroupedMLP:
        return self.mlp

    def forward(self, x: Tensor) -> Tensor:
        return self._by_leaf(self.mlp(x))

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the raw outputs without their biases, and the biases.

        Parameters
        ----------
        x : Tensor of shape (batch, features) or (members, batch, features)

        Returns
        -------
        leaf_logits : Tensor of shape (members, batch, leaves, numbers)
        bias : Tensor of shape (members, leaves, numbers)
        """
        rows, bias = self.mlp.parts(x)
        return self._by_leaf(rows), bias.unflatten(1, (-1, self.n_numbers))

    def _by_leaf(self, rows: Tensor) -> Tensor:  # from (members, leaves * numbers, batch)
        numbers: Tensor = rows.unflatten(1, (-1, self.n_numbers))
        return numbers.movedim(-1, 1)


@torch.no_grad()
def set_raw_outputs(leaf: nn.Module, n_numbers: int, values: Mapping[int, float]) -> None:
    """Set some raw outputs of all leaves to constants; leaves of the user's own stay as they are.

    Parameters
    ----------
    leaf : nn.Module
        A leaf function.
    n_numbers : int
        Raw outputs of a leaf.
    values : mapping of int to float
        Constants by the index of the raw output.

    Examples
    --------
    >>> leaf = MLPLeaf(Structure(1), n_features=3, n_numbers=2)
    >>> set_raw_outputs(leaf, 2, {1: 0.5})
    >>> leaf(torch.randn(1, 3))[0, 0, :, 1].tolist()
    [0.5, 0.5]
    """
    for number, value in values.items():
        if isinstance(leaf, ConstantLeaf):
            leaf.values[..., number] = value
        elif (layer := last_layer(leaf)) is not None:
            weight, bias = layer  # (members, leaves * numbers, inputs), (members, leaves * numbers)
            weight[:, number::n_numbers] = 0.0
            bias[:, number::n_numbers] = value
