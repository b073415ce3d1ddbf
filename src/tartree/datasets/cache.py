"""Cache of sets on disk: one .npz each and an index, which is replaced in one step when all of them are written.

FOLDER/uci/index.json         the sets, and their state-... folder
FOLDER/uci/state-.../*.npz    arrays only, never pickled objects
FOLDER/uci/download.*         the downloaded part of an archive
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tartree.datasets.uci_set import UciSet, group

VERSION = 1
INDEX = "index.json"


class DamagedCache(FileNotFoundError):
    """An incomplete cache: to be fetched again, like a missing one."""


@dataclass(frozen=True)
class UciSummary:
    """A set in the index.

    Parameters
    ----------
    rows, features, classes : int
        Sizes.
    fixed_test : bool
        Whether train and test rows are fixed.
    notes : tuple of str
        What is unusual about it.
    file : str
        Name of its file.
    bytes : int
        Size of its file.

    Examples
    --------
    >>> from tartree.datasets import UciSummary
    >>> UciSummary(150, 4, 3, False, (), "iris.npz", 5000).group
    'small'
    """

    rows: int
    features: int
    classes: int
    fixed_test: bool
    notes: tuple[str, ...]
    file: str
    bytes: int

    @property
    def group(self) -> str:
        """Return large, medium or small, by the number of rows."""
        return group(self.rows)


@dataclass(frozen=True)
class UciIndex:
    """The index of the cache.

    Parameters
    ----------
    source : str
        Address, or name of the file or folder, that the sets come from.
    sha256 : str or None
        Checksum of the archive; None for a folder.
    state : str
        Name of the folder with their files.
    sets : mapping of str to UciSummary
    failed : mapping of str to str
        Reasons of sets that could not be read.
    skipped : tuple of str
        Entries of the archive that were skipped.

    Examples
    --------
    >>> from tartree.datasets import UciIndex
    >>> UciIndex("data.tar.gz", None, "state-1", {}).failed
    {}
    """

    source: str
    sha256: str | None
    state: str
    sets: Mapping[str, UciSummary]
    failed: Mapping[str, str] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()


def cache_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of the cache: `folder`, else TARTREE_DATA, else the user's cache folder on this platform."""
    chosen = os.fspath(folder) if folder is not None else os.environ.get("TARTREE_DATA")
    return Path(chosen).expanduser() if chosen else platform_folder(sys.platform, os.environ, Path.home())


def platform_folder(platform: str, environment: Mapping[str, str], home: Path) -> Path:
    """Return the user's cache folder on a platform."""
    if platform == "win32":
        return Path(environment.get("LOCALAPPDATA") or home / "AppData" / "Local", "tartree", "Cache")
    if platform == "darwin":
        return home / "Library" / "Caches" / "tartree"
    chosen = environment.get("XDG_CACHE_HOME", "")
    return (Path(chosen) if os.path.isabs(chosen) else home / ".cache") / "tartree"  # as XDG says: else ignored


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder for writing; the system releases the lock of a process that dies."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "ab") as file:
        try:
            if sys.platform == "win32":
                import msvcrt

                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            else:
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise OSError(f"another process is writing to {folder}; wait until it is done") from None
        yield


def write_set(state: Path, file: str, data: UciSet) -> UciSummary:
    """Write one set to a file in a folder that no index refers to yet."""
    arrays: dict[str, Any] = {"X": data.X, "y": data.y.astype(np.int32), "labels": np.array(data.labels)}
    arrays["columns"] = np.array(data.columns)
    arrays["n_train"] = np.array(len(data.splits[0][0]) if data.fixed_test else -1)
    for k, split in enumerate([] if data.fixed_test else data.splits):
        arrays |= {f"train_{k}": split[0].astype(np.int32), f"test_{k}": split[1].astype(np.int32)}
    if data.tuning_split is not None:
        arrays |= {"tuning_train": data.tuning_split[0].astype(np.int32)}
        arrays |= {"tuning_test": data.tuning_split[1].astype(np.int32)}
    with open(state / file, "xb") as target:
        np.savez_compressed(target, **arrays)
        _sync(target)
    shape = data.X.shape
    size = (state / file).stat().st_size
    return UciSummary(shape[0], shape[1], len(data.labels), data.fixed_test, data.notes, file, size)


@contextmanager
def new_state(folder: Path) -> Iterator[Path]:
    """Create a folder for the sets of the next index, and remove it if anything stops the writing."""
    state = folder / f"state-{secrets.token_hex(8)}"
    state.mkdir()
    try:
        yield state
    except BaseException:
        shutil.rmtree(state, ignore_errors=True)
        raise


def commit(folder: Path, index: UciIndex) -> None:
    """Replace the index, then remove the files of earlier ones and of interrupted runs."""
    temporary = folder / f"{INDEX}.new"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump({"version": VERSION, **asdict(index)}, file, indent=1)
        _sync(file)
    os.replace(temporary, folder / INDEX)
    for old in folder.glob("state-*"):
        if old.name != index.state:
            shutil.rmtree(old, ignore_errors=True)  # a reader on Windows may hold a file; the next run removes it


def _sync(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())  # else a crash may keep the new index and lose its files


def read_index(folder: Path) -> UciIndex | None:
    """Return the index, or None if there is none; raise `DamagedCache` if files of it are missing."""
    try:
        document = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        raise DamagedCache(f"{folder / INDEX} cannot be read") from error
    try:
        version = document.pop("version")
        if version != VERSION:
            raise DamagedCache(f"{folder / INDEX} has version {version!r}, not {VERSION}")
        document["skipped"] = tuple(document["skipped"])
        sets = {
            name: UciSummary(**{**entry, "notes": tuple(entry["notes"])}) for name, entry in document["sets"].items()
        }
        index = UciIndex(**{**document, "sets": sets})
        for name, summary in sets.items():
            if not _has_size(folder / index.state / summary.file, summary.bytes):
                raise DamagedCache(f"the file of {name} is missing or was changed")
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DamagedCache(f"{folder / INDEX} lacks entries of an index") from error
    return index


def _has_size(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except (FileNotFoundError, NotADirectoryError):
        return False


def read_arrays(path: Path) -> dict[str, Any]:
    """Return the arrays of a file, never pickled objects."""
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
