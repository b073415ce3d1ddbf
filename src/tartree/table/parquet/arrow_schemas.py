"""Comparison of the columns of several files: of one family each, or an error that names the file and the column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tartree.table.parquet.arrow_families import are_alike, family


def index_names(schema: Any) -> list[str]:
    """Return the columns of a file that pandas wrote as the index of its rows."""
    try:
        names = (schema.pandas_metadata or {}).get("index_columns", [])
    except (ValueError, AttributeError):  # not as pandas writes it
        return []
    # Entries that are not text describe a range of row numbers, for which there is no column.
    return [name for name in names if isinstance(name, str) and name in schema.names] if isinstance(names, list) else []


def check_schemas(schemas: Sequence[tuple[str, Any]], columns: Sequence[str]) -> None:
    """Raise unless each of the schemas, with the name of a file each, has these columns in types of one family."""
    first: dict[str, tuple[str, Any]] = {}  # where each column was seen first with values
    for path, schema in schemas:
        for name in columns:
            indices = schema.get_all_field_indices(name)
            if not indices:
                other = next((file for file, file_schema in schemas if name in file_schema.names), None)
                hint = "" if other is None else f", which {other} has"
                raise ValueError(
                    f"{path} must have the column {name!r}{hint}, got columns {_listed(schema.names)}; "
                    "write the file again or leave the column out"
                )
            if len(indices) > 1:
                raise ValueError(f"{path} must have one column {name!r}, got {len(indices)}; rename them")
            arrow_type = schema.field(indices[0]).type
            if family(arrow_type) is None:
                continue
            first_path, first_type = first.setdefault(name, (path, arrow_type))
            if not are_alike(arrow_type, first_type):
                raise ValueError(
                    f"{path}: column {name!r} must be of the same type as in {first_path}, {first_type}, "
                    f"got {arrow_type}; write the file again with that type"
                )


def agrees(schemas: Sequence[tuple[str, Any]], column: str) -> bool:
    """Return whether all have a column, in types of one family."""
    try:
        check_schemas(schemas, [column])
    except ValueError:
        return False
    return True


def check_plain(schemas: Sequence[tuple[str, Any]], columns: Sequence[str]) -> None:
    """Raise where a column holds lists or records."""
    import pyarrow as pa

    for path, schema in schemas:
        for name in columns:
            arrow_type = schema.field(name).type
            if pa.types.is_nested(arrow_type):
                raise ValueError(
                    f"{path}: column {name!r} must hold one value in every row, got the type {arrow_type}; "
                    "spread it over several columns or drop it"
                )


def _listed(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(map(repr, names[:most]))
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"
