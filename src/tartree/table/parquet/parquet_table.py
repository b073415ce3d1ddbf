"""ParquetTable: checked columns of Parquet files, which need not fit into memory, and their rows block by block."""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby, pairwise
from os import PathLike
from typing import Any, NamedTuple, NoReturn

from tartree.table.parquet.arrow_families import TEXT, common_type, family
from tartree.table.parquet.arrow_schemas import agrees, check_plain, check_schemas, index_names
from tartree.table.parquet.footers import Footers, stamp
from tartree.table.parquet.parquet_files import Source, find_files, is_dataset

#: Values that a table from files may have to be read into memory as a whole: rows times columns.
IN_MEMORY_VALUES = 2**25
#: Fewer row groups than this are split, so that there are blocks to shuffle and to share.
FEWEST_BLOCKS = 8
#: Rows that are read at a time.
CHUNK_ROWS = 2**15


class Block(NamedTuple):
    """Rows of a file that are read together: a row group, or a part of one.

    Parameters
    ----------
    file, group : int
        Index of the file, and of the row group within it.
    start : int
        The first row, counted within the row group.
    rows : int
    first : int
        The first row, counted in the whole table.

    Examples
    --------
    >>> from tartree.table.parquet import Block
    >>> Block(file=1, group=0, start=0, rows=100, first=500).rows
    100
    """

    file: int
    group: int
    start: int
    rows: int
    first: int


