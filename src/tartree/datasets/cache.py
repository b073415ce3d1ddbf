"""Sets on disk: one .npz each and an index, which is replaced in one step when all of them are written.

FOLDER/uci/index.json         what is there, and in which state-... folder
FOLDER/uci/state-.../*.npz    arrays only, never pickled objects
FOLDER/uci/download.*         what has arrived of an archive so far
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

from tartree.datasets.record import UciSet, group

VERSION = 1
INDEX = "index.json"


class DamagedCache(FileNotFoundError):
    """Sets were stored, but are no longer there as a whole: as good as not there, for whoever would fetch them."""


@dataclass(frozen=True)
class UciSummary:
    """What the index says about one set."""

    rows: int
    features: int
    classes: int
    fixed_test: bool
    notes: tuple[str, ...]
    file: str
    bytes: int

    @property
    def group(self) -> str:
        return group(self.rows)


@dataclass(frozen=True)
class UciIndex:
    """What is there: sets by name, sets that could not be read with the reason, and entries that were left out."""

    source: str  # an address, or the name of a file or folder
    sha256: str | None  # of the archive; none for a folder
    state: str
    sets: Mapping[str, UciSummary]
    failed: Mapping[str, str] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()


def cache_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """Where data is kept: `folder`, else TARTREE_DATA, else the user's cache folder on this platform."""
    chosen = os.fspath(folder) if folder is not None else os.environ.get("TARTREE_DATA")
    return Path(chosen).expanduser() if chosen else platform_folder(sys.platform, os.environ, Path.home())


def platform_folder(platform: str, environment: Mapping[str, str], home: Path) -> Path:
    if platform == "win32":
        return Path(environment.get("LOCALAPPDATA") or home / "AppData" / "Local", "tartree", "Cache")
    if platform == "darwin":
        return home / "Library" / "Caches" / "tartree"
    chosen = environment.get("XDG_CACHE_HOME", "")
    return (Path(chosen) if os.path.isabs(chosen) else home / ".cache") / "tartree"  # as XDG says: else ignored


@contextmanager
def locked(place: Path) -> Iterator[None]:
    """Nobody else writes here meanwhile; the system takes the lock back from a process that dies."""
    place.mkdir(parents=True, exist_ok=True)
    with open(place / "lock", "ab") as file:
        try:
            if sys.platform == "win32":
                import msvcrt

                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            else:
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise OSError(f"another process is writing to {place}; wait until it is done") from None
        yield


def write_set(state: Path, file: str, found: UciSet) -> UciSummary:
    """One set as FILE.npz within a state that is not in use yet."""
    arrays: dict[str, Any] = {"X": found.X, "y": found.y.astype(np.int32), "labels": np.array(found.labels)}
    arrays["columns"] = np.array(found.columns)
    arrays["n_train"] = np.array(len(found.splits[0][0]) if found.fixed_test else -1)
    for place, split in enumerate([] if found.fixed_test else found.splits):
        arrays |= {f"train_{place}": split[0].astype(np.int32), f"test_{place}": split[1].astype(np.int32)}
    if found.tuning_split is not None:
        arrays |= {"tuning_train": found.tuning_split[0].astype(np.int32)}
        arrays |= {"tuning_test": found.tuning_split[1].astype(np.int32)}
    with open(state / file, "xb") as target:
        np.savez_compressed(target, **arrays)
        _reach_disk(target)
    shape = found.X.shape
    size = (state / file).stat().st_size
    return UciSummary(shape[0], shape[1], len(found.labels), found.fixed_test, found.notes, file, size)


@contextmanager
def new_state(place: Path) -> Iterator[Path]:
    """A folder for the sets of the next index; gone again if anything stops its writing."""
    state = place / f"state-{secrets.token_hex(8)}"
    state.mkdir()
    try:
        yield state
    except BaseException:
        shutil.rmtree(state, ignore_errors=True)
        raise


def commit(place: Path, index: UciIndex) -> None:
    """Make an index the one that counts, then remove whatever earlier ones and cut runs left."""
    temporary = place / f"{INDEX}.new"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump({"version": VERSION, **asdict(index)}, file, indent=1)
        _reach_disk(file)
    os.replace(temporary, place / INDEX)
    for old in place.glob("state-*"):
        if old.name != index.state:
            shutil.rmtree(old, ignore_errors=True)  # a reader on Windows may hold a file; the next run removes it


def _reach_disk(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())  # else a crash may keep the new index and lose what it points to


def read_index(place: Path) -> UciIndex | None:
    """The index, or None where there is none; `DamagedCache` where not all it speaks of is there."""
    try:
        document = json.loads((place / INDEX).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        raise DamagedCache(f"{place / INDEX} cannot be read") from error
    try:
        version = document.pop("version")
        if version != VERSION:
            raise DamagedCache(f"{place / INDEX} has version {version!r}, not {VERSION}")
        document["skipped"] = tuple(document["skipped"])
        own = {name: UciSummary(**{**one, "notes": tuple(one["notes"])}) for name, one in document["sets"].items()}
        index = UciIndex(**{**document, "sets": own})
        for name, one in own.items():
            if not _has_size(place / index.state / one.file, one.bytes):
                raise DamagedCache(f"the file of {name} is not there as it was written")
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DamagedCache(f"{place / INDEX} lacks what an index holds") from error
    return index


def _has_size(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except (FileNotFoundError, NotADirectoryError):
        return False


def read_arrays(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
