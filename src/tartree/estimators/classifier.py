"""TartClassifier: classes from a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from tartree import ops
from tartree.estimators.base import BaseTart, FileScore, ModelAttribute
from tartree.nn import Selection
from tartree.nn.tree import DecisionFactory, LeafFactory
from tartree.training import Callback, Recipe


class TartClassifier(FileScore, ClassifierMixin, BaseTart):  # type: ignore[misc]
    """A tree for classification, trained by gradient: by default one that can be read.

    It takes any table (pandas, polars, Arrow, arrays; numbers, categories, text, dates, missing values) and is a
    scikit-learn classifier. The default decides on one column at a time, and its leaves are sums of curves, one for
    each column; see `readable`. Parameters of the structure describe the other models of the paper by its five numbers:
    depth D, window W, stride S, decision layers H, leaf layers L.

    Parameters
    ----------
    depth : int or "auto", default="auto"
        Layers of decisions; 0 is the leaf alone (logistic regression, or a perceptron). "auto": for a readable tree 3,
        at most 8 leaves, and 6 from 10,000 rows on. For others 4, and 6 from 1,000 rows on for trees with two
        children a node and constant or linear leaves; such a tree with linear leaves is compared with a linear model
        (0) on held-out rows, and replaced by it if that predicts them better; then all rows are trained on. Rows count
        once, whatever their weight, unless it is 0.
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
        members)`` make torch modules; see `tartree.nn`. A module as `decision`, from (batch, features) to (batch,
        width), is copied in every fit and shared by all nodes; `decision_layers` must then keep its default.
    max_features : int, optional
        Columns of the table that each decision may use: training removes the others. For linear decisions.
    max_terms : int, optional
        Terms of all leaves together: training removes the others. A term is what a column adds, for all rows or below
        a node of the tree, to what leaves share (``leaf=tartree.nn.Path()``).
    readable : bool or "auto", default="auto"
        Fit a tree to be read, where other parameters have their defaults: decisions on one column (`max_features`; on
        two columns from 10,000 rows on), curves of numbers (``numeric="curve"``), leaves that share what is above them
        (``leaf=tartree.nn.Path()``), and the recipe "readable" ("readable-values" in a regression), which leaves out
        terms that do not help; how strictly is chosen on held-out rows from 1,000 rows on. A row follows one path,
        and the leaf at its end is the prediction. Leaves without rows are removed, and decisions below which all leaves
        are equal.
        "auto": unless a parameter describes another model: one of `depth` to `leaf`, `numeric` or `recipe`.
    numeric : {"auto", "standard", "curve", "quantile", "plain"}, default="auto"
        How numbers are encoded; see `TableEncoder`. "auto": "curve" for a readable tree, otherwise "standard".
    extrapolation : float or None, default=0.1
        Numbers beyond those seen in `fit` are read as at most that share of their range further out. None: as they
        are, however far.
    columns : dict, optional
        What some columns are, by name, where their values do not tell: "number", "date", "category" or "ignore"; see
        `TableEncoder`, whose `summary()` tells what each column was taken for.
    recipe : str or Recipe, default="default"
        How the tree is trained: "default", "deep" (for perceptrons as leaves), "paper", or your own
        `tartree.training.Recipe`.
    epochs, batch_size, learning_rate : optional
        Replace those of the recipe.
    early_stopping : bool, "auto" or "refit", default="auto"
        Hold out a part of the rows, stop each member when its loss there no longer falls, and keep its best weights.
        "refit": then train again on all rows, each member up to its best epoch; `refit_history_` has the losses.
        "auto": no early stopping below 10,000 rows, "refit" below 100,000, True from there on.
    callbacks : sequence of callable, default=()
        Called with a `tartree.training.Epoch` after each epoch; training ends when one returns True.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes.
    warm_start : bool, default=False
        Continue from the weights and the encoding of the last fit.
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

    target_kind = "classification"
    classes_ = ModelAttribute[NDArray[Any]]("classes")

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
        max_features: int | None = None,
        max_terms: int | None = None,
        readable: bool | Literal["auto"] = "auto",
        numeric: Literal["auto", "standard", "curve", "quantile", "plain"] = "auto",
        extrapolation: float | None = 0.1,
        columns: Mapping[Any, str] | None = None,
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
            max_features=max_features,
            max_terms=max_terms,
            readable=readable,
            numeric=numeric,
            extrapolation=extrapolation,
            columns=columns,
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

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the probability of each class: the mean over the members.

        Parameters
        ----------
        X : table of shape (rows, columns), or in files as in `fit`

        Returns
        -------
        ndarray of shape (rows, classes)
        """
        check_is_fitted(self, "tree_")
        return self.model_.predict_proba(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most probable class of each row.

        Parameters
        ----------
        X : table of shape (rows, columns), or in files as in `fit`

        Returns
        -------
        ndarray of shape (rows,)
        """
        check_is_fitted(self, "tree_")
        return self.model_.predict(X)
