"""TartClassifier: classes from a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from tartree import ops
from tartree.estimators.base import BaseTart
from tartree.estimators.rows import check_equal_rows, number_of_rows
from tartree.nn import Classes, Output, Selection
from tartree.nn.tree import DecisionFactory, LeafFactory
from tartree.table.parquet import is_parquet
from tartree.training import Callback, Recipe

if TYPE_CHECKING:
    from tartree.estimators.targets import LabelCoder, LabelStatistics


class TartClassifier(ClassifierMixin, BaseTart):  # type: ignore[misc]
    """A readable tree for classification: linear decisions, linear leaves, trained by gradient.

    It takes any table (pandas, polars, Arrow, arrays; numbers, categories, text, dates and gaps) and is a scikit-learn
    classifier. Its structure is the paper's five numbers: depth D, window W, stride S, decision layers H, leaf layers
    L.

    Parameters
    ----------
    depth : int or "auto", default="auto"
        Layers of decisions; 0 is the leaf alone (logistic regression, or a perceptron). "auto": 4, and 6 from 1,000
        rows on for trees with two children a node and constant or linear leaves. From 1,000 rows on, a tree with
        linear leaves is compared with a linear model (0) on held-out rows, and gives way to it where that predicts
        them better; then all rows are learnt from. Rows count once, whatever their weight, unless it is 0.
    window : int, default=2
        Children of a node.
    stride : int, optional
        How far the window slides from one node to the next; below the window, neighbours share children.
    decision_layers : int, default=1
        Layers of each decision function: 0 none, the leaves are averaged; 1 linear; more, a perceptron.
    leaf_layers : int, default=1
        Layers of each leaf function: 0 constant, 1 linear, more, a perceptron.
    selection : {"multi", "single"}, default="multi"
        Predict by the mean of the leaves weighted by arrival, or by the leaf of the largest arrival.
    members : int, default=1
        Number of trees, trained together from different seeds; their probabilities are averaged.
    hidden : int, default=100
        Hidden units of each decision or leaf with more than one layer.
    dropout : float, default=0.0
        Share of hidden units left out in training.
    branching : str or callable, default="softmax"
        How logits become branching probabilities: a name of `tartree.nn.ACTIVATIONS`, or a function.
    decision, leaf : callable, optional
        Your own f and g: ``decision(structure, n_features, members)`` and ``leaf(structure, n_features, n_numbers,
        members)`` make torch modules; see `tartree.nn`.
        A module as `decision`, from (batch, features) to (batch, width), is copied in every fit and stands below all
        nodes; settings of layers are then its own, and `decision_layers` is refused.
    numeric : {"standard", "quantile", "plain"}, default="standard"
        How numbers are encoded; see `TableEncoder`.
    extrapolation : float or None, default=0.1
        Numbers beyond those seen in `fit` are read as at most that share of their range further out. None: as they
        are, however far.
    recipe : str or Recipe, default="default"
        How the tree is trained: "default", "deep" (for perceptrons as leaves), "paper", or your own
        `tartree.training.Recipe`.
    epochs, batch_size, learning_rate : optional
        Replace those of the recipe.
    early_stopping : bool, "auto" or "refit", default="auto"
        Hold out a part of the rows, stop each member when its loss there no longer falls, and keep its best weights.
        "refit": and then train anew on all rows, each member for as many epochs as were best; `refit_history_` tells
        of it. "auto": no early stopping below 10,000 rows, "refit" below 100,000, True from there on.
    callbacks : sequence of callable, default=()
        Called with a `tartree.training.Epoch` after each epoch; training ends when one returns True.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes.
    warm_start : bool, default=False
        Go on from the last fit's weights and encoding.
    device : str, default="auto"
        "auto" takes a GPU where torch finds one, otherwise the CPU.
    random_state : int, RandomState or None, default=None
        Seed of weights, order of rows and noise. The same seed gives the same tree on a CPU.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    classes_ : ndarray
        The class labels.
    tree_ : tartree.nn.Tree
        The trained module.
    structure_ : Structure
        Its geometry.
    encoder_ : TableEncoder
        How the table becomes numbers, and back.
    history_ : tartree.training.History
        Losses by epoch; whether it was interrupted.
    n_parameters_ : int
        Number of trained numbers, of all members.
    streamed_ : bool
        Whether the rows came as a stream from files, rather than from memory.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = TartClassifier(depth=2, random_state=0).fit(X, y)
    >>> tree.predict(X[:2])
    array([0, 0])
    """

    classes_: NDArray[Any]

    def __init__(
        self,
        *,
        depth: int | Literal["auto"] = "auto",
        window: int = 2,
        stride: int | None = None,
        decision_layers: int = 1,
        leaf_layers: int = 1,
        selection: Selection = "multi",
        members: int = 1,
        hidden: int = 100,
        dropout: float = 0.0,
        branching: str | ops.ActivationFunction = "softmax",
        decision: DecisionFactory | None = None,
        leaf: LeafFactory | None = None,
        numeric: Literal["standard", "quantile", "plain"] = "standard",
        extrapolation: float | None = 0.1,
        recipe: str | Recipe = "default",
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        early_stopping: bool | Literal["auto", "refit"] = "auto",
        callbacks: Sequence[Callback] = (),
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False,
        device: str = "auto",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            depth=depth,
            window=window,
            stride=stride,
            decision_layers=decision_layers,
            leaf_layers=leaf_layers,
            selection=selection,
            members=members,
            hidden=hidden,
            dropout=dropout,
            branching=branching,
            decision=decision,
            leaf=leaf,
            numeric=numeric,
            extrapolation=extrapolation,
            recipe=recipe,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            early_stopping=early_stopping,
            callbacks=callbacks,
            warm_start=warm_start,
            device=device,
            random_state=random_state,
            verbose=verbose,
        )
        self.class_weight = class_weight

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to a table and its labels.

        Parameters
        ----------
        X : table of shape (rows, columns), or where one is
            A path, pattern, folder or list of Parquet files, an Arrow dataset, or a `tartree.table.ParquetTable`. A
            large one is not read into memory but streamed.
        y : array of shape (rows,), or str
            Labels of any kind: text, integers, booleans. With files, the name of the column.
        sample_weight : array of shape (rows,), or str, optional
            Weights of rows, with files the name of the column. A weight counts like that many equal rows, except that
            levels of a category are counted by rows when rare ones are grouped.
        """
        if is_parquet(X):
            from tartree.estimators.streaming import fit_parquet

            fit_parquet(self, X, y, sample_weight)
            return self
        if y is None:
            raise ValueError("This TartClassifier estimator requires y to be passed, but the target y is None")
        labels = column_or_1d(y, warn=True)
        _check_labels(labels)
        check_classification_targets(labels)
        n_rows = number_of_rows(X)
        check_equal_rows(n_rows, len(labels))
        weight = self._sample_weight(sample_weight, n_rows)
        self._fit_encoder(X, weight)  # before class weights, which say nothing about the columns
        classes, codes = np.unique(labels, return_inverse=True)
        self._set_classes(classes)
        if self.class_weight is not None:
            by_class = compute_sample_weight(self.class_weight, labels)
            weight = by_class if weight is None else by_class * weight
            if not (weight > 0).any():
                raise ValueError(f"class_weight must leave some row with weight, however: {self.class_weight}")
        self._fit_tree(X, torch.from_numpy(codes.astype(np.int64)), weight, strata=codes)
        return self

    def _set_classes(self, classes: NDArray[Any]) -> None:
        if len(classes) < 2:
            only = classes.tolist()[0]
            raise ValueError(
                f"TartClassifier needs at least two classes to tell apart, however: y has one class, {only!r}"
            )
        if self.warm_start and hasattr(self, "tree_") and not np.array_equal(classes, self.classes_):
            raise ValueError(f"warm_start must keep the classes {self.classes_.tolist()}, however: {classes.tolist()}")
        self.classes_ = classes

    def _target_statistics(self, n_targets: int) -> LabelStatistics:
        from tartree.estimators.targets import LabelStatistics

        return LabelStatistics()

    def _learn_target(self, statistics: LabelStatistics, *, weighted: bool) -> LabelCoder:
        from tartree.estimators.targets import LabelCoder

        coder = LabelCoder(statistics, self.class_weight, weighted=weighted)
        self._set_classes(coder.classes)
        return coder

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probability of each class, (rows, classes): the mean over the members.

        `X` may be a table in files, as in `fit`.
        """
        return np.concatenate(list(self._probabilities(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row, (rows,); `X` may be a table in files, as in `fit`."""
        check_is_fitted(self, "tree_")
        small = np.min_scalar_type(len(self.classes_))  # a place a row, until all are known
        places = [probabilities.argmax(axis=1).astype(small) for probabilities in self._probabilities(X)]
        predicted: NDArray[Any] = self.classes_[np.concatenate(places)]
        return predicted

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows whose class is predicted right; of a table in files, `y` may be the name of a column."""
        if is_parquet(X) and isinstance(y, str):
            from tartree.estimators.streaming import read_target

            y, sample_weight = read_target(X, y, sample_weight)
        return float(super().score(X, y, sample_weight))

    def _probabilities(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Chunk by chunk, (rows, classes)."""
        for members in self._predict_members(X):
            probabilities: NDArray[np.float64] = members.mean(axis=0)
            probabilities /= probabilities.sum(axis=1, keepdims=True)
            yield probabilities

    def _output(self) -> Output:
        return Classes(len(self.classes_))

    def _fitted_data(self) -> dict[str, Any]:
        labels = self.classes_.tolist()
        if not all(isinstance(label, str | int | float | bool) for label in labels):
            raise ValueError(f"labels must be text, numbers or booleans to be saved, however: {labels[0]!r}")
        return {"classes": labels, "dtype": self.classes_.dtype.str}

    def _set_fitted_data(self, data: dict[str, Any]) -> None:
        classes, dtype = data["classes"], np.dtype(data["dtype"])
        if dtype.kind not in "biufUO" or not all(isinstance(c, str | int | float | bool) for c in classes):
            raise ValueError(f"classes must be text, numbers or booleans, however: {data}")
        self.classes_ = np.array(classes, dtype=dtype)


def _check_labels(labels: NDArray[Any]) -> None:
    missing = [i for i, label in enumerate(labels.tolist()) if label is None or label != label]
    if missing:
        raise ValueError(
            f"Input y contains NaN: every row needs a label, however: {len(missing)} of {len(labels)} are missing, "
            f"the first in row {missing[0]}; drop those rows"
        )
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        raise ValueError(
            f"Input y contains infinity or a value too large for {labels.dtype!r}, the first in row "
            f"{int(np.isinf(labels).argmax())}; labels must be finite"
        )
