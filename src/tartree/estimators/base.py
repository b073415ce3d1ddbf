"""What the classifier and the regressor share: parameters, and what a fitted model tells."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tartree import ops
from tartree.estimators.explanation_methods import ExplanationMethods
from tartree.explain import Certificate, Hardening
from tartree.model import DataSource, FittedModel, ModelSpec, ReadingSize, data_source, file, fit
from tartree.model.stream_source import read_target_columns
from tartree.nn import Selection, Tree
from tartree.nn.tree import DecisionFactory, LeafFactory
from tartree.structure import Structure
from tartree.table import TableEncoder
from tartree.table.parquet import is_parquet
from tartree.training import SINGLE_WORKER, Callback, CheckpointStore, History, Recipe, WorkerGroup

Value = TypeVar("Value")


class ModelAttribute(Generic[Value]):
    """An attribute of an estimator that its fitted model holds; there is none before `fit`, or if it is None."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, estimator: None, owner: type) -> Self: ...

    @overload
    def __get__(self, estimator: BaseTart, owner: type) -> Value: ...

    def __get__(self, estimator: BaseTart | None, owner: type) -> Value | Self:
        if estimator is None:
            return self
        value: Value | None = attrgetter(self.path)(estimator.model_)
        if value is None:
            raise AttributeError(f"{type(estimator).__name__} has no {self.name}")
        return value

    def __set__(self, estimator: BaseTart, value: Value) -> None:
        holder, _, name = self.path.rpartition(".")
        if holder != "provenance":
            raise AttributeError(f"{self.name} cannot be set; with_model replaces the model")
        estimator.adopt(estimator.model_.record(**{name: value}))


class FileScore:
    """The score of scikit-learn's mixins, for tables in files too; it stands before the mixin."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of a classifier, or R2 of a regressor.

        Parameters
        ----------
        X : table of shape (rows, columns), or in files
        y : target, or the name of its column in files
        sample_weight : array of shape (rows,), or str, optional

        Returns
        -------
        float
        """
        if is_parquet(X) and isinstance(y, str):
            y, sample_weight = read_target_columns(X, y, sample_weight)
        return float(super().score(X, y, sample_weight))  # type: ignore[misc]


