"""Writing tables to CSV, TSV and Parquet, chunk by chunk; a file is written whole or not at all."""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from tartree import persist
from tartree.cli.problems import Problem

STANDARD_OUTPUT = "-"
DELIMITERS = {".csv": ",", ".txt": ",", ".tsv": "\t", ".csv.gz": ",", ".tsv.gz": "\t"}

Write = Callable[[Any], None]


@contextmanager
def open_writer(out: str) -> Iterator[Write]:
    """Give a function that appends tables with the same columns, in the format of the file's ending."""
    if out == STANDARD_OUTPUT:
        stream = sys.stdout.buffer
        yield _text_writer(stream, ",")
        stream.flush()
        return
    ending = next((ending for ending in (*DELIMITERS, ".parquet") if out.lower().endswith(ending)), None)
    if ending is None:
        raise Problem(f"the name of --out must end in .csv, .tsv or .parquet, got {out}")
    with _open_output(out) as file:
        if ending == ".parquet":
            with _ParquetWriter(file) as writer:
                yield writer.write
        elif ending.endswith(".gz"):
            with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
                yield _text_writer(packed, DELIMITERS[ending])
        else:
            yield _text_writer(file, DELIMITERS[ending])


@contextmanager
def _open_output(path: str) -> Iterator[BinaryIO]:
    """Open a file to be replaced as a whole; a device or a pipe is written directly."""
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as file:
            yield file
        return
    with persist.replaced_file(path) as file:
        yield file


class _ParquetWriter:
    """Writer that is opened with the first table, which has the types."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._writer: Any = None

    def __enter__(self) -> _ParquetWriter:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(self, table: Any) -> None:
        """Append a table."""
        if self._writer is None:
            self._writer = pyarrow.parquet.ParquetWriter(self._file, table.schema)
        self._writer.write_table(table)


def _text_writer(stream: Any, delimiter: str) -> Write:
    has_header = False

    def write(table: Any) -> None:
        nonlocal has_header
        if not has_header:
            names = _quoted(pa.array(table.column_names), delimiter).to_pylist()
            stream.write((delimiter.join(names) + "\n").encode())
            has_header = True
        if table.num_rows:
            columns = [
                _quoted(_as_text(column, name), delimiter)
                for name, column in zip(table.column_names, table.columns, strict=True)
            ]
            lines = pc.binary_join_element_wise(*columns, delimiter, null_handling="replace", null_replacement="")
            stream.write(("\n".join(lines.to_pylist()) + "\n").encode())

    return write


def _as_text(column: Any, name: str) -> Any:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        return pc.cast(column, pa.string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        raise Problem(
            f"column {name!r} of type {column.type} cannot be written as text; give --out a name that ends in .parquet"
        ) from None


def _quoted(text: Any, delimiter: str) -> Any:
    """Put quotes around the values that need them."""
    needs = pc.match_substring_regex(text, f'[{delimiter}"\r\n]')
    if not pc.any(needs).as_py():
        return text
    doubled = pc.replace_substring(text, '"', '""')
    return pc.if_else(needs, pc.binary_join_element_wise('"', doubled, '"', ""), text)
