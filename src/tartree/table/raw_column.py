"""RawColumn: the values of one column as they are in a table, and its kind.

Everything ends in one of two forms: float64 with NaN for missing values (numbers, booleans, and dates, durations and
times as seconds), or a list of objects with None for missing values (categories, strings, and whatever is mixed).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from tartree.table.object_types import family_of, is_missing, may_be_missing, quantity_of
from tartree.table.quantities import QUANTITIES
from tartree.table.quantities.quantity import Quantity
from tartree.table.quantities.times import seconds_of_array
from tartree.table.row_error import RowError, among
from tartree.table.texts.text_forms import TextForm, TextReading, is_missing_text, parse_texts, read_texts


@dataclass(frozen=True)
class RawColumn:
    """The values of one column.

    `kind` is the name of a quantity, "boolean", "category", or "empty" where every value is missing. `values` is a
    list of objects with None for missing values for a category, and float64 with NaN otherwise; `source` is then what
    it was made from, if that tells more. A category may have `codes`: then `values` are its different texts, and a
    code is the position of a row's text among them, or -1 for a missing value. `is_declared` tells that the table
    itself calls the column categorical, so that texts are levels whatever they look like.
    """

    label: str
    kind: str
    values: Any  # (rows,)
    source: Any = None  # (rows,)
    codes: NDArray[np.intp] | None = None  # (rows,)
    is_declared: bool = False

    def numbers(self, unit: str, form: TextForm | None = None) -> NDArray[np.float64]:
        """Return the values as float64 in a unit, NaN for missing ones; text is converted if every value can be.

        Text is read by the form, if there is one.
        """
        quantity = QUANTITIES[unit]
        if self.kind in quantity.accepts or self.kind == "empty":
            return np.asarray(self.values, dtype=np.float64)
        if self.kind == "category" and self.codes is not None:
            return self._parse_levels(quantity, form)[self.codes]
        if self.kind == "category":
            return parse_objects(self.values, quantity, self.label, form)
        if np.isnan(self.values).all():
            return np.asarray(self.values, dtype=np.float64)
        raise ValueError(
            f"{self.label} must hold a {unit} in every row, as it did in fit, got a {self.kind}; "
            "convert the column before"
        )

    def _parse_levels(self, quantity: Quantity, form: TextForm | None) -> NDArray[np.float64]:
        """Return the different texts as numbers, and NaN beside them for the code -1; unused ones are not read."""
        assert self.codes is not None
        codes, rows = np.unique(self.codes, return_index=True)
        order = np.argsort(rows)  # so that the first wrong row is named
        codes, rows = codes[order][codes[order] >= 0], rows[order][codes[order] >= 0]
        numbers = np.full(len(self.values) + 1, np.nan)
        with among(rows):
            numbers[codes] = parse_objects([self.values[code] for code in codes], quantity, self.label, form)
        return numbers

    def reading(self, *, digits: bool = False) -> TextReading | None:
        """Return how a column of text is read as numbers or dates, None if it is something else."""
        texts = self.texts()
        return read_texts(texts, digits=digits) if texts else None

    def texts(self) -> list[str]:
        """Return the different texts of a column that holds nothing else, and is not called categorical."""
        if self.kind != "category" or self.is_declared:
            return []
        levels = self.values
        if self.codes is not None:
            levels = [levels[code] for code in np.unique(self.codes) if code >= 0]
        texts = [text for text in dict.fromkeys(levels) if text is not None]
        return texts if set(map(type, texts)) == {str} else []

    @property
    def missing_share(self) -> float:
        """Share of missing values."""
        if self.codes is not None:
            return float(np.mean(self.codes < 0))
        if self.kind == "category":
            return float(np.mean([value is None for value in self.values]))
        return float(np.mean(np.isnan(self.values)))

    def read_as(self, reading: TextReading) -> RawColumn:
        """Return a column of text as numbers or dates."""
        unit = QUANTITIES[reading.kind]
        return RawColumn(self.label, unit.name, self.numbers(unit.name, reading.form))

    def take(self, rows: NDArray[np.intp]) -> RawColumn:
        """Return some of the rows."""
        if self.codes is not None:
            return replace(self, codes=self.codes[rows])
        values, source = (
            [column[row] for row in rows] if isinstance(column, list) else column if column is None else column[rows]
            for column in (self.values, self.source)
        )
        return replace(self, values=values, source=source)

    def objects(self) -> list[Any]:
        """Return the values as Python objects, None for missing ones."""
        if self.codes is not None:
            levels = [*self.values, None]
            return [levels[code] for code in self.codes.tolist()]
        if self.kind == "category" or self.source is not None:
            return list(self.values if self.source is None else self.source)
        is_present = ~np.isnan(self.values)
        present = self.values[is_present]
        if self.kind == "empty":
            return [None] * len(self.values)
        objects = (present != 0).tolist() if self.kind == "boolean" else QUANTITIES[self.kind].objects(present)
        if len(objects) == len(self.values):
            return objects
        filled = np.full(len(self.values), None, dtype=object)
        filled[is_present] = np.asarray(objects, dtype=object)
        return filled.tolist()


def read_series(series: nw.Series[Any], label: str) -> RawColumn:
    """Read a column of a dataframe."""
    dtype = series.dtype
    if (coded := _read_arrow_text(series.to_native(), label)) is not None:
        return coded
    if dtype.is_nested():
        raise ValueError(
            f"{label} must hold one value in every row, got the type {dtype}; spread it over several columns or drop it"
        )
    if isinstance(dtype, nw.Categorical | nw.Enum):
        # Levels may be of any type, and the numpy form of an Arrow dictionary does not show its missing values.
        return read_objects(series.to_list(), label, category=True)
    if isinstance(dtype, nw.Decimal | nw.Int128 | nw.UInt128):
        series = series.cast(nw.Float64)
    zoned = isinstance(dtype, nw.Datetime) and dtype.time_zone is not None
    return read_array(series.to_numpy(), label, zoned=zoned)


def _read_arrow_text(column: Any, label: str) -> RawColumn | None:
    """Read text of an Arrow column as its different values and codes; None if it is something else."""
    if not type(column).__module__.startswith("pyarrow"):
        return None
    import pyarrow as pa

    is_dictionary = pa.types.is_dictionary(column.type)
    value_type = column.type.value_type if is_dictionary else column.type
    if not (pa.types.is_string(value_type) or pa.types.is_large_string(value_type)):
        return None
    if not is_dictionary:
        column = column.dictionary_encode()
    column = column.unify_dictionaries().combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(column, pa.ChunkedArray):  # without rows it has no chunk
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if len(column.dictionary) > len(column):  # that of a whole file, most of which is not here
        column = column.dictionary_decode().dictionary_encode()
    levels = column.dictionary.to_pylist()
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)  # (rows,)
    if None in levels:
        codes[np.isin(codes, [position for position, level in enumerate(levels) if level is None])] = -1
    if not len(codes) or codes.max() < 0:
        return RawColumn(label, "empty", np.full(len(codes), np.nan))
    quantity = quantity_of({"text"}, levels)
    if quantity is not None:
        values = np.append(parse_objects(levels, quantity, label), np.nan)[codes]
        return RawColumn(label, quantity.name, values)
    return RawColumn(label, "category", levels, codes=codes)


def read_array(values: NDArray[Any], label: str, *, zoned: bool = False) -> RawColumn:
    """Read a column that is an array, (rows,), of any dtype."""
    dtype_kind = values.dtype.kind
    if dtype_kind == "b":
        return RawColumn(label, "boolean", values.astype(np.float64))
    if dtype_kind in "iu":
        return RawColumn(label, "number", np.ascontiguousarray(values, dtype=np.float64), source=values)
    if dtype_kind == "f":
        with np.errstate(over="ignore"):  # a wider float may overflow; the infinity is then reported by name
            return RawColumn(label, "number", np.ascontiguousarray(values, dtype=np.float64))
    if dtype_kind == "M":
        days = np.datetime_data(values.dtype)[0] in ("Y", "M", "W", "D")
        return RawColumn(label, "date" if days else "datetime[UTC]" if zoned else "datetime", seconds_of_array(values))
    if dtype_kind == "m":
        return RawColumn(label, "duration", seconds_of_array(values))
    if dtype_kind == "c":
        raise ValueError(_complex(label))
    return read_objects(values.tolist(), label)


def read_objects(values: list[Any], label: str, *, category: bool = False) -> RawColumn:
    """Read a column of objects by the types they have; `category=True` keeps numbers as levels."""
    types = set(map(type, values))
    if any(may_be_missing(python_type) for python_type in types):
        values = [None if is_missing(value) else value for value in values]
        types = set(map(type, values))
    types.discard(type(None))
    families = {family_of(python_type) for python_type in types}
    if not families:
        return RawColumn(label, "empty", np.full(len(values), np.nan))
    if "complex" in families:
        raise ValueError(_complex(label))
    if "illegal" in families:
        row, value = next((row, value) for row, value in enumerate(values) if family_of(type(value)) == "illegal")
        raise TypeError(
            f"{label} must hold one value in every row, and each argument must be a string, a number or a date, "
            f"but row {row} holds {type(value).__name__} {_short(value)}; "
            "spread it over several columns or drop it"
        )
    if families == {"boolean"}:
        truth = np.array([np.nan if value is None else float(value) for value in values])
        return RawColumn(label, "boolean", truth, source=values)
    quantity = None if category else quantity_of(families, values)
    if quantity is None:
        return RawColumn(label, "category", values, is_declared=category)
    return RawColumn(label, quantity.name, parse_objects(values, quantity, label), source=values)


def parse_objects(
    values: list[Any], quantity: Quantity, label: str, form: TextForm | None = None
) -> NDArray[np.float64]:
    """Return objects or text as float64, (rows,), NaN for missing values; the first that is no such value is named.

    Text is read by the form, or as the quantity reads it.
    """
    if form is not None and set(map(type, values)) <= {str, type(None)}:
        parsed, wrong = parse_texts(values, form)
        if wrong is not None:
            raise RowError(
                f"{label} must hold a {quantity.name} or a missing value in every row, such as {form.example}, but ",
                wrong,
                f" holds {_short(values[wrong])}; correct the value or leave it out",
            )
        return parsed
    parsed = np.full(len(values), np.nan)
    for row, value in enumerate(values):
        if value is None or (isinstance(value, str) and is_missing_text(value)):
            continue
        try:
            parsed[row] = form.parse(value) if form is not None and isinstance(value, str) else quantity.parse(value)
        except OverflowError:
            raise RowError(
                f"{label} must hold numbers that fit into float64, but ",
                row,
                " contains infinity or a value too large; scale the column before",
            ) from None
        except (TypeError, ValueError):
            raise RowError(
                f"{label} must hold a {quantity.name} or a missing value in every row, but ",
                row,
                f" holds {_short(value)}; correct the value or leave it out",
            ) from None
    return parsed


def _complex(label: str) -> str:
    return f"{label} must hold real numbers, but: Complex data not supported; split it into real and imaginary parts"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
