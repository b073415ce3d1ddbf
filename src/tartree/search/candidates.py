"""Candidates of a search: parameters, and what of them makes the shape of a training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import clone

from tartree.estimators.base import TREE_SETTINGS, BaseTart
from tartree.nn import Selection
from tartree.search.spaces import Parameters
from tartree.structure import Structure
from tartree.training import Recipe

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Pace:
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
    def pace(self) -> Pace:
        return Pace(self.recipe.learning_rate, self.recipe.decision_decay, self.recipe.leaf_decay)

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


def make_candidate(estimator: BaseTart, params: Parameters, number: int) -> Candidate:
    """The candidate of an estimator with other parameters; raises where they are wrong."""
    own = configured(estimator, params)
    if own.selection not in ("multi", "single"):
        raise ValueError(f"selection must be 'multi' or 'single', however: selection={own.selection!r}")
    own._check_used()
    settings = {name: getattr(own, name) for name in TREE_SETTINGS if name != "members"}
    # A single layer has no neighbours to share children with: one structure, whatever its stride.
    structure = Structure(own.depth, own.window, own.stride if own.depth != 1 else None)
    table = (own.numeric, repr(getattr(own, "class_weight", None)))
    return Candidate(number, params, structure, settings, own._positive("members"), own.selection, own._recipe(), table)


def configured(estimator: BaseTart, params: Parameters) -> BaseTart:
    """An unfitted copy of an estimator with some parameters replaced."""
    known = estimator.get_params(deep=False)
    if unknown := [name for name in params if name not in known]:
        raise ValueError(
            f"the space must name parameters of {type(estimator).__name__}, however: {', '.join(unknown)}; "
            f"known are {', '.join(known)}"
        )
    own: BaseTart = clone(estimator).set_params(**params)
    return own


def _identity(value: Any) -> Any:
    """A value by which settings can be told apart; code and modules are the same where they are the same object."""
    return value if isinstance(value, str | int | float | None) else (type(value).__name__, repr(value), id(value))
