"""Fitted trees of other libraries as estimators of ours, that predict what their source predicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from tartree.nn import Selection, Tree
from tartree.structure import Structure
from tartree.table import Feature, Numeric, Scaling
from tartree.table.input_table import read_table
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
    infinite: bool = True  # whether the source takes infinities
    spelling: str = ""  # of names that the source changed: "text", "underscores" for text without spaces
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
        return [Numeric("number", Scaling(), (low + high) / 2, low, high, False, self.gaps) for low, high in ranges]

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
        if self.names is not None and table.names is not None and list(self.names) != self._spelled(table.names):
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
        if not self.infinite and np.isinf(values).any():
            row, column = np.argwhere(np.isinf(values))[0].tolist()
            raise ValueError(
                "Input X contains infinity or a value too large for the imported model's precision, however: "
                f"{table.label(column)} has one in row {row}"
            )
        values[np.abs(values) <= self.zero] = 0.0
        # The source sends infinities where it sends the largest numbers; a tree of ours wants finite ones.
        values = np.nan_to_num(np.where(gaps, 0.0, values), nan=0.0, posinf=LARGEST, neginf=-LARGEST)
        return values, gaps if self.gaps else None

    def _spelled(self, names: Sequence[Any]) -> list[Any]:
        """Names of a table as the source would keep them."""
        texts = [str(name) for name in names] if self.spelling else list(names)
        return [text.replace(" ", "_") for text in texts] if self.spelling == "underscores" else texts

    def inverse_transform(self, encoded: ArrayLike) -> dict[str, NDArray[Any]]:
        """Columns by name from what `transform` gives; a gap is NaN, a level is itself."""
        numbers = np.asarray(encoded, dtype=np.float64)
        found: dict[str, NDArray[Any]] = {}
        for index, feature in enumerate(self.features_[: self.n_features_in_]):
            values = numbers[:, index].copy()
            if self.gaps:
                values[numbers[:, self.n_features_in_ + index] > 0.5] = np.nan
            if index in self.categories:
                levels = self.categories[index]
                known = [None if value != value else levels[int(value)] for value in values.tolist()]
                found[feature.name] = np.array(known, dtype=object)
            else:
                found[feature.name] = values
        return found

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
    average : float
        What the sum is divided by; 1 for a sum.
    link : str
        A name of `LINKS`.
    scale : float
        Multiplies what goes into the link.
    single : bool
        Whether the source adds and links in single precision.
    decides : {"raw", "probabilities"}
        What the source takes the class from; rounding makes ties of probabilities that are none of raw values.
    """

    base: Floats
    weights: Floats
    columns: Integers | None = None
    average: float = 1
    link: str = "identity"
    scale: float = 1.0
    single: bool = False
    decides: str = "raw"


def _two(p: Floats) -> Floats:
    return np.concatenate([1 - p, p], axis=1)


def _single_exp(raw: Floats) -> Floats:
    """Rounded once, as in C: NumPy's own exponential in single precision may be off by more than its last digit."""
    power: Floats = np.exp(raw.astype(np.float64)).astype(raw.dtype)
    return power


def _expit(raw: Floats) -> Floats:
    """The logistic function; in single precision by the formula of XGBoost, so that ties are its own."""
    if raw.dtype != np.float32:
        linked: Floats = expit(raw)
        return linked
    one = np.float32(1)
    single: Floats = (one / (_single_exp(np.minimum(-raw, np.float32(88.7))) + one)).astype(raw.dtype)
    return single


def _softmax(raw: Floats) -> Floats:
    """Over the outputs; in single precision as XGBoost does it, with a sum in double precision."""
    if raw.dtype != np.float32:
        linked: Floats = softmax(raw, axis=1)
        return linked
    power = _single_exp(raw - raw.max(axis=1, keepdims=True))
    single: Floats = power / power.sum(axis=1, keepdims=True, dtype=np.float64).astype(raw.dtype)
    return single


