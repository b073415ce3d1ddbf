"""Jitter: noise on the values of a batch, from which the features of curves are made again."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class CurveFeatures(NamedTuple):
    """How features are made from values, on the device: a bin of a curve is a clipped linear function of its value.

    Parameters
    ----------
    value_features : Tensor of shape (values,)
        The features that are values.
    source : Tensor of shape (features,)
        The value that each feature is made from.
    start, rise, bottom, top, offset : Tensor of shape (features,)
        A feature is ``clamp((value - start) * rise, bottom, top) - offset``.

    Examples
    --------
    >>> one, zero = torch.ones(1), torch.zeros(1)
    >>> infinite = torch.tensor([torch.inf])
    >>> first = torch.zeros(1, dtype=torch.long)
    >>> features = CurveFeatures(first, first, zero, one, -infinite, infinite, zero)
    >>> features.of(torch.tensor([[3.0]]))
    tensor([[3.]])
    """

    value_features: Tensor
    source: Tensor
    start: Tensor
    rise: Tensor
    bottom: Tensor
    top: Tensor
    offset: Tensor

    def to(self, device: torch.device) -> CurveFeatures:
        """Return the same on a device."""
        return CurveFeatures(*(part.to(device) for part in self))

    def values_of(self, x: Tensor) -> Tensor:
        """Return the values, (..., rows, values), of features, (..., rows, features)."""
        return x.index_select(-1, self.value_features)

    def of(self, values: Tensor) -> Tensor:
        """Return the features, (..., rows, features), of values, (..., rows, values)."""
        x = values.index_select(-1, self.source).sub_(self.start).mul_(self.rise)
        return torch.clamp_(x, self.bottom, self.top).sub_(self.offset)


class Jitter:
    """Noise on the values of each batch.

    Parameters
    ----------
    noise : float, or Tensor of shape (values,) or (tables, 1, values)
        Standard deviation.
    curves : CurveFeatures, optional
        How features are made from values; by default they are the values.
    """

    def __init__(self, noise: float | Tensor, curves: CurveFeatures | None = None) -> None:
        self.noise, self.curves = noise, curves
        self.is_zero = not bool(torch.as_tensor(noise).any())

    def __call__(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return features, (..., rows, features), with noise, drawn on the generator's device or on theirs."""
        if self.is_zero:
            return x
        values = x if self.curves is None else self.curves.values_of(x)
        device = x.device if generator is None else generator.device
        values = values + self.noise * torch.randn(values.shape, generator=generator, device=device).to(values)
        return values if self.curves is None else self.curves.of(values)
