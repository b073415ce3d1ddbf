"""Model files: one safetensors file that holds arrays and a JSON document, written whole or not at all.

Layout of a file, which any safetensors reader opens::

    8 bytes      length of the header, little-endian
    header       JSON: dtype, shape and offset of each array, and under "__metadata__" four texts:
                     format    "tartree"
                     version   "1"
                     document  JSON: everything but the arrays
                     checksum  SHA-256 of version, document and every array's name, dtype, shape and bytes
    the rest     the arrays, little-endian, one after the other up to the last byte

Nothing in a file is ever executed: it holds numbers and text, which are parsed and checked. The checksum detects
damage, not malice: who can write a file can write its checksum too. To prove who wrote a file, sign it.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import json
import math
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save

FORMAT_VERSION = 1

_FORMAT = "tartree"
_HEADER_LIMIT = 100_000_000  # bytes; that of safetensors itself
_DTYPES = {"BOOL": "|b1", "F16": "<f2", "F32": "<f4", "F64": "<f8"}
_DTYPES |= {
    "I8": "|i1",
    "I16": "<i2",
    "I32": "<i4",
    "I64": "<i8",
    "U8": "|u1",
    "U16": "<u2",
    "U32": "<u4",
    "U64": "<u8",
}


class ModelFileError(ValueError):
    """A file that is not a complete, valid model of this or an earlier format; the message says why."""


def write(path: str | bytes | os.PathLike[Any], document: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a document and arrays to one file; if anything fails, an earlier file stays as it was.

    Parameters
    ----------
    path : path of the file
    document : dict
        JSON data that reads back unchanged: dicts with text keys, lists, text, finite numbers, booleans and None. The
        same content gives the same bytes.
    arrays : mapping of str to ndarray
        Of any shape and a boolean, integer or float dtype.

    Examples
    --------
    >>> import numpy as np
    >>> from tartree.persist import read, write
    >>> write("model.tart", {"classes": ["no", "yes"]}, {"weight": np.ones((2, 3))})  # doctest: +SKIP
    >>> document, arrays = read("model.tart")  # doctest: +SKIP
    """
    path, content = os.fsdecode(path), _encode(document, arrays)
    try:
        with replaced_file(path) as file:
            file.writelines(content)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


