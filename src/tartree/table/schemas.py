"""Types of columns in several files: equal, or of one family, or an error that names the file and the column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def family(kind: Any) -> str | None:
    """What values of an Arrow type are: types of one family may stand in different files; None for gaps only."""
    import pyarrow as pa

    known = pa.types
    if known.is_null(kind):
        return None
    if known.is_dictionary(kind):
        inner = family(kind.value_type)
        return inner if inner == "text" else f"categories of {inner}"
    if known.is_boolean(kind):
        return "boolean"
    if known.is_integer(kind) or known.is_floating(kind) or known.is_decimal(kind):
        return "number"
    if known.is_string(kind) or known.is_large_string(kind) or known.is_string_view(kind):
        return "text"
    if known.is_timestamp(kind):
        return "datetime" if kind.tz is None else "datetime with time zone"
    names = {known.is_date: "date", known.is_duration: "duration", known.is_time: "time of day"}
    return next((name for matches, name in names.items() if matches(kind)), str(kind))


def index_names(schema: Any) -> list[str]:
    """The columns of a file that pandas wrote as the index of its rows."""
    try:
        said = (schema.pandas_metadata or {}).get("index_columns", [])
    except (ValueError, AttributeError):  # not as pandas writes it
        return []
    # What is no text says how the numbers 0, 1, 2 and so on go on: there is no column of them.
    return [name for name in said if isinstance(name, str) and name in schema.names] if isinstance(said, list) else []


def common_type(kinds: Sequence[Any]) -> Any:
    """A type that holds the values of all these types of one family."""
    import pyarrow as pa

    different = list(dict.fromkeys(kind for kind in kinds if not pa.types.is_null(kind)))
    if len(different) < 2:
        return different[0] if different else pa.null()
    if family(different[0]) == "text":
        return pa.large_string()
    schemas = [pa.schema([("value", kind)]) for kind in different]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowException:  # decimals that no wider decimal holds
        return pa.float64() if family(different[0]) == "number" else different[0]


def check_schemas(schemas: Sequence[tuple[str, Any]], columns: Sequence[str]) -> None:
    """Raise unless each of the schemas, given with the name of a file, has these columns in types of one family."""
    first: dict[str, tuple[str, Any]] = {}  # where each column was seen first with values
    for path, schema in schemas:
        for name in columns:
            places = schema.get_all_field_indices(name)
            if not places:
                other = next((found for found, known in schemas if name in known.names), None)
                there = "" if other is None else f", which {other} has"
                raise ValueError(
                    f"{path} must have the column {name!r}{there}, however: its columns are {_listed(schema.names)}; "
                    "write the file again or leave the column out"
                )
            if len(places) > 1:
                raise ValueError(f"{path} must have one column {name!r}, however: there are {len(places)}; rename them")
            kind = schema.field(places[0]).type
            if family(kind) is None:
                continue
            known_path, known = first.setdefault(name, (path, kind))
            if family(kind) != family(known):
                raise ValueError(
                    f"{path}: column {name!r} must be of the same type as in {known_path}, {known}, however: {kind}; "
                    "write the file again with that type"
                )


def agrees(schemas: Sequence[tuple[str, Any]], column: str) -> bool:
    """Whether all have a column, in types of one family."""
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
            kind = schema.field(name).type
            if pa.types.is_nested(kind):
                raise ValueError(
                    f"{path}: column {name!r} must hold one value in every row, however: its type is {kind}; "
                    "spread it over several columns or drop it"
                )


def _listed(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(map(repr, names[:most]))
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"
