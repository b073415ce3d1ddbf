"""A large file over HTTP: goes on where it was cut, tries again where that may help, and never glues two files."""

from __future__ import annotations

import http.client
import json
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

Progress = Callable[[int, int | None], None]  # bytes there, bytes in all if the server says so

PIECE = 2**18
TRANSIENT = {408, 425, 429, 500, 502, 503, 504}
PAUSES = (1.0, 2.0, 4.0, 8.0)  # seconds before each new try


class Transient(Exception):
    """A failure that may be gone at the next try."""


class Partial:
    """What has arrived of a file, and a note of which version of it that is."""

    def __init__(self, folder: Path, url: str) -> None:
        self.path = folder / "download.part"
        self._note = folder / "download.json"
        self._url = url

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    @property
    def version(self) -> dict[str, str]:
        """Headers that tell this version of the file from others; none if it cannot be told."""
        try:
            note = json.loads(self._note.read_text(encoding="utf-8"))
            return dict(note["version"]) if note["url"] == self._url else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def begin(self, version: Mapping[str, str]) -> None:
        self.drop()
        self._note.write_text(json.dumps({"url": self._url, "version": dict(version)}), encoding="utf-8")

    def drop(self) -> None:
        self.path.unlink(missing_ok=True)  # first: bytes without a note are never used
        self._note.unlink(missing_ok=True)


def download(
    url: str,
    folder: Path,
    *,
    progress: Progress | None = None,
    timeout: float = 30.0,
    pauses: Sequence[float] = PAUSES,
) -> Partial:
    """Bring a file into `folder`, where the caller drops it when done with it.

    Tries again after failures that may pass; a try that brought bytes not seen before makes all pauses available anew.
    """
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise ValueError(f"an address must begin with http:// or https://, however: {url!r}; for a file, use --from")
    partial = Partial(folder, url)
    most, failures = partial.size, 0
    while True:
        try:
            _transfer(url, partial, progress or (lambda there, total: None), timeout)
            return partial
        except Transient as error:
            if partial.size > most:
                most, failures = partial.size, 0
            if failures == len(pauses):
                kept = f" ({partial.size:,} bytes are kept)" if partial.size and partial.version else ""
                raise OSError(f"{url} cannot be downloaded: {error}; try again later{kept}") from error
            time.sleep(pauses[failures])
            failures += 1


def _transfer(url: str, partial: Partial, progress: Progress, timeout: float) -> None:
    """One try; whatever arrives stays."""
    version = partial.version
    there = partial.size if version else 0
    with _open(url, _headers(there, version), timeout) as response:
        status = response.status
        if status == 416 and there:
            if response.headers.get("Content-Range", "").replace(" ", "") == f"bytes*/{there}":
                return
            partial.drop()
            raise Transient("the server has fewer bytes than have arrived")
        if status == 206 and there:
            start = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
            if start is None or int(start[1]) != there or _differ(version, _version(response.headers)):
                partial.drop()
                raise Transient("the file changed meanwhile")
        elif status == 200:
            there = 0
            partial.begin(_version(response.headers))
        else:
            problem = f"the server answered {status} {response.reason}"
            if status in TRANSIENT:
                raise Transient(problem)
            raise OSError(f"{url} cannot be downloaded: {problem}; give another address or an archive of your own")
        length = response.headers.get("Content-Length", "")
        total = there + int(length) if length.isdecimal() else None
        with open(partial.path, "ab") as file:
            progress(there, total)
            while piece := _read(response):
                file.write(piece)
                there += len(piece)
                progress(there, total)
    if total is not None and there < total:
        raise Transient(f"the connection was cut after {there:,} of {total:,} bytes")


def _headers(there: int, version: Mapping[str, str]) -> dict[str, str]:
    headers = {"User-Agent": "tartree", "Accept-Encoding": "identity"}
    if there:
        # With If-Range, a server whose file has changed sends all of the new one.
        headers |= {"Range": f"bytes={there}-", "If-Range": version.get("ETag") or version["Last-Modified"]}
    return headers


def _version(headers: Any) -> dict[str, str]:
    found = {key: headers[key] for key in ("ETag", "Last-Modified") if headers[key]}
    if found.get("ETag", "").startswith("W/"):  # such files may differ in bytes
        del found["ETag"]
    return found


def _differ(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    return any(one[key] != other[key] for key in one.keys() & other.keys())


def _open(url: str, headers: dict[str, str], timeout: float) -> Any:
    """The answer of the server, whatever its status."""
    try:
        return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=timeout)
    except urllib.error.HTTPError as error:
        return error
    except http.client.InvalidURL as error:
        raise ValueError(f"an address must be well formed, however: {url!r}: {error}") from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        text = " ".join(str(reason).split()) or type(reason).__name__
        passing = isinstance(reason, TimeoutError | ConnectionError | http.client.HTTPException)
        if passing or getattr(reason, "errno", None) == socket.EAI_AGAIN:
            raise Transient(text) from error
        raise OSError(f"{url} cannot be downloaded: {text}; check the address and the connection") from error


def _read(response: Any) -> bytes:
    try:
        found: bytes = response.read1(PIECE)
        return found
    except (OSError, http.client.HTTPException) as error:
        raise Transient(f"the connection was cut ({' '.join(str(error).split()) or type(error).__name__})") from error
