"""What the classifier and the regressor share: parameters, encoding, training, and what a fitted tree tells."""

from __future__ import annotations

import copy
import numbers
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted
from torch import Tensor

from tartree import ops, persist
from tartree.estimators.precision import in_double
from tartree.estimators.rows import is_large_map, join_equal_rows, split_rows
from tartree.estimators.state import RECORDS, state_of
from tartree.nn import Output, Selection, Tree
from tartree.nn.best_leaf import best_leaf
from tartree.nn.tree import DecisionFactory, LeafFactory
from tartree.structure import Structure
from tartree.table import TableEncoder
from tartree.training import RECIPES, Callback, LazyRows, Recipe, Rows, TensorRows, train

#: Early stopping by itself begins here: below, every row is worth more in training than in validation. So it is up to
#: REFIT_ROWS, where the rows held out come back in a refit; beyond, a tenth of the rows is not missed.
EARLY_STOPPING_ROWS = 10_000
REFIT_ROWS = 100_000
#: Parameters that make the tree, beside its structure.
TREE_SETTINGS = ("decision_layers", "leaf_layers", "hidden", "dropout", "branching", "members", "decision", "leaf")
#: Rows are put into one order, and equal ones joined, in tables up to this size.
CANONICAL_ROWS = 20_000
#: Rows that importances are computed from, at most.
SAMPLE_ROWS = 2_000


