"""Target codecs: labels or values to training targets, and predictions back to labels or values.

A codec is learnt from a target in memory or from the statistics of one that is streamed. It then encodes both.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d
from torch import Tensor

from tartree.nn import Classes, Gaussian, Output, Values
from tartree.table.moments import Moments
from tartree.table.parquet.arrow_families import family
from tartree.table.scales import LARGEST
from tartree.table.texts.text_forms import read_number_texts

#: A target with more different labels than this is not one of classes.
MAX_CLASSES = 10_000

Task: TypeAlias = Literal["classification", "regression"]
Label: TypeAlias = str | bool | int | float
ClassWeight: TypeAlias = dict[Any, float] | str | None
Weights: TypeAlias = NDArray[np.float64] | None  # (rows,)


class TargetStatistics(Protocol):
    """What a pass over a streamed target collects."""

    def update(self, columns: Sequence[Any], weights: Weights) -> None:
        """Add rows of the target columns, without missing values."""

    def merge(self, other: Any) -> None:
        """Add the statistics of other rows."""


@dataclass(frozen=True)
class RowWeighting:
    """Training weights of streamed rows, 1 on average."""

    class_factors: NDArray[np.float64] | None = None  # (classes,)
    mean_weight: float = 1.0

    def __call__(self, target: NDArray[Any], weights: Weights) -> NDArray[np.float32] | None:
        """Return the training weights of rows, (rows,), or None if all are 1."""
        if self.class_factors is not None:
            factors = self.class_factors[target]
            return np.asarray(factors if weights is None else factors * weights, dtype=np.float32)
        return None if weights is None else np.asarray(weights / self.mean_weight, dtype=np.float32)


class TargetCodec(ABC):
    """What a model knows about its target. A new kind is a subclass and an entry of `CODECS`.

    Attributes
    ----------
    kind : str
        Its key in `CODECS`, by which specifications and estimators name it.
    task : {"classification", "regression"}
    is_classes : bool
        Whether the target is one of classes.
    estimator : str
        Name of the estimator for such targets, for files and messages.
    readable_recipe : str
        Name of the recipe of readable trees.

    Examples
    --------
    >>> codec: TargetCodec = ClassCodec(np.array(["a", "b"]))
    >>> codec.is_classes, codec.encode(["b", "a"])
    (True, tensor([1, 0]))
    """

    kind: ClassVar[str]
    task: ClassVar[Task]
    is_classes: ClassVar[bool] = False
    estimator: ClassVar[str]
    readable_recipe: ClassVar[str]

    @property
    @abstractmethod
    def output(self) -> Output:
        """Kind of output of the leaves."""

    @property
    @abstractmethod
    def scaling(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Center and scale from training units to units of the target, (outputs,) each."""

    @property
    def function_scaling(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Center and scale from the functions of a leaf to what texts show, (functions,) each; 0 and 1 by default."""
        n_functions = len(self.output.functions())
        return np.zeros(n_functions), np.ones(n_functions)

    @classmethod
    @abstractmethod
    def read(cls, y: Any) -> NDArray[Any]:
        """Return a target in memory as an array, or raise if it is not one of this task.

        Parameters
        ----------
        y : array of shape (rows,) or (rows, targets)

        Returns
        -------
        ndarray
        """

    @classmethod
    @abstractmethod
    def learn(cls, values: NDArray[Any], weight: Weights, resumed: Any, extrapolation: float | None) -> Self:
        """Learn from a target that `read` returned; a resumed training keeps its codec's scale or classes.

        Parameters
        ----------
        values : ndarray of shape (rows,) or (rows, targets)
        weight : ndarray of shape (rows,) or None
        resumed : TargetCodec or None
            Codec of a model whose training goes on.
        extrapolation : float or None
            Share of the range by which predictions may exceed it; None sets no limit.

        Returns
        -------
        TargetCodec
        """

    @classmethod
    @abstractmethod
    def statistics(cls, n_targets: int) -> TargetStatistics:
        """Return empty statistics for a streamed target.

        Parameters
        ----------
        n_targets : int

        Returns
        -------
        TargetStatistics
        """

    @classmethod
    @abstractmethod
    def learn_statistics(cls, statistics: Any, resumed: Any, extrapolation: float | None) -> Self:
        """Learn from the statistics of a streamed target.

        Parameters
        ----------
        statistics : TargetStatistics
        resumed : TargetCodec or None
            Codec of a model whose training goes on.
        extrapolation : float or None
            Share of the range by which predictions may exceed it; None sets no limit.

        Returns
        -------
        TargetCodec
        """

    @abstractmethod
    def encode(self, values: Any) -> Tensor:
        """Encode a target in memory for training, (rows, ...), on the CPU.

        Parameters
        ----------
        values : array of shape (rows,) or (rows, targets)

        Returns
        -------
        Tensor of shape (rows, ...)
        """

    @abstractmethod
    def encode_columns(self, columns: Sequence[Any]) -> NDArray[Any]:
        """Encode Arrow columns of the target for training, (rows, ...).

        Parameters
        ----------
        columns : sequence of pyarrow.Array

        Returns
        -------
        ndarray of shape (rows, ...)
        """

    @abstractmethod
    def class_weights(self, values: Any, class_weight: ClassWeight) -> Weights:
        """Return the factor of each row's weight that its class brings, (rows,), or None.

        Parameters
        ----------
        values : array of shape (rows,)
        class_weight : dict, "balanced" or None

        Returns
        -------
        ndarray of shape (rows,) or None
        """

    @abstractmethod
    def weighting(self, statistics: Any, class_weight: ClassWeight, *, weighted: bool) -> RowWeighting:
        """Return the training weights of streamed rows; `weighted` if rows have weights of their own.

        Parameters
        ----------
        statistics : TargetStatistics
        class_weight : dict, "balanced" or None
        weighted : bool

        Returns
        -------
        RowWeighting
        """

    @abstractmethod
    def count(self, statistics: Any, class_weight: ClassWeight) -> int:
        """Count the rows with weight in statistics of this or a part of this target.

        Parameters
        ----------
        statistics : TargetStatistics
        class_weight : dict, "balanced" or None

        Returns
        -------
        int
        """

    @abstractmethod
    def truth(self, y: Any, n_rows: int) -> NDArray[np.float64]:
        """Return indicators of the true classes, or true values in units of the target, (rows, outputs).

        Parameters
        ----------
        y : array of shape (rows,) or (rows, targets)
        n_rows : int

        Returns
        -------
        ndarray of shape (rows, outputs)
        """

    @abstractmethod
    def output_names(self, target_name: str | None) -> tuple[str, ...]:
        """Name the outputs: class labels, or target columns.

        Parameters
        ----------
        target_name : str or None

        Returns
        -------
        tuple of str
        """

    @abstractmethod
    def to_state(self) -> dict[str, Any]:
        """Return the codec as plain data for a file.

        Returns
        -------
        dict
        """

    @classmethod
    @abstractmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Read what `to_state` returned, and check it.

        Parameters
        ----------
        state : dict

        Returns
        -------
        TargetCodec
        """

    def strata(self, target: Tensor) -> NDArray[Any] | None:
        """Return the groups of rows whose shares a split keeps, or None.

        Parameters
        ----------
        target : Tensor of shape (rows, ...)
            As `encode` returns it.

        Returns
        -------
        ndarray of shape (rows,) or None
        """
        return target.numpy() if self.is_classes else None


@dataclass(frozen=True, eq=False)
class ClassCodec(TargetCodec):
    """Labels as indices into sorted classes.

    Parameters
    ----------
    classes : ndarray of shape (classes,)
        Labels in order.

    Examples
    --------
    >>> ClassCodec(np.array(["a", "b"])).encode(["b", "a"])
    tensor([1, 0])
    """

    kind: ClassVar[str] = "classification"
    task: ClassVar[Task] = "classification"
    is_classes: ClassVar[bool] = True
    estimator: ClassVar[str] = "TartClassifier"
    readable_recipe: ClassVar[str] = "readable"

    classes: NDArray[Any]

    @property
    def output(self) -> Output:
        return Classes(len(self.classes))

    @property
    def scaling(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return np.zeros(len(self.classes)), np.ones(len(self.classes))

    @classmethod
    def read(cls, y: Any) -> NDArray[Any]:
        labels: NDArray[Any] = column_or_1d(y, warn=True)
        missing = [i for i, label in enumerate(labels.tolist()) if label is None or label != label]
        if missing:
            raise ValueError(
                f"Input y contains NaN: every row needs a label, but {len(missing)} of {len(labels)} are missing, "
                f"the first in row {missing[0]}; drop those rows"
            )
        if labels.dtype.kind == "f" and np.isinf(labels).any():
            raise ValueError(
                f"Input y contains infinity or a value too large for {labels.dtype!r}, the first in row "
                f"{int(np.isinf(labels).argmax())}; labels must be finite"
            )
        check_classification_targets(labels)
        return labels

    @classmethod
    def learn(
        cls, values: NDArray[Any], weight: Weights, resumed: TargetCodec | None, extrapolation: float | None
    ) -> ClassCodec:
        return cls._checked(np.unique(values), resumed)

    @classmethod
    def statistics(cls, n_targets: int) -> LabelStatistics:
        return LabelStatistics()

    @classmethod
    def learn_statistics(
        cls, statistics: LabelStatistics, resumed: TargetCodec | None, extrapolation: float | None
    ) -> ClassCodec:
        return cls._checked(np.array(sorted(statistics.counts)), resumed)

    @classmethod
    def _checked(cls, classes: NDArray[Any], resumed: TargetCodec | None) -> ClassCodec:
        if len(classes) < 2:
            raise ValueError(
                f"TartClassifier needs at least two classes to tell apart, got one class, {classes.tolist()[0]!r}"
            )
        if isinstance(resumed, ClassCodec) and not np.array_equal(classes, resumed.classes):
            raise ValueError(f"warm_start must keep the classes {resumed.classes.tolist()}, got {classes.tolist()}")
        return cls(classes)

    def encode(self, values: Any) -> Tensor:
        labels, inverse = np.unique(np.asarray(values).ravel(), return_inverse=True)
        index = {label: k for k, label in enumerate(self.classes.tolist())}
        unknown = [label for label in labels.tolist() if label not in index]
        if unknown:
            raise ValueError(f"y must hold the classes of fit, {list(index)[:10]}, got {unknown[0]!r}")
        codes = np.array([index[label] for label in labels.tolist()], dtype=np.int64)
        return torch.from_numpy(codes[inverse.ravel()])

    def encode_columns(self, columns: Sequence[Any]) -> NDArray[np.int64]:
        column = plain_labels(columns[0])
        labels = pa.array(self.classes.tolist())
        # Files may hold narrower integers than the labels of all of them need.
        codes = pc.index_in(column.cast(labels.type), value_set=labels)
        return np.asarray(codes.to_numpy(zero_copy_only=False), dtype=np.int64)

    def class_weights(self, values: Any, class_weight: ClassWeight) -> Weights:
        if class_weight is None:
            return None
        labels = np.asarray(values)
        factors = compute_class_weight(class_weight, classes=self.classes, y=labels)
        return np.asarray(factors[self.encode(labels).numpy()], dtype=np.float64)

    def _class_factors(self, statistics: LabelStatistics, class_weight: ClassWeight) -> NDArray[np.float64]:
        if class_weight is None:
            return np.ones(len(self.classes))
        if isinstance(class_weight, str) and class_weight == "balanced":
            rows = np.array([statistics.counts[label][0] for label in self.classes.tolist()])
            return np.asarray(rows.sum() / (len(self.classes) * rows), dtype=np.float64)
        factors: NDArray[np.float64] = compute_class_weight(class_weight, classes=self.classes, y=self.classes)
        return factors

    def weighting(self, statistics: LabelStatistics, class_weight: ClassWeight, *, weighted: bool) -> RowWeighting:
        if not weighted and class_weight is None:
            return RowWeighting()
        factors = self._class_factors(statistics, class_weight)
        weights = np.array([statistics.counts[label][2] for label in self.classes.tolist()])
        return RowWeighting(factors * self.count(statistics, class_weight) / (factors * weights).sum())

    def count(self, statistics: LabelStatistics, class_weight: ClassWeight) -> int:
        if class_weight is None or class_weight == "balanced":
            return int(sum(row[1] for row in statistics.counts.values()))
        factors = dict(zip(self.classes.tolist(), self._class_factors(statistics, class_weight), strict=True))
        return int(sum(row[1] for label, row in statistics.counts.items() if factors[label] > 0))

    def truth(self, y: Any, n_rows: int) -> NDArray[np.float64]:
        indicators: NDArray[np.float64] = np.eye(len(self.classes))[self.encode(y).numpy()]
        return indicators

    def output_names(self, target_name: str | None) -> tuple[str, ...]:
        return tuple(str(label) for label in self.classes.tolist())

    def to_state(self) -> dict[str, Any]:
        labels = self.classes.tolist()
        if not all(isinstance(label, str | int | float | bool) for label in labels):
            raise ValueError(f"labels must be text, numbers or booleans to be saved, got {labels[0]!r}")
        return {"classes": labels, "dtype": self.classes.dtype.str}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> ClassCodec:
        classes, dtype = state["classes"], np.dtype(state["dtype"])
        if dtype.kind not in "biufUO" or not all(isinstance(c, str | int | float | bool) for c in classes):
            raise ValueError(f"classes must be text, numbers or booleans, got {state}")
        return cls(np.array(classes, dtype=dtype))


@dataclass(frozen=True, eq=False)
class ValueCodec(TargetCodec):
    """Values with mean 0 and standard deviation 1.

    Parameters
    ----------
    center, scale : ndarray of shape (targets,)
        Mean and standard deviation of the target.
    limits : ndarray of shape (targets, 2) or None
        Lowest and highest prediction of each target; None without a limit.
    is_constant : ndarray of bool of shape (targets,) or None
        Targets with one value, their center, which is predicted for all rows; None if there are none.

    Examples
    --------
    >>> ValueCodec(np.array([10.0]), np.array([2.0])).encode([12.0, 8.0])
    tensor([[ 1.],
            [-1.]])
    """

    kind: ClassVar[str] = "regression"
    task: ClassVar[Task] = "regression"
    estimator: ClassVar[str] = "TartRegressor"
    readable_recipe: ClassVar[str] = "readable-values"

    center: NDArray[np.float64]
    scale: NDArray[np.float64]
    limits: NDArray[np.float64] | None = None
    is_constant: NDArray[np.bool_] | None = None

    @property
    def one_target(self) -> bool:
        """Whether predictions are (rows,) rather than (rows, targets)."""
        return len(self.center) == 1

    @property
    def output(self) -> Output:
        return Gaussian(len(self.center), self.scaled_limits)

    @property
    def scaled_limits(self) -> list[tuple[float, float]] | None:
        """The limits in training units."""
        if self.limits is None:
            return None
        scaled = (self.limits - self.center[:, None]) / self.scale[:, None]
        return [(float(low), float(high)) for low, high in scaled]

    @property
    def scaling(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self.center, self.scale

    @property
    def function_scaling(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self.scaling

    @classmethod
    def read(cls, y: Any) -> NDArray[np.float64]:
        values: NDArray[np.float64] = check_array(
            read_number_texts(y), ensure_2d=False, dtype=np.float64, input_name="y", ensure_min_samples=0
        )
        if values.ndim == 1 or values.shape[1] == 1:
            values = column_or_1d(values, warn=True)[:, None]
        return values

    @classmethod
    def learn(
        cls, values: NDArray[Any], weight: Weights, resumed: TargetCodec | None, extrapolation: float | None
    ) -> ValueCodec:
        # Centered by the middle of the range first, so that a large offset keeps its digits.
        middle = values.min(axis=0) / 2 + values.max(axis=0) / 2
        mean = np.average(values - middle, axis=0, weights=weight)
        spread = np.sqrt(np.average(np.square(values - middle - mean), axis=0, weights=weight))
        counted = values if weight is None else values[weight > 0]
        low, high = counted.min(axis=0), counted.max(axis=0)
        return cls._limited(middle + mean, spread, low, high, resumed, extrapolation)

    @classmethod
    def statistics(cls, n_targets: int) -> ValueStatistics:
        return ValueStatistics.empty(n_targets)

    @classmethod
    def learn_statistics(
        cls, statistics: ValueStatistics, resumed: TargetCodec | None, extrapolation: float | None
    ) -> ValueCodec:
        if not statistics.weight:
            raise ValueError("sample_weight must be positive for some row, got zeros only")
        center, spread = (
            np.array([getattr(moments, name) for moments in statistics.moments]) for name in ("center", "spread")
        )
        low, high = np.array(statistics.low), np.array(statistics.high)
        return cls._limited(center, spread, low, high, resumed, extrapolation)

    @classmethod
    def _limited(
        cls,
        center: NDArray[np.float64],
        spread: NDArray[np.float64],
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        resumed: TargetCodec | None,
        extrapolation: float | None,
    ) -> ValueCodec:
        """Return the codec for targets from `low` to `high`; a resumed one keeps its scale and widens its limits."""
        is_single = low == high
        center, scale = np.where(is_single, low, center), np.where(spread > 0, spread, 1.0)
        before = None
        if isinstance(resumed, ValueCodec):
            if len(center) != len(resumed.center):
                raise ValueError(f"warm_start must keep the {len(resumed.center)} target(s), got {len(center)}")
            center, scale, before = resumed.center, resumed.scale, resumed.limits
        constant = is_single & (low == center)  # a resumed model may have learnt other values before
        is_constant = constant if constant.any() else None
        if extrapolation is None:
            return cls(center, scale, None, is_constant)
        with np.errstate(over="ignore"):
            margin = float(extrapolation) * np.minimum(high - low, LARGEST)
            limits = np.clip(np.stack([low - margin, high + margin], axis=1), -LARGEST, LARGEST)
        if before is not None:
            limits[:, 0], limits[:, 1] = np.minimum(limits[:, 0], before[:, 0]), np.maximum(limits[:, 1], before[:, 1])
        return cls(center, scale, limits, is_constant)

    def encode(self, values: Any) -> Tensor:
        array = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
        return torch.from_numpy((array - self.center) / self.scale).float()

    def decode_means(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return predicted means, (rows, targets), in units of the target and within the limits to the last bit.

        Trees keep the limits in single precision, whose rounding can end beyond them.

        Parameters
        ----------
        means : ndarray of shape (rows, targets)

        Returns
        -------
        ndarray of shape (rows, targets)
        """
        values: NDArray[np.float64] = self.center + self.scale * means
        return values if self.limits is None else np.clip(values, *self.limits.T)

    def decode_deviations(self, deviations: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return standard deviations, (..., targets), in units of the target; 0 of constant targets.

        Parameters
        ----------
        deviations : ndarray of shape (..., targets)

        Returns
        -------
        ndarray of the same shape
        """
        values: NDArray[np.float64] = self.scale * deviations
        return values if self.is_constant is None else np.where(self.is_constant, 0.0, values)

    def decode_quantiles(self, quantiles: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return quantiles, (..., targets), in units of the target; those of constant targets are their value.

        Parameters
        ----------
        quantiles : ndarray of shape (..., targets)

        Returns
        -------
        ndarray of the same shape
        """
        return self.center + self.decode_deviations(quantiles)

    def encode_columns(self, columns: Sequence[Any]) -> NDArray[np.float32]:
        values = np.stack([as_values(column) for column in columns], axis=1)
        return np.asarray((values - self.center) / self.scale, dtype=np.float32)

    def class_weights(self, values: Any, class_weight: ClassWeight) -> Weights:
        return None

    def weighting(self, statistics: ValueStatistics, class_weight: ClassWeight, *, weighted: bool) -> RowWeighting:
        return RowWeighting(mean_weight=statistics.weight / statistics.n_counted)

    def count(self, statistics: ValueStatistics, class_weight: ClassWeight) -> int:
        return statistics.n_counted

    def truth(self, y: Any, n_rows: int) -> NDArray[np.float64]:
        values = np.asarray(y, dtype=np.float64).reshape(n_rows, -1)
        if values.shape[1] != len(self.center):
            raise ValueError(f"y must have {len(self.center)} column(s), got {values.shape[1]}")
        return values

    def output_names(self, target_name: str | None) -> tuple[str, ...]:
        name = target_name or "target"
        return (name,) if self.one_target else tuple(f"{name} {k}" for k in range(len(self.center)))

    def to_state(self) -> dict[str, Any]:
        return {
            "center": self.center.tolist(),
            "scale": self.scale.tolist(),
            "one_target": self.one_target,
            "limits": None if self.limits is None else self.limits.tolist(),
            "is_constant": None if self.is_constant is None else self.is_constant.tolist(),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> ValueCodec:
        center, scale = np.array(state["center"], dtype=np.float64), np.array(state["scale"], dtype=np.float64)
        if center.ndim != 1 or center.shape != scale.shape or not (scale > 0).all() or not len(center):
            raise ValueError(f"target must have centers and positive scales, got {state}")
        limits = state.get("limits")  # missing in files of earlier versions
        bounds = None if limits is None else np.array(limits, dtype=np.float64)
        if bounds is not None and (bounds.shape != (len(center), 2) or not (bounds[:, 0] <= bounds[:, 1]).all()):
            raise ValueError(f"limits must be a lowest and a highest prediction of each target, got {limits}")
        constant = state.get("is_constant")
        is_constant = None if constant is None else np.array(constant)
        if is_constant is not None and (is_constant.shape != center.shape or is_constant.dtype != np.bool_):
            raise ValueError(f"is_constant must be true or false for each target, got {constant}")
        return cls(center, scale, bounds, is_constant)


@dataclass(frozen=True, eq=False)
class PlainValueCodec(ValueCodec):
    """Values without a spread, as leaves of trees grown elsewhere hold them.

    Parameters
    ----------
    center, scale : ndarray of shape (targets,)
    limits : ndarray of shape (targets, 2) or None
    is_constant : ndarray of bool of shape (targets,) or None

    Examples
    --------
    >>> PlainValueCodec(np.array([10.0]), np.array([2.0])).output.n_targets
    1
    """

    @property
    def output(self) -> Output:
        return Values(len(self.center))


#: The codecs by their kinds.
CODECS: dict[str, type[TargetCodec]] = {codec.kind: codec for codec in (ClassCodec, ValueCodec)}


def saved_codec(estimator: str, state: dict[str, Any]) -> type[TargetCodec]:
    """Return the codec of a saved model: the one that its state names, else the first of its estimator."""
    if "codec" in state:
        return CODECS[state["codec"]]
    return next(codec for codec in CODECS.values() if codec.estimator == estimator)


@dataclass
class LabelStatistics:
    """Rows of each label, rows with weight, and their weight."""

    counts: dict[Label, NDArray[np.float64]] = field(default_factory=dict)  # of each label, (3,)

    def update(self, columns: Sequence[Any], weights: Weights) -> None:
        """Add rows of one column without missing values."""
        coded = plain_labels(columns[0]).dictionary_encode()
        codes, labels = coded.indices.to_numpy(), coded.dictionary.to_pylist()
        row_weights = np.ones(len(codes)) if weights is None else weights
        counts = [np.bincount(codes, counted, len(labels)) for counted in (None, row_weights > 0, row_weights)]
        self._add(dict(zip(labels, np.stack(counts, axis=1), strict=True)))  # (3,) each

    def merge(self, other: LabelStatistics) -> None:
        """Add the statistics of other rows."""
        self._add(other.counts)

    def _add(self, counts: dict[Label, NDArray[np.float64]]) -> None:
        for label, count in counts.items():
            self.counts[label] = self.counts.get(label, np.zeros(3)) + count
        if len(self.counts) > MAX_CLASSES:
            raise ValueError(
                f"a target of classes must have at most {MAX_CLASSES:,} different labels, got more; "
                "is it a number to predict? Use TartRegressor"
            )
        fractions = [label for label in self.counts if isinstance(label, float) and not label.is_integer()]
        if fractions:
            raise ValueError(
                f"Unknown label type: labels must be text, whole numbers or booleans, got {fractions[0]}; for a "
                "number to predict use TartRegressor"
            )


@dataclass
class ValueStatistics:
    """Mean, spread and range of each target of a regression, and the weight of the rows."""

    moments: list[Moments]
    low: list[float]
    high: list[float]
    n_counted: int = 0  # rows with weight
    weight: float = 0.0

    @classmethod
    def empty(cls, n_targets: int) -> ValueStatistics:
        """Return the statistics of no rows."""
        return cls([Moments() for _ in range(n_targets)], [math.inf] * n_targets, [-math.inf] * n_targets)

    def update(self, columns: Sequence[Any], weights: Weights) -> None:
        """Add rows of the target columns, without missing values."""
        rows = slice(None) if weights is None else weights > 0
        row_weights = None if weights is None else weights[rows]
        for t, column in enumerate(columns):
            values = as_values(column)[rows]
            if not np.isfinite(values).all():
                raise ValueError("the target must be finite, but contains infinity; leave such rows out")
            self.moments[t].merge(Moments.of(values, row_weights))
            if len(values):
                self._widen(t, float(values.min()), float(values.max()))
        self.n_counted += len(columns[0]) if row_weights is None else len(row_weights)
        self.weight += float(len(columns[0])) if row_weights is None else float(row_weights.sum())

    def merge(self, other: ValueStatistics) -> None:
        """Add the statistics of other rows."""
        for t, moments in enumerate(other.moments):
            self.moments[t].merge(moments)
            self._widen(t, other.low[t], other.high[t])
        self.n_counted += other.n_counted
        self.weight += other.weight

    def _widen(self, target: int, low: float, high: float) -> None:
        self.low[target], self.high[target] = min(self.low[target], low), max(self.high[target], high)


def plain_labels(column: Any) -> Any:
    """Return an Arrow column without dictionaries, and whole numbers as integers whatever type they came in."""
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    if pa.types.is_floating(column.type) and pc.all(pc.equal(pc.floor(column), column)).as_py():
        return column.cast(pa.int64())  # as the same labels are in a file where no value is missing
    return column


def as_values(column: Any) -> NDArray[np.float64]:
    """Return an Arrow column as float64."""
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def as_array(column: Any) -> NDArray[Any]:
    """Return an Arrow column of a target as scikit-learn takes it."""
    array = column.combine_chunks()
    array = plain_labels(array if isinstance(array, pa.Array) else pa.concat_arrays(array.chunks))
    values: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return values.astype(np.str_) if values.dtype.kind == "O" and not array.null_count else values


def check_target_type(arrow_type: Any, name: str, where: str, *, labels: bool) -> None:
    """Raise unless a column of this Arrow type can be a target."""
    arrow_family = family(arrow_type)
    if arrow_family is None or not (arrow_family.is_label if labels else arrow_family.is_number):
        expected = "text, numbers or booleans" if labels else "numbers"
        raise ValueError(f"{where}: target {name!r} must hold {expected}, got type {arrow_type}; convert it before")
