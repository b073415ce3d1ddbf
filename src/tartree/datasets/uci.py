"""Public functions: fetch the UCI sets once, list them, load one."""

from __future__ import annotations

import difflib
import hashlib
import os
import shlex
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tartree.datasets.archive import DamagedArchive, Limits, open_sets
from tartree.datasets.cache import (
    DamagedCache,
    UciIndex,
    UciSummary,
    cache_folder,
    commit,
    locked,
    new_state,
    read_arrays,
    read_index,
    write_set,
)
from tartree.datasets.download import download
from tartree.datasets.names import OFFICIAL
from tartree.datasets.set_files import fixed_splits, parse_set
from tartree.datasets.split_lines import N_SPLITS
from tartree.datasets.uci_set import UciSet

OFFICIAL_URL = "http://persoal.citius.usc.es/manuel.fernandez.delgado/papers/jmlr/data.tar.gz"

Value = TypeVar("Value")
Folder = str | os.PathLike[str] | None
Progress = Callable[[str, int, int | None], None]  # step, units done, units in all if known


def fetch_uci(
    archive: Folder = None,
    *,
    url: str = OFFICIAL_URL,
    folder: Folder = None,
    progress: Progress | None = None,
    timeout: float = 30.0,
    limits: Limits | None = None,
) -> UciIndex:
    """Store all sets of an archive, in place of earlier ones.

    Parameters
    ----------
    archive : path, optional
        A tar archive, or a folder laid out as one; by default the one at `url` is downloaded, and an interrupted
        download is resumed.
    url : str
        Address of the archive.
    folder : path, optional
        Folder of the cache: by default TARTREE_DATA of the environment, else the user's cache folder.
    progress : callable, optional
        Called with a step ("download" or "unpack"), the units done, and those in all or None.
    timeout : float
        Seconds to wait for the server.
    limits : Limits, optional
        Limits of what the archive may hold.

    Returns
    -------
    UciIndex
        A set that cannot be read is left out, with the reason in `failed`. If anything else stops the call, earlier
        sets stay.

    Examples
    --------
    >>> from tartree.datasets import fetch_uci
    >>> len(fetch_uci("data.tar.gz").sets)  # doctest: +SKIP
    121
    """
    report = progress or (lambda step, done, total: None)
    cache = cache_folder(folder) / "uci"
    with locked(cache):
        if archive is not None:
            path = Path(archive)
            return _store(path, path.name or "folder", cache, report, limits)
        partial = download(url, cache, timeout=timeout, progress=lambda done, total: report("download", done, total))
        try:
            index = _store(partial.path, url, cache, report, limits)
        except DamagedArchive as error:
            partial.drop()  # else every later call would resume it
            raise DamagedArchive(str(error).replace(str(partial.path), url)) from error
        partial.drop()
        return index


def _store(path: Path, source: str, cache: Path, report: Progress, limits: Limits | None) -> UciIndex:
    """Write the sets of an archive into the cache."""
    checksum = None
    if not path.is_dir():
        with open(path, "rb") as file:
            checksum = hashlib.file_digest(file, "sha256").hexdigest()
    sets: dict[str, UciSummary] = {}
    failed: dict[str, str] = {}
    with open_sets(path, limits) as contents, new_state(cache) as state:
        for number, name in enumerate(contents.folders):
            report("unpack", number, len(contents.folders))
            try:
                data = parse_set(name, contents.read(name))
            except DamagedArchive:
                raise
            except ValueError as error:
                failed[name] = str(error)
            else:
                sets[name] = write_set(state, f"{number:03d}-{name}.npz", data)
        if not sets:
            name, reason = next(iter(failed.items()))
            raise DamagedArchive(f"no set of {path} can be read; the first is {name}: {reason}")
        report("unpack", len(contents.folders), len(contents.folders))
        index = UciIndex(source, checksum, state.name, _sorted(sets), _sorted(failed), tuple(contents.skipped))
        commit(cache, index)
    return index


def _sorted(by_name: dict[str, Value]) -> dict[str, Value]:
    return dict(sorted(by_name.items()))


