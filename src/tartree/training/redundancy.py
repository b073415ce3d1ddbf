"""How many features say something of their own: what noise on inputs has to know."""

from __future__ import annotations

import torch
from torch import Tensor

from tartree.training.rows import OwnRows, Rows, TensorRows

#: Rows that are looked at, at most.
SOME_ROWS = 1024


def some_rows(rows: Rows) -> Tensor:
    """Encoded rows of a table, evenly taken, (rows, features)."""
    if isinstance(rows, TensorRows | OwnRows):
        x = rows.x.flatten(0, -2)
        return x[:: -(-len(x) // SOME_ROWS)]
    return rows.take(torch.arange(0, len(rows), -(-len(rows) // SOME_ROWS))).x


@torch.no_grad()
def participation(x: Tensor) -> float:
    """``F^2 / sum of squared correlations`` of F features, (rows, features): from 1, all alike, to F, none alike.

    Correlations that are there by chance, with few rows, are taken off.

    >>> x = torch.randn(1000, 6, generator=torch.Generator().manual_seed(0))
    >>> round(participation(x)), round(participation(torch.cat([x, x], dim=1)))
    (6, 6)
    """
    deviations = x.double() - x.double().mean(0)
    scale = deviations.square().mean(0).sqrt()
    z = deviations[:, scale > 1e-12] / scale[scale > 1e-12]  # (rows, features that vary)
    n_rows, n_features = z.shape
    if n_features < 2 or n_rows < 3:
        return float(n_features)
    products = z.t() @ z if n_features <= n_rows else z @ z.t()  # the sum of squares is the same
    squares = float((products / n_rows).square().sum())
    by_chance = n_features * (n_features - 1) / (n_rows - 1)
    return n_features**2 / (n_features + max(0.0, squares - n_features - by_chance))
