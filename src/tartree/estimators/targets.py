"""Targets of a table that comes in pieces: what has to be known of them, and how they are written for training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sklearn.utils import compute_class_weight

from tartree.table.moments import Moments
from tartree.table.schemas import family

#: More different labels than this are no classes.
MOST_CLASSES = 10_000

Label: TypeAlias = str | bool | int | float
Weights: TypeAlias = NDArray[np.float64] | None  # (rows,)


class TargetStatistics(Protocol):
    """What is known of a target."""

    def update(self, columns: Sequence[Any], weights: Weights) -> None:
        """Add rows of the target columns, without gaps."""

    def merge(self, other: Any) -> None:
        """Add what another one of the same type knows."""


class TargetCoder(Protocol):
    """How a target is written for training."""

    def encode(self, columns: Sequence[Any]) -> NDArray[Any]:
        """The target of rows, (rows, ...)."""

    def weigh(self, target: NDArray[Any], weights: Weights) -> NDArray[np.float32] | None:
        """Weights of rows, (rows,), for a target that `encode` gave."""

    def counted(self, statistics: Any) -> int:
        """Rows with weight among those of which these are the statistics."""


@dataclass
class LabelStatistics:
    """Labels of a classification: rows of each, rows with weight, and their weight."""

    counts: dict[Label, NDArray[np.float64]] = field(default_factory=dict)  # of each label, (3,)

    def update(self, columns: Sequence[Any], weights: Weights) -> None:
        """Add rows of one column without gaps."""
        coded = plain(columns[0]).dictionary_encode()
        codes, labels = coded.indices.to_numpy(), coded.dictionary.to_pylist()
        own = np.ones(len(codes)) if weights is None else weights
        found = [np.bincount(codes, counted, len(labels)) for counted in (None, own > 0, own)]
        for label, row in zip(labels, np.stack(found, axis=1), strict=True):  # (3,)
            self.counts[label] = self.counts.get(label, np.zeros(3)) + row
        self._check()

    def merge(self, other: LabelStatistics) -> None:
        for label, row in other.counts.items():
            self.counts[label] = self.counts.get(label, np.zeros(3)) + row
        self._check()

    def _check(self) -> None:
        if len(self.counts) > MOST_CLASSES:
            raise ValueError(
                f"a target of classes must have at most {MOST_CLASSES:,} different labels, however: there are more; "
                "is it a number to predict? Use TartRegressor"
            )
        broken = [label for label in self.counts if isinstance(label, float) and not label.is_integer()]
        if broken:
            raise ValueError(
                f"Unknown label type: labels must be text, whole numbers or booleans, however: {broken[0]}; for a "
                "number to predict use TartRegressor"
            )


@dataclass
class ValueStatistics:
    """Targets of a regression: mean, spread and range of each, and the weight of the rows."""

    moments: list[Moments]
    low: list[float]
    high: list[float]
    n_counted: int = 0  # rows with weight
    weight: float = 0.0

    @classmethod
    def of(cls, n_targets: int) -> ValueStatistics:
        """Those of no rows yet."""
        return cls([Moments() for _ in range(n_targets)], [math.inf] * n_targets, [-math.inf] * n_targets)

    def update(self, columns: Sequence[Any], weights: Weights) -> None:
        """Add rows of the target columns, without gaps."""
        rows = slice(None) if weights is None else weights > 0
        own = None if weights is None else weights[rows]
        for t, column in enumerate(columns):
            values = as_values(column)[rows]
            if not np.isfinite(values).all():
                raise ValueError("the target must be finite, however: it contains infinity; leave such rows out")
            self.moments[t].merge(Moments.of(values, own))
            if len(values):
                self._widen(t, float(values.min()), float(values.max()))
        self.n_counted += len(columns[0]) if own is None else len(own)
        self.weight += float(len(columns[0])) if own is None else float(own.sum())

    def merge(self, other: ValueStatistics) -> None:
        for t, theirs in enumerate(other.moments):
            self.moments[t].merge(theirs)
            self._widen(t, other.low[t], other.high[t])
        self.n_counted += other.n_counted
        self.weight += other.weight

    def _widen(self, target: int, low: float, high: float) -> None:
        self.low[target], self.high[target] = min(self.low[target], low), max(self.high[target], high)


class LabelCoder:
    """Labels as places in `classes`, with weights of rows that are 1 in the mean."""

    def __init__(self, statistics: LabelStatistics, class_weight: Any, *, weighted: bool) -> None:
        labels = sorted(statistics.counts)
        self.labels = labels
        self.classes = np.array(labels)
        rows, _, weights = np.array([statistics.counts[label] for label in labels]).T  # (classes,) each
        if class_weight is None:
            by_class = np.ones(len(labels))
        elif isinstance(class_weight, str) and class_weight == "balanced":
            by_class = rows.sum() / (len(labels) * rows)
        else:
            by_class = compute_class_weight(class_weight, classes=self.classes, y=self.classes)
        self._learnt = {label for label, own in zip(labels, by_class, strict=True) if own > 0}
        n_counted = self.counted(statistics)
        if not n_counted:
            raise ValueError(f"class_weight must leave some row with weight, however: {class_weight}")
        self._by_class = None
        if weighted or class_weight is not None:
            self._by_class = by_class * n_counted / (by_class * weights).sum()

    def encode(self, columns: Sequence[Any]) -> NDArray[np.int64]:
        """Codes of labels, (rows,)."""
        column = plain(columns[0])
        labels = pa.array(self.labels)
        # Files may hold narrower integers than the labels of all of them need.
        found = pc.index_in(column.cast(labels.type), value_set=labels)
        return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)

    def weigh(self, target: NDArray[Any], weights: Weights) -> NDArray[np.float32] | None:
        """Weights of rows for training, (rows,)."""
        if self._by_class is None:
            return None
        own = self._by_class[target]
        return np.asarray(own if weights is None else own * weights, dtype=np.float32)

    def counted(self, statistics: LabelStatistics) -> int:
        """Rows with weight, whose class has weight too."""
        return int(sum(row[1] for label, row in statistics.counts.items() if label in self._learnt))


class ValueCoder:
    """Numbers with mean 0 and standard deviation 1, with weights of rows that are 1 in the mean."""

    def __init__(self, center: NDArray[np.float64], scale: NDArray[np.float64], mean_weight: float) -> None:
        self.center, self.scale, self.mean_weight = center, scale, mean_weight

    def encode(self, columns: Sequence[Any]) -> NDArray[np.float32]:
        """Standardised values, (rows, targets)."""
        values = np.stack([as_values(column) for column in columns], axis=1)
        return np.asarray((values - self.center) / self.scale, dtype=np.float32)

    def weigh(self, target: NDArray[Any], weights: Weights) -> NDArray[np.float32] | None:
        """Weights of rows for training, (rows,)."""
        return None if weights is None else np.asarray(weights / self.mean_weight, dtype=np.float32)

    def counted(self, statistics: ValueStatistics) -> int:
        """Rows with weight."""
        return statistics.n_counted


def plain(column: Any) -> Any:
    """A column as one array of plain values, whole numbers among decimals and text among categories."""
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    if pa.types.is_floating(column.type) and pc.all(pc.equal(pc.floor(column), column)).as_py():
        return column.cast(pa.int64())  # as the same labels are in a file where the column has no gaps
    return column


def as_values(column: Any) -> NDArray[np.float64]:
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def missing(column: Any) -> Any:
    """Where a column has gaps, as an Arrow array of booleans."""
    return pc.is_null(column, nan_is_null=True)


def check_target_type(kind: Any, name: str, where: str, *, labels: bool) -> None:
    """Raise unless a column of this type can be a target."""
    found = family(kind)
    if found not in (("text", "number", "boolean") if labels else ("number", "boolean")):
        wanted = "text, numbers or booleans" if labels else "numbers"
        raise ValueError(f"{where}: target {name!r} must hold {wanted}, however: its type is {kind}; convert it before")
