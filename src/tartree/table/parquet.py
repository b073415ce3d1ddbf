"""Tables in Parquet files, which need not fit into memory: what there is, checked, and rows block by block."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby, pairwise
from os import PathLike
from typing import Any, NamedTuple, NoReturn

from tartree.table.finding import Source, find, is_dataset
from tartree.table.footers import Footers, stamp
from tartree.table.schemas import agrees, check_plain, check_schemas, common_type, family, index_names

#: Values that a table from files may have to be read into memory as a whole: rows times columns.
IN_MEMORY_VALUES = 2**25
#: Fewer row groups than this are split, so that there are blocks to shuffle and to share.
FEWEST_BLOCKS = 8
#: Rows that are read at a time.
PIECE_ROWS = 2**15


class Block(NamedTuple):
    """Rows of a file that are read together: a row group, or a part of one."""

    file: int
    group: int
    start: int  # the first row, counted within the row group
    rows: int
    first: int  # the first row, counted in the whole table


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
        others as they are given; one that is given twice is read twice. A dataset has the columns of its schema, and
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
        found = find(source)
        self._filesystem = found.filesystem
        self._footers = Footers()
        self.files = [path for path, _ in found.files]
        self._constants = [constants for _, constants in found.files]  # of each file: what its folders' names say
        self._in_memory = in_memory
        # Each different one, with the first file that has it.
        self._schemas: list[tuple[str, Any]] = [] if found.schema is None else [("the dataset's schema", found.schema)]
        groups: list[list[int]] = []
        index: dict[str, None] = {}
        for place, path in enumerate(self.files):
            with self._open(place) as file:
                index |= dict.fromkeys(index_names(file.schema_arrow))
                schema = self._with_constants(file.schema_arrow.remove_metadata(), place)
                if not any(schema.equals(known) for _, known in self._schemas):
                    self._schemas.append((path, schema))
                groups.append([file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)])
        *self._starts, self.n_rows = accumulate(map(sum, groups), initial=0)  # the first row of each file
        self.blocks = _blocks(groups, self.n_rows)
        known = self._schemas if found.schema is None else self._schemas[:1]
        self.all_names = every = list(dict.fromkeys(name for _, schema in known for name in schema.names))
        self.index_names = [name for name in every if name in index]
        for name in drop:
            if name not in every:
                raise ValueError(f"{self.label} has no column {name!r} to drop; its columns are {', '.join(every)}")
        self._spare = [name for name in self.index_names if columns is None and name not in drop]
        left_out = {*drop, *self.index_names}
        self._choose([name for name in every if name not in left_out] if columns is None else list(columns))

    @property
    def label(self) -> str:
        """How a message calls the table."""
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
        """The columns that all files have, in types that go together."""
        return [name for name in self.all_names if agrees(self._schemas, name)]

    def select(self, columns: Sequence[str]) -> ParquetTable:
        """The same table with other columns, which are checked."""
        other = ParquetTable.__new__(ParquetTable)
        other.__dict__.update(self.__dict__)
        other._spare = []
        other._choose(list(columns))
        return other

    def with_index(self, names: Sequence[Any]) -> ParquetTable:
        """The same table, and of the index of pandas the columns that are among these names.

        So an index may be the target. Where columns were chosen, these are all there are.
        """
        named = {name for name in names if isinstance(name, str)}
        more = [name for name in self._spare if name in named]
        return self.select([*self.names, *more]) if more else self

    def place(self, row: int) -> tuple[str, int]:
        """The file of a row that is counted in the whole table, and its number there."""
        file = bisect_right(self._starts, row) - 1
        return self.files[file], row - self._starts[file]

    @property
    def file_rows(self) -> list[range]:
        """The rows of each file, counted in the whole table."""
        return [range(start, end) for start, end in pairwise([*self._starts, self.n_rows])]

    def rows_of(self, block: Block) -> range:
        """The rows of a block, counted in its file."""
        first = block.first - self._starts[block.file]
        return range(first, first + block.rows)

    def read(
        self, block: Block, columns: Sequence[str] | None = None, *, piece_rows: int = PIECE_ROWS
    ) -> Iterator[Any]:
        """The rows of a block in their order, as `pyarrow.RecordBatch` of at most so many rows."""
        names = self.names if columns is None else list(columns)
        path = self.files[block.file]
        stored = [name for name in names if name not in self._constants[block.file]]
        end, place = block.start + block.rows, 0
        with self._open(block.file, texts=[name for name in stored if self._is_text(name)]) as file:
            if block.group >= file.num_row_groups or file.metadata.row_group(block.group).num_rows < end:
                raise ValueError(f"{path} must stay as it is while it is read, however: it has fewer rows than before")
            gone = [name for name in stored if name not in file.schema_arrow.names]
            if gone:
                raise ValueError(f"{path} must stay as it is while it is read, however: column {gone[0]!r} is gone")
            try:
                pieces = file.iter_batches(piece_rows, [block.group], stored, use_threads=False)
                for piece in pieces:
                    start, place = place, place + piece.num_rows
                    if place > block.start and start < end:
                        low, high = max(block.start, start), min(end, place)
                        yield self._chosen(piece.slice(low - start, high - low), names, block.file)
                    if place >= end:
                        return
            except (OSError, ValueError) as error:  # Arrow's errors are among them
                self._blame(path, block, stored, error)

    def scan(self, *, piece_rows: int = PIECE_ROWS) -> Iterator[tuple[int, int, Any]]:
        """All rows in their order, as `pyarrow.RecordBatch` with the place of their file and the rows before there."""
        for (file, group), parts in groupby(self.blocks, key=lambda block: (block.file, block.group)):
            own = list(parts)  # row groups that were split are read at one go
            block = Block(file, group, own[0].start, sum(part.rows for part in own), own[0].first)
            n_before = self.rows_of(block).start
            for piece in self.read(block, piece_rows=piece_rows):
                yield file, n_before, piece
                n_before += piece.num_rows

    def check_plain(self, columns: Sequence[str]) -> None:
        """Raise where one of these columns holds lists or records, which cannot be learnt from."""
        check_plain(self._schemas, columns)

    def read_all(self) -> Any:
        """All rows as a `pyarrow.Table`."""
        import pyarrow as pa

        pieces = [piece for _, _, piece in self.scan(piece_rows=2**20)]
        return pa.concat_tables([self.schema.empty_table(), *map(self.as_table, pieces)]).unify_dictionaries()

    def as_table(self, piece: Any) -> Any:
        """A piece as a `pyarrow.Table` whose types are those of `schema`, whichever file it comes from."""
        import pyarrow as pa

        arrays = [
            array.dictionary_decode() if pa.types.is_dictionary(array.type) and array.type != field.type else array
            for array, field in zip(piece.columns, self.schema, strict=True)
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
        found = next((schema.field(name).type for _, schema in self._schemas if name in schema.names), None)
        return found is not None and family(found) == "text"

    def _open(self, place: int, texts: Sequence[str] = ()) -> Any:
        import pyarrow as pa
        import pyarrow.parquet

        path = self.files[place]
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
            raise ValueError(f"{path} must be a Parquet file, however: {_said(error)}; write it again") from error

    def _with_constants(self, schema: Any, place: int) -> Any:
        """The schema of a file with what its folders say, as far as it does not say it itself."""
        import pyarrow as pa

        own = {name: value for name, value in self._constants[place].items() if name not in schema.names}
        self._constants[place] = own
        return pa.schema([*schema, *(pa.field(name, value.type) for name, value in own.items())])

    def _chosen(self, piece: Any, names: list[str], file: int) -> Any:
        """The columns in their order, those that the folder names say among them."""
        import pyarrow as pa

        constants = self._constants[file]
        arrays = [
            pa.repeat(constants[name], piece.num_rows) if name in constants else piece.column(name) for name in names
        ]
        return pa.RecordBatch.from_arrays(arrays, names=names)

    def _blame(self, path: str, block: Block, columns: list[str], error: Exception) -> NoReturn:
        """Say which column of a file cannot be read."""
        for name in columns:
            try:
                with self._open(block.file) as file:
                    for _ in file.iter_batches(PIECE_ROWS, [block.group], [name], use_threads=False):
                        pass
            except (OSError, ValueError) as found:
                raise ValueError(
                    f"{path}: column {name!r} of row group {block.group} must be readable, however: {_said(found)}; "
                    "the file is damaged: write it again"
                ) from error
        raise ValueError(f"{path}: row group {block.group} must be readable, however: {_said(error)}") from error


def is_parquet(X: Any) -> bool:
    """Whether a table is given by where its files are: as paths, an Arrow dataset or a `ParquetTable`."""
    if isinstance(X, str | PathLike | ParquetTable) or is_dataset(X):
        return True
    return isinstance(X, list | tuple) and bool(X) and all(isinstance(one, str | PathLike) for one in X)


def as_parquet(X: Any, columns: Sequence[str] | None = None) -> ParquetTable:
    """A table given in any of these ways, with all of its columns or with some of them."""
    if not isinstance(X, ParquetTable):
        return ParquetTable(X, columns=columns)
    return X if columns is None else X.select(columns)


def _blocks(groups: list[list[int]], n_rows: int) -> list[Block]:
    """Row groups in their order; where there are few of them, parts of row groups."""
    found: list[Block] = []
    n_groups = sum(rows > 0 for own in groups for rows in own)
    first = 0
    for file, own in enumerate(groups):
        for group, rows in enumerate(own):
            parts = 1 if n_groups >= FEWEST_BLOCKS else min(rows, -(-FEWEST_BLOCKS * rows // max(n_rows, 1)))
            cuts = [rows * part // parts for part in range(parts + 1)] if rows else []
            for start, end in pairwise(cuts):
                found.append(Block(file, group, start, end - start, first + start))
            first += rows
    return found


def _said(error: Exception) -> str:
    text = " ".join(str(error).split())
    return (text if len(text) <= 200 else text[:197] + "...").rstrip(".")
