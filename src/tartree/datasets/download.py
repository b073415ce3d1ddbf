"""Download of a large file over HTTP: resumed where it was cut, retried, and never joined from two versions."""

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

Progress = Callable[[int, int | None], None]  # bytes so far, bytes in all if known

CHUNK = 2**18
TRANSIENT = {408, 425, 429, 500, 502, 503, 504}
PAUSES = (1.0, 2.0, 4.0, 8.0)  # seconds before each retry


class Transient(Exception):
    """A failure that a retry may not have."""


class Partial:
    """The downloaded part of a file, and a note on its version."""

    def __init__(self, folder: Path, url: str) -> None:
        self.path = folder / "download.part"
        self._note = folder / "download.json"
        self._url = url

    @property
    def size(self) -> int:
        """Number of bytes."""
        return self.path.stat().st_size if self.path.exists() else 0

    @property
    def version(self) -> dict[str, str]:
        """Headers that distinguish this version of the file from others; empty if unknown."""
        try:
            note = json.loads(self._note.read_text(encoding="utf-8"))
            return dict(note["version"]) if note["url"] == self._url else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def begin(self, version: Mapping[str, str]) -> None:
        """Start anew, with another version."""
        self.drop()
        self._note.write_text(json.dumps({"url": self._url, "version": dict(version)}), encoding="utf-8")

    def drop(self) -> None:
        """Delete what was downloaded."""
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
    """Download a file into `folder`, from where the caller drops it after use.

    Transient failures are retried after pauses; an attempt that made progress resets the pauses.
    """
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise ValueError(f"an address must begin with http:// or https://, got {url!r}; for a file, use --from")
    partial = Partial(folder, url)
    most, failures = partial.size, 0
    while True:
        try:
            _transfer(url, partial, progress or (lambda n_bytes, total: None), timeout)
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
    """Try once, and keep the bytes that arrive."""
    version = partial.version
    n_bytes = partial.size if version else 0
    with _open(url, _headers(n_bytes, version), timeout) as response:
        status = response.status
        if status == 416 and n_bytes:
            if response.headers.get("Content-Range", "").replace(" ", "") == f"bytes*/{n_bytes}":
                return
            partial.drop()
            raise Transient("the server has fewer bytes than were downloaded")
        if status == 206 and n_bytes:
            start = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
            if start is None or int(start[1]) != n_bytes or _differ(version, _version(response.headers)):
                partial.drop()
                raise Transient("the file changed during the download")
        elif status == 200:
            n_bytes = 0
            partial.begin(_version(response.headers))
        else:
            problem = f"the server answered {status} {response.reason}"
            if status in TRANSIENT:
                raise Transient(problem)
            raise OSError(f"{url} cannot be downloaded: {problem}; give another address or an archive of your own")
        length = response.headers.get("Content-Length", "")
        total = n_bytes + int(length) if length.isdecimal() else None
        with open(partial.path, "ab") as file:
            progress(n_bytes, total)
            while chunk := _read(response):
                file.write(chunk)
                n_bytes += len(chunk)
                progress(n_bytes, total)
    if total is not None and n_bytes < total:
        raise Transient(f"the connection was cut after {n_bytes:,} of {total:,} bytes")


def _headers(n_bytes: int, version: Mapping[str, str]) -> dict[str, str]:
    headers = {"User-Agent": "tartree", "Accept-Encoding": "identity"}
    if n_bytes:
        # With If-Range, a server whose file has changed sends all of the new one.
        headers |= {"Range": f"bytes={n_bytes}-", "If-Range": version.get("ETag") or version["Last-Modified"]}
    return headers


def _version(headers: Any) -> dict[str, str]:
    version = {key: headers[key] for key in ("ETag", "Last-Modified") if headers[key]}
    if version.get("ETag", "").startswith("W/"):  # files of a weak tag may differ in bytes
        del version["ETag"]
    return version


def _differ(version: Mapping[str, str], other: Mapping[str, str]) -> bool:
    return any(version[key] != other[key] for key in version.keys() & other.keys())


def _open(url: str, headers: dict[str, str], timeout: float) -> Any:
    """Return the response of the server, whatever its status."""
    try:
        return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=timeout)
    except urllib.error.HTTPError as error:
        return error
    except http.client.InvalidURL as error:
        raise ValueError(f"an address must be well formed, got {url!r}: {error}") from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        text = " ".join(str(reason).split()) or type(reason).__name__
        is_transient = isinstance(reason, TimeoutError | ConnectionError | http.client.HTTPException)
        if is_transient or getattr(reason, "errno", None) == socket.EAI_AGAIN:
            raise Transient(text) from error
        raise OSError(f"{url} cannot be downloaded: {text}; check the address and the connection") from error


def _read(response: Any) -> bytes:
    try:
        content: bytes = response.read1(CHUNK)
        return content
    except (OSError, http.client.HTTPException) as error:
        raise Transient(f"the connection was cut ({' '.join(str(error).split()) or type(error).__name__})") from error
