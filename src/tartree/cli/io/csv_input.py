"""CSV files as input tables: text, exactly as it is written."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.csv

from tartree.cli.io.byte_stream import Utf8Stream
from tartree.cli.io.input_table import InputTable, check_unique, free_name
from tartree.cli.problems import Problem
from tartree.cli.rendering.notes import Notes
from tartree.cli.rendering.phrases import counted, listed

DELIMITERS = (",", ";", "\t", "|")
SAMPLE = 2**21  # bytes that delimiter and header are inferred from
SAMPLE_ROWS = 200
BLOCK = 2**23  # bytes parsed at a time; no row may be longer


def open_csv(stream: Utf8Stream, name: str, notes: Notes) -> InputTable:
    """Open a CSV file with any of the delimiters, which is inferred from its first rows."""
    sample = stream.read(SAMPLE)
    text = sample.decode(errors="ignore")  # the sample may end within a letter
    if not text.strip():
        raise Problem(f"{name} is empty")
    cut = len(sample) == SAMPLE
    delimiter = max(DELIMITERS, key=lambda candidate: _rate_delimiter(text, candidate, cut))
    header, n_letters = _header(text, delimiter)
    if not header or (cut and n_letters == len(text)):
        raise Problem(f"{name} has no header in its first {SAMPLE >> 20} MB; is it a text table?")
    stream.unread(sample[len(text[:n_letters].encode()) :])
    names = _clean_names(header, name, notes)
    batches = _csv_batches(stream, names, delimiter, name)
    return InputTable(name, names, batches, is_text=True, decimal_comma=delimiter != ",")


def _rate_delimiter(text: str, delimiter: str, cut: bool) -> tuple[float, int]:
    """Return the fraction of rows that are as long as the header, then the number of columns."""
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
    """Return the first record that is not blank, and the number of letters up to its end."""
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
    unnamed = [index for index, cell in enumerate(names) if not cell]
    for index in unnamed:
        names[index] = free_name(f"column_{index + 1}", names)
    if unnamed:
        notes.add(f"{name} has columns without a name: called {listed(names[index] for index in unnamed)}")
    check_unique(names, name)
    if all(cell.replace(".", "", 1).replace("-", "", 1).isdigit() for cell in names):
        notes.add(f"the column names of {name} are numbers ({listed(names, 4)}): is its header missing?")
    return names


def _csv_batches(stream: Utf8Stream, names: list[str], delimiter: str, name: str) -> Iterator[Any]:
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
        if "Empty CSV" in str(error):  # empty lines only
            return
        raise Problem(f"{name} cannot be read: {' '.join(str(error).split())}") from None
    if stream.n_quotes % 2 and any("\n" in column[-1].as_py() for column in last.columns if last.num_rows):
        raise Problem(f"{name} ends within quotes: one is opened and never closed")


def _csv_reader(stream: Utf8Stream, schema: Any, delimiter: str, refuse: Callable[[Any], str]) -> Any:
    return pyarrow.csv.open_csv(
        pa.PythonFile(stream, mode="r"),
        # Without threads, the number of a row that is too short or too long is reported.
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
        f"{name}: row {row.number + 1} must have {counted(row.expected_columns, 'value')}, as many as the header "
        f"(row 1), got {row.actual_columns}: {shown}"
    )
