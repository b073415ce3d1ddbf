"""Read any table column by column: what kind of values it holds, and the values themselves.

Everything ends in one of two forms: float64 with NaN for gaps (numbers, booleans, and dates, durations and times as
seconds), or a list of objects with None for gaps (categories, strings, and whatever is mixed). The table is read
lazily, so that only one column is held twice at a time.
"""

import datetime
import numbers
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray
from scipy import sparse

from tartree.table import units
from tartree.table.places import RowError

SPARSE_LIMIT = 2**32  # bytes of a sparse table once it is dense, as float32

NUMBERS = frozenset({"number", "boolean"})


@dataclass(frozen=True)
class RawColumn:
    """The values of one column, as they came.

    `kind` is a unit (see `units.Unit`), "boolean", "category", or "empty" where every value is a gap. `values` is a
    list of objects with None for gaps for a category, and float64 with NaN for gaps otherwise;
    `source` is then what it was made from, if that tells more. A category may come with `codes`: then `values` are its
    different texts, and a code is the place of a row's text among them, or -1 for a gap.
    """

    label: str
    kind: str
    values: Any  # (rows,)
    source: Any = None  # (rows,)
    codes: NDArray[np.intp] | None = None  # (rows,)

    def numbers(self, unit: str) -> NDArray[np.float64]:
        """The values as float64 in the given unit, NaN for gaps; text is converted if every value of it can be."""
        accepted = units.DATE_UNITS if unit in units.DATE_UNITS else NUMBERS if unit == "number" else {unit}
        if self.kind in accepted or self.kind == "empty":
            return np.asarray(self.values, dtype=np.float64)
        if self.kind == "category":
            return parse_objects(self.objects(), unit, self.label)
        if np.isnan(self.values).all():
            return np.asarray(self.values, dtype=np.float64)
        raise ValueError(
            f"{self.label} must hold a {unit} in every row, as it did in fit, however: it holds a {self.kind}; "
            "convert the column before"
        )

    def take(self, rows: NDArray[np.intp]) -> "RawColumn":
        """Some of the rows."""
        if self.codes is not None:
            return RawColumn(self.label, self.kind, self.values, codes=self.codes[rows])
        values, source = (
            [column[row] for row in rows] if isinstance(column, list) else column if column is None else column[rows]
            for column in (self.values, self.source)
        )
        return RawColumn(self.label, self.kind, values, source)

    def objects(self) -> list[Any]:
        """The values as Python objects, None for gaps."""
        if self.codes is not None:
            levels = [*self.values, None]
            return [levels[code] for code in self.codes.tolist()]
        if self.kind == "category" or self.source is not None:
            return list(self.values if self.source is None else self.source)
        present = ~np.isnan(self.values)
        found: list[Any]
        if self.kind == "boolean":
            found = (self.values[present] != 0).tolist()
        elif self.kind in units.WRITTEN_UNITS:
            found = units.write(self.values[present], self.kind, fine=False)
        else:
            found = self.values[present].tolist()
        if len(found) == len(self.values):
            return found
        filled = np.full(len(self.values), None, dtype=object)
        filled[present] = np.asarray(found, dtype=object)
        return filled.tolist()


@dataclass(frozen=True)
class Table:
    """A table of any kind: its shape, the names of its columns if it has any, and how to read one column."""

    n_rows: int
    n_columns: int
    names: list[Hashable] | None
    read: Callable[[int], RawColumn]
    matrix: NDArray[Any] | None = None  # where that is what it came as

    def label(self, index: int) -> str:
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
        raise TypeError(f"X must be a table in memory, however: {type(X).__name__} is lazy; call X.collect() before")
    if isinstance(frame, nw.DataFrame):
        return _read_frame(frame)
    return _read_matrix(_as_matrix(X))


def string_names(table: Table) -> list[str] | None:
    """The column names if they are strings, None if none is; a mixture is an error, as in scikit-learn."""
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
    return Table(rows, len(columns), names, lambda index: _read_series(columns[index], f"column {names[index]!r}"))


def _duplicates(names: list[Any]) -> str:
    many = {name: count for name, count in Counter(names).items() if count > 1}
    found = ", ".join(f"{name!r} comes {count} times" for name, count in many.items())
    return f"column names must be unique, however: {found}; rename or drop the repeated columns"


