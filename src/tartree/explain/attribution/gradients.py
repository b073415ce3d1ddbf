"""Gradients of decisions and leaves by the features: closed form for the library's perceptrons, autograd for others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tartree.nn import MLPDecision, MLPLeaf
from tartree.nn.products import GroupedMLP

#: Rows that gradients are averaged over, at most, and numbers held at once.
GRADIENT_ROWS = 256
CHUNK_NUMBERS = 2**22


def mean_gradients(module: nn.Module, member: int, x: Tensor, mix: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return mean and root mean square over rows of the gradient of each output, both (outputs, features).

    At most `GRADIENT_ROWS` evenly spaced rows are used. `mix`, (functions, numbers), combines the raw outputs of each
    leaf; outputs are then the functions of leaf 0, leaf 1, ...
    """
    rows = x[torch.linspace(0, len(x) - 1, min(len(x), GRADIENT_ROWS)).long()]
    first: Any = 0.0
    second: Any = 0.0
    for part in jacobians(module, member, rows):  # (rows, outputs, features)
        if mix is not None:
            part = torch.einsum("kn,runf->rukf", mix, part.unflatten(1, (-1, mix.shape[1]))).flatten(1, 2)
        first, second = first + part.sum(0), second + part.square().sum(0)
    return first / len(rows), (second / len(rows)).sqrt()


def jacobians(module: nn.Module, member: int, x: Tensor) -> Iterator[Tensor]:
    """Yield gradients of all outputs at each row, (rows, outputs, features), in chunks of rows."""
    if type(module) in (MLPDecision, MLPLeaf):
        mlp: Any = module.mlp
        per_row = len(mlp.sizes) * max(1, mlp.hidden) * x.shape[1]
        for part in x.split(max(1, CHUNK_NUMBERS // max(1, per_row))):
            yield _perceptron(mlp, member, part)
        return
    with torch.enable_grad():
        rows = x.clone().requires_grad_(True)
        out = module(rows)[member].flatten(1)  # (rows or 1, outputs)
        slopes = []
        for k in range(out.shape[1]):
            slope = None
            if out.requires_grad:
                (slope,) = torch.autograd.grad(out[:, k].sum(), rows, retain_graph=True, allow_unused=True)
            slopes.append(torch.zeros_like(x) if slope is None else slope)
    yield torch.stack(slopes, dim=1)


@torch.no_grad()
def _perceptron(mlp: GroupedMLP, member: int, x: Tensor) -> Tensor:
    """Apply the chain rule from the first layer on; each group has separate hidden units."""
    weight: Tensor = mlp.weights[0][member]
    if len(mlp.weights) == 1:
        return weight.expand(len(x), -1, -1)
    groups = (len(mlp.sizes), mlp.hidden)
    units = (x @ weight.T + mlp.biases[0][member]).unflatten(-1, groups)  # (rows, groups, hidden)
    slope = weight.unflatten(0, groups).unsqueeze(0)  # (1 or rows, groups, hidden, features)
    for weights, bias in zip(mlp.weights[1:-1], mlp.biases[1:-1], strict=True):
        slope = torch.einsum("gkh,rghf->rgkf", weights[member], _rise(units).unsqueeze(-1) * slope)
        units = torch.einsum("gkh,rgh->rgk", weights[member], F.elu(units)) + bias[member]
    slope = _rise(units).unsqueeze(-1) * slope
    ends = torch.tensor(mlp.sizes).cumsum(0).tolist()
    parts = [
        torch.einsum("oh,rhf->rof", mlp.weights[-1][member, end - size : end], slope[:, g])
        for g, (size, end) in enumerate(zip(mlp.sizes, ends, strict=True))
    ]
    return torch.cat(parts, dim=1)


def _rise(units: Tensor) -> Tensor:
    """Return the derivative of ELU."""
    return torch.where(units > 0, torch.ones_like(units), units.clamp_max(0).exp())
