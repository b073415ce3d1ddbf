"""Parquet files under paths that hold on every node of a cluster."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tartree.table import ParquetTable


def shared_table(source: Any, columns: Sequence[str] | None = None) -> ParquetTable:
    """Return a table of Parquet files, checked at once, with paths that do not depend on a working directory."""
    from tartree.table.parquet import as_parquet, is_parquet

    if not is_parquet(source):
        raise TypeError(
            "a table for a cluster must be Parquet files, given as a path, a pattern, a folder, a list of these or an "
            f"Arrow dataset, got {type(source).__name__}; fit a table in memory with model.fit(X, y)"
        )
    table = copy.copy(as_parquet(source, columns))
    if table.is_local:
        table.files = [path if "://" in path else os.path.abspath(path) for path in table.files]
    return table
