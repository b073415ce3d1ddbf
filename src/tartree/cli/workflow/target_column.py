"""The column to predict: its task, and checks of its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tartree.cli.problems import Problem
from tartree.cli.rendering.notes import Notes
from tartree.cli.rendering.phrases import listed

if TYPE_CHECKING:
    from tartree.model.target import Task

TASKS: tuple[Task, Task] = ("classification", "regression")

FEW_CLASSES = 20  # up to here, whole numbers may be names of classes
ROWS_PER_CLASS = 5


@dataclass(frozen=True)
class Target:
    """A checked target: labels or numbers, and the number of rows of each class."""

    name: str
    task: Task
    values: NDArray[Any]  # (rows,)
    classes: dict[Any, int]  # rows of each class, most frequent first; empty for regression
    summary: str = ""  # of a regression whose values are not in memory

    @property
    def is_classification(self) -> bool:
        """Whether classes are predicted."""
        return self.task == "classification"


def read_target(column: Any, raw: Any, name: str, asked: Literal["auto"] | Task, notes: Notes) -> Target:
    """Check a target without missing values; `raw` is its text in a CSV file, otherwise None."""
    n_different = len(pc.unique(column))
    task = guess_task(column, n_different, name, notes) if asked == "auto" else asked
    if task == "regression":
        return _read_numbers(column, name)
    if n_different < 2:
        only = _quoted(column[0].as_py())
        raise Problem(f"target {name!r} has one class only, {only}: there is nothing to tell apart")
    n_rows = len(column)
    scarce = n_different > FEW_CLASSES and n_different * ROWS_PER_CLASS > n_rows
    if n_different == n_rows or (asked == "auto" and scarce):
        numeric = _is_number(column.type)
        raise Problem(
            f"target {name!r} has {n_different:,} different values in {n_rows:,} rows: it looks like "
            f"{'a number' if numeric else 'an identifier or free text'}; "
            f"{'use --task regression' if numeric else 'give another --target'}"
        )
    labels = _labels(column, raw, name, notes)
    different, counts = np.unique(labels, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    classes = dict(zip(different[order].tolist(), counts[order].tolist(), strict=True))
    _note_classes(classes, name, notes)
    return Target(name, task, labels, classes)


def guess_task(column: Any, n_different: int, name: str, notes: Notes, where: str = "") -> Task:
    """Return the task of a target, with a note if it holds numbers, which may be either."""
    if pa.types.is_temporal(column.type):
        raise Problem(f"target {name!r} holds dates or times; write it as numbers, such as days, or as classes")
    if not _is_number(column.type):
        return "classification"
    few = n_different <= FEW_CLASSES and n_different <= max(2, len(column) // ROWS_PER_CLASS)
    is_classes = few and _is_whole(column)
    task, other = TASKS if is_classes else TASKS[::-1]
    numbers = f"{n_different:,} different {'whole numbers' if is_classes else 'numbers'}"
    notes.add(f"{name!r} holds {numbers}{where}: taken as {task}; for {other} give --task {other}")
    return task


def _is_number(arrow_type: Any) -> bool:
    types = pa.types
    return bool(types.is_integer(arrow_type) or types.is_floating(arrow_type) or types.is_decimal(arrow_type))


def _is_whole(column: Any) -> bool:
    return bool(pa.types.is_integer(column.type) or pc.all(pc.equal(pc.floor(column), column)).as_py())


def _read_numbers(column: Any, name: str) -> Target:
    if not _is_number(column.type):
        wrong = _quoted(column[0].as_py())
        raise Problem(f"target {name!r} must hold numbers for regression, got {wrong} as the first value")
    values = pc.cast(column, pa.float64()).to_numpy()
    if not np.isfinite(values).all():
        raise Problem(f"target {name!r} must hold finite numbers, got infinity")
    if values.min() == values.max():
        raise Problem(f"target {name!r} has one value only, {values[0]:g}: there is nothing to predict")
    return Target(name, "regression", values, {})


def _labels(column: Any, raw: Any, name: str, notes: Notes) -> NDArray[Any]:
    """Return labels as they are written, except whole numbers, and truth values with several spellings."""
    arrow_type = column.type
    if _is_number(arrow_type) and _is_whole(column):
        return np.asarray(pc.cast(column, pa.int64()).to_numpy())
    if raw is not None:
        labels = np.array(raw.to_pylist(), dtype=np.str_)
        return _merge_spellings(labels, name, notes) if pa.types.is_boolean(arrow_type) else labels
    if pa.types.is_boolean(arrow_type):
        return np.array(column.to_pylist(), dtype=np.bool_)
    return np.array([str(value) for value in column.to_pylist()], dtype=np.str_)


def _merge_spellings(labels: NDArray[np.str_], name: str, notes: Notes) -> NDArray[np.str_]:
    """Return truth values in the most frequent spelling of each."""
    merged = labels.copy()
    lower = np.char.lower(labels)
    for meaning in np.unique(lower):
        same = lower == meaning
        spellings, counts = np.unique(labels[same], return_counts=True)
        if len(spellings) > 1:
            merged[same] = common = str(spellings[counts.argmax()])
            written = " and ".join(repr(str(spelling)) for spelling in spellings)
            notes.add(f"{written} of {name!r} are taken as one class, {common!r}")
    return merged


def _note_classes(classes: dict[Any, int], name: str, notes: Notes) -> None:
    rare = [label for label, count in classes.items() if count == 1]
    if rare:
        few = f"classes {listed(map(_quoted, rare))} have" if len(rare) > 1 else f"class {_quoted(rare[0])} has"
        notes.add(f"{few} one row only, which is too few to learn and to check")
    spellings: dict[str, list[str]] = {}
    for label in classes:
        if isinstance(label, str):
            spellings.setdefault(" ".join(label.lower().split()), []).append(label)
    for same in spellings.values():
        if len(same) > 1:
            notes.add(f"classes {' and '.join(map(repr, same))} of {name!r} differ in upper case or spaces only")


def _quoted(value: Any) -> str:
    return repr(value) if isinstance(value, str) else str(value)
