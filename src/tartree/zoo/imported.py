"""Fitted trees of other libraries as estimators of ours, that predict what their source predicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from tartree.nn import Selection, Tree
from tartree.structure import Structure
from tartree.table.columns import IDENTITY, Feature, Numeric
from tartree.table.reading import read_table
from tartree.zoo.splits import Booleans, Floats, Integers, SplitTree

LARGEST = float(np.finfo(np.float64).max)
CHUNK_ROWS = 2**14


@dataclass(frozen=True)
class PlainEncoder:
    """Columns as the source compares them: unscaled, in its precision, with marks of gaps where it takes gaps.

    The encoder of the other estimators standardises, in single precision; a row on a threshold would then not always
    go where its source sends it.
    """

    n_features_in_: int
    names: NDArray[np.object_] | None = None  # of the columns, where the source knows them
    single: bool = False  # whether numbers are rounded to single precision, as the source does
    gaps: bool = True  # whether the source takes gaps
    missing: float | None = None  # a number that stands for a gap
    zero: float = 0.0  # numbers up to this size are read as zero
    dense: bool = False  # whether the source reads the zeros of a sparse matrix as gaps
    categories: dict[int, list[Any]] = field(default_factory=dict)  # levels of columns that come as levels
    ranges: tuple[tuple[float, float], ...] = ()  # of the thresholds of each column

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the columns; there is no such attribute where the source had none, as in scikit-learn."""
        if self.names is None:
            raise AttributeError("the source was fitted without names of columns")
        return self.names

    @property
    def columns_(self) -> list[Numeric]:
        """What is known of each column: that it holds numbers, and where its thresholds are."""
        ranges = self.ranges or ((0.0, 1.0),) * self.n_features_in_
        return [Numeric("number", IDENTITY, (low + high) / 2, low, high, False, self.gaps) for low, high in ranges]

    @property
    def features_(self) -> list[Feature]:
        """What each number of an encoded row says: the columns, then their marks of gaps."""
        labels = [f"x{i}" if self.names is None else str(self.names[i]) for i in range(self.n_features_in_)]
        values = [Feature(i, name, "value") for i, name in enumerate(labels)]
        return values + ([Feature(i, name, "missing") for i, name in enumerate(labels)] if self.gaps else [])

    def get_feature_names_out(self) -> NDArray[np.object_]:
        """Names of what `transform` gives: "age", "age=(missing)"."""
        return np.array([feature.label for feature in self.features_], dtype=object)

    def inverse_value(self, feature: int, encoded: float) -> float | str | bool:
        """One encoded value in original units: itself, or whether there is a gap."""
        return self.features_[feature].original(encoded)

    def read(self, X: Any) -> tuple[Floats, Booleans | None]:
        """Values without gaps and where the gaps were, both (rows, columns)."""
        if self.dense and sparse.issparse(X):
            raise ValueError("X must be dense, since XGBoost reads zeros of a sparse matrix as gaps; use X.toarray()")
        table = read_table(X)
        if table.n_columns != self.n_features_in_:
            raise ValueError(
                f"X has {table.n_columns} features, but the imported model is expecting {self.n_features_in_} "
                "features as input."
            )
        if self.names is not None and table.names is not None and list(self.names) != list(table.names):
            raise ValueError(
                "The feature names should match those that were passed during fit, however: "
                f"{list(table.names)[:5]} instead of {self.names[:5].tolist()}"
            )
        values = np.empty((table.n_rows, table.n_columns))
        for index in range(table.n_columns):
            raw = table.read(index)
            if index in self.categories:
                codes = {level: float(code) for code, level in enumerate(self.categories[index])}
                values[:, index] = [codes.get(level, np.nan) for level in raw.objects()]
            else:
                values[:, index] = raw.numbers("number")
        gaps = np.isnan(values)
        if self.missing is not None:
            gaps |= values == self.missing
        if not self.gaps and gaps.any():
            row, column = np.argwhere(gaps)[0].tolist()
            raise ValueError(
                f"X contains NaN, which the imported model does not take, however: {table.label(column)} has a gap in "
                f"row {row}; fill it"
            )
        if self.single:
            with np.errstate(over="ignore"):
                values = values.astype(np.float32).astype(np.float64)
        values[np.abs(values) <= self.zero] = 0.0
        # The source sends infinities where it sends the largest numbers; a tree of ours wants finite ones.
        values = np.nan_to_num(np.where(gaps, 0.0, values), nan=0.0, posinf=LARGEST, neginf=-LARGEST)
        return values, gaps if self.gaps else None

    def transform(self, X: Any) -> Floats:
        """What the trees take: (rows, columns), or (rows, 2 columns) with marks of gaps."""
        values, gaps = self.read(X)
        return values if gaps is None else np.concatenate([values, gaps], axis=1)


