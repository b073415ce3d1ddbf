"""Parquet files as all nodes of a cluster know them."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tartree.table import ParquetTable


def everywhere(source: Any, columns: Sequence[str] | None = None) -> ParquetTable:
    """A table of Parquet files, checked here and now, under names that do not depend on where a process runs."""
    from tartree.table.parquet import as_parquet, is_parquet

    if not is_parquet(source):
        raise TypeError(
            "a table for a cluster must be Parquet files, given as a path, a pattern, a folder, a list of these or an "
            f"Arrow dataset, however: {type(source).__name__}; fit a table in memory with model.fit(X, y)"
        )
    table = as_parquet(source, columns)
    table = copy.copy(table)
    if table.is_local:
        table.files = [path if "://" in path else os.path.abspath(path) for path in table.files]
    return table
