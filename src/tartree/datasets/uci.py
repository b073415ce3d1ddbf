"""The functions to call: fetch the sets once, list them, load one."""

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
from tartree.datasets.parsing import fixed_splits, parse_set
from tartree.datasets.record import UciSet
from tartree.datasets.splits import N_SPLITS

OFFICIAL_URL = "http://persoal.citius.usc.es/manuel.fernandez.delgado/papers/jmlr/data.tar.gz"

Value = TypeVar("Value")
Folder = str | os.PathLike[str] | None
Progress = Callable[[str, int, int | None], None]  # step; how far it is; how far it goes, if that is known


def fetch_uci(
    archive: Folder = None,
    *,
    url: str = OFFICIAL_URL,
    folder: Folder = None,
    progress: Progress | None = None,
    timeout: float = 30.0,
    limits: Limits | None = None,
) -> UciIndex:
    """Store all sets of an archive, in place of those that are there, and say what it held.

    Parameters
    ----------
    archive : path, optional
        A tar archive, or a folder laid out as one; by default the one at `url` is downloaded, and goes on where an
        earlier call was cut.
    folder : path, optional
        Where to keep the sets: by default TARTREE_DATA of the environment, else the user's cache folder.
    progress : callable, optional
        Called with a step ("download" or "unpack"), how far it is, and how far it goes or None.

    A set that cannot be read is left out, with the reason in `failed`. If anything else stops the call, what was there
    before stays.
    """
    report = progress or (lambda step, there, total: None)
    place = cache_folder(folder) / "uci"
    with locked(place):
        if archive is not None:
            path = Path(archive)
            return _store(path, path.name or "folder", place, report, limits)
        partial = download(url, place, timeout=timeout, progress=lambda there, total: report("download", there, total))
        try:
            index = _store(partial.path, url, place, report, limits)
        except DamagedArchive as error:
            partial.drop()  # else every later call would go on with it
            raise DamagedArchive(str(error).replace(str(partial.path), url)) from error
        partial.drop()
        return index


def _store(path: Path, source: str, place: Path, report: Progress, limits: Limits | None) -> UciIndex:
    checksum = None
    if not path.is_dir():
        with open(path, "rb") as file:
            checksum = hashlib.file_digest(file, "sha256").hexdigest()
    sets: dict[str, UciSummary] = {}
    failed: dict[str, str] = {}
    with open_sets(path, limits) as contents, new_state(place) as state:
        for number, name in enumerate(contents.folders):
            report("unpack", number, len(contents.folders))
            try:
                found = parse_set(name, contents.read(name))
            except DamagedArchive:
                raise
            except ValueError as error:
                failed[name] = str(error)
            else:
                sets[name] = write_set(state, f"{number:03d}-{name}.npz", found)
        if not sets:
            name, reason = next(iter(failed.items()))
            raise DamagedArchive(f"no set of {path} can be read; the first is {name}: {reason}")
        report("unpack", len(contents.folders), len(contents.folders))
        index = UciIndex(source, checksum, state.name, _sorted(sets), _sorted(failed), tuple(contents.skipped))
        commit(place, index)
    return index


def _sorted(by_name: dict[str, Value]) -> dict[str, Value]:
    return dict(sorted(by_name.items()))


def uci_index(folder: Folder = None) -> UciIndex:
    """What is there: a summary of each set, those that could not be read, and where they come from."""
    place = cache_folder(folder)
    command = _fetch_command(folder)
    try:
        index = read_index(place / "uci")
    except DamagedCache as error:
        reason = f"the UCI sets in {place} are damaged: {error}"
        raise DamagedCache(f"{reason}; fetch them again (--from FILE: from an archive) with: {command}") from error
    if index is None:
        raise FileNotFoundError(f"there are no UCI sets in {place} yet; fetch them with: {command}")
    return index


def uci_names(folder: Folder = None) -> list[str]:
    """The names that `load_uci` takes, in order."""
    return list(uci_index(folder).sets)


def load_uci(name: str, *, as_frame: bool = False, folder: Folder = None) -> UciSet:
    """One UCI set with its official splits.

    >>> iris = load_uci("iris")  # doctest: +SKIP
    >>> train, test = iris.splits[0]  # doctest: +SKIP
    >>> model.fit(iris.X[train], iris.y[train]).score(iris.X[test], iris.y[test])  # doctest: +SKIP

    With `as_frame`, `X` is a pyarrow.Table with the column names of the file; its `take(rows)` picks rows.
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a string, however: {name!r}; uci_names() lists those that are there")
    try:
        found = _load(name, folder)
    except FileNotFoundError:  # another process has replaced all sets since the index was read
        found = _load(name, folder)
    if not as_frame:
        return found
    import pyarrow as pa

    columns = [pa.array(np.ascontiguousarray(column)) for column in found.X.T]
    return replace(found, X=pa.Table.from_arrays(columns, names=list(found.columns)))


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
    """The command that fetches the sets into a folder, as a shell reads it."""
    words = ["tartree", "data", "uci", *(["--folder", os.fspath(folder)] if folder is not None else [])]
    return shlex.join(words)


def _explain_missing(name: str, index: UciIndex, folder: Folder) -> str:
    if name in index.failed:
        return f"the set {name!r} could not be read from {index.source}: {index.failed[name]}"
    if name in OFFICIAL:
        command = _fetch_command(folder)
        return f"the set {name!r} was not in {index.source}; fetch an archive that holds it with: {command}"
    plain = {other.lower(): other for other in index.sets}
    near = difflib.get_close_matches(name.lower(), plain, n=3)
    hint = f"did you mean {' or '.join(repr(plain[one]) for one in near)}?" if near else "uci_names() lists them"
    return f"name must be one of {len(index.sets)} sets, however: {name!r}; {hint}"
