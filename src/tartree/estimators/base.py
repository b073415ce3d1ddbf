"""What the classifier and the regressor share: parameters, encoding, training, and what a fitted tree tells."""

from __future__ import annotations

import copy
import numbers
import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted
from torch import Tensor

from tartree import ops, persist
from tartree.estimators.explaining import Explaining
from tartree.estimators.predicting import Predicting
from tartree.estimators.rows import is_large_map, join_equal_rows, number_with_weight, split_rows
from tartree.estimators.state import RECORDS, state_of
from tartree.nn import Classes, Output, Selection, Tree
from tartree.nn.tree import DecisionFactory, LeafFactory
from tartree.structure import Structure
from tartree.table import TableEncoder
from tartree.training import (
    RECIPES,
    SINGLE_WORKER,
    Callback,
    History,
    LazyRows,
    Recipe,
    Rows,
    TensorRows,
    WorkerGroup,
    train,
)
from tartree.training.held_out import HeldOutEvaluation

if TYPE_CHECKING:
    from tartree.estimators.targets import TargetCoder, TargetStatistics

#: Early stopping by itself begins here: below, every row is worth more in training than in validation. So it is up to
#: REFIT_ROWS, where the rows held out come back in a refit; beyond, a tenth of the rows is not missed.
EARLY_STOPPING_ROWS = 10_000
REFIT_ROWS = 100_000
#: From so many rows on, a tree whose depth is its own choice has 64 leaves in place of 16. On held-out training rows of
#: the UCI sets 64 lose below 200 rows, gain little up to 3,000 and over a point beyond; 16 are easier to read.
DEEP_ROWS = 1_000
#: Where nothing is held out for early stopping, share of the rows on which such a tree is compared with a linear model.
COMPARED_SHARE = 0.2
#: Parameters that make the tree, beside its structure.
TREE_SETTINGS = ("decision_layers", "leaf_layers", "hidden", "dropout", "branching", "members", "decision", "leaf")
#: Rows are put into one order, and equal ones joined, in tables up to this size.
CANONICAL_ROWS = 20_000
#: Rows that importances are computed from, at most.
SAMPLE_ROWS = 2_000