class BaseTart(ExplanationMethods, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators: a scikit-learn shell around a fitted model; see `TartClassifier` for the parameters."""

    target_kind: ClassVar[str]  # of its codec
    _model: FittedModel

    tree_ = ModelAttribute[Tree]("tree")
    encoder_ = ModelAttribute[TableEncoder]("encoder")
    structure_ = ModelAttribute[Structure]("structure")
    n_parameters_ = ModelAttribute[int]("n_parameters")
    n_features_in_ = ModelAttribute[int]("encoder.n_features_in_")
    feature_names_in_ = ModelAttribute[NDArray[np.object_]]("encoder.feature_names_in_")
    history_ = ModelAttribute[History]("provenance.history")
    refit_history_ = ModelAttribute[History]("provenance.refit_history")
    streamed_ = ModelAttribute[bool]("provenance.is_streamed")
    target_name_ = ModelAttribute[str]("provenance.target_name")
    reading_size_ = ModelAttribute[ReadingSize]("reading_size")
    temperature_ = ModelAttribute[float]("provenance.temperature")
    certificate_ = ModelAttribute[Certificate]("provenance.certificate")
    hardening_ = ModelAttribute[Hardening]("provenance.hardening")

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
        warm_start: bool = False,
        device: str = "auto",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.depth = depth
        self.window = window
        self.stride = stride
        self.decision_layers = decision_layers
        self.leaf_layers = leaf_layers
        self.selection = selection
        self.members = members
        self.hidden = hidden
        self.dropout = dropout
        self.branching = branching
        self.decision = decision
        self.leaf = leaf
        self.max_features = max_features
        self.max_terms = max_terms
        self.readable = readable
        self.numeric = numeric
        self.extrapolation = extrapolation
        self.columns = columns
        self.recipe = recipe
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.early_stopping = early_stopping
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    # The model

    @property
    def model_(self) -> FittedModel:
        """The fitted model; its selection is the parameter's, which may be set after `fit`."""
        model: FittedModel | None = self.__dict__.get("_model")
        if model is None:
            raise AttributeError(f"this {type(self).__name__} has no model_; call fit first")
        return model if model.selection == self.selection else replace(model, selection=self.selection)

    def with_model(self, model: FittedModel) -> Self:
        """Return a copy of the estimator that holds another model.

        Parameters
        ----------
        model : FittedModel

        Returns
        -------
        estimator
        """
        return copy.copy(self).adopt(model)

    def adopt(self, model: FittedModel) -> Self:
        """Hold another model, as `fit` does.

        Parameters
        ----------
        model : FittedModel

        Returns
        -------
        self
        """
        self._model = model
        self.selection = model.selection
        return self

    def spec(self) -> ModelSpec:
        """Return the parameters as a fit takes them, checked.

        Returns
        -------
        ModelSpec
        """
        return ModelSpec.from_parameters(self.target_kind, self.get_params(deep=False))

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to a table and its target.

        Parameters
        ----------
        X : table of shape (rows, columns), or where one is
            A path, pattern, folder or list of Parquet files, an Arrow dataset, or a `tartree.table.ParquetTable`. A
            large one is not read into memory but streamed.
        y : array of shape (rows,) or (rows, targets), or str or list of str
            Labels of any kind (text, integers, booleans) or values, of which a regression takes several columns, or
            one of texts such as "$447,000". With files, names of columns.
        sample_weight : array of shape (rows,), or str, optional
            Weights of rows, with files the name of the column. A weight counts like that many equal rows, except that
            levels of a category are counted by rows when rare ones are grouped.

        Returns
        -------
        self
        """
        return self.fit_source(data_source(self.spec(), X, y, sample_weight))

    def fit_source(
        self,
        source: DataSource,
        *,
        workers: WorkerGroup = SINGLE_WORKER,
        checkpoints: CheckpointStore | None = None,
    ) -> Self:
        """Fit to a source of rows; if anything fails, the estimator is left as it was.

        Parameters
        ----------
        source : DataSource
        workers : WorkerGroup
            Workers that fit the same estimator to other shards of the source.
        checkpoints : CheckpointStore, optional
            Keeps the state of training after each epoch, for resuming.

        Returns
        -------
        self
        """
        resumed = self.resumed_model()
        return self.adopt(fit(self.spec(), source, resumed=resumed, workers=workers, checkpoints=checkpoints))

    def resumed_model(self) -> FittedModel | None:
        """Return the model whose training `fit` goes on with: that of the last fit with ``warm_start=True``.

        Returns
        -------
        FittedModel or None
        """
        model: FittedModel | None = getattr(self, "model_", None)
        if self.warm_start or model is None:
            return model
        if model.is_grown:
            raise ValueError(
                f"a model with the structure of a grown tree cannot be fitted again, got {model.structure}; with "
                "warm_start=True training goes on, and clone(model) makes a regular tree"
            )
        return None

    # Predictions

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Return the node of the leaf with the largest arrival.

        Parameters
        ----------
        X : table of shape (rows, columns)

        Returns
        -------
        ndarray of shape (rows,) or (rows, members)
            Nodes are numbered layer by layer from the root, 0, as in `decision_path`.
        """
        check_is_fitted(self, "tree_")
        return self.model_.apply(X)

    def decision_path(self, X: Any) -> Any:
        """Return the nodes on the most probable path to the leaf of `apply`.

        Parameters
        ----------
        X : table of shape (rows, columns)

        Returns
        -------
        sparse matrix of shape (rows, nodes)
            With several members their nodes are side by side, and a second array holds where those of each begin, as in
            scikit-learn's forests.
        """
        check_is_fitted(self, "tree_")
        return self.model_.decision_path(X)

    def get_depth(self) -> int:
        """Return the number of decisions on the way to a leaf.

        Returns
        -------
        int
        """
        check_is_fitted(self, "tree_")
        return int(self.structure_.depth)

    def get_n_leaves(self) -> int:
        """Return the number of leaves of one member.

        Returns
        -------
        int
        """
        check_is_fitted(self, "tree_")
        return int(self.structure_.n_leaves)

    # Files

    def save(self, path: Any) -> None:
        """Write the fitted estimator into one file, which `tartree.load` reads; no pickle.

        Decisions and leaves of your own are code, which a file never holds: such an estimator cannot be saved.

        Parameters
        ----------
        path : path of the file
        """
        check_is_fitted(self, "tree_")
        self._compute_importances()
        file.save(path, self.model_, self.get_params(deep=False))

    def __getstate__(self) -> dict[str, Any]:
        # A pickle holds what was learnt from the rows, and none of them.
        self._compute_importances()
        state: dict[str, Any] = super().__getstate__()
        return {**state, "_model": state["_model"].record(sample=None)} if "_model" in state else state

    def __sklearn_is_fitted__(self) -> bool:
        return "_model" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        return tags
