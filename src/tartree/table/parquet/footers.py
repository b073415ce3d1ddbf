"""Footers of Parquet files, where all row groups are listed: read once, not for every row group."""

from __future__ import annotations

import os
from collections import OrderedDict
from threading import Lock
from typing import Any

#: Bytes of footers that are kept, as they are in files; in memory they take nine times that. The last one always is.
MOST_BYTES = 2**23


class Footers:
    """Footers of the files that were opened last; those of files that have changed since are forgotten."""

    def __init__(self) -> None:
        self._footers: OrderedDict[str, tuple[Any, Any]] = OrderedDict()  # of each path: its stamp, its footer
        self._lock = Lock()

    def get(self, path: str, stamp: Any) -> Any:
        """Return the footer of a file; None if it was not kept, or the file has changed."""
        with self._lock:
            kept_stamp, footer = self._footers.get(path, (None, None))
            if footer is None or kept_stamp != stamp:
                return None
            self._footers.move_to_end(path)
            return footer

    def keep(self, path: str, stamp: Any, footer: Any) -> None:
        """Keep the footer of a file."""
        with self._lock:
            self._footers.pop(path, None)
            self._footers[path] = stamp, footer
            total = sum(kept.serialized_size for _, kept in self._footers.values())
            while total > MOST_BYTES and len(self._footers) > 1:
                total -= self._footers.popitem(last=False)[1][1].serialized_size

    def __reduce__(self) -> Any:  # another process reads them for itself
        return Footers, ()


def stamp(path: str, filesystem: Any) -> tuple[int | None, int | None]:
    """Return what changes when a file is written again: its size and its time."""
    if filesystem is None:
        status = os.stat(path)
        return status.st_size, status.st_mtime_ns
    info = filesystem.get_file_info(path)
    return info.size, info.mtime_ns