class ParquetTable:
    """Rows in Parquet files.

    All files are opened and their columns compared before any row is read. Whole numbers and numbers with decimals
    are one type here, as are text and categories of text; any other difference is an error that names the file and the
    column, and so is a missing column. Columns that are left out need not agree.

    Parameters
    ----------
    source : path, pattern, folder, list of these, or pyarrow.dataset.Dataset
        A pattern has `*`, `?` or `[`. Of a folder, all files that end in .parquet or .pq are taken, those in folders
        within too. Folders such as `year=2024` right above a file are columns, unless the file has a column of that
        name. Files of a folder or a pattern are read in the order of their paths as text, as pandas and Arrow do, and
        others as they are listed; one that is listed twice is read twice. A dataset has the columns of its schema, and
        its order of rows.
    columns : sequence of str, optional
        The columns to read, in this order; by default all but those that pandas wrote, in any of the files, as the
        index of its rows.
    drop : sequence of str, default=()
        Columns to leave out.
    in_memory : bool, optional
        Whether estimators read all rows into memory, or stream them. By default a table is streamed if it has more
        than 33,554,432 values: rows times columns.

    Attributes
    ----------
    files : list of str
    names : list of str
        The columns.
    all_names : list of str
        Those of any file, whether chosen or not.
    index_names : list of str
        Those among them that are the index of a pandas table.
    schema : pyarrow.Schema
        Their types, wide enough for all files.
    n_rows : int
    blocks : list of Block

    Examples
    --------
    >>> import tempfile, pyarrow as pa, pyarrow.parquet as pq
    >>> from tartree.table import ParquetTable
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(pa.table({"age": [35, 41], "colour": ["red", "blue"]}), f"{folder}/rows.parquet")
    ...     table = ParquetTable(f"{folder}/*.parquet")
    >>> table.names, table.n_rows
    (['age', 'colour'], 2)
    """

    def __init__(
        self,
        source: Source,
        *,
        columns: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        in_memory: bool | None = None,
    ) -> None:
        files = find_files(source)
        self._filesystem = files.filesystem
        self._footers = Footers()
        self.files = [path for path, _ in files.files]
        self._constants = [constants for _, constants in files.files]  # of each file: columns in folder names
        self._in_memory = in_memory
        # Each different one, with the first file that has it.
        self._schemas: list[tuple[str, Any]] = [] if files.schema is None else [("the dataset's schema", files.schema)]
        groups: list[list[int]] = []
        index: dict[str, None] = {}
        for file_index, path in enumerate(self.files):
            with self._open(file_index) as file:
                index |= dict.fromkeys(index_names(file.schema_arrow))
                schema = self._with_constants(file.schema_arrow.remove_metadata(), file_index)
                if not any(schema.equals(other) for _, other in self._schemas):
                    self._schemas.append((path, schema))
                groups.append([file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)])
        *self._starts, self.n_rows = accumulate(map(sum, groups), initial=0)  # the first row of each file
        self.blocks = _blocks(groups, self.n_rows)
        schemas = self._schemas if files.schema is None else self._schemas[:1]
        self.all_names = names = list(dict.fromkeys(name for _, schema in schemas for name in schema.names))
        self.index_names = [name for name in names if name in index]
        for name in drop:
            if name not in names:
                raise ValueError(f"{self.label} has no column {name!r} to drop; its columns are {', '.join(names)}")
        self._spare = [name for name in self.index_names if columns is None and name not in drop]
        left_out = {*drop, *self.index_names}
        self._choose([name for name in names if name not in left_out] if columns is None else list(columns))

    @property
    def label(self) -> str:
        """What messages call the table."""
        return self.files[0] if len(self.files) == 1 else f"{self.files[0]} and {len(self.files) - 1} more"

    @property
    def is_local(self) -> bool:
        """Whether the names of its files are paths of this machine."""
        return self._filesystem is None or self._filesystem.type_name == "local"

    @property
    def in_memory(self) -> bool:
        """Whether estimators read all rows into memory."""
        return self.n_rows * len(self.names) <= IN_MEMORY_VALUES if self._in_memory is None else self._in_memory

    def common_names(self) -> list[str]:
        """Return the columns that all files have, in types that go together.

        Returns
        -------
        list of str
        """
        return [name for name in self.all_names if agrees(self._schemas, name)]

    def select(self, columns: Sequence[str]) -> ParquetTable:
        """Return the table with other columns, which are checked.

        Parameters
        ----------
        columns : sequence of str

        Returns
        -------
        ParquetTable
        """
        table = copy.copy(self)
        table._spare = []
        table._choose(list(columns))
        return table

    def with_index(self, names: Sequence[Any]) -> ParquetTable:
        """Return the table with those columns of the index of pandas that are among some names.

        So an index may be the target. Where columns were chosen, none is added.

        Parameters
        ----------
        names : sequence
            What is no text is ignored.

        Returns
        -------
        ParquetTable
        """
        named = {name for name in names if isinstance(name, str)}
        more = [name for name in self._spare if name in named]
        return self.select([*self.names, *more]) if more else self

    def place(self, row: int) -> tuple[str, int]:
        """Return the file of a row of the whole table, and the row's number there.

        Parameters
        ----------
        row : int

        Returns
        -------
        tuple of str and int
        """
        file = bisect_right(self._starts, row) - 1
        return self.files[file], row - self._starts[file]

    @property
    def file_rows(self) -> list[range]:
        """The rows of each file, counted in the whole table."""
        return [range(start, end) for start, end in pairwise([*self._starts, self.n_rows])]

    def rows_of(self, block: Block) -> range:
        """Return the rows of a block, counted in its file.

        Parameters
        ----------
        block : Block

        Returns
        -------
        range
        """
        first = block.first - self._starts[block.file]
        return range(first, first + block.rows)

    def read(
        self, block: Block, columns: Sequence[str] | None = None, *, piece_rows: int = CHUNK_ROWS
    ) -> Iterator[Any]:
        """Read the rows of a block in their order.

        Parameters
        ----------
        block : Block
        columns : sequence of str, optional
            By default those of the table.
        piece_rows : int, default=32768
            Rows of a batch, at most.

        Yields
        ------
        pyarrow.RecordBatch
        """
        names = self.names if columns is None else list(columns)
        path = self.files[block.file]
        stored = [name for name in names if name not in self._constants[block.file]]
        end, n_read = block.start + block.rows, 0
        with self._open(block.file, texts=[name for name in stored if self._is_text(name)]) as file:
            if block.group >= file.num_row_groups or file.metadata.row_group(block.group).num_rows < end:
                raise ValueError(f"{path} must stay as it is while it is read, but it has fewer rows than before")
            lost = [name for name in stored if name not in file.schema_arrow.names]
            if lost:
                raise ValueError(f"{path} must stay as it is while it is read, but column {lost[0]!r} is gone")
            try:
                for batch in file.iter_batches(piece_rows, [block.group], stored, use_threads=False):
                    start, n_read = n_read, n_read + batch.num_rows
                    if n_read > block.start and start < end:
                        low, high = max(block.start, start), min(end, n_read)
                        yield self._with_names(batch.slice(low - start, high - low), names, block.file)
                    if n_read >= end:
                        return
            except (OSError, ValueError) as error:  # Arrow's errors are among them
                self._blame(path, block, stored, error)

    def scan(self, *, piece_rows: int = CHUNK_ROWS) -> Iterator[tuple[int, int, Any]]:
        """Read all rows in their order.

        Parameters
        ----------
        piece_rows : int, default=32768
            Rows of a batch, at most.

        Yields
        ------
        tuple of int, int and pyarrow.RecordBatch
            Index of the file, rows of the file before, and the batch.
        """
        for (file, group), blocks in groupby(self.blocks, key=lambda block: (block.file, block.group)):
            parts = list(blocks)  # row groups that were split are read at one go
            block = Block(file, group, parts[0].start, sum(part.rows for part in parts), parts[0].first)
            n_before = self.rows_of(block).start
            for batch in self.read(block, piece_rows=piece_rows):
                yield file, n_before, batch
                n_before += batch.num_rows

    def check_plain(self, columns: Sequence[str]) -> None:
        """Raise if a column holds lists or records, which cannot be learnt from.

        Parameters
        ----------
        columns : sequence of str
        """
        check_plain(self._schemas, columns)

    def read_all(self) -> Any:
        """Read all rows.

        Returns
        -------
        pyarrow.Table
        """
        import pyarrow as pa

        batches = [batch for _, _, batch in self.scan(piece_rows=2**20)]
        return pa.concat_tables([self.schema.empty_table(), *map(self.as_table, batches)]).unify_dictionaries()

    def as_table(self, batch: Any) -> Any:
        """Return a batch as a table whose types are those of `schema`, whichever file it comes from.

        Parameters
        ----------
        batch : pyarrow.RecordBatch

        Returns
        -------
        pyarrow.Table
        """
        import pyarrow as pa

        arrays = [
            array.dictionary_decode() if pa.types.is_dictionary(array.type) and array.type != field.type else array
            for array, field in zip(batch.columns, self.schema, strict=True)
        ]
        return pa.table(arrays, names=self.names).cast(self.schema)

    def _choose(self, columns: list[str]) -> None:
        import pyarrow as pa

        check_schemas(self._schemas, columns)
        self.names = columns
        fields = [
            pa.field(name, common_type([schema.field(name).type for _, schema in self._schemas])) for name in columns
        ]
        self.schema = pa.schema(fields)

    def _is_text(self, name: str) -> bool:
        arrow_type = next((schema.field(name).type for _, schema in self._schemas if name in schema.names), None)
        return arrow_type is not None and family(arrow_type) is TEXT

    def _open(self, file_index: int, texts: Sequence[str] = ()) -> Any:
        import pyarrow as pa
        import pyarrow.parquet

        path = self.files[file_index]
        try:
            now = stamp(path, self._filesystem)
            footer = self._footers.get(path, now)
            # A small buffer a column, for many row groups are open at a time; text is read as codes, where it has them.
            file = pyarrow.parquet.ParquetFile(
                path,
                filesystem=self._filesystem,
                metadata=footer,
                read_dictionary=list(texts),
                buffer_size=2**16,
                pre_buffer=False,
            )
            if footer is None:
                self._footers.keep(path, now, file.metadata)
            return file
        except FileNotFoundError:
            raise FileNotFoundError(2, "No such file or directory", path) from None
        except (OSError, pa.ArrowException) as error:
            if isinstance(error, PermissionError):
                raise
            raise ValueError(f"{path} must be a Parquet file, got {_short(error)}; write it again") from error

    def _with_constants(self, schema: Any, file_index: int) -> Any:
        """Return the schema of a file with the columns in folder names that it does not have itself."""
        import pyarrow as pa

        constants = {name: value for name, value in self._constants[file_index].items() if name not in schema.names}
        self._constants[file_index] = constants
        return pa.schema([*schema, *(pa.field(name, value.type) for name, value in constants.items())])

    def _with_names(self, batch: Any, names: list[str], file: int) -> Any:
        """Return the columns in their order, those in folder names among them."""
        import pyarrow as pa

        constants = self._constants[file]
        arrays = [
            pa.repeat(constants[name], batch.num_rows) if name in constants else batch.column(name) for name in names
        ]
        return pa.RecordBatch.from_arrays(arrays, names=names)

    def _blame(self, path: str, block: Block, columns: list[str], error: Exception) -> NoReturn:
        """Raise for the column of a file that cannot be read."""
        for name in columns:
            try:
                with self._open(block.file) as file:
                    for _ in file.iter_batches(CHUNK_ROWS, [block.group], [name], use_threads=False):
                        pass
            except (OSError, ValueError) as cause:
                raise ValueError(
                    f"{path}: column {name!r} of row group {block.group} must be readable, got {_short(cause)}; "
                    "the file is damaged: write it again"
                ) from error
        raise ValueError(f"{path}: row group {block.group} must be readable, got {_short(error)}") from error


