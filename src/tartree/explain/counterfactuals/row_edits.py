"""Edits of a one-row table of any kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy import sparse


def with_values(row: Any, values: Mapping[int, Any]) -> Any:
    """Return a copy of a one-row table with other values in some columns, by index."""
    if sparse.issparse(row):
        row = row.toarray()
    if not isinstance(row, np.ndarray | list | tuple):
        frame = nw.from_native(row, pass_through=True)
        if isinstance(frame, nw.DataFrame):
            names = frame.columns
            return frame.with_columns(**{names[k]: nw.lit(value) for k, value in values.items()}).to_native()
    matrix = np.array(row, dtype=object)
    if isinstance(row, np.ndarray) and row.dtype.kind in "fiub":
        matrix = row.astype(np.float64)
    for column, value in values.items():
        matrix[0, column] = value
    return matrix
