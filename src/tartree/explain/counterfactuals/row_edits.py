"""Edits of a one-row table of any kind, and encoded values in the units of their column."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy import sparse
from torch import Tensor

from tartree.model import FittedModel
from tartree.table import units


def original_value(model: FittedModel, column: int, encoded: Tensor) -> Any:
    """Return the value of a column from its encoded features, (features of the column,), as a table may hold it."""
    fitted: Any = model.encoder.columns_[column]
    if fitted.kind == "boolean":
        return bool(encoded[0] > 0.5)
    if fitted.kind == "category":
        return fitted.levels[int(encoded.argmax())]
    value = float(fitted.scaling.decode(np.array([float(encoded[0])]))[0])
    if fitted.unit == "duration":
        return datetime.timedelta(seconds=value)
    if fitted.unit != "number":
        return model.encoder.features_[_feature(model, column)].original(float(encoded[0]))
    return int(np.rint(value)) if fitted.whole and abs(value) < 2**53 else value


def written_near(seconds: float, unit: str, *, up: bool) -> Iterator[str]:
    """Yield ISO texts of a date or time near so many seconds, at or beyond them, the roundest first.

    A date is a whole day; other units go down to seconds, and to microseconds at the end.
    """
    steps = (86400.0,) if unit == "date" else (60.0, 1.0) if unit == "time" else (86400.0, 3600.0, 60.0, 1.0)
    for step in steps:
        ticks = round(seconds / step, 6)  # a whole number of steps is one in spite of single precision
        whole = np.array([(np.ceil(ticks) if up else np.floor(ticks)) * step])
        yield units.write(whole, unit, fine=False)[0]
    if unit != "date":
        yield units.write(np.array([seconds]), unit, fine=True)[0]


def _feature(model: FittedModel, column: int) -> int:
    return next(k for k, feature in enumerate(model.encoder.features_) if feature.column == column)


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
