"""Training rows that a model remembers until it is saved."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

#: Rows that importances are computed from, at most.
SAMPLE_ROWS = 2_000


class Sample(NamedTuple):
    """Encoded training rows."""

    x: Tensor  # (rows, features)
    target: Tensor  # (rows, ...)
    weight: Tensor | None  # (rows,)