def is_parquet(X: Any) -> bool:
    """Return whether a table is in files: paths, an Arrow dataset or a `ParquetTable`.

    Parameters
    ----------
    X : object

    Returns
    -------
    bool

    Examples
    --------
    >>> from tartree.table.parquet import is_parquet
    >>> is_parquet("rows.parquet"), is_parquet([[1.0, 2.0]])
    (True, False)
    """
    if isinstance(X, str | PathLike | ParquetTable) or is_dataset(X):
        return True
    return isinstance(X, list | tuple) and bool(X) and all(isinstance(part, str | PathLike) for part in X)


def as_parquet(X: Any, columns: Sequence[str] | None = None) -> ParquetTable:
    """Return a table in files as a `ParquetTable`.

    Parameters
    ----------
    X : path, sequence of paths, pyarrow.dataset.Dataset or ParquetTable
    columns : sequence of str, optional
        By default all of them.

    Returns
    -------
    ParquetTable
    """
    if not isinstance(X, ParquetTable):
        return ParquetTable(X, columns=columns)
    return X if columns is None else X.select(columns)


def _blocks(groups: list[list[int]], n_rows: int) -> list[Block]:
    """Return row groups in their order; where there are few of them, parts of row groups."""
    blocks: list[Block] = []
    n_groups = sum(rows > 0 for file_rows in groups for rows in file_rows)
    first = 0
    for file, file_rows in enumerate(groups):
        for group, rows in enumerate(file_rows):
            n_parts = 1 if n_groups >= FEWEST_BLOCKS else min(rows, -(-FEWEST_BLOCKS * rows // max(n_rows, 1)))
            cuts = [rows * part // n_parts for part in range(n_parts + 1)] if rows else []
            for start, end in pairwise(cuts):
                blocks.append(Block(file, group, start, end - start, first + start))
            first += rows
    return blocks


def _short(error: Exception) -> str:
    text = " ".join(str(error).split())
    return (text if len(text) <= 200 else text[:197] + "...").rstrip(".")
