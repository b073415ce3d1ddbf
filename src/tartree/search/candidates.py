"""Candidates of a search: parameters, and what of them makes the shape of a training."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import clone

from tartree.estimators.base import TREE_SETTINGS, BaseTart
from tartree.nn import Selection
from tartree.nn.tree import MOST_LEAVES
from tartree.search.spaces import Parameters
from tartree.structure import Structure
from tartree.training import Recipe

#: Parameters of an estimator that change no training of a search.
WITHOUT_EFFECT = ("early_stopping", "callbacks", "warm_start", "device", "random_state", "verbose")

Key = tuple[Any, ...]


@dataclass(frozen=True)
class OptimizerSettings:
    """What members of one tree may differ by in training: the learning rate and the weight decays."""

    learning_rate: float
    decision_decay: float
    leaf_decay: float


@dataclass(frozen=True, eq=False)
class Candidate:
    """One structure with its training, checked.

    Candidates of one `shape` can be members of one tree; those of one `training` are the same tree, read differently.
    """

    number: int
    params: Parameters
    structure: Structure
    settings: dict[str, Any]  # of Tree.build, less the members
    copies: int  # trees whose predictions are averaged
    selection: Selection
    recipe: Recipe
    table: Key  # encoding of numbers and weights of classes

    @property
    def pace(self) -> OptimizerSettings:
        return OptimizerSettings(self.recipe.learning_rate, self.recipe.decision_decay, self.recipe.leaf_decay)

    @property
    def shape(self) -> Key:
        settings = tuple(sorted((name, _identity(value)) for name, value in self.settings.items()))
        same = replace(self.recipe, learning_rate=1.0, decision_decay=0.0, leaf_decay=0.0)
        if self.recipe.optimizer != "adam":  # other optimisers know one penalty for all members
            same = self.recipe
        return (self.structure, settings, self.copies, same, self.table)

    @property
    def kind(self) -> Key:
        """Candidates of one kind learn about equally fast."""
        return (self.settings["leaf_layers"], self.settings["decision_layers"])

    @property
    def n_leaves(self) -> int:
        """Of all its trees, used or not."""
        return self.structure.n_leaves * self.copies

    @property
    def training(self) -> Key:
        return (self.shape, self.pace)


def make_candidate(estimator: BaseTart, params: Parameters, number: int, n_rows: int) -> Candidate:
    """The candidate of an estimator with other parameters, for so many rows; raises where they are wrong."""
    own = configured(estimator, params)
    if own.selection not in ("multi", "single"):
        raise ValueError(f"selection must be 'multi' or 'single', however: selection={own.selection!r}")
    own._check_used()
    for name, least in (("decision_layers", 0), ("leaf_layers", 0), ("hidden", 1)):
        value = getattr(own, name)
        if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
            raise ValueError(f"{name} must be an integer of at least {least}, however: {name}={value!r}")
    settings = {name: getattr(own, name) for name in TREE_SETTINGS if name != "members"}
    # A single layer has no neighbours to share children with: one structure, whatever its stride.
    depth = own._depth(n_rows)
    structure = Structure(depth, own.window, own.stride if depth != 1 else None)
    _check_nodes(structure)
    table = (own.numeric, repr(getattr(own, "class_weight", None)))
    return Candidate(number, params, structure, settings, own._positive("members"), own.selection, own._recipe(), table)


def _check_nodes(structure: Structure) -> None:
    """Raise where there are too many nodes, before they are counted: there may be more than a number can hold."""
    assert structure.stride is not None
    width, nodes = 1, 1
    for _ in range(structure.depth):
        width = (width - 1) * structure.stride + structure.window
        nodes += width
        if nodes > 2 * MOST_LEAVES:
            raise ValueError(
                f"a tree must have at most {MOST_LEAVES:,} leaves to fit into memory, however: "
                f"depth={structure.depth}, window={structure.window}, stride={structure.stride}; lower its depth"
            )


def configured(estimator: BaseTart, params: Parameters) -> BaseTart:
    """An unfitted copy of an estimator with some parameters replaced."""
    known = estimator.get_params(deep=False)
    if unknown := [name for name in params if name not in known]:
        raise ValueError(
            f"the space must name parameters of {type(estimator).__name__}, however: {', '.join(unknown)}; "
            f"known are {', '.join(known)}"
        )
    if unused := [name for name in params if name in WITHOUT_EFFECT]:
        raise ValueError(
            f"the space must name what changes a candidate, however: {', '.join(unused)} has no effect in a search; "
            "give it to the estimator or to the search"
        )
    own: BaseTart = clone(estimator).set_params(**params)
    return own


def _identity(value: Any) -> Any:
    """A value by which settings can be told apart; code and modules are the same where they are the same object."""
    return value if isinstance(value, str | int | float | None) else (type(value).__name__, repr(value), id(value))
