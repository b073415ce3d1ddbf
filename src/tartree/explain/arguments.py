"""Checks of arguments that several explanations share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tartree.model import FittedModel
from tartree.model.memory_source import check_equal_rows
from tartree.table.raw_table import read_table


def check_index(name: str, index: int, count: int) -> None:
    """Raise unless an index is one of the first `count`."""
    if not 0 <= index < count:
        raise ValueError(f"{name} must be from 0 to {count - 1}, got {index}")


def row_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """Return the weights of rows, (rows,), or None if there are none."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_rows,) or not (weight >= 0).all() or not weight.sum() > 0:
        raise ValueError(
            f"sample_weight must be {n_rows} numbers of at least 0 with a positive sum, got shape {weight.shape}"
        )
    return weight


def true_outputs(model: FittedModel, y: Any, n_rows: int) -> NDArray[np.float64]:
    """Return indicators of the true classes, or true values in units of the target, (rows, outputs)."""
    truth = np.asarray(y)
    truth = np.asarray(y)
    check_equal_rows(n_rows, len(truth))
    return model.codec.truth(truth, n_rows)


def missing_mask(X: Any) -> NDArray[np.bool_]:
    """Mark the missing values of a table, (rows, columns)."""
    table = read_table(X)
    mask = np.zeros((table.n_rows, table.n_columns), dtype=np.bool_)
    for k in range(table.n_columns if table.n_rows else 0):
        column = table.read(k)
        if column.codes is not None:
            mask[:, k] = column.codes < 0
        elif isinstance(column.values, list):
            mask[:, k] = [value is None for value in column.values]
        else:
            mask[:, k] = np.isnan(column.values)
    return mask
