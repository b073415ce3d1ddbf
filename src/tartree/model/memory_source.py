"""Tables in memory, or memory-mapped, as a source of training rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_sample_weight, _num_samples
from torch import Tensor

from tartree.model.sample import SAMPLE_ROWS, Sample
from tartree.model.spec import ModelSpec
from tartree.model.target import TargetCodec, Weights
from tartree.table import TableEncoder
from tartree.table.raw_table import read_table
from tartree.training import LazyRows, Rows, TensorRows, WorkerGroup
from tartree.training.jitter import CurveFeatures

#: A memory-mapped array above this many bytes is read batch by batch.
IN_MEMORY_BYTES = 2**30
#: Rows of such an array that the encoder learns from.
ENCODER_ROWS = 200_000
#: Rows are sorted, and equal ones joined, in tables up to this size.
CANONICAL_ROWS = 20_000


class MemorySource:
    """A table with its target and weights.

    Parameters
    ----------
    X : table of shape (rows, columns)
    y : target of shape (rows,) or (rows, targets)
    sample_weight : array of shape (rows,), optional
    target_name : str, optional

    Attributes
    ----------
    encoder : TableEncoder
    codec : TargetCodec
    target : Tensor of shape (rows, ...)
        On the CPU, as training takes it.
    weight : ndarray of shape (rows,) or None
        Weights of rows times weights of their classes.
    sample_weight : ndarray of shape (rows,) or None
        Weights of rows alone.
    n_rows, n_counted : int
        All rows, and those with weight.

    Examples
    --------
    >>> from tartree.model import ModelSpec, prepare
    >>> source = MemorySource([[0.0], [1.0], [3.0]], ["a", "b", "b"])
    >>> prepared = prepare(ModelSpec("classification", depth=1), source)
    >>> source.codec.classes.tolist(), source.target.tolist()
    (['a', 'b'], [0, 1, 1])
    """

    is_streamed = False

    encoder: TableEncoder
    codec: TargetCodec
    target: Tensor
    weight: Weights
    sample_weight: Weights
    n_rows: int
    n_counted: int

    def __init__(self, X: Any, y: Any, sample_weight: Any = None, target_name: str | None = None) -> None:
        self.X, self.y, self.target_name = X, y, target_name
        self._given_weight = sample_weight

    def learn(
        self,
        spec: ModelSpec,
        seeds: NDArray[Any],
        encoder: TableEncoder | None,
        codec: TargetCodec | None,
        workers: WorkerGroup,
    ) -> None:
        """Check the table, and learn its encoder and codec; those of a resumed training are given."""
        values = read_target(spec, self.y)
        self.n_rows = number_of_rows(self.X)
        check_equal_rows(self.n_rows, len(values))
        self.sample_weight = self.weight = check_weights(self._given_weight, self.n_rows)
        self.encoder = self._fitted_encoder(spec) if encoder is None else encoder
        self.codec = spec.codec_type.learn(values, self.weight, codec, spec.extrapolation)
        class_weights = self.codec.class_weights(values, spec.class_weight)
        if class_weights is not None:
            self.weight = class_weights if self.weight is None else class_weights * self.weight
            if not (self.weight > 0).any():
                raise ValueError(f"class_weight must leave some row with weight, got {spec.class_weight}")
        self.target = self.codec.encode(values)
        self.n_counted = self.n_rows if self.weight is None else int((self.weight > 0).sum())

    def _fitted_encoder(self, spec: ModelSpec) -> TableEncoder:
        X, weight = self.X, self.weight
        if is_large_map(X):
            index = np.random.default_rng(0).choice(len(X), size=min(len(X), ENCODER_ROWS), replace=False)
            X, weight = np.asarray(X[np.sort(index)]), None
        return spec.make_encoder().fit(X, sample_weight=weight)

    @property
    def is_lazy(self) -> bool:
        """Whether rows are read and encoded batch by batch."""
        return is_large_map(self.X)

    @cached_property
    def x(self) -> Tensor:
        """All encoded rows, (rows, features), on the CPU."""
        return torch.from_numpy(self.encoder.transform(self.X))

    @cached_property
    def training_weight(self) -> Tensor | None:
        """Weights of all rows, (rows,), with a mean of 1 over those that have one, or None."""
        weight = self.weight
        return None if weight is None else torch.from_numpy(weight / weight[weight > 0].mean()).float()

    def encoded_rows(self, index: NDArray[np.intp]) -> Sample:
        """Return rows of an index as training takes them, on the CPU; no other rows are encoded."""
        X = self.X if np.array_equal(index, np.arange(self.n_rows)) else take_rows(self.X, index)
        weight, positions = self.training_weight, torch.from_numpy(index)
        x = torch.from_numpy(self.encoder.transform(X))
        curves = curve_features(self.encoder, torch.device("cpu"))
        columns = tuple(feature.column for feature in self.encoder.features_)
        return Sample(x, self.target[positions], None if weight is None else weight[positions], curves, columns)

    def split(self, fraction: float, rng: np.random.RandomState) -> tuple[Tensor, Tensor]:
        """Return indices of rows to learn from and to hold out, among those with weight."""
        counted = np.arange(self.n_rows) if self.weight is None else np.flatnonzero(self.weight > 0)
        strata = self.codec.strata(self.target)
        learnt, held_out = split_rows(len(counted), None if strata is None else strata[counted], fraction, rng)
        return torch.from_numpy(counted)[learnt], torch.from_numpy(counted)[held_out]

    def split_rows(self, spec: ModelSpec, rng: np.random.RandomState, device: torch.device) -> tuple[Rows, Rows]:
        """Return rows to learn from, and those that early stopping holds out."""
        learnt, held_out = self.split(spec.recipe.validation_fraction, rng)
        return self.rows(device, learnt), self.rows(device, held_out)

    def rows(self, device: torch.device, index: Tensor | None = None) -> Rows:
        """Return rows of an index, or all of them, for training on a device."""
        weights = self.training_weight
        counted = np.ones(self.n_rows) if self.weight is None else self.weight
        total = float(counted.sum() if index is None else counted[index.numpy()].sum())
        target, x = self.target, None if self.is_lazy else self.x
        if index is None and x is not None and len(x) <= CANONICAL_ROWS:
            x, target, weights = join_equal_rows(x, target, weights)
        if index is not None:
            x = None if x is None else x[index]
            target, weights = target[index], None if weights is None else weights[index]
        target, weights = target.to(device), None if weights is None else weights.to(device)
        curves = curve_features(self.encoder, device)
        if x is not None:
            return TensorRows(x.to(device), target, weights, total, curves)

        def read(batch: Tensor) -> Tensor:
            positions = batch if index is None else index[batch]
            return torch.from_numpy(self.encoder.transform(self.X[positions.numpy()])).to(device)

        return LazyRows(read, target, weights, curves)

    def all_rows(self, device: torch.device) -> Rows:
        """Return all rows for training on a device."""
        return self.rows(device)

    def sample(self, workers: WorkerGroup) -> Sample | None:
        """Return training rows, evenly spaced, that importances are computed from."""
        if self.is_lazy:
            return None
        weight = None if self.weight is None else torch.from_numpy(self.weight)
        counted = torch.arange(self.n_rows) if weight is None else torch.nonzero(weight > 0).squeeze(1)
        index = counted[torch.linspace(0, len(counted) - 1, min(len(counted), SAMPLE_ROWS)).long()]
        return Sample(self.x[index], self.target[index], None if weight is None else weight[index])

    @contextmanager
    def locating(self) -> Iterator[None]:
        """Prefix errors about a row with where it is; rows of a table in memory are counted from 0."""
        yield


def curve_features(encoder: TableEncoder, device: torch.device) -> CurveFeatures | None:
    """Return how the features of curves are made from values, on a device; None without curves."""
    expansion = encoder.expansion_
    if expansion.is_trivial:
        return None
    parts = (expansion.start, expansion.rise, expansion.bottom, expansion.top, expansion.offset)
    indices = (expansion.value_features, expansion.source)
    tensors = [*(torch.from_numpy(part) for part in indices), *(torch.from_numpy(part).float() for part in parts)]
    return CurveFeatures(*tensors).to(device)


def read_target(spec: ModelSpec, y: Any) -> NDArray[Any]:
    """Return a target in memory as an array, or raise if it does not fit the task."""
    codec = spec.codec_type
    if y is None:
        raise ValueError(f"This {codec.estimator} estimator requires y to be passed, but the target y is None")
    return codec.read(y)


def check_weights(sample_weight: Any, n_rows: int) -> Weights:
    """Return weights of rows as float64, or raise if some are negative or their number is wrong."""
    if sample_weight is None:
        return None
    weight: NDArray[np.float64] = _check_sample_weight(
        sample_weight, np.empty((n_rows, 1)), dtype=np.float64, ensure_non_negative=True
    )
    return weight


def number_of_rows(X: Any) -> int:
    """Count the rows of any table; what is no table is left to the encoder, whose message says more."""
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape):
        return int(shape[0])
    try:
        return int(_num_samples(X))
    except TypeError:
        return read_table(X).n_rows


def take_rows(X: Any, index: NDArray[np.intp]) -> Any:
    """Return rows of any table, by their positions."""
    is_arrow = hasattr(X, "take") and hasattr(X, "column_names")
    return X.take(index) if is_arrow else _safe_indexing(X, index)


def check_equal_rows(n_rows: int, n_targets: int) -> None:
    """Raise unless table and target have as many rows."""
    if n_rows != n_targets:
        raise ValueError(
            f"X and y must have one row each for every example, got inconsistent numbers of samples "
            f"[{n_rows}, {n_targets}]"
        )


def split_rows(
    n_rows: int, strata: NDArray[Any] | None, fraction: float, rng: np.random.RandomState
) -> tuple[Tensor, Tensor]:
    """Return indices of rows to train on and to hold out, with the same shares of classes."""
    if n_rows < 2:
        raise ValueError("early stopping needs at least two rows, got one; use early_stopping=False")
    order = rng.permutation(n_rows)
    if strata is not None:  # rows sorted by class, of which every k-th is held out
        order = order[np.argsort(strata[order], kind="stable")]
    n_held = min(max(1, round(fraction * n_rows)), n_rows - 1)
    picks = np.floor((np.arange(n_held) + rng.uniform()) * n_rows / n_held).astype(np.intp)
    held_out = np.zeros(n_rows, dtype=bool)
    held_out[order[picks]] = True
    if strata is not None:  # a class that is held out whole would never be learnt
        held_out &= np.isin(strata, np.unique(strata[~held_out]))
    return torch.from_numpy(np.flatnonzero(~held_out)), torch.from_numpy(np.flatnonzero(held_out))


def join_equal_rows(x: Tensor, target: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """Sort rows and join equal ones into one with their common weight, so that neither order nor repetition matters."""
    row_weights = torch.ones(len(x)) if weights is None else weights
    counted = row_weights > 0
    x, target, row_weights = x[counted], target[counted], row_weights[counted]
    keys = np.concatenate([x.numpy().astype(np.float64), target.numpy().reshape(len(x), -1)], axis=1)
    _, first, group = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    joined = torch.zeros(len(first), dtype=torch.float64)
    joined.index_add_(0, torch.from_numpy(group.ravel()), row_weights.double())
    if weights is None and len(first) == len(x):
        return x[first], target[first], None
    return x[first], target[first], (joined / joined.mean()).float()


def is_large_map(X: Any) -> bool:
    """Whether a table is a memory-mapped array too large to be read at once."""
    return isinstance(X, np.memmap) and X.nbytes > IN_MEMORY_BYTES
