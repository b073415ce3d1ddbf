"""Tables to files: CSV, TSV and Parquet, piece by piece; a file appears whole or not at all."""

from __future__ import annotations

import contextlib
import gzip
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from tartree.cli.errors import Problem

STANDARD_OUTPUT = "-"
DELIMITERS = {".csv": ",", ".txt": ",", ".tsv": "\t", ".csv.gz": ",", ".tsv.gz": "\t"}

Write = Callable[[Any], None]


def check_out(name: str, option: str, force: bool) -> None:
    """Find out before the work whether its result can be kept."""
    path = Path(name)
    if path.is_dir():
        raise Problem(f"{path} is a directory; give the name of a file to {option}")
    if path.exists() and not force:
        raise Problem(f"{path} exists; give --force to replace it, or another {option}")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise Problem(f"{path} cannot be written: {path.parent} is not a directory that can be written to")
    if path.exists() and not os.access(path, os.W_OK):
        raise Problem(f"{path} cannot be written: it is protected; give another {option}")


@contextmanager
def open_writer(out: str) -> Iterator[Write]:
    """A function that writes tables with the same columns one below the other, in the format of the file's ending."""
    if out == STANDARD_OUTPUT:
        stream = sys.stdout.buffer
        yield _text_writer(stream, ",")
        stream.flush()
        return
    ending = next((ending for ending in (*DELIMITERS, ".parquet") if out.lower().endswith(ending)), None)
    if ending is None:
        raise Problem(f"the name of --out must end in .csv, .tsv or .parquet, however: {out}")
    with _replaced(out) as file:
        if ending == ".parquet":
            with _ParquetWriter(file) as writer:
                yield writer.write
        elif ending.endswith(".gz"):
            with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
                yield _text_writer(packed, DELIMITERS[ending])
        else:
            yield _text_writer(file, DELIMITERS[ending])


@contextmanager
def _replaced(path: str) -> Iterator[BinaryIO]:
    """A new file that takes the place of `path` once everything is written, and vanishes if that fails."""
    if os.path.exists(path) and not os.path.isfile(path):  # a directory, an error; a device or a pipe, written as it is
        with open(path, "wb") as file:
            yield file
        return
    target = os.path.realpath(path)
    temporary = os.path.join(os.path.dirname(target), f".tartree-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.filename == temporary:  # name the file that was asked for
            raise OSError(error.errno, error.strerror, path) from error
        raise


class _ParquetWriter:
    """Opened with the first table, which brings the types."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._writer: Any = None

    def __enter__(self) -> _ParquetWriter:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(self, table: Any) -> None:
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
    """Quotes around the values that need them."""
    needs = pc.match_substring_regex(text, f'[{delimiter}"\r\n]')
    if not pc.any(needs).as_py():
        return text
    doubled = pc.replace_substring(text, '"', '""')
    return pc.if_else(needs, pc.binary_join_element_wise('"', doubled, '"', ""), text)
