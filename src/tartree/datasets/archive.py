"""Archives: the folders of sets in an untrusted archive or a folder, read in memory without unpacking to disk."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any

CHUNK = 2**20  # bytes read at a time
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

_PACKERS: dict[bytes, Callable[[Any], Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
_DAMAGE = (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError)


class DamagedArchive(ValueError):
    """An archive that cannot be read, on any attempt."""


@dataclass(frozen=True)
class Limits:
    """Limits of what an archive may hold, far above the official one."""

    entries: int = 100_000
    total: int = 16 * 10**9  # bytes, unpacked
    file: int = 300 * 10**6  # bytes of a file that is read


@dataclass(frozen=True)
class Entry:
    """A regular file of the archive."""

    parts: tuple[str, ...]
    size: int
    read: Callable[[], bytes]


@dataclass
class Contents:
    """The folders of sets, each read on demand, and a note on each entry that was skipped."""

    folders: dict[str, list[Entry]]
    skipped: list[str] = field(default_factory=list)

    def read(self, name: str) -> dict[str, bytes]:
        """Return the files of one set by name."""
        return {entry.parts[-1]: entry.read() for entry in self.folders[name]}


@contextmanager
def open_sets(path: Path, limits: Limits | None = None) -> Iterator[Contents]:
    """Open the sets of a tar archive, compressed or not, or of a folder laid out as one."""
    limits = limits or Limits()
    skipped: list[str] = []
    with ExitStack() as opened:
        try:
            if path.is_dir():
                entries = _list_folder(path, limits, skipped)
            else:
                entries = _list_tar(opened.enter_context(_open_stream(path, limits)), limits, skipped)
            yield Contents(_find_sets(path, entries, limits, skipped), skipped)
        except _DAMAGE as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise DamagedArchive(f"{path} must be a complete tar archive, got: {reason}; get it again") from error


@contextmanager
def _open_stream(path: Path, limits: Limits) -> Iterator[IO[bytes]]:
    with open(path, "rb") as raw:
        start = raw.read(6)
        raw.seek(0)
        unpack = next((unpack for mark, unpack in _PACKERS.items() if start.startswith(mark)), nullcontext)
        with unpack(raw) as stream:
            yield _Limited(stream, limits)  # type: ignore[misc]  # has the methods that tarfile uses


class _Limited:
    """A stream with a limit, since a few compressed bytes may unpack to terabytes."""

    def __init__(self, file: Any, limits: Limits) -> None:
        self._file = file
        self._limits = limits
        self.tell = file.tell

    def read(self, size: int) -> bytes:
        if size > max(self._limits.file, CHUNK):  # also the length of a name, which is read at once
            raise DamagedArchive(f"a part of an archive must be below {self._limits.file:,} bytes, got {size:,}")
        content: bytes = self._file.read(size)
        self._check(self._file.tell())
        return content

    def seek(self, offset: int) -> int:
        self._check(offset)
        position: int = self._file.seek(offset)
        return position

    def _check(self, position: int) -> None:
        if position > self._limits.total:
            raise DamagedArchive(f"an archive must unpack to at most {self._limits.total:,} bytes, got more")


def _list_tar(stream: IO[bytes], limits: Limits, skipped: list[str]) -> list[Entry]:
    entries: dict[tuple[str, ...], Entry] = {}
    with tarfile.open(fileobj=stream, mode="r:") as tar:
        for number, member in enumerate(tar):
            _check_number(number, limits)
            parts = PurePosixPath(member.name).parts
            if member.isdir():
                continue
            if not member.isreg() or member.issparse():
                skipped.append(f"{_printable(member.name)}: not a regular file")
            elif member.name.startswith("/") or ".." in parts or "\\" in member.name:
                skipped.append(f"{_printable(member.name)}: its path is outside the archive")
            else:  # the last entry of a name counts, as in tar
                entries[parts] = Entry(parts, member.size, _reader(stream, member))
        while stream.read(CHUNK):  # up to the checksum, so that damage is found before anything is stored
            pass
    return list(entries.values())


def _reader(stream: IO[bytes], member: tarfile.TarInfo) -> Callable[[], bytes]:
    def read() -> bytes:
        stream.seek(member.offset_data)
        content = stream.read(member.size)
        if len(content) < member.size:
            raise EOFError(f"it ends within {_printable(member.name)}")
        return content

    return read


def _list_folder(path: Path, limits: Limits, skipped: list[str]) -> list[Entry]:
    entries: list[Entry] = []
    for folder, _, files in os.walk(path):  # does not follow links
        for file in sorted(files):
            _check_number(len(entries) + len(skipped), limits)
            full = Path(folder, file)
            if full.is_symlink() or not full.is_file():
                skipped.append(f"{_printable(str(full.relative_to(path)))}: not a regular file")
            else:
                entries.append(Entry(full.relative_to(path).parts, full.stat().st_size, full.read_bytes))
    return entries


def _check_number(number: int, limits: Limits) -> None:
    if number >= limits.entries:
        raise DamagedArchive(f"an archive must have at most {limits.entries:,} entries, got more")


def _find_sets(path: Path, entries: list[Entry], limits: Limits, skipped: list[str]) -> dict[str, list[Entry]]:
    """Return the entries of folders NAME with NAME.txt, and of those beside them that hold data too."""
    folders: dict[tuple[str, ...], list[Entry]] = {}
    for entry in entries:
        folder, file = entry.parts[:-1], entry.parts[-1]
        if folder and (file == f"{folder[-1]}.txt" or file.endswith(".dat")):
            folders.setdefault(folder, []).append(entry)
    described = [
        folder for folder, inside in folders.items() if any(entry.parts[-1].endswith(".txt") for entry in inside)
    ]
    if not described:
        raise DamagedArchive(f"{path} must hold a folder NAME with NAME.txt for each set, got none")
    depth = min(map(len, described))  # below a single top folder, or none
    sets: dict[str, list[Entry]] = {}
    for folder, inside in folders.items():
        where, name = "/".join(map(_printable, folder)), folder[-1]
        big = [entry for entry in inside if entry.size > limits.file]
        if len(folder) != depth:
            continue
        if not NAME.fullmatch(name) or name in sets:
            skipped.append(f"{where}: {'another folder has this name' if name in sets else 'not a name for a set'}")
        elif folder in described or any(entry.parts[-1].endswith("_R.dat") for entry in inside):
            sets[name] = [entry for entry in inside if entry not in big]
            skipped += [f"{where}/{_printable(entry.parts[-1])}: above {limits.file:,} bytes" for entry in big]
    return sets


def _printable(text: str) -> str:
    """Return an untrusted name, safe to print in a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:120]
