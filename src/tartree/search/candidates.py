"""Candidates of a search: parameters, and what decides which of them can be trained together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import clone

from tartree.checks import check_integer
from tartree.estimators.base import BaseTart
from tartree.model import ModelSpec
from tartree.model.spec import Limits
from tartree.nn import Selection
from tartree.nn.tree import MOST_LEAVES
from tartree.search.spaces import Parameters
from tartree.structure import Structure
from tartree.training import Recipe

#: Parameters of an estimator that have no effect on the trainings of a search.
WITHOUT_EFFECT = ("early_stopping", "callbacks", "warm_start", "device", "random_state", "verbose")

Key = tuple[Any, ...]


@dataclass(frozen=True)
class OptimizerSettings:
    """Optimizer settings in which members of one tree may differ: the learning rate and the weight decays."""

    learning_rate: float
    decision_decay: float
    leaf_decay: float


@dataclass(frozen=True, eq=False)
class Candidate:
    """A structure and its training, checked.

    Candidates of one `shape` can be members of one tree; those of one `training` are the same tree with different
    selections.

    Parameters
    ----------
    number : int
    params : dict
    structure : Structure
    settings : dict
        Arguments of `Tree.build`, except the members.
    copies : int
        Trees whose predictions are averaged.
    selection : {"multi", "single"}
    recipe : Recipe
    table : tuple
        Key of the encoding; see `table_key`.
    limits : Limits
        Limits of columns and terms.
    """

    number: int
    params: Parameters
    structure: Structure
    settings: dict[str, Any]
    copies: int
    selection: Selection
    recipe: Recipe
    table: Key
    limits: Limits

    @property
    def optimizer_settings(self) -> OptimizerSettings:
        """Settings in which members of one tree may differ."""
        return OptimizerSettings(self.recipe.learning_rate, self.recipe.decision_decay, self.recipe.leaf_decay)

    @property
    def shape(self) -> Key:
        """Candidates of one shape can be members of one tree."""
        settings = tuple(sorted((name, _identity(value)) for name, value in self.settings.items()))
        shared = replace(self.recipe, learning_rate=1.0, decision_decay=0.0, leaf_decay=0.0)
        if self.recipe.optimizer != "adam":  # other optimizers have one penalty for all members
            shared = self.recipe
        return (self.structure, settings, self.copies, shared, self.table, self.limits)

    @property
    def kind(self) -> Key:
        """Candidates of one kind learn about equally fast."""
        return (self.settings["leaf_layers"], self.settings["decision_layers"])

    @property
    def n_leaves(self) -> int:
        """Leaves of all its trees, used or not."""
        return self.structure.n_leaves * self.copies

    @property
    def training(self) -> Key:
        """Candidates of one training differ by their selection alone."""
        return (self.shape, self.optimizer_settings)


def make_candidate(estimator: BaseTart, params: Parameters, number: int, n_rows: int) -> Candidate:
    """Return the candidate of an estimator with other parameters for a number of rows, or raise if they are wrong."""
    spec = configured(estimator, params).spec()
    for name, least in (("decision_layers", 0), ("leaf_layers", 0), ("hidden", 1)):
        check_integer(name, getattr(spec, name), least)
    settings = spec.tree_settings
    copies = int(settings.pop("members"))
    # A single layer has no neighbours to share children with, so its stride does not matter.
    depth = spec.resolve_depth(n_rows)
    structure = Structure(depth, spec.window, spec.stride if depth != 1 else None)
    _check_nodes(structure)
    # A hard tree predicts by the leaf at the end of a row's path.
    selection: Selection = "single" if spec.is_hard else spec.selection
    limits = spec.limits(n_rows)
    return Candidate(number, params, structure, settings, copies, selection, spec.recipe, table_key(spec), limits)


def table_key(spec: ModelSpec) -> Key:
    """Return the parameters that change encoded rows or their weights."""
    return (spec.numeric, repr(spec.class_weight), repr(spec.columns))


def _check_nodes(structure: Structure) -> None:
    """Raise if there are too many nodes, without computing their number, which may not fit into memory either."""
    assert structure.stride is not None
    width, nodes = 1, 1
    for _ in range(structure.depth):
        width = (width - 1) * structure.stride + structure.window
        nodes += width
        if nodes > 2 * MOST_LEAVES:
            raise ValueError(
                f"a tree must have at most {MOST_LEAVES:,} leaves to fit into memory, got depth={structure.depth}, "
                f"window={structure.window}, stride={structure.stride}; lower its depth"
            )


def configured(estimator: BaseTart, params: Parameters) -> BaseTart:
    """Return an unfitted copy of an estimator with some parameters replaced."""
    names = estimator.get_params(deep=False)
    if unknown := [name for name in params if name not in names]:
        raise ValueError(
            f"the space must name parameters of {type(estimator).__name__}, got {', '.join(unknown)}; "
            f"its parameters are {', '.join(names)}"
        )
    if unused := [name for name in params if name in WITHOUT_EFFECT]:
        raise ValueError(
            f"the space must name parameters that change a candidate, got {', '.join(unused)}, without effect in a "
            "search; set it on the estimator or the search"
        )
    copied: BaseTart = clone(estimator).set_params(**params)
    return copied


def _identity(value: Any) -> Any:
    """Return a value by which settings are compared; code and modules are equal if they are the same object."""
    return value if isinstance(value, str | int | float | None) else (type(value).__name__, repr(value), id(value))
