"""Training rows that a model holds until it is saved."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from tartree.training.jitter import CurveFeatures

#: Rows that importances are computed from, at most.
SAMPLE_ROWS = 2_000


class Sample(NamedTuple):
    """Encoded training rows.

    Parameters
    ----------
    x : Tensor of shape (rows, features)
    target : Tensor of shape (rows, ...)
    weight : Tensor of shape (rows,) or None
    curves : CurveFeatures or None
        How the features of curves are made from values, for training.
    columns : tuple of int
        The column of each feature, for training.

    Examples
    --------
    >>> import torch
    >>> Sample(torch.zeros(5, 2), torch.zeros(5), None).x.shape
    torch.Size([5, 2])
    """

    x: Tensor  # (rows, features)
    target: Tensor  # (rows, ...)
    weight: Tensor | None  # (rows,)
    curves: CurveFeatures | None = None
    columns: tuple[int, ...] = ()