@dataclass(frozen=True)
class Sum:
    """How the values of trees become a prediction: ``link(base + sum of weight * value, over their number)``.

    Attributes
    ----------
    base : array of shape (outputs,)
    weights : array of shape (trees,)
    columns : array of int of shape (trees,), optional
        The output that each tree adds to; by default each tree gives all of them.
    average : int
        What the sum is divided by; 1 for a sum.
    link : str
        A name of `LINKS`.
    scale : float
        Multiplies what goes into the link.
    """

    base: Floats
    weights: Floats
    columns: Integers | None = None
    average: int = 1
    link: str = "identity"
    scale: float = 1.0


def _two(p: Floats) -> Floats:
    return np.concatenate([1 - p, p], axis=1)


#: From summed raw values, (rows, outputs), to values, or to probabilities of classes.
LINKS: dict[str, Callable[[Floats], Floats]] = {
    "identity": lambda raw: raw,
    "exp": np.exp,
    "expit": expit,
    "signed square": lambda raw: np.sign(raw) * np.square(raw),
    "log1p exp": lambda raw: np.log1p(np.exp(raw)),
    "two classes": lambda raw: _two(expit(raw)),
    "softmax": lambda raw: softmax(raw, axis=1),
    "one against all": expit,  # which do not sum to 1
}


