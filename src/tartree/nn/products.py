"""Matrix products of many small models at once: the nodes or the leaves of all members.

Memory is laid out with the batch last, as `ops.native` wants it: units are rows, and a batch is a contiguous row.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tartree.nn.hidden_units import activate
from tartree.ops.index_tables import kept_on_device


def affine(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """One linear map a unit: ``(members, units, batch)`` from shared or own input.

    Parameters
    ----------
    x : Tensor of shape (batch, features), shared by the members, or (tables, batch, features)
        With several tables, equally many members in a row share each; with as many as members, each has its own.
    weight : Tensor of shape (members, units, features)
    bias : Tensor of shape (members, units), optional
    """
    members, units, features = weight.shape
    tables = x.shape[0] if x.dim() == 3 else 1
    if x.dim() not in (2, 3) or x.shape[-1] != features or not tables or members % tables:
        raise ValueError(
            f"input must be (batch, {features}), or ({members}, batch, {features}) with an own batch for each member, "
            f"got shape {tuple(x.shape)}"
        )
    if x.dtype != weight.dtype and not torch.is_autocast_enabled(x.device.type):
        raise ValueError(
            f"input must be in the precision of the weights, {weight.dtype}, got {x.dtype}; "
            "change the one with x.to(dtype) or the other with tree.to(dtype)"
        )
    if x.dim() == 3:
        own, weight = x.transpose(-1, -2), weight.reshape(tables, -1, features)
        rows = torch.bmm(weight, own) if bias is None else torch.baddbmm(bias.view(tables, -1, 1), weight, own)
        return rows.view(members, units, -1)
    units_first, shared = weight.flatten(0, 1), x.t()
    flat = torch.mm(units_first, shared) if bias is None else torch.addmm(bias.reshape(-1, 1), units_first, shared)
    return flat.view(members, units, x.shape[0])


class GroupedMLP(nn.Module):
    """Independent multilayer perceptrons, one a group, on the same input; with one layer, linear maps.

    Parameters
    ----------
    n_features : int
    sizes : sequence of int
        Number of outputs of each group.
    layers : int, default=1
        Number of linear maps, with ELU and dropout between them.
    hidden : int, default=100
        Units of each hidden layer, of each group.
    dropout : float, default=0.0
    members : int, default=1

    Notes
    -----
    Input is (batch, features) or (members, batch, features), output (members, sum of sizes, batch).
    """

    def __init__(
        self,
        n_features: int,
        sizes: Sequence[int],
        *,
        layers: int = 1,
        hidden: int = 100,
        dropout: float = 0.0,
        members: int = 1,
    ) -> None:
        super().__init__()
        values: Any = (dropout, hidden)  # annotations say what should come, not what does
        if not isinstance(values[0], numbers.Real) or not 0 <= dropout < 1:
            raise ValueError(f"dropout must be from 0 to below 1, got {dropout!r}")
        if layers > 1 and (not isinstance(values[1], numbers.Integral) or hidden < 1):
            raise ValueError(
                f"hidden must be an integer of at least 1 when there are hidden layers, got {hidden!r}"
            )
        groups, n_outputs = len(sizes), sum(sizes)
        self.sizes = list(sizes)
        self.hidden = hidden
        self.dropout = dropout
        self.weights = nn.ParameterList()
        self.biases = nn.ParameterList()
        for layer in range(layers):
            first, last = layer == 0, layer == layers - 1
            # Groups meet the same input first and have their own after that; the last map has ragged outputs.
            lead = (members, n_outputs) if last else (members, groups * hidden) if first else (members, groups, hidden)
            self.weights.append(torch.empty(*lead, n_features if first else hidden))
            self.biases.append(torch.empty(lead))
        self.reset_parameters()

    @property
    def width(self) -> int:
        """Numbers of the widest layer, input included, for each row and member."""
        widths: list[int] = [math.prod(weight.shape[1:-1]) for weight in self.weights]
        return max(int(self.weights[0].shape[-1]), *widths)

    def reset_parameters(self, generators: Sequence[torch.Generator] | None = None) -> None:
        """Draw new weights as torch's linear layers do; with one generator a member, each member draws its own."""
        for weight, bias in zip(self.weights, self.biases, strict=True):
            bound = max(1, weight.shape[-1]) ** -0.5
            draw_uniform_(weight, bound, generators)
            draw_uniform_(bias, bound, generators)

    def forward(self, x: Tensor) -> Tensor:
        if len(self.weights) == 1:
            return affine(x, self.weights[0], self.biases[0])
        outputs, bias = self.parts(x)
        return outputs + bias.unsqueeze(-1)

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The outputs without their biases, and the biases, (members, outputs), for whoever can add them on the way."""
        if len(self.weights) == 1:
            return affine(x, self.weights[0]), self.biases[0]
        rows = affine(x, self.weights[0])
        units = rows.unflatten(1, (len(self.sizes), self.hidden))  # (members, groups, hidden, batch)
        dropout = self.dropout if self.training else 0.0
        for weight, bias in zip(self.weights[1:-1], self.biases, strict=False):  # each with the bias before it
            units = torch.matmul(weight, activate(units, bias, dropout))
        return self._outputs(activate(units, self.biases[-2], dropout)), self.biases[-1]

    def _outputs(self, units: Tensor) -> Tensor:
        weight: Tensor = self.weights[-1]  # (members, outputs, hidden)
        if len(set(self.sizes)) <= 1:
            own: Tensor = weight.unflatten(1, (len(self.sizes), -1))
            return torch.matmul(own, units).flatten(1, 2)
        # Ragged outputs: groups with equally many at once, then back into order.
        equal_groups, order = _groups_by_size(tuple(self.sizes), weight.device)
        parts = [torch.matmul(weight[:, outputs], units[:, groups]).flatten(1, 2) for groups, outputs in equal_groups]
        return torch.cat(parts, dim=1)[:, order]


@kept_on_device
def _groups_by_size(sizes: tuple[int, ...], device: torch.device) -> tuple[list[tuple[Tensor, Tensor]], Tensor]:
    """For each size, its groups and their outputs, (groups, size); and the place of each output when all are joined."""
    counts = torch.tensor(sizes)
    firsts = counts.cumsum(0) - counts
    equal_groups = []
    for size in sorted(set(sizes)):
        groups = (counts == size).nonzero().squeeze(1)
        equal_groups.append((groups, firsts[groups, None] + torch.arange(size)))
    order = torch.cat([outputs.flatten() for _, outputs in equal_groups]).argsort()
    return [(groups.to(device), outputs.to(device)) for groups, outputs in equal_groups], order.to(device)


def draw_uniform_(parameter: Tensor, bound: float, generators: Sequence[torch.Generator] | None) -> None:
    """Fill a parameter, (members, ...), with uniform numbers from -bound to bound, each member by its own generator."""
    with torch.no_grad():
        if generators is None:
            parameter.uniform_(-bound, bound)
            return
        if len(generators) != len(parameter):
            raise ValueError(f"one generator a member is needed, got {len(generators)} for {len(parameter)}")
        for own, generator in zip(parameter, generators, strict=True):
            if own.device == generator.device:
                own.uniform_(-bound, bound, generator=generator)
            else:
                drawn = torch.empty(own.shape, dtype=own.dtype, device=generator.device)
                own.copy_(drawn.uniform_(-bound, bound, generator=generator))