#: From summed raw values, (rows, outputs), to values, or to probabilities of classes.
LINKS: dict[str, Callable[[Floats], Floats]] = {
    "identity": lambda raw: raw,
    "exp": _single_exp,
    "expit": _expit,
    "signed square": lambda raw: np.sign(raw) * np.square(raw),
    "log1p exp": lambda raw: np.log1p(np.exp(raw)),
    "two classes": lambda raw: _two(_expit(raw)),
    "two classes by rate": lambda raw: _two(np.log1p(np.exp(raw))),
    "softmax": _softmax,
    "one against all": _expit,  # which do not sum to 1
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
        check_is_fitted(self)
        values, gaps = self.encoder_.read(X)
        total = self.sum_
        kind = np.float32 if total.single else np.float64
        weights = total.weights.astype(kind)
        raw: Floats = np.tile(total.base, (len(values), 1)).astype(kind)
        for start in range(0, len(values), CHUNK_ROWS):
            part = slice(start, start + CHUNK_ROWS)
            for place, tree in enumerate(self.splits_):
                leaf = tree.route(values[part], None if gaps is None else gaps[part])
                own = tree.value[leaf].astype(kind, copy=False)
                # In the order of the source, one tree after the other: sums come out equal, and so do ties.
                if total.columns is None:
                    raw[part] += weights[place] * own
                else:
                    raw[part, total.columns[place]] += weights[place] * own[:, 0]
        return raw / total.average if total.average != 1 else raw

    def _linked(self, raw: Floats) -> Floats:
        total = self.sum_
        own: Any = raw.astype(np.float32) if total.single else raw
        return LINKS[total.link](own * total.scale if total.scale != 1 else own).astype(np.float64, copy=False)

    def apply(self, X: Any) -> Integers:
        """The leaf of each row: (rows,), or (rows, trees) for an ensemble, numbered as in the source."""
        check_is_fitted(self)
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

    def one_tree(self, place: int) -> ImportedModel:
        """A tree of an ensemble for itself, which can be explained.

        Of a forest of classes it is a classifier; of a boosted ensemble a regressor, which gives what the tree adds to
        the raw value.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.ensemble import RandomForestClassifier
        >>> from tartree import explain, zoo
        >>> X, y = load_iris(return_X_y=True)
        >>> forest = zoo.from_sklearn(RandomForestClassifier(5, max_depth=1, random_state=0).fit(X, y))
        >>> explain.export_text(forest.one_tree(0)).splitlines()[0]
        '|--- x3 <= 0.75'
        """
        check_is_fitted(self)
        if not 0 <= place < len(self.splits_):
            raise ValueError(f"place must be from 0 to {len(self.splits_) - 1}, however: {place=}")
        total, own = self.sum_, self.splits_[place]
        forest = isinstance(self, ImportedClassifier) and total.link == "identity"
        made: ImportedModel = ImportedClassifier() if forest else ImportedRegressor()
        if not forest and total.weights[place] != 1:
            own = replace(own, value=total.weights[place] * own.value)
        made._set([own], self.encoder_, Sum(np.zeros(own.value.shape[1]), np.ones(1)))
        if isinstance(self, ImportedClassifier) and isinstance(made, ImportedClassifier):
            made.classes_ = self.classes_
        return made

    def _check_explainable(self) -> None:
        """Raise unless the model is one tree and nothing more."""
        total = self.sum_
        if len(self.splits_) > 1 or total.link != "identity" or total.base.any():
            raise ValueError(
                f"explanations are of one tree, however: the imported model adds up {len(self.splits_)}; explain one "
                "of its trees: model.one_tree(0)"
            )

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

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of `predict_proba`; minus infinity where a class is impossible."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row, (rows,)."""
        raw = self._raw(X)
        if self.sum_.decides == "probabilities":
            code = self._linked(raw).argmax(axis=1)
        elif self.sum_.link.startswith("two classes"):  # one margin; a sole class has one column too
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