class ImportedModel(BaseEstimator):  # type: ignore[misc]
    """What imported classifiers and regressors share.

    Attributes
    ----------
    tree_ : tartree.nn.Tree
        The imported tree, or all of them below a root that splits evenly: its prediction is the mean of a forest, and
        times the number of trees the sum of a boosted ensemble. Its input is what ``encoder_.transform`` gives, in
        double precision. It is made when it is first asked for.
    trees_ : list of tartree.nn.Tree
        Each tree for itself, its leaves times its weight.
    splits_ : list of SplitTree
        The same as plain arrays; predictions walk down these.
    encoder_ : PlainEncoder
    """

    def __init__(self) -> None:  # no parameters: an imported model is not fitted again
        pass

    def _set(self, splits: Sequence[SplitTree], encoder: PlainEncoder, total: Sum) -> None:
        self.splits_ = list(splits)
        self.encoder_ = replace(encoder, ranges=_ranges(self.splits_, encoder.n_features_in_))
        self.sum_ = total
        self.n_features_in_ = encoder.n_features_in_
        if encoder.names is not None:
            self.feature_names_in_ = encoder.names

    def fit(self, X: Any, y: Any = None) -> NoReturn:
        """An imported model is fitted already."""
        raise TypeError(
            "an imported model is fitted already and cannot be fitted again, however: fit was called; "
            "zoo.warm_start trains on from a tree"
        )

    def _raw(self, X: Any) -> Floats:
        """Summed values of the trees, (rows, outputs)."""
        values, gaps = self.encoder_.read(X)
        total = self.sum_
        raw = np.tile(total.base, (len(values), 1))
        for start in range(0, len(values), CHUNK_ROWS):
            part = slice(start, start + CHUNK_ROWS)
            for place, tree in enumerate(self.splits_):
                own = tree.value[tree.route(values[part], None if gaps is None else gaps[part])]
                # In the order of the source, one tree after the other: sums come out equal, and so do ties.
                if total.columns is None:
                    raw[part] += total.weights[place] * own
                else:
                    raw[part, total.columns[place]] += total.weights[place] * own[:, 0]
        return raw / total.average if total.average != 1 else raw

    def _linked(self, raw: Floats) -> Floats:
        return LINKS[self.sum_.link](raw * self.sum_.scale)

    def apply(self, X: Any) -> Integers:
        """The leaf of each row: (rows,), or (rows, trees) for an ensemble, numbered as in the source."""
        values, gaps = self.encoder_.read(X)
        leaves = np.stack([tree.source[tree.route(values, gaps)] for tree in self.splits_], axis=1)
        return leaves[:, 0] if len(self.splits_) == 1 else leaves

    @cached_property
    def trees_(self) -> list[Tree]:
        total = self.sum_
        probabilities = isinstance(self, ClassifierMixin) and total.link == "identity"
        trees = []
        for place, (tree, weight) in enumerate(zip(self.splits_, total.weights, strict=True)):
            value = weight * tree.value if weight != 1 else tree.value
            if total.columns is not None and len(total.base) > 1:  # zero for all outputs but its own
                own = np.zeros((len(value), len(total.base)))
                own[:, total.columns[place]] = value[:, 0]
                value = own
            trees.append(
                replace(tree, value=value).to_tree(
                    self.n_features_in_, gaps=self.encoder_.gaps, probabilities=probabilities
                )
            )
        return trees

    @cached_property
    def tree_(self) -> Tree:
        from tartree.zoo.joining import join

        return self.trees_[0] if len(self.trees_) == 1 else join(self.trees_)

    @property
    def selection(self) -> Selection:
        """How `tree_` predicts: by the one leaf that a row reaches, or by the mean over trees."""
        return "single" if len(self.splits_) == 1 else "multi"

    @property
    def structure_(self) -> Structure:
        """Geometry of `tree_`."""
        return self.tree_.structure

    def get_depth(self) -> int:
        """Decisions on the longest way to a leaf of any tree."""
        return max(tree.depth for tree in self.splits_)

    def get_n_leaves(self) -> int:
        """Leaves of all trees."""
        return sum(tree.n_leaves for tree in self.splits_)

    def save(self, path: Any) -> NoReturn:
        """An imported model is not saved: save its source, and import it again."""
        raise ValueError("an imported model cannot be saved, however: save was called; save its source, and import it")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "splits_")


def _ranges(splits: Sequence[SplitTree], n_features: int) -> tuple[tuple[float, float], ...]:
    """The lowest and the highest threshold of each column; 0 to 1 for one that no tree looks at."""
    low, high = np.full(n_features, np.inf), np.full(n_features, -np.inf)
    for tree in splits:
        own = (tree.left >= 0) & np.isfinite(tree.threshold)
        np.minimum.at(low, tree.feature[own], tree.threshold[own])
        np.maximum.at(high, tree.feature[own], tree.threshold[own])
    unused = low > high
    low[unused], high[unused] = 0.0, 1.0
    above = np.where(high > low, high, np.nextafter(low, np.inf))  # a range, also where there is one threshold
    return tuple(zip(low.tolist(), above.tolist(), strict=True))


class ImportedClassifier(ClassifierMixin, ImportedModel):  # type: ignore[misc]
    """A classifier of another library; see `from_sklearn`."""

    classes_: NDArray[Any]
    _tie_first: bool = True  # of two classes with equal probability, the first is predicted

    def predict_proba(self, X: Any) -> Floats:
        """Probability of each class, (rows, classes)."""
        return self._linked(self._raw(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row, (rows,)."""
        raw = self._raw(X)
        if raw.shape[1] == 1:
            code = (raw[:, 0] > 0 if self._tie_first else raw[:, 0] >= 0).astype(np.int64)
        else:
            code = raw.argmax(axis=1)
        predicted: NDArray[Any] = self.classes_[code]
        return predicted


class ImportedRegressor(RegressorMixin, ImportedModel):  # type: ignore[misc]
    """A regressor of another library; see `from_sklearn`."""

    def predict(self, X: Any) -> Floats:
        """Predicted values, (rows,) or (rows, targets)."""
        values = self._linked(self._raw(X))
        return values[:, 0] if values.shape[1] == 1 else values
