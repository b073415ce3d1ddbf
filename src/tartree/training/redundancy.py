"""Effective number of independent features, by which noise and steps are scaled."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from tartree.training.batches import MemberRows, Rows, TensorRows

#: Rows that correlations are computed from, at most.
SAMPLE_ROWS = 1024
#: Features of curves, for the root of their independent number, from which on steps are shorter: those of all features
#: add up where features rise and fall together. On tables of spectra, training diverged from here on.
MANY_FEATURES = 200


def tables_of(rows: Rows) -> Iterator[Tensor]:
    """Yield the encoded rows of each table, (rows, features), without padding."""
    if isinstance(rows, MemberRows):
        for table in range(rows.x.shape[1]):
            x = rows.x[:, table]
            yield x if rows.weight is None else x[rows.weight[:, table] > 0]
    else:
        yield rows.x if isinstance(rows, TensorRows) else rows.take(torch.arange(0, len(rows), _step(len(rows)))).x


def _step(n_rows: int) -> int:
    return -(-n_rows // SAMPLE_ROWS) or 1


@torch.no_grad()
def participation(x: Tensor) -> float:
    """Return ``F^2 / sum of squared correlations`` of F features: from 1, all equal, to F, none correlated.

    Of many rows an even sample is used. The correlations expected by chance, with few rows, are subtracted.

    >>> x = torch.randn(1000, 6, generator=torch.Generator().manual_seed(0))
    >>> round(participation(x)), round(participation(torch.cat([x, x], dim=1)))
    (6, 6)
    """
    x = x[:: _step(len(x))].double()
    deviations = x - x.mean(0)
    scale = deviations.square().mean(0).sqrt()
    z = deviations[:, scale > 1e-12] / scale[scale > 1e-12]  # (rows, features that vary)
    n_rows, n_features = z.shape
    if n_features < 2 or n_rows < 3:
        return float(n_features)
    products = z.t() @ z if n_features <= n_rows else z @ z.t()  # the sum of squares is the same
    squares = float((products / n_rows).square().sum())
    by_chance = n_features * (n_features - 1) / (n_rows - 1)
    return n_features**2 / (n_features + max(0.0, squares - n_features - by_chance))


def step_factor(x: Tensor) -> float:
    """Return what the learning rate of encoded rows with curves is multiplied by, at most 1.

    >>> x = torch.randn(100, 3, generator=torch.Generator().manual_seed(0))
    >>> step_factor(x), round(step_factor(x.repeat(1, 400)), 3)
    (1.0, 0.084)
    """
    ratio = x.shape[-1] / math.sqrt(max(participation(x), 1.0))
    return min(1.0, (MANY_FEATURES / ratio) ** 2) if ratio else 1.0