def uci_index(folder: Folder = None) -> UciIndex:
    """Return the index of the cache.

    Parameters
    ----------
    folder : path, optional
        Folder of the cache, as in `fetch_uci`.

    Returns
    -------
    UciIndex
        A summary of each set, the sets that could not be read, and their source.

    Raises
    ------
    FileNotFoundError
        If nothing has been fetched yet.

    Examples
    --------
    >>> from tartree.datasets import uci_index
    >>> uci_index().sets["iris"].rows  # doctest: +SKIP
    150
    """
    cache = cache_folder(folder)
    command = _fetch_command(folder)
    try:
        index = read_index(cache / "uci")
    except DamagedCache as error:
        reason = f"the UCI sets in {cache} are damaged: {error}"
        raise DamagedCache(f"{reason}; fetch them again (--from FILE: from an archive) with: {command}") from error
    if index is None:
        raise FileNotFoundError(f"there are no UCI sets in {cache} yet; fetch them with: {command}")
    return index


def uci_names(folder: Folder = None) -> list[str]:
    """Return the names of the sets in the cache, in order.

    Parameters
    ----------
    folder : path, optional
        Folder of the cache, as in `fetch_uci`.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from tartree.datasets import uci_names
    >>> uci_names()[:2]  # doctest: +SKIP
    ['abalone', 'acute-inflammation']
    """
    return list(uci_index(folder).sets)


def load_uci(name: str, *, as_frame: bool = False, folder: Folder = None) -> UciSet:
    """Load one UCI set with its official splits.

    Parameters
    ----------
    name : str
    as_frame : bool, default=False
        Whether `X` is a pyarrow.Table with the column names of the file; its `take(rows)` selects rows.
    folder : path, optional
        Folder of the cache, as in `fetch_uci`.

    Returns
    -------
    UciSet

    Examples
    --------
    >>> from tartree.datasets import load_uci
    >>> iris = load_uci("iris")  # doctest: +SKIP
    >>> train, test = iris.splits[0]  # doctest: +SKIP
    >>> model.fit(iris.X[train], iris.y[train]).score(iris.X[test], iris.y[test])  # doctest: +SKIP
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a string, got {name!r}; uci_names() lists the names")
    try:
        data = _load(name, folder)
    except FileNotFoundError:  # another process has replaced all sets since the index was read
        data = _load(name, folder)
    if not as_frame:
        return data
    import pyarrow as pa

    columns = [pa.array(np.ascontiguousarray(column)) for column in data.X.T]
    return replace(data, X=pa.Table.from_arrays(columns, names=list(data.columns)))


def _load(name: str, folder: Folder) -> UciSet:
    index = uci_index(folder)
    if name not in index.sets:
        raise ValueError(_explain_missing(name, index, folder))
    summary = index.sets[name]
    path = cache_folder(folder) / "uci" / index.state / summary.file
    try:
        arrays = read_arrays(path)
        X, y = arrays["X"], arrays["y"].astype(np.int64)
        if summary.fixed_test:
            splits = fixed_splits(int(arrays["n_train"]), len(X))
        else:
            splits = tuple((_rows(arrays[f"train_{k}"]), _rows(arrays[f"test_{k}"])) for k in range(N_SPLITS))
        tuning = (_rows(arrays["tuning_train"]), _rows(arrays["tuning_test"])) if "tuning_train" in arrays else None
        labels, columns = tuple(arrays["labels"].tolist()), tuple(arrays["columns"].tolist())
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(
            f"{path} is damaged; delete it and fetch the sets again with: {_fetch_command(folder)}"
        ) from error
    return UciSet(name, X, y, labels, columns, splits, tuning, summary.fixed_test, summary.notes)


def _rows(stored: Any) -> Any:
    return stored.astype(np.int64)


def _fetch_command(folder: Folder) -> str:
    """Return the shell command that fetches the sets into a folder."""
    return shlex.join(["tartree", "data", "uci", *(["--folder", os.fspath(folder)] if folder is not None else [])])


def _explain_missing(name: str, index: UciIndex, folder: Folder) -> str:
    if name in index.failed:
        return f"the set {name!r} could not be read from {index.source}: {index.failed[name]}"
    if name in OFFICIAL:
        command = _fetch_command(folder)
        return f"the set {name!r} was not in {index.source}; fetch an archive that holds it with: {command}"
    plain = {other.lower(): other for other in index.sets}
    near = difflib.get_close_matches(name.lower(), plain, n=3)
    hint = f"did you mean {' or '.join(repr(plain[match]) for match in near)}?" if near else "uci_names() lists them"
    return f"name must be one of {len(index.sets)} sets, got {name!r}; {hint}"
