"""The table of a fit: typed, without empty rows, and with notes about its columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tartree.cli.io import text_values
from tartree.cli.io.input_formats import open_table
from tartree.cli.io.input_table import InputTable
from tartree.cli.io.text_values import TypedColumn
from tartree.cli.problems import FIRST_ROW, Problem, located_errors, missing_column
from tartree.cli.rendering.notes import Notes
from tartree.cli.rendering.phrases import counted, listed
from tartree.cli.workflow.target_column import Target, read_target
from tartree.table.raw_table import LEVELS

if TYPE_CHECKING:
    from tartree.model.target import Task
    from tartree.table import TableEncoder


@dataclass(frozen=True)
class TableSettings:
    """The options of `tartree fit` and `tartree search` about the table, the model and its file."""

    out: str = "model.tart"
    force: bool = False
    task: Literal["auto"] | Task = "auto"
    drop: tuple[str, ...] = ()
    columns: dict[str, str] = field(default_factory=dict)
    drop_missing_target: bool = False
    epochs: int | None = None
    seed: int = 0
    cluster: str | None = None
    storage: str | None = None


class TrainingTable(NamedTuple):
    """Features, target, the name of their table in messages, and the columns whose text was read."""

    table: Any
    target: Target
    label: str
    typed: dict[str, TypedColumn]

    def record_forms(self, encoder: TableEncoder) -> None:
        """Record in a fitted encoder how the texts of this table were read, so that predictions read them alike."""
        typed = {name: column for name, column in self.typed.items() if name in self.table.column_names}
        encoder.record_forms({name: (column.form, column.note) for name, column in typed.items()})


def read_training_table(
    data: str, target_name: str, settings: TableSettings, notes: Notes, groups: str | None = None
) -> TrainingTable:
    """Read a table for a fit; the column of `groups` stays among the features."""
    with open_table(data, notes, target=target_name, drop=settings.drop) as source:
        _check_columns(source, target_name, settings.drop, groups)
        check_kinds(settings.columns, source.names, source.label, (target_name, *settings.drop, groups))
        table, labels, raw, typed = _training_rows(source, target_name, settings, notes)
    return TrainingTable(table, read_target(labels, raw, target_name, settings.task, notes), source.label, typed)


def _training_rows(
    source: InputTable, target: str, settings: TableSettings, notes: Notes
) -> tuple[Any, Any, Any, dict[str, TypedColumn]]:
    """Return features, target, the text of the target in a CSV file (otherwise None), and columns read from text."""
    table = source.read_all()
    if not table.num_rows:
        raise Problem(f"{source.label} has a header and no rows")
    raw = text_values.trim(table[target]) if source.is_text else None
    # Dropped columns of Parquet files were not read.
    table = table.drop_columns([name for name in settings.drop if name in table.column_names])
    typed: dict[str, TypedColumn] = {}
    if source.is_text:
        table, typed = _typed(table, source, settings.columns, notes)
    for path, part in source.parts(table):
        for name in table.column_names:
            with located_errors(path):
                text_values.check_finite(part[name], name, FIRST_ROW)
    keep = _rows_with_values(table)
    n_rows = _count(keep)
    if n_rows < table.num_rows:
        notes.add(f"left out: {counted(table.num_rows - n_rows, 'empty row')} of {source.label}")
    keep = pc.and_(keep, _is_present(table[target]))
    n_missing = n_rows - _count(keep)
    if n_missing == n_rows:
        raise Problem(f"target {target!r} has no values at all")
    if n_missing and not settings.drop_missing_target:
        raise Problem(
            f"target {target!r} has missing values in {n_missing:,} of {counted(n_rows, 'row')}; "
            "fill them, or give --drop-missing-target to leave these rows out"
        )
    if n_missing:
        notes.add(f"left out: {counted(n_missing, 'row')} without a target")
    table, raw = table.filter(keep), None if raw is None else raw.filter(keep)
    return table.drop_columns([target]), table[target], raw, typed


def _check_columns(source: InputTable, target: str, drop: tuple[str, ...], groups: str | None) -> None:
    """Raise unless the table has the target, the groups, the columns to drop, and some beside them."""
    others = drop if groups is None else (*drop, groups)
    check_target(source.names, source.label, target, drop, others)
    if groups == target or groups in drop:
        raise Problem(f"column {groups!r} of --groups cannot be {'the target' if groups == target else 'left out'} too")
    if set(source.names) == {target, *others}:
        raise Problem(f"{source.label} has no column beside the target {target!r} to predict it from")


def check_target(names: Sequence[str], label: str, target: str, drop: Sequence[str], others: Sequence[str]) -> None:
    """Raise unless target and other columns exist, and the target is not dropped."""
    for name in (target, *others):
        if name not in names:
            raise missing_column(name, names, label)
    if target in drop:
        raise Problem(f"column {target!r} cannot be both the target and left out")


def check_kinds(columns: Mapping[str, str], names: Sequence[str], label: str, unused: Sequence[str | None]) -> None:
    """Raise unless the columns with a kind exist, and are features."""
    for name in columns:
        if name not in names:
            raise missing_column(name, names, label)
        if name in unused:
            raise Problem(f"column {name!r} of --column must be a feature, but is the target or left out")


def group_values(column: Any, name: str) -> list[Any]:
    """Return the groups of the rows, or raise if a row has none."""
    present = _is_present(column)
    if n_missing := len(column) - _count(present):
        raise Problem(
            f"column {name!r} of --groups has missing values in {n_missing:,} of {counted(len(column), 'row')}; give "
            "these rows a group of their own"
        )
    groups: list[Any] = column.to_pylist()
    return groups


def _typed(
    table: Any, source: InputTable, kinds: Mapping[str, str], notes: Notes
) -> tuple[Any, dict[str, TypedColumn]]:
    """Return the text of a CSV file with a type for each column, and the columns with a form of text.

    One column at a time, to save memory. Columns that stay text are marked, so that they are levels in all folds of a
    cross-validation, also in one whose texts can be read as numbers.
    """
    read: dict[str, TypedColumn] = {}
    for index, name in enumerate(table.column_names):
        if name in kinds:
            typed = text_values.read_kind(table[name], kinds[name], name, decimal_comma=source.decimal_comma)
        else:
            typed = text_values.infer(table[name], decimal_comma=source.decimal_comma)
        values = typed.values
        doubt = text_values.describe_text_doubt(values, name, decimal_comma=source.decimal_comma)
        if doubt and name not in kinds:
            notes.add(doubt)
        if typed.note is not None:
            notes.add(f"column {name!r}: {typed.note}")
        if typed.form is not None:
            read[name] = TypedColumn(None, typed.form, typed.note)
        metadata = LEVELS if pa.types.is_string(values.type) else None
        table = table.set_column(index, pa.field(name, values.type, metadata=metadata), values)
    return table, read


def _count(mask: Any) -> int:
    return int(pc.sum(mask).as_py() or 0)


def _is_present(column: Any) -> Any:
    present = pc.is_valid(column)
    if pa.types.is_floating(column.type):
        present = pc.and_(present, pc.invert(pc.fill_null(pc.is_nan(column), False)))
    return present


def _rows_with_values(table: Any) -> Any:
    has_values = pc.is_valid(table.column(0))
    for column in table.columns[1:]:
        has_values = pc.or_(has_values, pc.is_valid(column))
    return has_values


def inspect_columns(table: Any, where: str, kinds: Mapping[str, str], notes: Notes) -> dict[str, int]:
    """Count the kinds of columns, with notes about constants, identifiers and grouped levels."""
    from tartree.table import TableEncoder

    encoder = TableEncoder(columns=kinds).fit(table)
    counts = count_columns(encoder, where, notes)
    for name, column in zip(table.column_names, encoder.columns_, strict=True):
        if column.summary.other and len(column.summary.levels) == encoder.max_levels:
            _note_levels(table[name], name, encoder.max_levels, encoder.min_count, notes)
    numbered = [repr(name) for name in table.column_names if _is_numbering(table[name])]
    if numbered:
        notes.add(f"another whole number in every row, like an identifier: {listed(numbered)}; leave out with --drop")
    return counts


def count_columns(encoder: TableEncoder, where: str, notes: Notes) -> dict[str, int]:
    """Count the kinds of columns of a fitted encoder, with notes about those it leaves out."""
    from tartree.table import Constant

    used = {feature.name for feature in encoder.features_}
    counts = {"numeric": 0, "categorical": 0, "boolean": 0, "date": 0, "left out": 0}
    constant: list[str] = []
    identifiers: list[str] = []
    doubts = encoder.doubts()
    for name, column in zip(encoder.feature_names_in_.tolist(), encoder.columns_, strict=True):
        if name not in used:
            (constant if isinstance(column, Constant) else identifiers).append(repr(name))
        elif name in doubts:
            notes.add(f"column {name!r}: {doubts[name]}")
        noun = column.noun if name in used else "left out"
        counts[noun] = counts.get(noun, 0) + 1
    if constant:
        notes.add(f"left out, for they hold one value or none: {listed(constant)}")
    if identifiers:
        notes.add(
            f"left out, for they hold another value in almost every row, like an identifier: {listed(identifiers)}; "
            "--column NAME:category or NAME:number keeps one"
        )
    if not used:
        raise Problem(f"{where} has no column that tells rows apart, beside the target")
    return counts


def _note_levels(column: Any, name: str, most: int, min_count: int, notes: Notes) -> None:
    """Add a note if levels frequent enough to learn from are grouped because there are too many."""
    counts = Counter(value for value in column.to_pylist() if value is not None)
    if sum(count >= min_count for count in counts.values()) > most:
        notes.add(
            f"column {name!r} has {len(counts):,} different texts: the {most} most frequent are kept, "
            f"the other {len(counts) - most:,} are grouped as (other)"
        )


def _is_numbering(column: Any) -> bool:
    """Whether a column holds different whole numbers, consecutive or as large as identifiers."""
    n_rows = len(column)
    if n_rows < 20 or not pa.types.is_integer(column.type) or column.null_count:
        return False
    if len(pc.unique(column)) < n_rows:
        return False
    low, high = pc.min_max(column).as_py().values()
    return bool(high - low + 1 == n_rows or low >= 1000)
