"""The ends of Parquet files, where all their row groups are listed: read once, not for every row group."""

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
        self._known: OrderedDict[str, tuple[Any, Any]] = OrderedDict()  # of each path: its stamp, its footer
        self._lock = Lock()

    def get(self, path: str, stamp: Any) -> Any:
        """The footer of a file, None if it is not known."""
        with self._lock:
            known, footer = self._known.get(path, (None, None))
            if footer is None or known != stamp:
                return None
            self._known.move_to_end(path)
            return footer

    def keep(self, path: str, stamp: Any, footer: Any) -> None:
        with self._lock:
            self._known.pop(path, None)
            self._known[path] = stamp, footer
            total = sum(kept.serialized_size for _, kept in self._known.values())
            while total > MOST_BYTES and len(self._known) > 1:
                total -= self._known.popitem(last=False)[1][1].serialized_size

    def __reduce__(self) -> Any:  # another process reads them for itself
        return Footers, ()


def stamp(path: str, filesystem: Any) -> tuple[int | None, int | None]:
    """What changes when a file is written again: its size and its time."""
    if filesystem is None:
        found = os.stat(path)
        return found.st_size, found.st_mtime_ns
    info = filesystem.get_file_info(path)
    return info.size, info.mtime_ns
