"""Fitted trees of other libraries as estimators that predict what their source predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from tartree.model import ClassCodec, FittedModel, PlainValueCodec, TargetCodec
from tartree.nn import Selection, Tree
from tartree.structure import Structure
from tartree.zoo.interop.joined_tree import join
from tartree.zoo.interop.plain_encoder import PlainEncoder
from tartree.zoo.interop.split_tree import Floats, Integers, SplitTree
from tartree.zoo.interop.tree_sum import TreeSum

CHUNK_ROWS = 2**14


class ImportedModel(BaseEstimator):  # type: ignore[misc]
    """Base of imported classifiers and regressors.

    Attributes
    ----------
    tree_ : tartree.nn.Tree
        The imported tree, or all of them below a root that splits evenly: its prediction is the mean of a forest, and
        times the number of trees the sum of a boosted ensemble. It takes what ``encoder_.transform`` returns, in
        double precision, and is built on first access.
    trees_ : list of tartree.nn.Tree
        Each tree alone, its leaves times its weight.
    splits_ : list of SplitTree
        The same as plain arrays, which predictions walk down.
    encoder_ : PlainEncoder
    sum_ : TreeSum
    """

    splits_: list[SplitTree]
    encoder_: PlainEncoder
    sum_: TreeSum

    def __init__(self) -> None:  # no parameters: an imported model is not fitted again
        pass

    @classmethod
    def of(cls, splits: Sequence[SplitTree], encoder: PlainEncoder, total: TreeSum) -> Self:
        """Return the model of some trees."""
        model = cls()
        model.splits_ = list(splits)
        model.encoder_ = replace(encoder, ranges=_ranges(model.splits_, encoder.n_features_in_))
        model.sum_ = total
        model.n_features_in_ = encoder.n_features_in_
        if encoder.names is not None:
            model.feature_names_in_ = encoder.names
        return model

    def fit(self, X: Any, y: Any = None) -> NoReturn:
        """Raise: an imported model is fitted already."""
        raise TypeError(
            "an imported model is fitted already and cannot be fitted again; zoo.warm_start trains on from a tree"
        )

    # The model

    @property
    def model_(self) -> FittedModel:
        """The fitted model of a single tree, as explanations take it; a sum of trees has none."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"this {type(self).__name__} has no model_; import a fitted tree by from_sklearn")
        if len(self.splits_) > 1 or not self.sum_.is_plain:
            raise ValueError(
                f"explanations are of one tree, got an imported model that adds up {len(self.splits_)}; explain one "
                "of its trees: model.one_tree(0)"
            )
        return FittedModel(self.encoder_, self.tree_, self._codec(), self.selection)

    def with_model(self, model: FittedModel) -> Self:
        """Return the estimator itself; it holds no other tree than the imported one."""
        if model.tree is not self.tree_:
            raise ValueError("an imported model cannot hold another tree; zoo.warm_start makes a model that can")
        return self

    def _codec(self) -> TargetCodec:
        """Return the codec of a single tree's outputs, in units of the target."""
        n_outputs = self.splits_[0].value.shape[1]
        return PlainValueCodec(np.zeros(n_outputs), np.ones(n_outputs))

    @cached_property
    def trees_(self) -> list[Tree]:
        """Each tree alone, its leaves times its weight."""
        return [self._tree(index) for index in range(len(self.splits_))]

    def _tree(self, index: int) -> Tree:
        tree, total = self.splits_[index], self.sum_
        value = total.weights[index] * tree.value if total.weights[index] != 1 else tree.value
        if total.columns is not None and len(total.base) > 1:  # zero for all outputs but its column
            column = value[:, 0]
            value = np.zeros((len(value), len(total.base)))
            value[:, total.columns[index]] = column
        return replace(tree, value=value).to_tree(
            self.n_features_in_, marks_missing=self.encoder_.takes_missing, probabilities=self._has_shares
        )

    @cached_property
    def tree_(self) -> Tree:
        """The imported tree, or all of them below a root that splits evenly."""
        return self.trees_[0] if len(self.trees_) == 1 else join(self.trees_)

    @property
    def _has_shares(self) -> bool:
        """Whether leaves hold shares of classes."""
        return False

    @property
    def selection(self) -> Selection:
        """How `tree_` predicts: by the leaf that a row reaches, or by the mean over trees."""
        return "single" if len(self.splits_) == 1 else "multi"

    @property
    def structure_(self) -> Structure:
        """Geometry of `tree_`."""
        return self.tree_.structure

    def one_tree(self, index: int) -> ImportedModel:
        """Return one tree of an ensemble, which can be explained.

        Parameters
        ----------
        index : int

        Returns
        -------
        ImportedClassifier or ImportedRegressor
            A classifier for a forest of classes; a regressor, which predicts what the tree adds to the raw value, for
            a boosted ensemble.

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
        if not 0 <= index < len(self.splits_):
            raise ValueError(f"index must be from 0 to {len(self.splits_) - 1}, got {index}")
        return self._one_tree(self.splits_[index], self.sum_.weights[index])

    def _one_tree(self, tree: SplitTree, weight: float) -> ImportedModel:
        if weight != 1:
            tree = replace(tree, value=weight * tree.value)
        return ImportedRegressor.of([tree], self.encoder_, _plain_sum(tree))

    # Predictions

    def raw_values(self, X: Any) -> Floats:
        """Return the summed values of the trees, before the link.

        Parameters
        ----------
        X : table of shape (rows, columns)

        Returns
        -------
        ndarray of shape (rows, outputs)
        """
        check_is_fitted(self)
        values, missing = self.encoder_.read(X)
        total = self.sum_
        raw = total.start(len(values))
        for start in range(0, len(values), CHUNK_ROWS):
            rows = slice(start, start + CHUNK_ROWS)
            for index, tree in enumerate(self.splits_):
                leaf = tree.route(values[rows], None if missing is None else missing[rows])
                # In the order of the source, tree after tree: sums are equal, and so are ties.
                total.add(raw[rows], index, tree.value[leaf])
        return raw / total.average if total.average != 1 else raw

    def apply(self, X: Any) -> Integers:
        """Return the leaf of each row, numbered as in the source.

        Parameters
        ----------
        X : table of shape (rows, columns)

        Returns
        -------
        ndarray of shape (rows,), or (rows, trees) for an ensemble
        """
        check_is_fitted(self)
        values, missing = self.encoder_.read(X)
        leaves = np.stack([tree.source[tree.route(values, missing)] for tree in self.splits_], axis=1)
        return leaves[:, 0] if len(self.splits_) == 1 else leaves

    def get_depth(self) -> int:
        """Return the number of decisions on the longest path to a leaf of any tree.

        Returns
        -------
        int
        """
        return max(tree.depth for tree in self.splits_)

    def get_n_leaves(self) -> int:
        """Return the number of leaves of all trees.

        Returns
        -------
        int
        """
        return sum(tree.n_leaves for tree in self.splits_)

    def save(self, path: Any) -> NoReturn:
        """Raise: an imported model is not saved."""
        raise ValueError("an imported model cannot be saved; save its source, and import it again")

    def __sklearn_is_fitted__(self) -> bool:
        return "splits_" in self.__dict__


def _plain_sum(tree: SplitTree) -> TreeSum:
    """Return the sum of a single tree."""
    return TreeSum(np.zeros(tree.value.shape[1]), np.ones(1))


def _ranges(splits: Sequence[SplitTree], n_features: int) -> tuple[tuple[float, float], ...]:
    """Return the lowest and highest threshold of each column; 0 and 1 for one that no tree uses."""
    low, high = np.full(n_features, np.inf), np.full(n_features, -np.inf)
    for tree in splits:
        thresholds = (tree.left >= 0) & np.isfinite(tree.threshold)
        np.minimum.at(low, tree.feature[thresholds], tree.threshold[thresholds])
        np.maximum.at(high, tree.feature[thresholds], tree.threshold[thresholds])
    unused = low > high
    low[unused], high[unused] = 0.0, 1.0
    above = np.where(high > low, high, np.nextafter(low, np.inf))  # a range, even if there is one threshold
    return tuple(zip(low.tolist(), above.tolist(), strict=True))


class ImportedClassifier(ClassifierMixin, ImportedModel):  # type: ignore[misc]
    """A classifier of another library, made by `from_sklearn`.

    Attributes
    ----------
    classes_ : ndarray of shape (classes,)
    tree_, trees_, splits_, encoder_, sum_
        See `from_sklearn`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from tartree import zoo
    >>> X, y = load_iris(return_X_y=True)
    >>> zoo.from_sklearn(DecisionTreeClassifier(max_depth=2).fit(X, y))
    ImportedClassifier()
    """

    classes_: NDArray[Any]

    def _codec(self) -> TargetCodec:
        return ClassCodec(self.classes_)

    @property
    def _has_shares(self) -> bool:
        return self.sum_.link == "identity"

    def _one_tree(self, tree: SplitTree, weight: float) -> ImportedModel:
        if not self._has_shares:
            return super()._one_tree(tree, weight)
        model = type(self).of([tree], self.encoder_, _plain_sum(tree))
        model.classes_ = self.classes_
        return model

    def predict_proba(self, X: Any) -> Floats:
        """Predict the probability of each class.

        Parameters
        ----------
        X : table of shape (rows, columns)

        Returns
        -------
        ndarray of shape (rows, classes)
        """
        raw = self.raw_values(X)
        return self.sum_.linked(raw)

    def predict_log_proba(self, X: Any) -> Floats:
        """Predict the logarithm of each probability; minus infinity for an impossible class.

        Parameters
        ----------
        X : table of shape (rows, columns)

        Returns
        -------
        ndarray of shape (rows, classes)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most probable class of each row.

        Parameters
        ----------
        X : table of shape (rows, columns)

        Returns
        -------
        ndarray of shape (rows,)
        """
        raw = self.raw_values(X)
        predicted: NDArray[Any] = self.classes_[self.sum_.class_index(raw)]
        return predicted


class ImportedRegressor(RegressorMixin, ImportedModel):  # type: ignore[misc]
    """A regressor of another library, made by `from_sklearn`.

    Attributes
    ----------
    tree_, trees_, splits_, encoder_, sum_
        See `from_sklearn`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from tartree import zoo
    >>> X, y = load_diabetes(return_X_y=True)
    >>> zoo.from_sklearn(DecisionTreeRegressor(max_depth=2).fit(X, y)).predict(X).shape
    (442,)
    """

    def predict(self, X: Any) -> Floats:
        """Predict values.

        Parameters
        ----------
        X : table of shape (rows, columns)

        Returns
        -------
        ndarray of shape (rows,) or (rows, targets)
        """
        raw = self.raw_values(X)
        values = self.sum_.linked(raw)
        return values[:, 0] if values.shape[1] == 1 else values
