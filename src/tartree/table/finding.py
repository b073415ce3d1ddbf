"""Where the files of a table are, and the columns that the names of their folders say."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote

ENDINGS = (".parquet", ".pq")
#: How writers of folders call a gap.
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"

Source: TypeAlias = "str | PathLike[str] | Sequence[str | PathLike[str]] | Any"  # or an Arrow dataset, or ParquetTable
Constants: TypeAlias = dict[str, Any]  # of a file: columns of one value, as pyarrow.Scalar


class Found(NamedTuple):
    """Files in their order, and what is known of them before they are opened."""

    files: list[tuple[str, Constants]]
    filesystem: Any = None  # None: that of this machine
    schema: Any = None  # that of an Arrow dataset


def find(source: Source) -> Found:
    """The files that a source means: those of a folder or a pattern by the text of their paths, others as given."""
    if is_dataset(source):
        found = _of_dataset(source)
    else:
        each = [source] if isinstance(source, str | PathLike) else list(source)
        found = Found(_folder_columns([path for one in each for path in _paths(os.fspath(one))]))
    if not found.files:
        where = os.fspath(source) if isinstance(source, str | PathLike) else "the source"
        raise FileNotFoundError(f"{where} must be or hold Parquet files, .parquet or .pq, however: there are none")
    return found


def is_dataset(source: Any) -> bool:
    return type(source).__module__.startswith("pyarrow._dataset")


def _paths(path: str) -> list[str]:
    if os.path.isdir(path):
        return _in_order(str(file) for file in Path(path).rglob("*") if _is_meant(file.relative_to(path)))
    if os.path.exists(path):
        return [path]
    if glob.has_magic(path):
        return _in_order(file for match in glob.glob(path, recursive=True) for file in _paths(match))
    raise FileNotFoundError(2, "No such file or directory", path)


def _in_order(paths: Iterable[str]) -> list[str]:
    """Each once, sorted as Arrow and pandas sort those of a folder; `**` finds a file and the folder that holds it."""
    return sorted({str(Path(path)) for path in paths}, key=lambda path: path.replace(os.sep, "/"))


def _is_meant(path: Path) -> bool:
    return path.suffix.lower() in ENDINGS and not any(part.startswith((".", "_")) for part in path.parts)


def _folder_columns(paths: Sequence[str]) -> list[tuple[str, Constants]]:
    """Of each file, what the folders right above it say: whole numbers if they all are, text otherwise."""
    import pyarrow as pa

    said = {path: _said_by_folders(path) for path in paths}
    texts: dict[str, set[str]] = {}
    for names in said.values():
        for name, text in names.items():
            texts.setdefault(name, set()).update([] if text is None else [text])
    numbers = {name for name, own in texts.items() if own and all(map(_is_whole, own))}
    kinds = {name: pa.int64() if name in numbers else pa.string() for name in texts}
    values = {
        path: {
            name: pa.scalar(int(text) if text is not None and name in numbers else text, kinds[name])
            for name, text in names.items()
        }
        for path, names in said.items()
    }
    return [(path, values[path]) for path in paths]


def _said_by_folders(path: str) -> dict[str, str | None]:
    """Names and values of the folders right above a file.

    Examples
    --------
    >>> _said_by_folders("run=3/rows/year=2024/month=5/x.parquet")
    {'year': '2024', 'month': '5'}
    """
    found: list[tuple[str, str | None]] = []
    for folder in reversed(Path(path).parts[:-1]):
        name, equals, value = folder.partition("=")
        if not (name and equals):
            break
        found.append((unquote(name), None if value == NO_VALUE else unquote(value)))
    return dict(reversed(found))


def _is_whole(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= 18  # what 64 bits hold


def _of_dataset(dataset: Any) -> Found:
    import pyarrow as pa
    import pyarrow.dataset

    if not isinstance(dataset, pyarrow.dataset.FileSystemDataset) or dataset.format.default_extname != "parquet":
        raise ValueError(
            f"a dataset must be one of Parquet files, however: {type(dataset).__name__}; "
            "give a table in memory as it is, or write the dataset as Parquet"
        )
    if getattr(dataset, "_scan_options", None):
        raise ValueError("a dataset must not be filtered, however: it has a filter; write what it leaves as Parquet")
    files: list[tuple[str, Constants]] = []
    for fragment in dataset.get_fragments():  # in the order of the dataset's rows
        keys = pyarrow.dataset.get_partition_keys(fragment.partition_expression)
        known = [name for name in keys if name in dataset.schema.names]
        constants = {name: pa.scalar(keys[name], dataset.schema.field(name).type) for name in known}
        files.append((fragment.path, constants))
    return Found(files, dataset.filesystem, dataset.schema)
