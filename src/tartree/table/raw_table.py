"""Read any table column by column: a dataframe, an array, a sparse matrix or a list of rows.

The table is read lazily, so that only one column is held twice at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray
from scipy import sparse

from tartree.table.raw_column import RawColumn, read_array, read_series

#: Metadata of an Arrow field whose texts are levels whatever they look like.
LEVELS = {b"tartree": b"levels"}
SPARSE_LIMIT = 2**32  # bytes of a sparse table once it is dense, as float32


@dataclass(frozen=True)
class Table:
    """A table: its shape, the names of its columns if it has any, and how to read a column."""

    n_rows: int
    n_columns: int
    names: list[Hashable] | None
    read: Callable[[int], RawColumn]
    matrix: NDArray[Any] | None = None  # if it was one

    def label(self, index: int) -> str:
        """Return what messages call a column."""
        return f"column {index}" if self.names is None else f"column {self.names[index]!r}"


def read_table(X: Any) -> Table:
    """Open a dataframe, an array, a sparse matrix or a list of rows; nothing is read yet."""
    if type(X) is np.ndarray:
        return _read_matrix(_as_matrix(X))
    if sparse.issparse(X) and X.ndim == 2:
        return _read_sparse(X)
    if hasattr(X, "__arrow_c_array__") and hasattr(X, "__arrow_c_stream__"):
        return _read_frame(nw.from_arrow(X, backend="pyarrow"))  # a record batch is a table too
    try:
        frame = nw.from_native(X, pass_through=True)
    except DuplicateError:
        names = list(getattr(X, "column_names", None) or X.columns)
        raise ValueError(_duplicates(names)) from None
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(f"X must be a table in memory, got a lazy {type(X).__name__}; call X.collect() before")
    if isinstance(frame, nw.DataFrame):
        return _read_frame(frame)
    return _read_matrix(_as_matrix(X))


def string_names(table: Table) -> list[str] | None:
    """Return the column names if they are strings, None if none is; a mixture is an error, as in scikit-learn."""
    if not table.names:
        return None
    strings = [name for name in table.names if type(name) is str]
    if strings and len(strings) < len(table.names):
        types = sorted({type(name).__qualname__ for name in table.names})
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your input has "
            f"{types} as feature name / column name types; rename the columns to strings"
        )
    return strings or None


def _read_frame(frame: nw.DataFrame[Any]) -> Table:
    names: list[Hashable] = list(frame.columns)
    if len(set(names)) < len(names):
        raise ValueError(_duplicates(names))
    columns: list[Any] = list(frame.iter_columns())
    rows = len(columns[0]) if columns else frame.shape[0]
    schema = getattr(frame.to_native(), "schema", None)

    def read(index: int) -> RawColumn:
        column = read_series(columns[index], f"column {names[index]!r}")
        field = schema.field(index) if schema is not None and hasattr(schema, "field") else None
        is_declared = field is not None and field.metadata == LEVELS
        return replace(column, is_declared=True) if is_declared else column

    return Table(rows, len(columns), names, read)


def _duplicates(names: list[Any]) -> str:
    many = {name: count for name, count in Counter(names).items() if count > 1}
    repeated = ", ".join(f"{name!r} {count} times" for name, count in many.items())
    return f"column names must be unique, got {repeated}; rename or drop the repeated columns"


def _as_matrix(X: Any) -> NDArray[Any]:
    matrix: NDArray[Any]
    if isinstance(X, np.ma.MaskedArray):
        kinds: dict[str, Any] = {"f": np.float64, "i": np.float64, "u": np.float64, "M": X.dtype, "m": X.dtype}
        matrix = np.array(X.data, dtype=kinds.get(X.dtype.kind, object))
        matrix[np.ma.getmaskarray(X)] = None  # NaN for numbers, NaT for dates
    elif isinstance(X, list | tuple):
        # As objects, because numpy would turn a row with one string into strings only.
        lengths = {len(row) for row in X if isinstance(row, list | tuple)}
        if len(lengths) > 1:
            raise ValueError(
                f"X must have rows of one length, got lengths from {min(lengths)} to {max(lengths)}; fill them"
            )
        matrix = np.array(X, dtype=object)
    else:
        matrix = np.asarray(X)
    if matrix.ndim != 2:
        raise ValueError(
            f"X must be a table of rows and columns, got {type(X).__name__} with {matrix.ndim} dimension(s). "
            "Reshape your data: X.reshape(-1, 1) for one column, X.reshape(1, -1) for one row"
        )
    if matrix.dtype.kind == "V":
        raise ValueError(f"X must be an array of plain values, got dtype {matrix.dtype}; give a dataframe instead")
    return matrix


def _read_matrix(matrix: NDArray[Any]) -> Table:
    rows, columns = matrix.shape
    return Table(rows, columns, None, lambda index: read_array(matrix[:, index], f"column {index}"), matrix)


def _read_sparse(X: Any) -> Table:
    rows, columns = X.shape
    size = rows * columns * np.dtype(np.float32).itemsize
    if size > SPARSE_LIMIT:
        raise ValueError(
            f"a sparse X must fit into {SPARSE_LIMIT / 2**30:g} GiB once it is dense, but {rows} x {columns} "
            f"takes {size / 2**30:.1f} GiB; reduce its columns before, for example with scikit-learn's TruncatedSVD"
        )
    columnwise = X.tocsc(copy=True)
    columnwise.sum_duplicates()

    def read(index: int) -> RawColumn:
        entries = slice(columnwise.indptr[index], columnwise.indptr[index + 1])
        dense = np.zeros(rows, dtype=columnwise.dtype)
        dense[columnwise.indices[entries]] = columnwise.data[entries]
        return read_array(dense, f"column {index}")

    return Table(rows, columns, None, read)
