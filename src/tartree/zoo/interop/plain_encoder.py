"""PlainEncoder: columns as the source of an imported model compares them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tartree.table import Feature, Numeric, Scaling
from tartree.table.raw_table import read_table
from tartree.zoo.interop.split_tree import Booleans, Floats

LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class PlainEncoder:
    """Columns unscaled, in the precision of the source, with indicators of missing values if the source takes them.

    The encoder of the other estimators standardises, in single precision; a row on a threshold would then not always
    go where its source sends it.

    Parameters
    ----------
    n_features_in_ : int
    names : ndarray of shape (columns,) or None
        Names of the columns, if the source has them.
    single : bool
        Whether numbers are rounded to single precision.
    takes_missing : bool
        Whether the source takes missing values.
    missing_value : float or None
        Number that counts as a missing value.
    zero : float
        Numbers up to this size are read as zero.
    dense_only : bool
        Whether sparse matrices are refused, because the source reads their zeros as missing values.
    takes_infinity : bool
    spelling : {"", "text", "underscores"}
        How the source changes names: to text, or to text without spaces.
    levels : dict of int to list
        Levels of columns of categories.
    ranges : tuple of (float, float)
        Lowest and highest threshold of each column.
    """

    n_features_in_: int
    names: NDArray[np.object_] | None = None
    single: bool = False
    takes_missing: bool = True
    missing_value: float | None = None
    zero: float = 0.0
    dense_only: bool = False
    takes_infinity: bool = True
    spelling: str = ""
    levels: dict[int, list[Any]] = field(default_factory=dict)
    ranges: tuple[tuple[float, float], ...] = ()

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the columns; the attribute is absent if the source had none, as in scikit-learn."""
        if self.names is None:
            raise AttributeError("the source was fitted without names of columns")
        return self.names

    @property
    def columns_(self) -> list[Numeric]:
        """Columns of numbers, with the range of their thresholds."""
        ranges = self.ranges or ((0.0, 1.0),) * self.n_features_in_
        return [
            Numeric("number", Scaling(), (low + high) / 2, low, high, False, self.takes_missing) for low, high in ranges
        ]

    @property
    def features_(self) -> list[Feature]:
        """Features of an encoded row: the columns, then their indicators of missing values."""
        labels = [f"x{i}" if self.names is None else str(self.names[i]) for i in range(self.n_features_in_)]
        values = [Feature(i, name, "value") for i, name in enumerate(labels)]
        indicators = [Feature(i, name, "missing") for i, name in enumerate(labels)]
        return values + (indicators if self.takes_missing else [])

    def get_feature_names_out(self) -> NDArray[np.object_]:
        """Return the names of the features: "age", "age=(missing)"."""
        return np.array([feature.label for feature in self.features_], dtype=object)

    def inverse_value(self, feature: int, encoded: float) -> float | str | bool:
        """Return an encoded value in original units: itself, or whether it is missing."""
        return self.features_[feature].original(encoded)

    def read(self, X: Any) -> tuple[Floats, Booleans | None]:
        """Return values with 0 for missing ones, and which are missing, both (rows, columns)."""
        values = self._values(X)
        missing = np.isnan(values)
        if self.missing_value is not None:
            missing |= values == self.missing_value
        if not self.takes_missing:
            _refuse_marked(X, missing, "X contains NaN, which the imported model does not take", "fill it")
        if self.single:
            with np.errstate(over="ignore"):
                values = values.astype(np.float32).astype(np.float64)
        if not self.takes_infinity:
            what = "Input X contains infinity or a value too large for the imported model's precision"
            _refuse_marked(X, np.isinf(values), what, "replace it")
        values[np.abs(values) <= self.zero] = 0.0
        # The source sends infinities where it sends the largest numbers; trees of this library take finite ones.
        values = np.nan_to_num(np.where(missing, 0.0, values), nan=0.0, posinf=LARGEST, neginf=-LARGEST)
        return values, missing if self.takes_missing else None

    def _values(self, X: Any) -> Floats:
        """Return the columns as numbers, with codes for levels and NaN for missing values."""
        if self.dense_only and sparse.issparse(X):
            raise ValueError(
                "X must be dense, since XGBoost reads zeros of a sparse matrix as missing values; use X.toarray()"
            )
        table = read_table(X)
        if table.n_columns != self.n_features_in_:
            raise ValueError(
                f"X has {table.n_columns} features, but the imported model is expecting {self.n_features_in_} "
                "features as input."
            )
        if self.names is not None and table.names is not None and list(self.names) != self._spelled(table.names):
            raise ValueError(
                "The feature names should match those that were passed during fit, "
                f"{self.names[:5].tolist()}, got {list(table.names)[:5]}"
            )
        values = np.empty((table.n_rows, table.n_columns))
        for index in range(table.n_columns):
            column = table.read(index)
            if index in self.levels:
                codes = {level: float(code) for code, level in enumerate(self.levels[index])}
                values[:, index] = [codes.get(level, np.nan) for level in column.objects()]
            else:
                values[:, index] = column.numbers("number")
        return values

    def _spelled(self, names: Sequence[Any]) -> list[Any]:
        """Return names of a table as the source keeps them."""
        texts = [str(name) for name in names] if self.spelling else list(names)
        return [text.replace(" ", "_") for text in texts] if self.spelling == "underscores" else texts

    def inverse_transform(self, encoded: ArrayLike) -> dict[str, NDArray[Any]]:
        """Return columns by name from encoded rows; missing values are NaN, levels themselves."""
        matrix = np.asarray(encoded, dtype=np.float64)
        columns: dict[str, NDArray[Any]] = {}
        for index, feature in enumerate(self.features_[: self.n_features_in_]):
            values = matrix[:, index].copy()
            if self.takes_missing:
                values[matrix[:, self.n_features_in_ + index] > 0.5] = np.nan
            columns[feature.name] = values
            if index in self.levels:
                levels = self.levels[index]
                objects = [None if value != value else levels[int(value)] for value in values.tolist()]
                columns[feature.name] = np.array(objects, dtype=object)
        return columns

    def transform(self, X: Any) -> Floats:
        """Encode rows: (rows, columns), or (rows, 2 columns) with indicators of missing values."""
        values, missing = self.read(X)
        return values if missing is None else np.concatenate([values, missing], axis=1)


def _refuse_marked(X: Any, marks: Booleans, what: str, remedy: str) -> None:
    """Raise an error about the first marked value, if any."""
    if marks.any():
        row, column = np.argwhere(marks)[0].tolist()
        raise ValueError(f"{what}: the first in row {row} of {read_table(X).label(column)}; {remedy}")
