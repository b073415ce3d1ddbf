"""TartRegressor: values with their uncertainty from a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d
from torch import Tensor

from tartree.estimators.base import BaseTart
from tartree.estimators.rows import check_equal_rows, number_of_rows
from tartree.nn import Gaussian, Output
from tartree.table.parquet import is_parquet
from tartree.table.scaling import LARGEST

if TYPE_CHECKING:
    from tartree.estimators.targets import ValueCoder, ValueStatistics


class TartRegressor(RegressorMixin, BaseTart):  # type: ignore[misc]
    """A readable tree for regression: linear decisions, leaves that give a mean and a spread, trained by gradient.

    Each leaf is a Gaussian; a prediction is the mean of the mixture of leaves (or of the selected leaf), with its
    standard deviation and quantiles on demand. Several target columns are fitted together.

    Parameters and attributes are those of `TartClassifier`, less `class_weight` and `classes_`. Here `extrapolation`
    limits predictions too: the mean of each leaf, and so every prediction, leaves the range of the targets seen by at
    most that share of it on either side. None sets no limit, for trends that go on.

    Attributes
    ----------
    limits_ : ndarray of shape (targets, 2) or None
        The lowest and highest prediction of each target; None without a limit.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tartree import TartRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> tree = TartRegressor(depth=1, epochs=20, random_state=0).fit(X, y)
    >>> mean, std = tree.predict(X[:5], return_std=True)
    >>> tree.predict_quantiles(X[:5], [0.05, 0.95]).shape
    (5, 2)
    """

    target_center_: NDArray[np.float64]
    target_scale_: NDArray[np.float64]
    limits_: NDArray[np.float64] | None

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to a table and its target values.

        Parameters
        ----------
        X : table of shape (rows, columns), or where one is
            A path, pattern, folder or list of Parquet files, an Arrow dataset, or a `tartree.table.ParquetTable`. A
            large one is not read into memory but streamed.
        y : array of shape (rows,) or (rows, targets), or str or list of str
            With files, the names of the columns.
        sample_weight : array of shape (rows,), or str, optional
            Weights of rows, with files the name of the column. A weight counts like that many equal rows, except that
            levels of a category are counted by rows when rare ones are grouped.
        """
        if is_parquet(X):
            from tartree.estimators.streaming import fit_parquet

            fit_parquet(self, X, y, sample_weight)
            return self
        if y is None:
            raise ValueError("This TartRegressor estimator requires y to be passed, but the target y is None")
        values = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", ensure_min_samples=0)
        if values.ndim == 1 or values.shape[1] == 1:
            values = column_or_1d(values, warn=True)[:, None]
        n_rows = number_of_rows(X)
        check_equal_rows(n_rows, len(values))
        weight = self._sample_weight(sample_weight, n_rows)
        self._fit_encoder(X, weight)
        self._set_targets(values.shape[1])
        if not (self.warm_start and hasattr(self, "tree_")):
            # Centered by the middle of the range first, so that a large offset keeps its digits.
            middle = values.min(axis=0) / 2 + values.max(axis=0) / 2
            mean = np.average(values - middle, axis=0, weights=weight)
            spread = np.sqrt(np.average(np.square(values - middle - mean), axis=0, weights=weight))
            self.target_center_ = middle + mean
            self.target_scale_ = np.where(spread > 0, spread, 1.0)
        counted = values if weight is None else values[weight > 0]
        self._set_limits(counted.min(axis=0), counted.max(axis=0))
        target = torch.from_numpy((values - self.target_center_) / self.target_scale_).float()
        self._fit_tree(X, target, weight, strata=None)
        return self

    def _set_targets(self, n_targets: int) -> None:
        if self.warm_start and hasattr(self, "tree_") and n_targets != len(self.target_center_):
            raise ValueError(
                f"warm_start must keep the {len(self.target_center_)} target(s), however: {n_targets} are given"
            )
        self._one_target = n_targets == 1

    def _set_limits(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> None:
        """Take the limits of predictions from the lowest and highest targets, (targets,)."""
        goes_on = self.warm_start and hasattr(self, "tree_")
        before = getattr(self, "limits_", None) if goes_on else None
        self.limits_ = None
        if self.extrapolation is not None:
            with np.errstate(over="ignore"):
                margin = float(self.extrapolation) * np.minimum(high - low, LARGEST)
                self.limits_ = np.clip(np.stack([low - margin, high + margin], axis=1), -LARGEST, LARGEST)
            if before is not None:  # rows of earlier fits count too
                self.limits_[:, 0] = np.minimum(self.limits_[:, 0], before[:, 0])
                self.limits_[:, 1] = np.maximum(self.limits_[:, 1], before[:, 1])
        if goes_on:
            self.tree_.output = self._output()

    def _target_statistics(self, n_targets: int) -> ValueStatistics:
        from tartree.estimators.targets import ValueStatistics

        return ValueStatistics.of(n_targets)

    def _learn_target(self, statistics: ValueStatistics, *, weighted: bool) -> ValueCoder:
        from tartree.estimators.targets import ValueCoder

        if not statistics.weight:
            raise ValueError("sample_weight must not be zero for every row, however: no weight is positive")
        self._set_targets(len(statistics.moments))
        if not (self.warm_start and hasattr(self, "tree_")):
            spread = np.array([moments.spread for moments in statistics.moments])
            self.target_center_ = np.array([moments.center for moments in statistics.moments])
            self.target_scale_ = np.where(spread > 0, spread, 1.0)
        self._set_limits(np.array(statistics.low), np.array(statistics.high))
        return ValueCoder(self.target_center_, self.target_scale_, statistics.weight / statistics.n_counted)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predicted values, (rows,) or (rows, targets); with `return_std`, a pair of them and standard deviations.

        `X` may be a table in files, as in `fit`.
        """
        parts: list[list[NDArray[np.float64]]] = [[], []]
        for moments in self._predict_members(X):  # (members, rows, 2 targets)
            mean, square = np.split(moments.mean(axis=0), 2, axis=-1)
            parts[0].append(self.target_center_ + self.target_scale_ * mean)
            if return_std:
                parts[1].append(self.target_scale_ * np.sqrt(np.maximum(square - np.square(mean), 0.0)))
        found = [self._columns(np.concatenate(part)) for part in parts if part]
        return tuple(found) if return_std else found[0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R2, the share of the variance that is predicted; of a table in files, `y` may be the name of a column."""
        if is_parquet(X) and isinstance(y, str):
            from tartree.estimators.streaming import read_target

            y, sample_weight = read_target(X, y, sample_weight)
        return float(super().score(X, y, sample_weight))

    @torch.no_grad()
    def predict_quantiles(self, X: Any, quantiles: Sequence[float] = (0.05, 0.5, 0.95)) -> NDArray[np.float64]:
        """Quantiles of each row's predicted distribution: (rows, quantiles), or (rows, quantiles, targets)."""
        check_is_fitted(self, "tree_")
        levels = np.asarray(quantiles, dtype=np.float64)
        if levels.ndim != 1 or not ((levels > 0) & (levels < 1)).all():
            raise ValueError(f"quantiles must be a list of numbers between 0 and 1, however: quantiles={quantiles!r}")
        output = self._gaussian()
        parts = []
        for tree, x in self._each_chunk(X):
            arrival, numbers = tree(x)
            if self.selection == "single":
                arrival = torch.nn.functional.one_hot(arrival.argmax(-1), arrival.shape[-1]).to(arrival)
            mean, spread = output.parameters(numbers)
            parts.append(_mixture_quantiles(arrival, mean, spread, torch.from_numpy(levels).to(arrival)).cpu())
        result: NDArray[np.float64] = self.target_center_ + self.target_scale_ * torch.cat(parts).double().numpy()
        return result[..., 0] if self._one_target else result

    def _columns(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return values[:, 0] if self._one_target else values

    def _gaussian(self) -> Gaussian:
        limits = None
        if self.limits_ is not None:
            scaled = (self.limits_ - self.target_center_[:, None]) / self.target_scale_[:, None]
            limits = [(float(low), float(high)) for low, high in scaled]
        return Gaussian(len(self.target_center_), limits)

    def _output(self) -> Output:
        return self._gaussian()

    def _fitted_data(self) -> dict[str, Any]:
        return {
            "center": self.target_center_.tolist(),
            "scale": self.target_scale_.tolist(),
            "one_target": self._one_target,
            "limits": None if self.limits_ is None else self.limits_.tolist(),
        }

    def _set_fitted_data(self, data: dict[str, Any]) -> None:
        center, scale = np.array(data["center"], dtype=np.float64), np.array(data["scale"], dtype=np.float64)
        if center.ndim != 1 or center.shape != scale.shape or not (scale > 0).all() or not len(center):
            raise ValueError(f"target must have centers and positive scales, however: {data}")
        self.target_center_, self.target_scale_ = center, scale
        limits = data.get("limits")  # which files of earlier versions do not have
        self.limits_ = None if limits is None else np.array(limits, dtype=np.float64)
        if self.limits_ is not None and (
            self.limits_.shape != (len(center), 2) or not (self.limits_[:, 0] <= self.limits_[:, 1]).all()
        ):
            raise ValueError(f"limits must be a lowest and a highest prediction of each target, got {limits}")
        self._one_target = bool(data["one_target"])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _mixture_quantiles(arrival: Tensor, mean: Tensor, spread: Tensor, levels: Tensor) -> Tensor:
    """Quantiles of the mixture of all members' leaves, (rows, quantiles, targets), by bisection of its distribution.

    `arrival` is (members, rows, leaves); `mean` and `spread` are (members, rows or 1, leaves, targets).
    """
    members, rows, _ = arrival.shape
    share = (arrival / members).permute(1, 0, 2).reshape(rows, 1, -1, 1)  # (rows, 1, components, 1)
    mean, spread = (
        v.expand(-1, rows, -1, -1).permute(1, 0, 2, 3).reshape(rows, 1, -1, v.shape[-1]) for v in (mean, spread)
    )
    reach = 10 * spread  # a level as far out as 1e-20 lies within
    low = (mean - reach).amin(2).expand(-1, len(levels), -1).clone()  # (rows, quantiles, targets)
    high = (mean + reach).amax(2).expand(-1, len(levels), -1).clone()
    wanted = levels[None, :, None]
    for _ in range(60):
        middle = (low + high) / 2
        below = (share * torch.special.ndtr((middle.unsqueeze(2) - mean) / spread)).sum(2)
        low, high = torch.where(below < wanted, middle, low), torch.where(below < wanted, high, middle)
    return (low + high) / 2
