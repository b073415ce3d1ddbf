"""Tables from files, batch by batch: CSV as text, just as it is written, and Parquet with its own types."""

from __future__ import annotations

import contextlib
import csv
import glob
import io
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from tartree.cli.errors import Problem, counted, listed
from tartree.cli.notes import Notes
from tartree.cli.streams import STANDARD_INPUT, Utf8, label, open_bytes

DELIMITERS = (",", ";", "\t", "|")
SAMPLE = 2**21  # bytes that are looked at to find the delimiter and the header
SAMPLE_ROWS = 200
BLOCK = 2**23  # bytes parsed at a time; no row may be longer


@dataclass(frozen=True)
class Source:
    """An open table: its column names, its rows in batches, and how its values are written."""

    label: str
    names: list[str]
    batches: Iterator[Any]  # of pyarrow.RecordBatch
    is_text: bool  # all columns are text, as they stand in a CSV file
    decimal_comma: bool = False  # the comma is free for decimals, for it does not separate columns
    table: Any = None  # the ParquetTable, where it is one

    def read_all(self) -> Any:
        """All rows as a pyarrow.Table."""
        batches = list(self.batches)
        return pa.Table.from_batches(batches).unify_dictionaries()

    def parts(self, table: Any) -> Iterator[tuple[str | None, Any]]:
        """The rows of each file, of a table that `read_all` gave; with its name, where there are several."""
        if self.table is None or len(self.table.files) < 2:
            yield None, table
            return
        for path, rows in zip(self.table.files, self.table.file_rows, strict=True):
            yield path, table.slice(rows.start, len(rows))

    def chunks(self, rows: int) -> Iterator[tuple[str | None, int, Any]]:
        """Tables of `rows` rows each, the last of a file of fewer; one without rows if there are none.

        Each comes with the name of its file, where there are several, and the number of rows before it there.
        """
        files: Iterable[tuple[str | None, Iterator[Any]]] = [(None, self.batches)]
        if self.table is not None and len(self.table.files) > 1 and self.table.n_rows:
            names, cast = self.table.files, self.table.as_table
            scan = groupby(self.table.scan(), key=itemgetter(0))
            files = (
                (names[file], (one for *_, piece in own for one in cast(piece).to_batches())) for file, own in scan
            )
        for path, batches in files:
            n_before = 0
            for chunk in _in_chunks(batches, rows):
                yield path, n_before, chunk
                n_before += chunk.num_rows


