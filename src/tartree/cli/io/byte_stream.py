"""Bytes of a file or of standard input: unpacked, and as UTF-8 whatever their encoding, in constant memory."""

from __future__ import annotations

import codecs
import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tartree.cli.problems import Problem
from tartree.cli.rendering.notes import Notes

STANDARD_INPUT = "-"
CHUNK = 2**18  # bytes read at a time

_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",  # before UTF-16, whose mark is its beginning
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}


def label(path: str) -> str:
    """Return the name of a table in messages."""
    return "standard input" if path == STANDARD_INPUT else path


@contextmanager
def open_bytes(path: str) -> Iterator[PeekableStream]:
    """Open the unpacked bytes of a file or of standard input."""
    with ExitStack() as opened:
        raw = sys.stdin.buffer if path == STANDARD_INPUT else opened.enter_context(open(path, "rb"))
        file: Any = PeekableStream(raw)
        if file.start.startswith(b"\x1f\x8b"):
            file = PeekableStream(opened.enter_context(gzip.GzipFile(fileobj=file, mode="rb")), name=label(path))
        yield file


class PeekableStream:
    """A stream whose first bytes can be seen before they are read: `start`."""

    def __init__(self, file: Any, name: str | None = None) -> None:
        self._file = file
        self._name = name  # of a packed file
        self.start = b""
        self.start = self._waiting = self.read(CHUNK)

    _waiting = b""

    def read(self, size: int = CHUNK) -> bytes:
        """Read at most `size` bytes."""
        if self._waiting:
            start, self._waiting = self._waiting[:size], self._waiting[size:]
            return start
        try:
            chunk: bytes = self._file.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise Problem(f"{self._name} cannot be unpacked: {error}") from error
        return chunk


class Utf8Stream:
    """A stream as UTF-8 bytes without a byte-order mark.

    Bytes that are not UTF-8 are read as Windows-1252, which Excel writes in Western Europe.
    """

    closed = False

    def __init__(self, file: PeekableStream, name: str, notes: Notes) -> None:
        self._file = file
        self._name = name
        self._notes = notes
        mark = next((mark for mark in _MARKS if file.start.startswith(mark)), b"")
        file.read(len(mark))
        encoding = _MARKS.get(mark, "utf-8")
        if encoding == "utf-8" and b"\0" in file.start:
            raise Problem(f"{name} is not a text table: it holds NUL characters; save it as CSV in UTF-8")
        self._decoder: Any = codecs.getincrementaldecoder(encoding)()
        self._waiting = b""
        self._ended = False
        self.n_quotes = 0

    def read(self, size: int) -> bytes:
        """Read `size` bytes, fewer only at the end."""
        chunks = [self._waiting]
        n_bytes = len(self._waiting)
        while n_bytes < size and not self._ended:
            chunk = self._file.read(CHUNK)
            self._ended = not chunk
            chunks.append(self._decode(chunk).encode())
            n_bytes += len(chunks[-1])
            self.n_quotes += chunks[-1].count(b'"')
        joined = b"".join(chunks)
        self._waiting = joined[size:]
        return joined[:size]

    def unread(self, taken: bytes) -> None:
        """Put bytes back, to be read next."""
        self._waiting = taken + self._waiting

    def _decode(self, chunk: bytes) -> str:
        before = self._decoder.getstate()
        try:
            text: str = self._decoder.decode(chunk, final=self._ended)
        except UnicodeDecodeError:
            self._notes.add(f"{self._name} is not UTF-8 throughout: other bytes are read as Windows-1252 (Latin-1)")
            self._decoder = codecs.getincrementaldecoder("utf-8")(errors="windows-1252")
            self._decoder.setstate(before)
            text = self._decoder.decode(chunk, final=self._ended)
        return text


def _as_windows(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    wrong = error.object[error.start : error.end]
    try:
        return wrong.decode("cp1252"), error.end
    except UnicodeDecodeError:  # five bytes are undefined in it
        return wrong.decode("latin-1"), error.end


codecs.register_error("windows-1252", _as_windows)