def _read_series(series: nw.Series[Any], label: str) -> RawColumn:
    dtype = series.dtype
    if (coded := _read_arrow_text(series.to_native(), label)) is not None:
        return coded
    if dtype.is_nested():
        raise ValueError(
            f"{label} must hold one value in every row, however: its type is {dtype}; "
            "spread it over several columns or drop it"
        )
    if isinstance(dtype, nw.Categorical | nw.Enum):
        # Levels may be of any type, and the numpy form of an Arrow dictionary does not show its gaps.
        return read_objects(series.to_list(), label, category=True)
    if isinstance(dtype, nw.Decimal | nw.Int128 | nw.UInt128):
        series = series.cast(nw.Float64)
    zoned = isinstance(dtype, nw.Datetime) and dtype.time_zone is not None
    return read_array(series.to_numpy(), label, zoned=zoned)


def _read_arrow_text(column: Any, label: str) -> RawColumn | None:
    """Text of an Arrow column as its different values and codes; None if it is something else."""
    if not type(column).__module__.startswith("pyarrow"):
        return None
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return None
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    column = column.unify_dictionaries().combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(column, pa.ChunkedArray):  # without rows there is no chunk to take
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if len(column.dictionary) > len(column):  # that of a whole file, most of which is not here
        column = column.dictionary_decode().dictionary_encode()
    levels = column.dictionary.to_pylist()
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)  # (rows,)
    if None in levels:
        codes[np.isin(codes, [place for place, level in enumerate(levels) if level is None])] = -1
    if not len(codes) or codes.max() < 0:
        return RawColumn(label, "empty", np.full(len(codes), np.nan))
    return RawColumn(label, "category", levels, codes=codes)


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
                f"X must have rows of one length, however: lengths from {min(lengths)} to {max(lengths)}; fill them"
            )
        matrix = np.array(X, dtype=object)
    else:
        matrix = np.asarray(X)
    if matrix.ndim != 2:
        raise ValueError(
            f"X must be a table of rows and columns, however: {type(X).__name__} with {matrix.ndim} dimension(s). "
            "Reshape your data: X.reshape(-1, 1) for one column, X.reshape(1, -1) for one row"
        )
    if matrix.dtype.kind == "V":
        raise ValueError(
            f"X must be an array of plain values, however: its dtype is {matrix.dtype}; give a dataframe instead"
        )
    return matrix


def _read_matrix(matrix: NDArray[Any]) -> Table:
    rows, columns = matrix.shape
    return Table(rows, columns, None, lambda index: read_array(matrix[:, index], f"column {index}"), matrix)


def _read_sparse(X: Any) -> Table:
    rows, columns = X.shape
    size = rows * columns * np.dtype(np.float32).itemsize
    if size > SPARSE_LIMIT:
        raise ValueError(
            f"a sparse X must fit into {SPARSE_LIMIT / 2**30:g} GiB once it is dense, however: {rows} x {columns} "
            f"takes {size / 2**30:.1f} GiB; reduce its columns before, for example with scikit-learn's TruncatedSVD"
        )
    columnwise = X.tocsc(copy=True)
    columnwise.sum_duplicates()

    def read(index: int) -> RawColumn:
        here = slice(columnwise.indptr[index], columnwise.indptr[index + 1])
        dense = np.zeros(rows, dtype=columnwise.dtype)
        dense[columnwise.indices[here]] = columnwise.data[here]
        return read_array(dense, f"column {index}")

    return Table(rows, columns, None, read)


def read_array(values: NDArray[Any], label: str, *, zoned: bool = False) -> RawColumn:
    """Read one column that came as an array of any dtype.  # (rows,)"""
    kind = values.dtype.kind
    if kind == "b":
        return RawColumn(label, "boolean", values.astype(np.float64))
    if kind in "iu":
        return RawColumn(label, "number", np.ascontiguousarray(values, dtype=np.float64), source=values)
    if kind == "f":
        with np.errstate(over="ignore"):  # a wider float may overflow; the infinity is then reported by name
            return RawColumn(label, "number", np.ascontiguousarray(values, dtype=np.float64))
    if kind == "M":
        days = np.datetime_data(values.dtype)[0] in ("Y", "M", "W", "D")
        unit = "date" if days else "datetime[UTC]" if zoned else "datetime"
        return RawColumn(label, unit, units.seconds_of_array(values))
    if kind == "m":
        return RawColumn(label, "duration", units.seconds_of_array(values))
    if kind == "c":
        raise ValueError(_complex(label))
    return read_objects(values.tolist(), label)