def read(path: str | bytes | os.PathLike[Any]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read what `write` wrote, bit for bit.

    Parameters
    ----------
    path : path of the file

    Returns
    -------
    document : dict
    arrays : dict of str to ndarray
        Copies, which the caller may change.

    Raises
    ------
    ModelFileError
        If the file is damaged, is no model, or has a newer format.

    Examples
    --------
    >>> from tartree.persist import read
    >>> document, arrays = read("model.tart")  # doctest: +SKIP
    """
    path = os.fsdecode(path)
    with open(path, "rb") as file:
        try:
            return _decode(file)
        except ModelFileError as error:
            raise ModelFileError(f"{path!r} {error}") from error.__cause__


def _encode(document: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> tuple[bytes | memoryview, ...]:
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    if not isinstance(document, dict) or _parse(text) != document:
        raise TypeError("a document must be a dict of JSON data that reads back unchanged: text keys, lists, no tuples")
    plain = {name: _little_endian(name, array) for name, array in arrays.items()}
    version = str(FORMAT_VERSION)
    metadata = {"format": _FORMAT, "version": version, "document": text, "checksum": _checksum(version, text, plain)}
    # The library writes metadata in random order: it is added here, so that the same model gives the same bytes.
    body = memoryview(save(plain))
    start = 8 + int.from_bytes(body[:8], "little")
    entries = json.loads(bytes(body[8:start]))
    header = json.dumps({"__metadata__": metadata, **entries}, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)  # the arrays start at a multiple of 8 bytes
    if len(header) > _HEADER_LIMIT:
        raise ValueError(f"a document must take less than {_HEADER_LIMIT} bytes as JSON, got {len(header)} bytes")
    return len(header).to_bytes(8, "little"), header, body[start:]


def _little_endian(name: str, array: NDArray[Any]) -> NDArray[Any]:
    if name == "__metadata__":
        raise ValueError("an array must not be named __metadata__, which safetensors reserves")
    if not isinstance(array, np.ndarray) or array.dtype.newbyteorder("<").str not in _DTYPES.values():
        kind = getattr(array, "dtype", type(array).__name__)
        raise TypeError(f"arrays must be of numpy, with a boolean, integer or float dtype, got {kind} for {name!r}")
    return np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")


def _checksum(version: str, document: str, arrays: Mapping[str, NDArray[Any]]) -> str:
    names = sorted(arrays)
    shapes = [(name, arrays[name].dtype.newbyteorder("<").str, arrays[name].shape) for name in names]
    digest = hashlib.sha256(json.dumps([version, document, shapes]).encode())
    for name in names:
        digest.update(arrays[name].reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


@contextlib.contextmanager
def replaced_file(path: str) -> Iterator[BinaryIO]:
    """Open a new file that replaces an old one in a single step at the end, or leaves everything as it was.

    Parameters
    ----------
    path : str
        Path of the file. If it is a link, the file behind it is replaced.

    Returns
    -------
    context manager of a binary file

    Raises
    ------
    OSError
        With `path` as its file name, if the file cannot be created or replaced.

    Examples
    --------
    >>> with replaced_file("table.csv") as file:  # doctest: +SKIP
    ...     file.write(b"age,outcome")
    """
    target = os.path.realpath(path)  # a link stays, and the file it points to is replaced
    temporary = os.path.join(os.path.dirname(target), f".tartree-{secrets.token_hex(8)}.tmp")
    try:
        mode = _mode_of(target)
        create = functools.partial(os.open, mode=0o666 if mode is None else mode)  # less the umask
        with open(temporary, "xb", opener=create) as file:
            if mode is not None:
                os.chmod(temporary, mode)
            yield file
            file.flush()
            os.fsync(file.fileno())  # else a crash may keep the new name and lose the new content
        os.replace(temporary, target)
    except BaseException as error:  # after an interrupt too, nothing is left behind
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.filename in (temporary, target):  # name the file as asked for
            raise OSError(error.errno, error.strerror, path) from error
        raise


def _mode_of(target: str) -> int | None:
    """Return the permissions of the file to be replaced; None if there is none yet."""
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target)
    if not stat.S_ISREG(mode):  # renaming onto a device or a pipe would remove it
        raise OSError(errno.EINVAL, "Not a regular file", target)
    if not os.access(target, os.W_OK):  # renaming checks the folder only, but a read-only file must stay
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), target)
    return stat.S_IMODE(mode)


def _decode(file: BinaryIO) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    start, metadata = _read_header(file)
    try:
        views = _views(deserialize(start + file.read()))  # type: ignore[no-untyped-call]
    except (SafetensorError, KeyError, ValueError, OverflowError) as error:
        raise ModelFileError("is damaged: its arrays do not fill it exactly; it was cut short or changed") from error
    if metadata["checksum"] != _checksum(metadata["version"], metadata["document"], views):
        raise ModelFileError("is damaged: its checksum does not match its content")
    document = _parse_or_raise(metadata["document"], "document")
    return document, {name: views[name].astype(views[name].dtype.newbyteorder("=")) for name in sorted(views)}


def _read_header(file: BinaryIO) -> tuple[bytes, dict[str, str]]:
    """Return the bytes before the arrays, and the four texts in them; safetensors checks the offsets of the arrays."""
    start = file.read(9)
    if not start:
        raise ModelFileError("is not a tartree model: it is empty")
    length = int.from_bytes(start[:8], "little")
    if start[8:] != b"{" or not 2 <= length <= _HEADER_LIMIT:
        raise ModelFileError("is not a tartree model: it does not begin as a safetensors file does")
    start += file.read(length - 1)
    if len(start) < 8 + length:
        raise ModelFileError(f"is damaged: it ends within its header, {len(start)} bytes of {8 + length}")
    header = _parse_or_raise(start[8:], "header")
    metadata = header.get("__metadata__")
    if not isinstance(metadata, dict) or metadata.get("format") != _FORMAT:
        raise ModelFileError("is not a tartree model: it is a safetensors file of another kind")
    version = metadata.get("version")
    newer = isinstance(version, str) and re.fullmatch("[1-9][0-9]{0,8}", version) and int(version) > FORMAT_VERSION
    if newer:  # first, since a newer format may differ in everything below
        raise ModelFileError(
            f"was written by a newer tartree (format {version}); this one reads up to {FORMAT_VERSION}: "
            "upgrade with pip install -U tartree"
        )
    if version != str(FORMAT_VERSION):
        raise ModelFileError("is damaged: its version is unknown")
    texts = {key for key, value in metadata.items() if isinstance(value, str)}
    if not len(metadata) == len(texts & {"format", "version", "document", "checksum"}) == 4:
        raise ModelFileError("is damaged: its metadata must be four texts: format, version, document and checksum")
    return start, metadata


def _views(tensors: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, NDArray[Any]]:
    return {
        name: np.frombuffer(tensor["data"], _DTYPES[tensor["dtype"]]).reshape(tensor["shape"])
        for name, tensor in tensors
    }


def _parse_or_raise(text: str | bytes, part: str) -> dict[str, Any]:
    try:
        parsed = _parse(text.decode() if isinstance(text, bytes) else text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"is damaged: its {part} is not valid JSON ({error})") from error
    if not isinstance(parsed, dict):
        raise ModelFileError(f"is damaged: its {part} must be a JSON object")
    return parsed


def _parse(text: str) -> Any:
    """Parse JSON strictly: without repeated keys and non-finite numbers, which Python accepts."""
    return json.loads(text, object_pairs_hook=_object, parse_float=_finite, parse_constant=_finite)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    parsed = dict(pairs)
    if len(parsed) < len(pairs):
        raise ValueError("a key is repeated")
    return parsed


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is not finite")
    return number
