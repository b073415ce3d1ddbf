"""A table made ready for fit: with types, without empty rows, and looked at for what a user should know."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tartree.cli import values
from tartree.cli.errors import Problem, counted, listed, missing_column, naming
from tartree.cli.notes import Notes
from tartree.cli.reading import Source


def prepare(
    source: Source, target: str, drop: tuple[str, ...], drop_missing_target: bool, notes: Notes
) -> tuple[Any, Any, Any]:
    """The table to learn from, the target, and the text that the target was in a CSV file (otherwise None)."""
    table = source.read_all()
    if not table.num_rows:
        raise Problem(f"{source.label} has a header and no rows")
    raw = values.trim(table[target]) if source.is_text else None
    table = table.drop_columns([name for name in drop if name in table.column_names])  # some were never read
    if source.is_text:
        table = _typed(table, source, notes)
    for path, part in source.parts(table):
        for name in table.column_names:
            with naming(path):
                values.check_finite(part[name], name, first_row=2)  # the header is row 1
    keep = _rows_with_values(table)
    n_rows = _count(keep)
    if n_rows < table.num_rows:
        notes.add(f"left out: {counted(table.num_rows - n_rows, 'empty row')} of {source.label}")
    keep = pc.and_(keep, _is_present(table[target]))
    n_gaps = n_rows - _count(keep)
    if n_gaps == n_rows:
        raise Problem(f"target {target!r} has no values at all")
    if n_gaps and not drop_missing_target:
        raise Problem(
            f"target {target!r} has gaps in {n_gaps:,} of {counted(n_rows, 'row')}; "
            "fill them, or give --drop-missing-target to leave these rows out"
        )
    if n_gaps:
        notes.add(f"left out: {counted(n_gaps, 'row')} without a target")
    table, raw = table.filter(keep), None if raw is None else raw.filter(keep)
    return table.drop_columns([target]), table[target], raw


def check_columns(source: Source, target: str, drop: tuple[str, ...], groups: str | None = None) -> None:
    """Raise unless there are the target, the groups, what is to be dropped, and something beside them."""
    others = drop if groups is None else (*drop, groups)
    for name in (target, *others):
        if name not in source.names:
            raise missing_column(name, source.names, source.label)
    if target in drop:
        raise Problem(f"column {target!r} cannot be both the target and left out")
    if groups == target or groups in drop:
        raise Problem(f"column {groups!r} of --groups cannot be {'the target' if groups == target else 'left out'} too")
    if set(source.names) == {target, *others}:
        raise Problem(f"{source.label} has no column beside the target {target!r} to predict it from")


def group_values(column: Any, name: str) -> list[Any]:
    """What the rows belong to; raises where one says nothing."""
    present = _is_present(column)
    if n_gaps := len(column) - _count(present):
        raise Problem(
            f"column {name!r} of --groups has gaps in {n_gaps:,} of {counted(len(column), 'row')}; give these rows a "
            "group of their own"
        )
    values: list[Any] = column.to_pylist()
    return values


def _typed(table: Any, source: Source, notes: Notes) -> Any:
    """The text of a CSV file with a type for each column; one column at a time, to hold little twice."""
    for place, name in enumerate(table.column_names):
        typed = values.infer(table[name], decimal_comma=source.decimal_comma)
        doubt = values.doubts(typed, name, decimal_comma=source.decimal_comma)
        if doubt:
            notes.add(doubt)
        table = table.set_column(place, name, typed)
    return table


def _count(mask: Any) -> int:
    return int(pc.sum(mask).as_py() or 0)


def _is_present(column: Any) -> Any:
    present = pc.is_valid(column)
    if pa.types.is_floating(column.type):
        present = pc.and_(present, pc.invert(pc.fill_null(pc.is_nan(column), False)))
    return present


def _rows_with_values(table: Any) -> Any:
    found = pc.is_valid(table.column(0))
    for column in table.columns[1:]:
        found = pc.or_(found, pc.is_valid(column))
    return found


def look_at_columns(table: Any, where: str, notes: Notes) -> dict[str, int]:
    """Count the kinds of columns, and say which ones tell nothing or look like identifiers."""
    from tartree.table import Category, TableEncoder

    encoder = TableEncoder().fit(table)
    counts = count_columns(encoder, where, notes)
    for name, column in zip(table.column_names, encoder.columns_, strict=True):
        if isinstance(column, Category) and column.other and len(column.levels) == encoder.max_levels:
            _note_levels(table[name], name, encoder.max_levels, encoder.min_count, notes)
    numbered = [repr(name) for name in table.column_names if _is_numbering(table[name])]
    if numbered:
        notes.add(f"another whole number in every row, like an identifier: {listed(numbered)}; leave out with --drop")
    return counts


def count_columns(encoder: Any, where: str, notes: Notes) -> dict[str, int]:
    """Count the kinds of columns of a fitted encoder, and say which ones tell nothing."""
    from tartree.table import Boolean, Constant, Numeric

    used = {feature.name for feature in encoder.features_}
    counts = {"numeric": 0, "categorical": 0, "boolean": 0, "date": 0, "left out": 0}
    constant: list[str] = []
    identifiers: list[str] = []
    for name, column in zip(encoder.feature_names_in_.tolist(), encoder.columns_, strict=True):
        if name not in used:
            counts["left out"] += 1
            (constant if isinstance(column, Constant) else identifiers).append(repr(name))
        elif isinstance(column, Numeric):
            counts["numeric" if column.unit == "number" else "date"] += 1
        else:
            counts["boolean" if isinstance(column, Boolean) else "categorical"] += 1
    if constant:
        notes.add(f"left out, for they hold one value or none: {listed(constant)}")
    if identifiers:
        notes.add(f"left out, for they hold another text in every row, like an identifier: {listed(identifiers)}")
    if not used:
        raise Problem(f"{where} has no column that tells rows apart, beside the target")
    return counts


def _note_levels(column: Any, name: str, most: int, min_count: int, notes: Notes) -> None:
    """Say so where levels that are frequent enough to learn from are grouped, for there are too many."""
    counts = Counter(value for value in column.to_pylist() if value is not None)
    if sum(count >= min_count for count in counts.values()) > most:
        notes.add(
            f"column {name!r} has {len(counts):,} different texts: the {most} most frequent are kept, "
            f"the other {len(counts) - most:,} are grouped as (other)"
        )


def _is_numbering(column: Any) -> bool:
    """Whole numbers that are all different, in order or as far apart as identifiers are."""
    n_rows = len(column)
    if n_rows < 20 or not pa.types.is_integer(column.type) or column.null_count:
        return False
    if len(pc.unique(column)) < n_rows:
        return False
    low, high = pc.min_max(column).as_py().values()
    return bool(high - low + 1 == n_rows or low >= 1000)
