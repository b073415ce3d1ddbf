"""Parquet files as input tables, with their own types."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet

from tartree.cli.io.byte_stream import STANDARD_INPUT, label
from tartree.cli.io.input_table import InputTable, check_unique
from tartree.cli.problems import Problem
from tartree.cli.rendering.notes import Notes
from tartree.cli.rendering.phrases import listed

if TYPE_CHECKING:
    from tartree.table import ParquetTable

PARQUET_START = b"PAR1"


def is_several(path: str) -> bool:
    """Whether a path means several Parquet files: a folder, or a pattern such as rows/*.parquet."""
    return os.path.isdir(path) or (glob.has_magic(path) and not os.path.exists(path))


def open_stream(path: str, asked: bool | None, target: str, drop: Sequence[str] = ()) -> ParquetTable | None:
    """Return the table if it is to be streamed, because it is large or on demand; otherwise None."""
    if not is_several(path) and not (path != STANDARD_INPUT and _is_parquet(path)):
        if asked:
            raise not_parquet(label(path))
        return None
    table = _parquet_table(path, target, drop, in_memory=None if asked is None else not asked)
    return None if table.in_memory else table


def not_parquet(name: str) -> Problem:
    """Return the error for a table that cannot be streamed."""
    return Problem(f"{name} cannot be streamed: it is not Parquet; convert it, or leave out --stream or --cluster")


def _is_parquet(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(len(PARQUET_START)) == PARQUET_START


def _parquet_table(
    path: str,
    target: str | None,
    drop: Sequence[str],
    needed: Sequence[str] | None = None,
    in_memory: bool | None = None,
) -> ParquetTable:
    from tartree.table import ParquetTable

    table = ParquetTable(path, columns=(), in_memory=in_memory)
    if needed is not None:
        agreed = {*needed, *table.common_names()}
        drop = [name for name in table.all_names if name not in agreed]
    else:
        kept = table.common_names() if target is None else [target]
        drop = [*drop, *(name for name in table.index_names if name not in kept)]
    return table.select([name for name in table.all_names if name not in drop])


def note_index(table: ParquetTable, drop: Sequence[str], notes: Notes) -> None:
    """Add a note if the index of pandas is left out, unless that was asked for."""
    index = [repr(name) for name in table.index_names if name not in table.names and name not in drop]
    if index:
        notes.add(
            f"left out: {listed(index)}, the index of the rows in pandas; reset_index() before to_parquet keeps it"
        )


def open_files(
    path: str, notes: Notes, target: str | None, drop: Sequence[str], needed: Sequence[str] | None
) -> InputTable:
    """Open one or several Parquet files; see `open_table`."""
    table = _parquet_table(path, target, drop, needed)
    names = [name for name in table.all_names if name in table.names or name in drop]
    if needed is None:
        note_index(table, drop, notes)
    elif len(names) < len(table.all_names):
        left_out = [repr(name) for name in table.all_names if name not in table.names]
        notes.add(f"left out: {listed(left_out)}, which not all files have, or not in one type")

    def batches() -> Iterator[Any]:
        yield pa.RecordBatch.from_pylist([], schema=table.schema)
        for *_, piece in table.scan():
            yield from table.as_table(piece).to_batches()

    return InputTable(path, names, batches(), is_text=False, parquet=table)


def open_parquet(
    path: str, notes: Notes, target: str | None, drop: Sequence[str], needed: Sequence[str] | None
) -> InputTable:
    """Open a Parquet file; see `open_table`."""
    if path == STANDARD_INPUT:
        raise Problem("standard input holds Parquet, which cannot be read from a pipe; give the name of the file")
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
    except pa.ArrowException as error:
        raise Problem(f"{path} must be a Parquet file, got {error}; write it again") from error
    check_unique(names, path)
    return open_files(path, notes, target, drop, needed)
