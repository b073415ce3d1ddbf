"""Arrays from files in idx format, as MNIST comes in."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Training images, test images, training labels, test labels.
FILES = [f"{part}-{kind}-ubyte.gz" for kind in ("images-idx3", "labels-idx1") for part in ("train", "t10k")]


def read_idx(path: Path) -> NDArray[Any]:
    """Return the array of bytes that a file holds, compressed or not."""
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if raw[:3] != b"\x00\x00\x08":
        raise ValueError(f"{path} must be a file of bytes in idx format, but begins with {raw[:4]!r}")
    shape = np.frombuffer(raw, ">u4", count=raw[3], offset=4).astype(int)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape).copy()
