"""Encoding of a matrix of plain numbers as a whole; column by column, one row of a wide table takes milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tartree.table.columns.column import Column
from tartree.table.columns.constant import Constant
from tartree.table.columns.numeric import Numeric
from tartree.table.scales import CLIP, SMALLEST, limit

#: Numbers that are encoded at once: few enough for a processor's cache.
CHUNK = 2**17


class MatrixEncoding:
    """What each column of numbers has learnt, as arrays; the result is that of the columns, to the last digit.

    `columns` are those of an encoder. `usable` is False where one of them needs more than a center and a scale.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self.usable = all(isinstance(c, Constant) or (isinstance(c, Numeric) and c.is_linear) for c in columns)
        if not self.usable:
            return
        numeric = [(index, c) for index, c in enumerate(columns) if isinstance(c, Numeric)]
        self.sources = np.array([index for index, _ in numeric], dtype=np.intp)
        self.center = np.array([c.scaling.center for _, c in numeric])
        self.scale = np.array([c.scaling.scale for _, c in numeric])
        self.fill = np.array([c.encoded_fill for _, c in numeric])
        # Without ends there is no value beyond them.
        ends_of = [c.scaling.ends or (-np.inf, np.inf) for _, c in numeric]
        self.bottom, self.top = np.array(ends_of).reshape(-1, 2).T  # (columns of numbers,) each
        self.reach = np.array([max(c.scaling.reach, SMALLEST) for _, c in numeric])
        sizes = np.array([c.varies + c.gaps for _, c in numeric], dtype=np.intp)
        ends = np.cumsum(sizes)
        self.varies = np.array([c.varies for _, c in numeric], dtype=bool)
        self.gaps = np.array([c.gaps for _, c in numeric], dtype=bool)
        self.value_features = (ends - sizes)[self.varies]
        self.gap_features = (ends - 1)[self.gaps]

    def encode(self, matrix: NDArray[Any], out: NDArray[np.float32]) -> bool:
        """Fill the features, (rows, features), of a matrix, (rows, columns); False if it must go by columns."""
        if not self.usable or matrix.dtype.kind not in "iuf":
            return False
        step = max(1, CHUNK // max(1, matrix.shape[1]))
        return all(
            self._encode(matrix[start : start + step], out[start : start + step])
            for start in range(0, len(matrix), step)
        )

    def _encode(self, matrix: NDArray[Any], out: NDArray[np.float32]) -> bool:
        with np.errstate(over="ignore", invalid="ignore"):
            values = matrix[:, self.sources].astype(np.float64)  # (rows, columns of numbers)
            missing = np.isnan(values) if not np.isfinite(values.sum()) else None
            if missing is not None and np.isinf(values).any():
                return False  # the columns say where
            encoded = (values - self.center) / self.scale
        encoded = limit(np.clip(encoded, -CLIP, CLIP, out=encoded), self.bottom, self.top, self.reach)
        if missing is not None:
            encoded = np.where(missing, self.fill, encoded)
            out[:, self.gap_features] = missing[:, self.gaps]
        out[:, self.value_features] = encoded[:, self.varies]
        return True