class BaseTart(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators; see `TartClassifier` for the parameters."""

    _sample: tuple[Tensor, Tensor, Tensor | None] | None = None
    _importances: NDArray[np.float64] | None = None
    _stop_before_training: bool = False

    def __init__(
        self,
        *,
        depth: int = 4,
        window: int = 2,
        stride: int | None = None,
        decision_layers: int = 1,
        leaf_layers: int = 1,
        selection: Selection = "multi",
        members: int = 1,
        hidden: int = 100,
        dropout: float = 0.0,
        branching: str | ops.Activation = "softmax",
        decision: DecisionFactory | None = None,
        leaf: LeafFactory | None = None,
        numeric: Literal["standard", "quantile", "plain"] = "standard",
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
        structure = self._structure()
        recipe = self._recipe()
        self._check_used()
        if self.selection not in ("multi", "single"):
            raise ValueError(f"selection must be 'multi' or 'single', however: selection={self.selection!r}")
        device = self._device()
        rng = check_random_state(self.random_state)
        seeds = rng.randint(np.iinfo(np.int32).max, size=self._positive("members") + 1)
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
        if self._stop_before_training:
            self._prepared = target, weight
            return
        rows, validation = self._rows(X, target, weight, strata, device, rng, recipe.validation_fraction)
        self.history_ = train(
            self.tree_,
            rows,
            recipe,
            generator=torch.Generator().manual_seed(int(seeds[0])),
            validation=validation,
            selection=self.selection,
            callbacks=self._callbacks(),
            verbose=self.verbose,
        )
        if self._stopping(len(target)) == "refit" and not self.history_.interrupted:
            self._refit(X, target, weight, device, recipe, seeds)
        self.tree_.eval()

    def _prepare(self, X: Any, y: Any, sample_weight: Any = None) -> tuple[Tensor, NDArray[np.float64] | None]:
        """All that `fit` does before training: checks, encoder, tree. Gives the target and weights of training."""
        self._stop_before_training = True
        try:
            self.fit(X, y, sample_weight)
            return self._prepared
        finally:
            del self._stop_before_training
            self.__dict__.pop("_prepared", None)

    def _refit(
        self,
        X: Any,
        target: Tensor,
        weight: NDArray[np.float64] | None,
        device: torch.device,
        recipe: Recipe,
        seeds: NDArray[Any],
    ) -> None:
        """Train anew on all rows, each member up to its best epoch; when interrupted, go back to what there was."""
        stopped_early = copy.deepcopy(self.tree_.state_dict())
        self._draw_weights(seeds[1:])
        try:
            self.refit_history_ = train(
                self.tree_,
                self._rows_of(X, None if is_large_map(X) else self._encoded(X), target, weight, None, device),
                recipe,
                generator=torch.Generator().manual_seed(int(seeds[0])),
                keep_epoch=self.history_.best_epoch,
                verbose=self.verbose,
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
        if self._is_grown():
            raise ValueError(
                f"a model with the structure of a grown tree cannot be fitted anew, however: {self.structure_}; with "
                "warm_start=True training goes on, and clone(model) makes a regular tree"
            )
        if is_large_map(X):
            some = np.random.default_rng(0).choice(len(X), size=min(len(X), 200_000), replace=False)
            X, weight = np.asarray(X[np.sort(some)]), None
        self._set_encoder(TableEncoder(numeric=self.numeric).fit(X, sample_weight=weight))

    def _set_encoder(self, encoder: TableEncoder) -> None:
        self.encoder_ = encoder
        self.n_features_in_ = encoder.n_features_in_
        if hasattr(encoder, "feature_names_in_"):
            self.feature_names_in_ = encoder.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

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
        n_rows = len(target)
        lazy = is_large_map(X)
        x = None if lazy else self._encoded(X)  # (rows, features)
        self._sample = None if x is None else _sample(x, target, weight)
        self._importances = None
        if not self._stopping(n_rows):
            return self._rows_of(X, x, target, weight, None, device), None
        counted = np.arange(n_rows) if weight is None else np.flatnonzero(weight > 0)
        own_strata = None if strata is None else strata[counted]
        kept, held_out = split_rows(len(counted), own_strata, validation_fraction, rng)
        return (
            self._rows_of(X, x, target, weight, torch.from_numpy(counted)[kept], device),
            self._rows_of(X, x, target, weight, torch.from_numpy(counted)[held_out], device),
        )

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
        self.n_parameters_ = sum(p.numel() for p in self.tree_.parameters())

    # Parameters

    def _structure(self) -> Structure:
        grown: Structure | None = getattr(self, "structure_", None)
        if grown is not None and self._is_grown() and self.warm_start:
            return grown
        return Structure(self.depth, self.window, self.stride)

    def _is_grown(self) -> bool:
        """Whether the structure is that of a tree grown elsewhere, which the parameters do not tell."""
        return hasattr(self, "temperature_") and not self.structure_.is_regular

    def _check_used(self) -> None:
        """Raise where a parameter would be without effect beside `decision`, which brings its own layers."""
        if self.decision is None:
            return
        own: dict[str, float] = {"decision_layers": 1}
        if self.leaf is not None or self.leaf_layers in (0, 1):
            own |= {"hidden": 100, "dropout": 0.0}
        for name, default in own.items():
            if (value := getattr(self, name)) != default:
                raise ValueError(
                    f"{name} has no effect beside decision, which brings its own layers, however: {name}={value!r}; "
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

    # What a fitted tree tells

    def _encode(self, X: Any) -> NDArray[np.float32]:
        encoded: NDArray[np.float32] = self.encoder_.transform(X)
        return encoded

    def _encoded(self, X: Any) -> Tensor:
        return torch.from_numpy(self._encode(X))

    def _chunks(self, X: Any) -> Iterator[Tensor]:
        """Encoded rows in pieces of a size that keeps leaves times rows small."""
        check_is_fitted(self, "tree_")
        numbers_per_row = self.tree_.output.n_numbers * self.structure_.n_leaves + sum(self.structure_.widths)
        size = max(64, 2**23 // (numbers_per_row * len(next(iter(self.tree_.parameters()), torch.empty(1)))))
        if is_large_map(X):
            yield from (self._encoded(X[start : start + size]) for start in range(0, len(X), size))
        else:
            yield from self._encoded(X).split(size)

    def _each_chunk(self, X: Any) -> Iterator[tuple[Tree, Tensor]]:
        """Pieces of a table with the tree to apply, in double precision on a CPU.

        In single precision, a row's result would depend in its last digits on the rows beside it.
        """
        tree, device = self._prediction_tree()
        for chunk in self._chunks(X):
            yield tree, chunk.to(device, torch.float64 if device.type == "cpu" else torch.float32)

    def _prediction_tree(self) -> tuple[Tree, torch.device]:
        check_is_fitted(self, "tree_")
        parameter = next(iter(self.tree_.parameters()), torch.empty(0))
        if parameter.device.type != "cpu":
            return self.tree_, parameter.device
        return in_double(self.tree_), parameter.device

    @torch.no_grad()
    def _predict_members(self, X: Any) -> NDArray[np.float64]:
        """What each member predicts, (members, rows, ...)."""
        parts = [tree.predict(x, self.selection).double().cpu() for tree, x in self._each_chunk(X)]
        return torch.cat(parts, dim=1).numpy()

    @torch.no_grad()
    def apply(self, X: Any) -> NDArray[np.int64]:
        """The node of the leaf with the largest arrival: (rows,), or (rows, members) with several members.

        Nodes are numbered layer by layer from the root, 0, as `decision_path` does.
        """
        first_leaf = sum(self.structure_.widths[:-1]) if hasattr(self, "structure_") else 0
        parts = [best_leaf(tree, x)[0].cpu() for tree, x in self._each_chunk(X)]
        nodes = torch.cat(parts, dim=1).numpy().T + first_leaf
        return nodes if nodes.shape[1] > 1 else nodes[:, 0]

    @torch.no_grad()
    def decision_path(self, X: Any) -> Any:
        """The nodes on the most probable way to the leaf of `apply`, as a sparse indicator matrix (rows, nodes).

        With several members the nodes of all members stand side by side, and a second array says where each member's
        begin, as in scikit-learn's forests.
        """
        from tartree.explain.evaluation import hard_paths

        check_is_fitted(self, "tree_")
        structure = self.structure_
        offsets = np.concatenate([[0], np.cumsum(structure.widths)])
        parts = []
        for tree, x in self._each_chunk(X):
            logits = tree.decision(x)
            paths = hard_paths(structure, tree.branching.arrivals(logits), tree.branching.probabilities(logits))
            parts.append(paths + offsets[:-1])
        nodes = np.concatenate(parts, axis=1)  # (members, rows, layers)
        n_members, n_rows, n_layers = nodes.shape
        starts = np.arange(n_members + 1) * offsets[-1]
        columns = (nodes + starts[:-1, None, None]).transpose(1, 0, 2).reshape(-1)
        ends = np.arange(n_rows + 1) * n_members * n_layers
        indicator = sparse.csr_matrix((np.ones(len(columns)), columns, ends), shape=(n_rows, starts[-1]))
        return indicator if n_members == 1 else (indicator, starts)

    def get_depth(self) -> int:
        """Number of decisions on the way to a leaf."""
        check_is_fitted(self, "tree_")
        return int(self.structure_.depth)

    def get_n_leaves(self) -> int:
        """Number of leaves of one member."""
        check_is_fitted(self, "tree_")
        return int(self.structure_.n_leaves)

    # Explanations

    def explain(
        self, X: Any, *, background: Any = None, share: float = 0.9, max_paths: int = 5, max_terms: int = 12
    ) -> Any:
        """Explain rows: paths, conditions, arrivals, contributions; see `tartree.explain.explain_rows`.

        Parameters
        ----------
        X : table of shape (rows, columns)
        background : table, optional
            Rows whose mean the rows are compared with; by default a row of mean numbers and most frequent levels.
        share : float, default=0.9
            Paths of a row are listed until they have this share of its arrival.
        max_paths, max_terms : int
            The most paths of a row and member, and terms of a step.
        """
        from tartree.explain import explain_rows

        return explain_rows(self, X, background=background, share=share, max_paths=max_paths, max_terms=max_terms)

    def simplify(
        self,
        X: Any,
        tolerance: float | None = None,
        max_leaves: int | None = None,
        max_terms: int | None = None,
        *,
        max_boxes: int = 512,
    ) -> Self:
        """A smaller model that predicts nearly the same, with its `certificate_`; see `tartree.explain.simplify`.

        Parameters
        ----------
        X : table of shape (rows, columns)
            Rows that say where the model must stay the same, such as those of training.
        tolerance : float, optional
            The largest change of a probability, or of a value in standard deviations of the training target, on these
            rows; 0.01 where none of the three is given.
        max_leaves, max_terms : int, optional
            The most leaves of a member, and features that a decision or leaf may look at.
        max_boxes : int, default=512
            How many parts of the data's box the bound of the certificate may look at.
        """
        from tartree.explain import simplify

        smaller: Self = simplify(
            self, X, tolerance=tolerance, max_leaves=max_leaves, max_terms=max_terms, max_boxes=max_boxes
        )
        return smaller

    def harden(self, X: Any) -> Self:
        """The single-path model, with how it compares on these rows in `hardening_`; see `tartree.explain.harden`."""
        from tartree.explain import harden

        harder: Self = harden(self, X)
        return harder

    def report(
        self,
        X: Any,
        y: Any,
        path: Any,
        *,
        rows: int = 1000,
        title: str | None = None,
        sizes: Sequence[int] | None = None,
    ) -> None:
        """Write an HTML page about the model on these rows: one file, which needs no network.

        Parameters
        ----------
        X, y : table and target
            Rows to measure the model on; `y` may be None.
        path : path of the file
        rows : int, default=1000
            How many rows the page holds, to be looked at one by one.
        title : str, optional
        sizes : sequence of int, optional
            Numbers of leaves of the smaller models that a slider offers; none with an empty one.
        """
        from tartree.explain.page import write_report

        write_report(self, X, y, path, rows=rows, title=title, sizes=sizes)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Importance of each column, (columns,): its share of the impurity removed on (a sample of) the training rows.

        `tartree.explain.importances` gives those of other rows.
        """
        check_is_fitted(self, "tree_")
        if self._importances is None:
            if self._sample is None:
                raise AttributeError(
                    "feature_importances_ is not known of a table read from disk: call explain.importances(model, X, y)"
                )
            from tartree.explain.importances import sample_importances

            self._importances = sample_importances(self, *self._sample)
        return self._importances

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


def _sample(x: Tensor, target: Tensor, weight: NDArray[np.float64] | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """Rows of training, evenly taken, that `feature_importances_` looks at when it is asked for."""
    counted = torch.arange(len(x)) if weight is None else torch.from_numpy(np.flatnonzero(weight > 0))
    some = counted[torch.linspace(0, len(counted) - 1, min(len(counted), SAMPLE_ROWS)).long()]
    return x[some], target[some], None if weight is None else torch.from_numpy(weight)[some]