def read_objects(values: list[Any], label: str, *, category: bool = False) -> RawColumn:
    """Read one column that came as objects, by the types they have; `category=True` keeps numbers as levels."""
    types = set(map(type, values))
    if any(_may_be_gap(kind) for kind in types):
        values = [None if _is_gap(value) else value for value in values]
        types = set(map(type, values))
    types.discard(type(None))
    families = {_family(kind) for kind in types}
    if not families:
        return RawColumn(label, "empty", np.full(len(values), np.nan))
    if "complex" in families:
        raise ValueError(_complex(label))
    if "illegal" in families:
        row, value = next((row, value) for row, value in enumerate(values) if _family(type(value)) == "illegal")
        raise TypeError(
            f"{label} must hold one value in every row, and each argument must be a string, a number or a date, "
            f"however: row {row} holds {type(value).__name__} {_short(value)}; "
            "spread it over several columns or drop it"
        )
    if families == {"boolean"}:
        truth = np.array([np.nan if value is None else float(value) for value in values])
        return RawColumn(label, "boolean", truth, source=values)
    unit = None if category else _unit(families)
    if unit is None:
        return RawColumn(label, "category", values)
    if unit == "datetime" and any(getattr(value, "tzinfo", None) is not None for value in values):
        unit = "datetime[UTC]"
    return RawColumn(label, unit, parse_objects(values, unit, label), source=values)


def parse_objects(values: list[Any], unit: str, label: str) -> NDArray[np.float64]:
    """Objects or text as float64 of a unit, NaN for None; the first that is no such value is named.  # (rows,)"""
    parsed = np.full(len(values), np.nan)
    for row, value in enumerate(values):
        if value is None:
            continue
        try:
            parsed[row] = units.parse(value, unit)
        except OverflowError:
            raise RowError(
                f"{label} must hold numbers that fit into float64, however: ",
                row,
                " contains infinity or a value too large; scale the column before",
            ) from None
        except (TypeError, ValueError):
            raise RowError(
                f"{label} must hold a {unit} or a gap in every row, however: ",
                row,
                f" holds {_short(value)}; correct the value or leave it out",
            ) from None
    return parsed


def _unit(families: set[str]) -> str | None:
    """The unit that holds all the families, None if only a category does."""
    if families <= {"number", "boolean"}:
        return "number"
    if families <= {"date", "datetime"}:
        return "date" if families == {"date"} else "datetime"
    if families in ({"duration"}, {"time"}):
        return next(iter(families))
    return None


def _family(kind: type) -> str:
    """What the values of a type are."""
    if issubclass(kind, bool | np.bool_):
        return "boolean"
    if issubclass(kind, datetime.timedelta | np.timedelta64):  # before numbers: numpy has it as an integer
        return "duration"
    if issubclass(kind, datetime.datetime | np.datetime64):
        return "datetime"
    if issubclass(kind, datetime.date):
        return "date"
    if issubclass(kind, datetime.time):
        return "time"
    if issubclass(kind, numbers.Real | Decimal | np.floating | np.integer):
        return "number"
    if issubclass(kind, numbers.Complex | np.complexfloating):
        return "complex"
    if issubclass(kind, str | bytes):
        return "text"
    # Identifiers, addresses, intervals and the like have a text of their own; containers and bare objects have none.
    speaks = kind.__str__ is not object.__str__ or kind.__repr__ is not object.__repr__
    return "text" if speaks and not issubclass(kind, Iterable) and kind.__hash__ is not None else "illegal"


def _may_be_gap(kind: type) -> bool:
    return issubclass(kind, float | np.floating | Decimal | np.datetime64 | np.timedelta64) or _is_pandas_gap(kind)


def _is_pandas_gap(kind: type) -> bool:
    return kind.__name__ in ("NAType", "NaTType")


def _is_gap(value: Any) -> bool:
    if value is None or _is_pandas_gap(type(value)):
        return True
    if isinstance(value, float | np.floating):
        return bool(value != value)
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return False


def _complex(label: str) -> str:
    return (
        f"{label} must hold real numbers, however: Complex data not supported; split it into real and imaginary parts"
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