def _in_chunks(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    waiting: list[Any] = []
    n_waiting, empty, given = 0, None, False
    for batch in batches:
        empty = batch.slice(0, 0)
        while n_waiting + batch.num_rows >= rows:
            head = batch.slice(0, rows - n_waiting)
            batch = batch.slice(rows - n_waiting)
            yield pa.Table.from_batches([*waiting, head])
            waiting, n_waiting, given = [], 0, True
        if batch.num_rows:
            waiting.append(batch)
            n_waiting += batch.num_rows
    if waiting:
        yield pa.Table.from_batches(waiting)
    elif not given and empty is not None:
        yield pa.Table.from_batches([empty])


@contextmanager
def open_table(
    path: str,
    notes: Notes,
    *,
    target: str | None = None,
    drop: Sequence[str] = (),
    needed: Sequence[str] | None = None,
) -> Iterator[Source]:
    """Open a table by what it holds, whatever its name ends in; `batches` can be read once, within the context.

    Columns of Parquet files must agree, but for those to `drop`, which are not read. Where there is a `target`, the
    index of pandas is not read either, unless it is that. Where some are `needed`, others that do not agree are left
    out.
    """
    if is_several(path):
        yield _open_files(path, notes, target, drop, needed)
        return
    with open_bytes(path) as file:
        start = file.start
        if start.startswith(b"PAR1"):
            yield _open_parquet(path, notes, target, drop, needed)
            return
        for ending in (".parquet", ".pq"):
            if path.lower().endswith(ending):
                raise Problem(f"{path} is not a Parquet file, though its name ends in {ending}")
        if start.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
            raise Problem(f"{label(path)} is an Excel workbook or an archive, not a text table; save it as CSV")
        yield _open_csv(Utf8(file, label(path), notes), label(path), notes)


def is_several(path: str) -> bool:
    """Whether a name means several Parquet files: a folder, or a pattern such as rows/*.parquet."""
    return os.path.isdir(path) or (glob.has_magic(path) and not os.path.exists(path))


def open_stream(path: str, asked: bool | None, target: str, drop: Sequence[str] = ()) -> Any:
    """A `ParquetTable` where a table is to be streamed, because of its size or on demand; None if it is not."""
    if not is_several(path) and not (path != STANDARD_INPUT and _is_parquet(path)):
        if asked:
            raise not_parquet(label(path))
        return None
    table = _parquet(path, target, drop, in_memory=None if asked is None else not asked)
    return None if table.in_memory else table


def not_parquet(name: str) -> Problem:
    return Problem(f"{name} cannot be streamed: it is not Parquet; convert it, or leave out --stream or --cluster")


def _is_parquet(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == b"PAR1"


def _parquet(
    path: str,
    target: str | None,
    drop: Sequence[str],
    needed: Sequence[str] | None = None,
    in_memory: bool | None = None,
) -> Any:
    from tartree.table import ParquetTable

    table = ParquetTable(path, columns=(), in_memory=in_memory)
    if needed is not None:
        agreed = {*needed, *table.common_names()}
        drop = [name for name in table.all_names if name not in agreed]
    else:
        kept = table.common_names() if target is None else [target]
        drop = [*drop, *(name for name in table.index_names if name not in kept)]
    return table.select([name for name in table.all_names if name not in drop])


def note_index(table: Any, drop: Sequence[str], notes: Notes) -> None:
    """Say so where the index of pandas is left out, unasked."""
    index = [repr(name) for name in table.index_names if name not in table.names and name not in drop]
    if index:
        notes.add(
            f"left out: {listed(index)}, the index of the rows in pandas; reset_index() before to_parquet keeps it"
        )


def _open_files(
    path: str, notes: Notes, target: str | None, drop: Sequence[str], needed: Sequence[str] | None
) -> Source:
    table = _parquet(path, target, drop, needed)
    names = [
        name for name in table.all_names if name in table.names or name in drop
    ]  # those to drop too: they are there
    if needed is None:
        note_index(table, drop, notes)
    elif len(names) < len(table.all_names):
        left_out = [repr(name) for name in table.all_names if name not in table.names]
        notes.add(f"left out: {listed(left_out)}, which not all files have, or not in one type")

    def batches() -> Iterator[Any]:
        yield pa.RecordBatch.from_pylist([], schema=table.schema)
        for *_, piece in table.scan():
            yield from table.as_table(piece).to_batches()

    return Source(path, names, batches(), is_text=False, table=table)


def _open_parquet(
    path: str, notes: Notes, target: str | None, drop: Sequence[str], needed: Sequence[str] | None
) -> Source:
    if path == STANDARD_INPUT:
        raise Problem("standard input holds Parquet, which cannot be read from a pipe; give the name of the file")
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
    except pa.ArrowException as error:
        raise Problem(f"{path} must be a Parquet file, however: {error}; write it again") from error
    _check_names(names, path)
    return _open_files(path, notes, target, drop, needed)


def _open_csv(stream: Utf8, name: str, notes: Notes) -> Source:
    sample = stream.read(SAMPLE)
    text = sample.decode(errors="ignore")  # the sample may end within a letter
    if not text.strip():
        raise Problem(f"{name} is empty")
    cut = len(sample) == SAMPLE
    delimiter = max(DELIMITERS, key=lambda candidate: _fit_of_delimiter(text, candidate, cut))
    header, n_letters = _header(text, delimiter)
    if not header or (cut and n_letters == len(text)):
        raise Problem(f"{name} has no header in its first {SAMPLE >> 20} MB; is it a text table?")
    stream.unread(sample[len(text[:n_letters].encode()) :])
    names = _clean_names(header, name, notes)
    return Source(
        name, names, _csv_batches(stream, names, delimiter, name), is_text=True, decimal_comma=delimiter != ","
    )


def _fit_of_delimiter(text: str, delimiter: str, cut: bool) -> tuple[float, int]:
    """How well a delimiter explains a text: the share of rows as long as the header, then the number of columns."""
    records: list[list[str]] = []
    with contextlib.suppress(csv.Error):  # a value of excessive length
        for record in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            records += [record] if record else []
            if len(records) > SAMPLE_ROWS:
                break
    if len(records) > SAMPLE_ROWS or (cut and len(records) > 1):
        records.pop()  # the sample may end within it
    n_columns = len(records[0]) if records else 0
    if n_columns < 2:
        return 0.0, 0
    return sum(len(record) == n_columns for record in records) / len(records), n_columns


def _header(text: str, delimiter: str) -> tuple[list[str], int]:
    """The first record that holds something, and the letters up to its end."""
    n_letters = 0

    def lines() -> Iterator[str]:
        nonlocal n_letters
        for line in io.StringIO(text, newline=""):
            n_letters += len(line)
            yield line

    with contextlib.suppress(csv.Error):  # a value of excessive length
        for record in csv.reader(lines(), delimiter=delimiter):
            if any(cell.strip() for cell in record):
                return record, n_letters
    return [], len(text)


def _clean_names(header: list[str], name: str, notes: Notes) -> list[str]:
    names = [" ".join(cell.split()) for cell in header]
    unnamed = [place for place, cell in enumerate(names) if not cell]
    for place in unnamed:
        names[place] = free_name(f"column_{place + 1}", names)
    if unnamed:
        notes.add(f"{name} has columns without a name: called {listed(names[place] for place in unnamed)}")
    _check_names(names, name)
    if all(cell.replace(".", "", 1).replace("-", "", 1).isdigit() for cell in names):
        notes.add(f"the column names of {name} are numbers ({listed(names, 4)}): is its header missing?")
    return names


def free_name(wanted: str, names: list[str]) -> str:
    """The name itself, or with the first number that makes it new."""
    name, number = wanted, 0
    while name in names:
        number += 1
        name = f"{wanted}_{number}"
    return name


def _check_names(names: list[str], where: str) -> None:
    many = [f"{name!r} ({count} times)" for name, count in Counter(names).items() if count > 1]
    if many:
        raise Problem(f"{where} has columns of the same name: {listed(many)}; rename or remove them")


def _csv_batches(stream: Utf8, names: list[str], delimiter: str, name: str) -> Iterator[Any]:
    schema = pa.schema([(column, pa.string()) for column in names])
    last = pa.RecordBatch.from_pylist([], schema=schema)
    yield last
    ragged: list[Any] = []

    def refuse(row: Any) -> str:
        ragged.append(row)
        return "error"

    try:
        reader = _csv_reader(stream, schema, delimiter, refuse)
        for batch in reader:
            yield batch
            last = batch if batch.num_rows else last
    except pa.ArrowInvalid as error:
        if ragged:
            raise Problem(_ragged_row(name, ragged[0])) from None
        if "straddling" in str(error):
            raise Problem(
                f"{name} has a row of more than {BLOCK >> 20} MB: is a quote opened and never closed?"
            ) from None
        if "Empty CSV" in str(error):  # nothing but empty lines
            return
        raise Problem(f"{name} cannot be read: {' '.join(str(error).split())}") from None
    if stream.n_quotes % 2 and any("\n" in column[-1].as_py() for column in last.columns if last.num_rows):
        raise Problem(f"{name} ends within quotes: one is opened and never closed")


def _csv_reader(stream: Utf8, schema: Any, delimiter: str, refuse: Callable[[Any], str]) -> Any:
    return pyarrow.csv.open_csv(
        pa.PythonFile(stream, mode="r"),
        # Without threads, rows that are too short or too long come with their number.
        read_options=pyarrow.csv.ReadOptions(column_names=schema.names, block_size=BLOCK, use_threads=False),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, invalid_row_handler=refuse
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types={field.name: field.type for field in schema}, strings_can_be_null=False
        ),
    )


def _ragged_row(name: str, row: Any) -> str:
    text = " ".join(row.text.split())
    shown = text if len(text) <= 60 else text[:57] + "..."
    return (
        f"{name}: row {row.number + 1} has {counted(row.actual_columns, 'value')}, however: the header (row 1) has "
        f"{counted(row.expected_columns, 'column')}: {shown}"
    )
