"""InputTable: an open table of a file, with its rows in batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tartree.cli.problems import Problem
from tartree.cli.rendering.phrases import listed

if TYPE_CHECKING:
    from tartree.table import ParquetTable


@dataclass(frozen=True)
class InputTable:
    """An open table: its column names, its rows in batches, and how its values are written.

    Parameters
    ----------
    label : str
        Name of the table in messages.
    names : list of str
        Column names.
    batches : iterator of pyarrow.RecordBatch
        Can be read once.
    is_text : bool
        Whether all columns are text, as in a CSV file.
    decimal_comma : bool
        Whether a comma may be a decimal one, since it does not separate columns.
    parquet : ParquetTable or None
        The files, if they are Parquet.
    """

    label: str
    names: list[str]
    batches: Iterator[Any]
    is_text: bool
    decimal_comma: bool = False
    parquet: ParquetTable | None = None

    def read_all(self) -> Any:
        """Return all rows as a pyarrow.Table."""
        return pa.Table.from_batches(list(self.batches)).unify_dictionaries()

    def parts(self, table: Any) -> Iterator[tuple[str | None, Any]]:
        """Yield the rows of each file of a table from `read_all`, with its name if there are several."""
        if self.parquet is None or len(self.parquet.files) < 2:
            yield None, table
            return
        for path, rows in zip(self.parquet.files, self.parquet.file_rows, strict=True):
            yield path, table.slice(rows.start, len(rows))

    def chunks(self, rows: int) -> Iterator[tuple[str | None, int, Any]]:
        """Yield tables of `rows` rows, the last of a file of fewer; one without rows if there are none.

        Each has the name of its file, if there are several, and the number of rows before it in that file.
        """
        files: Iterable[tuple[str | None, Iterator[Any]]] = [(None, self.batches)]
        if self.parquet is not None and len(self.parquet.files) > 1 and self.parquet.n_rows:
            names, cast = self.parquet.files, self.parquet.as_table
            scan = groupby(self.parquet.scan(), key=itemgetter(0))
            files = (
                (names[file], (batch for *_, piece in group for batch in cast(piece).to_batches()))
                for file, group in scan
            )
        for path, batches in files:
            n_before = 0
            for chunk in _in_chunks(batches, rows):
                yield path, n_before, chunk
                n_before += chunk.num_rows


def _in_chunks(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    waiting: list[Any] = []
    n_waiting, empty, is_first = 0, None, True
    for batch in batches:
        empty = batch.slice(0, 0)
        while n_waiting + batch.num_rows >= rows:
            head = batch.slice(0, rows - n_waiting)
            batch = batch.slice(rows - n_waiting)
            yield pa.Table.from_batches([*waiting, head])
            waiting, n_waiting, is_first = [], 0, False
        if batch.num_rows:
            waiting.append(batch)
            n_waiting += batch.num_rows
    if waiting:
        yield pa.Table.from_batches(waiting)
    elif is_first and empty is not None:
        yield pa.Table.from_batches([empty])


def check_unique(names: list[str], where: str) -> None:
    """Raise if columns have the same name."""
    repeated = [f"{name!r} ({count} times)" for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise Problem(f"{where} has columns of the same name: {listed(repeated)}; rename or remove them")


def free_name(wanted: str, names: list[str]) -> str:
    """Return the name itself, or with the first number that makes it new."""
    name, number = wanted, 0
    while name in names:
        number += 1
        name = f"{wanted}_{number}"
    return name
