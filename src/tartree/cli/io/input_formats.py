"""Opening a table in the format of its content: CSV or Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tartree.cli.io.byte_stream import Utf8Stream, label, open_bytes
from tartree.cli.io.csv_input import open_csv
from tartree.cli.io.input_table import InputTable
from tartree.cli.io.parquet_input import PARQUET_START, is_several, open_files, open_parquet
from tartree.cli.problems import Problem
from tartree.cli.rendering.notes import Notes


@contextmanager
def open_table(
    path: str,
    notes: Notes,
    *,
    target: str | None = None,
    drop: Sequence[str] = (),
    needed: Sequence[str] | None = None,
) -> Iterator[InputTable]:
    """Open a table by its content, whatever the ending of its name.

    Columns of Parquet files must agree, except those to `drop`, which are not read. With a `target`, the index of
    pandas is not read either, unless it is the target. If some columns are `needed`, others that do not agree are left
    out.
    """
    if is_several(path):
        yield open_files(path, notes, target, drop, needed)
        return
    with open_bytes(path) as file:
        start = file.start
        if start.startswith(PARQUET_START):
            yield open_parquet(path, notes, target, drop, needed)
            return
        for ending in (".parquet", ".pq"):
            if path.lower().endswith(ending):
                raise Problem(f"{path} is not a Parquet file, though its name ends in {ending}")
        if start.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
            raise Problem(f"{label(path)} is an Excel workbook or an archive, not a text table; save it as CSV")
        yield open_csv(Utf8Stream(file, label(path), notes), label(path), notes)
