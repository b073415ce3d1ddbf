"""Bytes of a table, wherever they are: opened, unpacked, and text in any encoding as UTF-8, in constant memory."""

from __future__ import annotations

import codecs
import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tartree.cli.errors import Problem
from tartree.cli.notes import Notes

STANDARD_INPUT = "-"
PIECE = 2**18  # bytes read at a time

_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}


def label(path: str) -> str:
    """How a message calls the table."""
    return "standard input" if path == STANDARD_INPUT else path


@contextmanager
def open_bytes(path: str) -> Iterator[Ahead]:
    """The unpacked bytes of a file or of standard input, of which the first can be seen."""
    with ExitStack() as opened:
        raw = sys.stdin.buffer if path == STANDARD_INPUT else opened.enter_context(open(path, "rb"))
        file: Any = Ahead(raw)
        if file.start.startswith(b"\x1f\x8b"):
            file = Ahead(opened.enter_context(gzip.GzipFile(fileobj=file, mode="rb")), name=label(path))
        yield file


class Ahead:
    """A stream whose first bytes can be seen before they are read."""

    def __init__(self, file: Any, name: str | None = None) -> None:
        self._file = file
        self._name = name  # of a packed file
        self.start = b""
        self.start = self._waiting = self.read(PIECE)

    _waiting = b""

    def read(self, size: int = PIECE) -> bytes:
        if self._waiting:
            piece, self._waiting = self._waiting[:size], self._waiting[size:]
            return piece
        try:
            found: bytes = self._file.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise Problem(f"{self._name} cannot be unpacked: {error}") from error
        return found


class Utf8:
    """Text of a stream as UTF-8 bytes without a byte-order mark.

    Bytes that are not UTF-8 are taken as the letters of Windows-1252, which Excel writes in Western Europe.
    """

    closed = False

    def __init__(self, file: Ahead, name: str, notes: Notes) -> None:
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
        """As many bytes as asked for, fewer at the end only."""
        pieces = [self._waiting]
        n_bytes = len(self._waiting)
        while n_bytes < size and not self._ended:
            piece = self._file.read(PIECE)
            self._ended = not piece
            pieces.append(self._decode(piece).encode())
            n_bytes += len(pieces[-1])
            self.n_quotes += pieces[-1].count(b'"')
        found = b"".join(pieces)
        self._waiting = found[size:]
        return found[:size]

    def unread(self, taken: bytes) -> None:
        """Put bytes back in front of what is still to come."""
        self._waiting = taken + self._waiting

    def _decode(self, piece: bytes) -> str:
        before = self._decoder.getstate()
        try:
            text: str = self._decoder.decode(piece, final=self._ended)
        except UnicodeDecodeError:
            self._notes.add(f"{self._name} is not UTF-8 throughout: other bytes are read as Windows-1252 (Latin-1)")
            self._decoder = codecs.getincrementaldecoder("utf-8")(errors="windows-1252")
            self._decoder.setstate(before)
            text = self._decoder.decode(piece, final=self._ended)
        return text


def _as_windows(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    wrong = error.object[error.start : error.end]
    try:
        return wrong.decode("cp1252"), error.end
    except UnicodeDecodeError:  # five bytes mean nothing there
        return wrong.decode("latin-1"), error.end


codecs.register_error("windows-1252", _as_windows)
