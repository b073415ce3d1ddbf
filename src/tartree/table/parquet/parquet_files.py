"""The files of a table, and the columns in the names of their folders."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote

ENDINGS = (".parquet", ".pq")
#: How writers of folders call a missing value.
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"

Source: TypeAlias = "str | PathLike[str] | Sequence[str | PathLike[str]] | Any"  # or an Arrow dataset, or ParquetTable
Constants: TypeAlias = dict[str, Any]  # of a file: columns of one value, as pyarrow.Scalar


class ParquetFiles(NamedTuple):
    """Files in their order, and what is known before they are opened."""

    files: list[tuple[str, Constants]]
    filesystem: Any = None  # None: that of this machine
    schema: Any = None  # that of an Arrow dataset


def find_files(source: Source) -> ParquetFiles:
    """Return the files of a source: those of a folder or a pattern in the order of their paths, others as listed."""
    if is_dataset(source):
        files = _of_dataset(source)
    else:
        sources = [source] if isinstance(source, str | PathLike) else list(source)
        files = ParquetFiles(_folder_columns([path for part in sources for path in _paths(os.fspath(part))]))
    if not files.files:
        where = os.fspath(source) if isinstance(source, str | PathLike) else "the source"
        raise FileNotFoundError(f"{where} must be or hold Parquet files, .parquet or .pq, got none")
    return files


def is_dataset(source: Any) -> bool:
    """Return whether a source is an Arrow dataset."""
    return type(source).__module__.startswith("pyarrow._dataset")


def _paths(path: str) -> list[str]:
    if os.path.isdir(path):
        return _in_order(str(file) for file in Path(path).rglob("*") if _is_parquet_file(file.relative_to(path)))
    if os.path.exists(path):
        return [path]
    if glob.has_magic(path):
        return _in_order(file for match in glob.glob(path, recursive=True) for file in _paths(match))
    raise FileNotFoundError(2, "No such file or directory", path)


def _in_order(paths: Iterable[str]) -> list[str]:
    """Return each once, sorted as Arrow and pandas sort those of a folder; `**` matches a file and its folder."""
    return sorted({str(Path(path)) for path in paths}, key=lambda path: path.replace(os.sep, "/"))


def _is_parquet_file(path: Path) -> bool:
    return path.suffix.lower() in ENDINGS and not any(part.startswith((".", "_")) for part in path.parts)


def _folder_columns(paths: Sequence[str]) -> list[tuple[str, Constants]]:
    """Return the columns in folder names of each file: whole numbers if all values are, text otherwise."""
    import pyarrow as pa

    parts = {path: _folder_parts(path) for path in paths}
    texts: dict[str, set[str]] = {}
    for names in parts.values():
        for name, text in names.items():
            texts.setdefault(name, set()).update([] if text is None else [text])
    numbers = {name for name, values in texts.items() if values and all(map(_is_whole, values))}
    types = {name: pa.int64() if name in numbers else pa.string() for name in texts}
    constants = {
        path: {
            name: pa.scalar(int(text) if text is not None and name in numbers else text, types[name])
            for name, text in names.items()
        }
        for path, names in parts.items()
    }
    return [(path, constants[path]) for path in paths]


def _folder_parts(path: str) -> dict[str, str | None]:
    """Return names and values of the folders right above a file.

    Examples
    --------
    >>> _folder_parts("run=3/rows/year=2024/month=5/x.parquet")
    {'year': '2024', 'month': '5'}
    """
    parts: list[tuple[str, str | None]] = []
    for folder in reversed(Path(path).parts[:-1]):
        name, equals, value = folder.partition("=")
        if not (name and equals):
            break
        parts.append((unquote(name), None if value == NO_VALUE else unquote(value)))
    return dict(reversed(parts))


def _is_whole(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= 18  # what 64 bits hold


def _of_dataset(dataset: Any) -> ParquetFiles:
    import pyarrow as pa
    import pyarrow.dataset

    if not isinstance(dataset, pyarrow.dataset.FileSystemDataset) or dataset.format.default_extname != "parquet":
        raise ValueError(
            f"a dataset must be one of Parquet files, got {type(dataset).__name__}; "
            "pass a table in memory as it is, or write the dataset as Parquet"
        )
    if getattr(dataset, "_scan_options", None):
        raise ValueError("a dataset must not be filtered, got one with a filter; write what it leaves as Parquet")
    files: list[tuple[str, Constants]] = []
    for fragment in dataset.get_fragments():  # in the order of the dataset's rows
        keys = pyarrow.dataset.get_partition_keys(fragment.partition_expression)
        names = [name for name in keys if name in dataset.schema.names]
        constants = {name: pa.scalar(keys[name], dataset.schema.field(name).type) for name in names}
        files.append((fragment.path, constants))
    return ParquetFiles(files, dataset.filesystem, dataset.schema)