class BaseTart(Predicting, Explaining, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators; see `TartClassifier` for the parameters."""

    history_: History
    _stop_before_training: bool = False

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
        self.numeric = numeric
        self.extrapolation = extrapolation
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

    @abstractmethod
    def _output(self) -> Output:
        """What the leaves give, once the target has been seen."""

    @abstractmethod
    def _target_statistics(self, n_targets: int) -> TargetStatistics:
        """What has to be known of a target that comes in pieces, still empty."""

    @abstractmethod
    def _learn_target(self, statistics: Any, *, weighted: bool) -> TargetCoder:
        """Take classes or scale from the statistics of a target; how it is written for training."""

    @abstractmethod
    def _fitted_data(self) -> dict[str, Any]:
        """What a file must hold beyond the tree and the encoder, as plain data."""

    @abstractmethod
    def _set_fitted_data(self, data: dict[str, Any]) -> None:
        """Read what `_fitted_data` gave, checking it."""

    # Training

    def _fit_tree(
        self, X: Any, target: Tensor, weight: NDArray[np.float64] | None, strata: NDArray[Any] | None
    ) -> None:
        """Encode, build and train, after the target has been checked and encoded.

        `target` is on the CPU, (rows, ...); `strata` keeps the shares of classes equal in the validation part.
        """
        recipe = self._recipe()
        rng = check_random_state(self.random_state)
        seeds = self._draw_seeds(rng)
        may_be_linear = self._may_be_linear(X, number_with_weight(len(target), weight))
        device = self._make_tree(seeds, number_with_weight(len(target), weight))
        self.streamed_ = False
        if self._stop_before_training:
            self._prepared = target, weight
            return
        some_rows = self._row_source(X, target, weight, device)
        stopping = self._stopping(len(target))
        learnt = held_out = validation = None
        if stopping:
            learnt, held_out = _split(len(target), weight, strata, recipe.validation_fraction, rng)
            validation = some_rows(held_out)
        elif may_be_linear:
            own_rng = np.random.RandomState(int(seeds[0]))
            parts = [some_rows(index) for index in _split(len(target), weight, strata, COMPARED_SHARE, own_rng)]
            self._train(parts[0], None, recipe, seeds, callbacks=())
            if self.history_.interrupted:  # what was learnt until then is kept
                self.tree_.eval()
                return
            if self._linear_if_better(parts[0], parts[1], recipe, seeds) is not None:
                self.structure_ = Structure(0, self.window, self.stride)
                self._build(self._settings, seed=int(seeds[0]))
                self.tree_.to(device)
            self._draw_weights(seeds[1:])
        self._train(some_rows(learnt), validation, recipe, seeds, callbacks=self._callbacks())
        if validation is not None and may_be_linear and not self.history_.interrupted:
            linear = self._linear_if_better(some_rows(learnt), validation, recipe, seeds, stop_early=True)
            if linear is not None:
                self.tree_, self.history_ = linear
                self.structure_ = self.tree_.structure
                self.n_parameters_ = _count_parameters(self.tree_)
        if stopping == "refit" and not self.history_.interrupted:
            self._refit(some_rows(None), recipe, seeds)
        self.tree_.eval()

    def _train(
        self,
        rows: Rows,
        validation: Rows | None,
        recipe: Recipe,
        seeds: NDArray[Any],
        *,
        callbacks: Sequence[Callback],
    ) -> None:
        self.history_ = train(
            self.tree_,
            rows,
            recipe,
            generator=torch.Generator().manual_seed(int(seeds[0])),
            validation=validation,
            selection=self.selection,
            callbacks=callbacks,
            verbose=self.verbose,
        )

    def _may_be_linear(self, X: Any, n_rows: int) -> bool:
        """Whether the tree is compared with a linear model: where its depth is "auto" and there are rows to tell."""
        goes_on = self.warm_start and hasattr(self, "tree_")
        simple = self.leaf_layers == 1 and self.leaf is None and self.decision is None
        return self.depth == "auto" and simple and n_rows >= DEEP_ROWS and not goes_on and not is_large_map(X)

    def _linear_if_better(
        self, rows: Rows, held_out: Rows, recipe: Recipe, seeds: NDArray[Any], *, stop_early: bool = False
    ) -> tuple[Tree, History] | None:
        """A linear model (depth 0), trained alike, with its history; None if the tree at hand predicts better."""
        device = next(self.tree_.parameters()).device
        structure = Structure(0, self.window, self.stride)
        linear = Tree.build(structure, len(self.encoder_.features_), self._output(), **self._settings).to(device)
        linear.reset_parameters([torch.Generator().manual_seed(int(seed)) for seed in seeds[1:]])
        history = train(
            linear,
            rows,
            recipe,
            generator=torch.Generator().manual_seed(int(seeds[0])),
            validation=held_out if stop_early else None,
            selection=self.selection,
        )
        errors = [_held_out_error(tree, held_out, self.selection) for tree in (linear, self.tree_)]
        return (linear, history) if errors[0] < errors[1] else None

    def _draw_seeds(self, rng: np.random.RandomState) -> NDArray[Any]:
        """A seed of the run and one of each member, (1 + members,)."""
        return rng.randint(np.iinfo(np.int32).max, size=self._positive("members") + 1)

    def _make_tree(self, seeds: NDArray[Any], n_rows: int) -> torch.device:
        """Check the parameters and build the tree, or go on with the one at hand; the device where it is."""
        structure = self._structure(n_rows)
        self._check_used()
        if self.selection not in ("multi", "single"):
            raise ValueError(f"selection must be 'multi' or 'single', however: selection={self.selection!r}")
        device = self._device()
        settings = {name: getattr(self, name) for name in TREE_SETTINGS}
        if self.warm_start and hasattr(self, "tree_"):
            self._check_unchanged(structure, settings)
        else:
            self.structure_ = structure
            self._build(settings, seed=int(seeds[0]))
            self._draw_weights(seeds[1:])
        for record in RECORDS:  # they belong to the tree as it was
            self.__dict__.pop(record, None)
        self.tree_.to(device)
        return device

    def _prepare(self, X: Any, y: Any, sample_weight: Any = None) -> tuple[Tensor, NDArray[np.float64] | None]:
        """All that `fit` does before training: checks, encoder, tree. Gives the target and weights of training."""
        self._stop_before_training = True
        try:
            self.fit(X, y, sample_weight)
            return self._prepared
        finally:
            del self._stop_before_training
            self.__dict__.pop("_prepared", None)

    def _refit(self, rows: Rows, recipe: Recipe, seeds: NDArray[Any], team: WorkerGroup = SINGLE_WORKER) -> None:
        """Train anew on all rows, each member up to its best epoch; when interrupted, go back to what there was."""
        stopped_early = copy.deepcopy(self.tree_.state_dict())
        self._draw_weights(seeds[1:])
        try:
            self.refit_history_ = train(
                self.tree_,
                rows,
                recipe,
                generator=torch.Generator().manual_seed(int(seeds[0])),
                keep_epoch=self.history_.best_epoch,
                verbose=self.verbose,
                workers=team,
            )
            self.history_.interrupted = self.refit_history_.interrupted
        except KeyboardInterrupt:
            self.history_.interrupted = True
            warnings.warn("the refit was interrupted; the weights of early stopping are kept", stacklevel=4)
        if self.history_.interrupted:
            self.tree_.load_state_dict(stopped_early)

    def _stopping(self, n_rows: int) -> bool | Literal["refit"]:
        """How to stop with so many rows: not early, early, or early and then anew with all rows."""
        stopping = self.early_stopping
        if stopping not in (True, False, "auto", "refit"):
            raise ValueError(
                f"early_stopping must be True, False, 'auto' or 'refit', however: early_stopping={stopping!r}"
            )
        if stopping != "auto":
            return stopping
        if n_rows < EARLY_STOPPING_ROWS:
            return False
        return "refit" if n_rows < REFIT_ROWS else True

    def _check_unchanged(self, structure: Structure, settings: dict[str, Any]) -> None:
        if structure != self.structure_:
            raise ValueError(f"warm_start must keep the structure {self.structure_}, however: {structure}")
        for name, value in settings.items():
            if value != self._settings[name]:
                raise ValueError(f"warm_start must keep {name}={self._settings[name]!r}, however: {name}={value!r}")

    def _draw_weights(self, seeds: NDArray[Any]) -> None:
        self.tree_.reset_parameters([torch.Generator().manual_seed(int(seed)) for seed in seeds])

    def _callbacks(self) -> Sequence[Callback]:
        if callable(self.callbacks):
            return (self.callbacks,)
        return tuple(self.callbacks or ())

    def _fit_encoder(self, X: Any, weight: NDArray[np.float64] | None) -> None:
        """Learn the encoding; a table on disk is looked at through a sample of its rows."""
        if self.warm_start and hasattr(self, "tree_"):
            return
        self._refuse_grown()
        if is_large_map(X):
            some = np.random.default_rng(0).choice(len(X), size=min(len(X), 200_000), replace=False)
            X, weight = np.asarray(X[np.sort(some)]), None
        self._set_encoder(
            TableEncoder(numeric=self.numeric, extrapolation=self.extrapolation).fit(X, sample_weight=weight)
        )

    def _refuse_grown(self) -> None:
        if self._is_grown():
            raise ValueError(
                f"a model with the structure of a grown tree cannot be fitted anew, however: {self.structure_}; with "
                "warm_start=True training goes on, and clone(model) makes a regular tree"
            )

    def _set_encoder(self, encoder: TableEncoder) -> None:
        self.encoder_ = encoder
        self.n_features_in_ = encoder.n_features_in_
        if hasattr(encoder, "feature_names_in_"):
            self.feature_names_in_ = encoder.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _row_source(
        self, X: Any, target: Tensor, weight: NDArray[np.float64] | None, device: torch.device
    ) -> Callable[[Tensor | None], Rows]:
        """Encode a table once, and keep a sample of it; the result gives some of its rows, or all for None."""
        x = None if is_large_map(X) else self._encoded(X)  # (rows, features)
        self._sample = None if x is None else _sample(x, target, weight)
        self._importances = None
        return lambda index: self._rows_of(X, x, target, weight, index, device)

    def _rows(
        self,
        X: Any,
        target: Tensor,
        weight: NDArray[np.float64] | None,
        strata: NDArray[Any] | None,
        device: torch.device,
        rng: np.random.RandomState,
        validation_fraction: float,
    ) -> tuple[Rows, Rows | None]:
        """Rows to learn from, and those that early stopping holds out."""
        some_rows = self._row_source(X, target, weight, device)
        if not self._stopping(len(target)):
            return some_rows(None), None
        learnt, held_out = _split(len(target), weight, strata, validation_fraction, rng)
        return some_rows(learnt), some_rows(held_out)

    def _rows_of(
        self,
        X: Any,
        x: Tensor | None,
        target: Tensor,
        weight: NDArray[np.float64] | None,
        own: Tensor | None,
        device: torch.device,
    ) -> Rows:
        """Some rows, or all of them: encoded already, or (`x` is None) read when they are needed."""
        weights = None if weight is None else torch.from_numpy(weight / weight[weight > 0].mean()).float()
        counted = np.ones(len(target)) if weight is None else weight
        total = float(counted.sum() if own is None else counted[own.numpy()].sum())
        if own is None and x is not None and len(x) <= CANONICAL_ROWS:
            x, target, weights = join_equal_rows(x, target, weights)
        if own is not None:
            x = None if x is None else x[own]
            target, weights = target[own], None if weights is None else weights[own]
        target, weights = target.to(device), None if weights is None else weights.to(device)
        if x is not None:
            return TensorRows(x.to(device), target, weights, total)

        def read(index: Tensor) -> Tensor:
            rows = index if own is None else own[index]
            return torch.from_numpy(self._encode(X[rows.numpy()])).to(device)

        return LazyRows(read, target, weights)

    def _build(self, settings: dict[str, Any], seed: int = 0) -> None:
        self._settings = settings  # those of the tree at hand, whatever becomes of the parameters
        with torch.random.fork_rng():  # modules of the user's own may draw their weights from torch's generator
            torch.manual_seed(seed)
            self.tree_ = Tree.build(self.structure_, len(self.encoder_.features_), self._output(), **settings)
        self.n_parameters_ = _count_parameters(self.tree_)

    # Parameters

    def _structure(self, n_rows: int) -> Structure:
        grown: Structure | None = getattr(self, "structure_", None)
        if grown is not None and self._is_grown() and self.warm_start:
            return grown
        return Structure(self._depth(n_rows), self.window, self.stride)

    def _depth(self, n_rows: int) -> int:
        """Layers of decisions of a tree for so many rows."""
        if not isinstance(self.depth, str):
            return self.depth
        if self.depth != "auto":
            raise ValueError(f"depth must be an integer of at least 0 or 'auto', however: depth={self.depth!r}")
        if self.warm_start and hasattr(self, "structure_"):
            return int(self.structure_.depth)
        may_be_deep = self.window == 2 and self.leaf_layers in (0, 1) and self.leaf is None
        return 6 if may_be_deep and n_rows >= DEEP_ROWS else 4

    def _is_grown(self) -> bool:
        """Whether the structure is that of a tree grown elsewhere, which the parameters do not tell."""
        return hasattr(self, "temperature_") and not self.structure_.is_regular

    def _check_used(self) -> None:
        """Raise where a parameter would be without effect beside a `decision` or `leaf` that brings its own layers."""
        own: dict[str, float] = {}
        if self.decision is not None:
            own["decision_layers"] = 1
        if self.leaf is not None:
            own["leaf_layers"] = 1
        if own and all(getattr(self, name) in (0, 1) for name in ("decision_layers", "leaf_layers")):
            own |= {"hidden": 100, "dropout": 0.0}
        for name, default in own.items():
            if (value := getattr(self, name)) != default:
                brings = "leaf" if name == "leaf_layers" or self.decision is None else "decision"
                raise ValueError(
                    f"{name} has no effect beside {brings}, which brings its own layers, however: {name}={value!r}; "
                    "set it there"
                )

    def _recipe(self) -> Recipe:
        recipe = self.recipe
        if isinstance(recipe, str):
            if recipe not in RECIPES:
                raise ValueError(f"recipe must be one of {', '.join(RECIPES)} or a Recipe, however: recipe={recipe!r}")
            recipe = RECIPES[recipe]
        elif not isinstance(recipe, Recipe):
            raise ValueError(f"recipe must be one of {', '.join(RECIPES)} or a Recipe, however: recipe={recipe!r}")
        changes = {
            name: getattr(self, name)
            for name in ("epochs", "batch_size", "learning_rate")
            if getattr(self, name) is not None
        }
        return replace(recipe, **changes)

    def _positive(self, name: str) -> int:
        value = getattr(self, name)
        if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} must be an integer of at least 1, however: {name}={value!r}")
        return int(value)

    def _device(self) -> torch.device:
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        try:
            return torch.empty(0, device=self.device).device
        except (RuntimeError, AssertionError) as error:
            raise ValueError(
                f"device must be 'auto' or one that torch finds here, however: device={self.device!r}"
            ) from error

    def _sample_weight(self, sample_weight: Any, n_rows: int) -> NDArray[np.float64] | None:
        if sample_weight is None:
            return None
        weight: NDArray[np.float64] = _check_sample_weight(
            sample_weight, np.empty((n_rows, 1)), dtype=np.float64, ensure_non_negative=True
        )
        return weight

    # Files

    def save(self, path: Any) -> None:
        """Write the fitted estimator into one file, which `tartree.load` reads; no pickle.

        Decisions and leaves of your own are code, which a file never holds: such an estimator cannot be saved.
        """
        check_is_fitted(self, "tree_")
        document, arrays = state_of(self)
        persist.write(path, document, arrays)

    def __getstate__(self) -> dict[str, Any]:
        # A pickle holds what was learnt from the rows, and none of them.
        if self._sample is not None:
            self._importances = self.feature_importances_
        state: dict[str, Any] = super().__getstate__()
        return {**state, "_sample": None} if "_sample" in state else state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        return tags


def _split(
    n_rows: int,
    weight: NDArray[np.float64] | None,
    strata: NDArray[Any] | None,
    share: float,
    rng: np.random.RandomState,
) -> tuple[Tensor, Tensor]:
    """Numbers of rows to learn from and to hold out, among those with weight."""
    counted = np.arange(n_rows) if weight is None else np.flatnonzero(weight > 0)
    learnt, held_out = split_rows(len(counted), None if strata is None else strata[counted], share, rng)
    return torch.from_numpy(counted)[learnt], torch.from_numpy(counted)[held_out]


def _held_out_error(tree: Tree, rows: Rows, selection: Selection) -> float:
    """Mean of the members' log losses, or of their squared errors: likelihoods of real targets hang on few rows."""
    loss, score = HeldOutEvaluation(tree, rows, selection, batch_size=1024)()
    tree.eval()
    return float(loss.mean()) if isinstance(tree.output, Classes) else 1 - float(score.mean())


def _count_parameters(tree: Tree) -> int:
    return sum(p.numel() for p in tree.parameters())


def _sample(x: Tensor, target: Tensor, weight: NDArray[np.float64] | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """Rows of training, evenly taken, that `feature_importances_` looks at when it is asked for."""
    counted = torch.arange(len(x)) if weight is None else torch.from_numpy(np.flatnonzero(weight > 0))
    some = counted[torch.linspace(0, len(counted) - 1, min(len(counted), SAMPLE_ROWS)).long()]
    return x[some], target[some], None if weight is None else torch.from_numpy(weight)[some]
