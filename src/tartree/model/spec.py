"""ModelSpec: everything a fit needs to know, validated once."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from tartree import ops
from tartree.checks import check_integer
from tartree.model.target import CODECS, ClassWeight, TargetCodec
from tartree.nn import Path, Selection
from tartree.nn.tree import DecisionFactory, LeafFactory
from tartree.structure import Structure
from tartree.table import TableEncoder
from tartree.training import RECIPES, Callback, Recipe

#: Early stopping "auto" begins here: below, every row is worth more in training than in validation. Up to REFIT_ROWS
#: the rows held out come back in a refit; beyond, a tenth of the rows is not missed.
EARLY_STOPPING_ROWS = 10_000
REFIT_ROWS = 100_000
#: From so many rows on, depth "auto" gives 64 leaves instead of 16. On held-out training rows of the UCI sets 64 lose
#: below 200 rows, gain little up to 3,000 and over a point beyond; 16 are easier to read.
DEEP_ROWS = 1_000
#: Parameters of `Tree.build`, beside the structure.
TREE_SETTINGS = ("decision_layers", "leaf_layers", "hidden", "dropout", "branching", "members", "decision", "leaf")

#: What `readable` sets, beside the recipe: curves, few terms, leaves that share what is above them.
READABLE: dict[str, Any] = {"numeric": "curve", "leaf": Path()}
#: Parameters of another model: ``readable="auto"`` is True where all of them have their defaults.
OTHER_MODEL: dict[str, Any] = {
    "depth": "auto",
    "window": 2,
    "stride": None,
    "decision_layers": 1,
    "leaf_layers": 1,
    "selection": "multi",
    "members": 1,
    "hidden": 100,
    "dropout": 0.0,
    "branching": "softmax",
    "decision": None,
    "leaf": None,
    "numeric": "auto",
    "recipe": "default",
}
#: Depth of readable trees and columns of their decisions: eight leaves and one column, and from so many rows on more.
READABLE_SIZE, LARGE_READABLE_SIZE, LARGE_READABLE_ROWS = (3, 1), (6, 2), 10_000

EarlyStopping = bool | Literal["auto", "refit"]


class Limits(NamedTuple):
    """Limits of what there is to read: columns of a decision, and terms of all leaves together."""

    features: int | None = None
    terms: int | None = None


@dataclass(frozen=True, eq=False)
class ModelSpec:
    """All parameters of a fit; see `TartClassifier` for their meaning.

    Parameters
    ----------
    target_kind : str
        A key of `tartree.model.target.CODECS`: "classification" or "regression".
    depth, window, stride : optional
        Structure of the tree; `depth` may be "auto".
    decision_layers, leaf_layers : optional
        Arguments of `Tree.build`.
    selection : {"multi", "single"}
    members, hidden, dropout, branching, decision, leaf : optional
        Arguments of `Tree.build`.
    max_features : int or None
        Columns of the table that a decision may use.
    max_terms : int or None
        Terms of all leaves together.
    is_readable : bool
        Whether `depth` "auto" is that of a tree to be read, and a trained one sends each row along one path.
    numeric, extrapolation, columns : optional
        Of the `TableEncoder`.
    recipe : Recipe
    early_stopping : bool, "auto" or "refit"
    callbacks : tuple of callable
    class_weight : dict, "balanced" or None
    warm_start : bool
    device : str
    random_state : int, RandomState or None
    verbose : int

    Raises
    ------
    ValueError
        If a parameter is outside its range, or has no effect beside another one.

    Examples
    --------
    >>> spec = ModelSpec("regression")
    >>> spec.structure(500).depth, spec.structure(5000).depth
    (4, 6)
    """

    target_kind: str
    depth: int | Literal["auto"] = "auto"
    window: int = 2
    stride: int | None = None
    decision_layers: int = 1
    leaf_layers: int = 1
    selection: Selection = "multi"
    members: int = 1
    hidden: int = 100
    dropout: float = 0.0
    branching: str | ops.ActivationFunction = "softmax"
    decision: DecisionFactory | None = None
    leaf: LeafFactory | None = None
    max_features: int | None = None
    max_terms: int | None = None
    is_readable: bool = False
    numeric: Literal["standard", "curve", "quantile", "plain"] = "standard"
    extrapolation: float | None = 0.1
    columns: Mapping[Any, str] | None = None
    recipe: Recipe = RECIPES["default"]
    early_stopping: EarlyStopping = "auto"
    callbacks: tuple[Callback, ...] = ()
    class_weight: ClassWeight = None
    warm_start: bool = False
    device: str = "auto"
    random_state: Any = None
    verbose: int = 0

    def __post_init__(self) -> None:
        check_integer("members", self.members, 1)
        if isinstance(self.depth, str) and self.depth != "auto":
            raise ValueError(f"depth must be an integer of at least 0 or 'auto', got {self.depth!r}")
        if self.selection not in get_args(Selection):
            raise ValueError(f"selection must be 'multi' or 'single', got {self.selection!r}")
        if self.early_stopping not in (True, False, "auto", "refit"):
            raise ValueError(f"early_stopping must be True, False, 'auto' or 'refit', got {self.early_stopping!r}")
        self._check_used()
        self._check_limits()

    @classmethod
    def from_parameters(cls, target_kind: str, parameters: dict[str, Any]) -> ModelSpec:
        """Return the spec of an estimator's parameters, with the recipe looked up and its changes applied.

        Parameters
        ----------
        target_kind : str
        parameters : dict
            As `get_params` returns them.

        Returns
        -------
        ModelSpec
        """
        values = dict(parameters)
        if _is_readable(values.pop("readable"), values):
            values = {**values, **_readable(CODECS[target_kind].readable_recipe, values)}
        elif values["numeric"] == "auto":
            values["numeric"] = "standard"
        changes = {name: values.pop(name) for name in ("epochs", "batch_size", "learning_rate")}
        callbacks = values.pop("callbacks")
        return cls(
            target_kind,
            recipe=_recipe(values.pop("recipe"), changes),
            callbacks=(callbacks,) if callable(callbacks) else tuple(callbacks or ()),
            **values,
        )

    @property
    def codec_type(self) -> type[TargetCodec]:
        """Class of the target codec."""
        return CODECS[self.target_kind]

    def limits(self, n_rows: int) -> Limits:
        """Return the limits that training keeps.

        Parameters
        ----------
        n_rows : int
            Rows with weight.

        Returns
        -------
        Limits
        """
        has_linear_decisions = self.decision is None and self.decision_layers == 1
        if self.max_features is None and self.is_readable and has_linear_decisions:
            return Limits(self._readable_size(n_rows)[1], self.max_terms)
        return Limits(self.max_features, self.max_terms)

    def make_encoder(self) -> TableEncoder:
        """Return the unfitted encoder of the table.

        Returns
        -------
        TableEncoder
        """
        return TableEncoder(numeric=self.numeric, extrapolation=self.extrapolation, columns=self.columns)

    @property
    def is_hard(self) -> bool:
        """Whether a trained tree sends each row along one path."""
        return self.is_readable and self.branching == "softmax"

    @property
    def tree_settings(self) -> dict[str, Any]:
        """Arguments of `Tree.build`, beside structure, features and output."""
        return {name: getattr(self, name) for name in TREE_SETTINGS}

    def resolve_depth(self, n_rows: int) -> int:
        """Return the depth for a number of rows with weight.

        Parameters
        ----------
        n_rows : int
            Rows with weight.

        Returns
        -------
        int
        """
        if self.depth != "auto":
            return self.depth
        if self.is_readable:
            return self._readable_size(n_rows)[0]
        may_be_deep = self.window == 2 and self.leaf_layers in (0, 1) and self.leaf is None
        return 6 if may_be_deep and n_rows >= DEEP_ROWS else 4

    def structure(self, n_rows: int) -> Structure:
        """Return the structure for a number of rows with weight.

        Parameters
        ----------
        n_rows : int
            Rows with weight.

        Returns
        -------
        Structure
        """
        return Structure(self.resolve_depth(n_rows), self.window, self.stride)

    def may_be_linear(self, n_rows: int) -> bool:
        """Whether the tree is compared with a linear model: depth is "auto" and there are enough rows.

        Parameters
        ----------
        n_rows : int
            Rows with weight.

        Returns
        -------
        bool
        """
        has_plain_parts = self.leaf_layers == 1 and self.leaf is None and self.decision is None
        return self.depth == "auto" and has_plain_parts and n_rows >= DEEP_ROWS

    def compares_penalties(self, n_rows: int) -> bool:
        """Whether penalties on terms are compared on held-out rows: for a readable tree of neither few nor many rows.

        Of few rows, held-out ones choose no better than chance; of many, the penalty is weak in any case.

        Parameters
        ----------
        n_rows : int
            Rows with weight.

        Returns
        -------
        bool
        """
        has_penalty = self.recipe.sparsity > 0 and isinstance(self.leaf, Path) and self.max_terms is None
        return self.is_readable and self.depth == "auto" and has_penalty and DEEP_ROWS <= n_rows < EARLY_STOPPING_ROWS

    def stopping(self, n_rows: int) -> bool | Literal["refit"]:
        """Resolve `early_stopping` for a number of rows.

        Parameters
        ----------
        n_rows : int
            All rows.

        Returns
        -------
        bool or "refit"
        """
        if self.early_stopping != "auto":
            return self.early_stopping
        if n_rows < EARLY_STOPPING_ROWS:
            return False
        return "refit" if n_rows < REFIT_ROWS else True

    def draw_seeds(self, rng: np.random.RandomState | None = None) -> NDArray[Any]:
        """Draw a seed of the run and one of each member, (1 + members,).

        Parameters
        ----------
        rng : RandomState, optional
            By default that of `random_state`.

        Returns
        -------
        ndarray of shape (1 + members,)
        """
        rng = check_random_state(self.random_state) if rng is None else rng
        return rng.randint(np.iinfo(np.int32).max, size=self.members + 1)

    def _readable_size(self, n_rows: int) -> tuple[int, int]:
        """Return the depth of a readable tree and the columns of a decision."""
        return LARGE_READABLE_SIZE if n_rows >= LARGE_READABLE_ROWS else READABLE_SIZE

    def _check_used(self) -> None:
        """Raise if a parameter has no effect beside a `decision` or `leaf` that brings its own layers."""
        unused: dict[str, float] = {}
        if self.decision is not None:
            unused["decision_layers"] = 1
        if self.leaf is not None:
            unused["leaf_layers"] = 1
        if unused and all(getattr(self, name) in (0, 1) for name in ("decision_layers", "leaf_layers")):
            unused |= {"hidden": 100, "dropout": 0.0}
        for name, default in unused.items():
            if (value := getattr(self, name)) != default:
                brings = "leaf" if name == "leaf_layers" or self.decision is None else "decision"
                raise ValueError(
                    f"{name} has no effect beside {brings}, which brings its own layers, got {name}={value!r}; "
                    "set it there"
                )

    def _check_limits(self) -> None:
        """Raise if terms are limited of functions that have none."""
        if self.recipe.optimizer != "adam" and (self.max_features, self.max_terms) != (None, None):
            limit = "max_terms" if self.max_features is None else "max_features"
            raise ValueError(f"{limit} needs the optimizer 'adam', got {self.recipe.optimizer!r}")
        if self.max_terms is not None:
            check_integer("max_terms", self.max_terms, 0)
            if self.leaf_layers != 1 or not (self.leaf is None or isinstance(self.leaf, Path)):
                other = f"leaf={self.leaf!r}" if self.leaf is not None else f"leaf_layers={self.leaf_layers!r}"
                raise ValueError(f"max_terms limits linear leaves, leaf_layers=1, got {other} beside it")
        if self.max_features is None:
            return
        check_integer("max_features", self.max_features, 1)
        if self.decision is not None or self.decision_layers != 1:
            other = "decision" if self.decision is not None else f"decision_layers={self.decision_layers!r}"
            raise ValueError(f"max_features limits linear decisions, decision_layers=1, got {other} beside it")


def _is_readable(readable: bool | str, values: dict[str, Any]) -> bool:
    """Resolve `readable` beside the other parameters."""
    if readable == "auto":
        return all(_is_default(values[name], default) for name, default in OTHER_MODEL.items())
    if readable not in (True, False):
        raise ValueError(f"readable must be True, False or 'auto', got {readable!r}")
    return bool(readable)


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, numbers.Number | str) and value == default)


def _readable(recipe: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return what `readable` sets, for parameters that have their defaults."""
    settings = {**READABLE, "recipe": recipe}
    readable = {name: value for name, value in settings.items() if _is_default(values[name], OTHER_MODEL[name])}
    if values["leaf_layers"] != 1:
        readable.pop("leaf", None)
    return {**readable, "is_readable": True}


def _recipe(recipe: str | Recipe, changes: dict[str, Any]) -> Recipe:
    if isinstance(recipe, str) and recipe in RECIPES:
        recipe = RECIPES[recipe]
    if not isinstance(recipe, Recipe):
        raise ValueError(f"recipe must be one of {', '.join(RECIPES)} or a Recipe, got {recipe!r}")
    return replace(recipe, **{name: value for name, value in changes.items() if value is not None})


def find_device(name: str) -> torch.device:
    """Return the device of a name; "auto" is a GPU if torch finds one."""
    if name == "auto":
        return default_device()
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device must be 'auto' or one that torch finds on this machine, got {name!r}") from error


def default_device() -> torch.device:
    """Return the GPU if torch finds one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def generators(seeds: Sequence[Any] | NDArray[Any]) -> list[torch.Generator]:
    """Return a generator of random numbers for each seed.

    Parameters
    ----------
    seeds : sequence of int

    Returns
    -------
    list of torch.Generator

    Examples
    --------
    >>> [generator.initial_seed() for generator in generators([3, 4])]
    [3, 4]
    """
    return [torch.Generator().manual_seed(int(seed)) for seed in seeds]
