"""SearchSpec: the parameters of a search, validated once."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from tartree.checks import check_integer
from tartree.estimators import TartClassifier
from tartree.estimators.base import BaseTart
from tartree.search.spaces import Parameters, Space, expand
from tartree.search.trials import Rule, SizeName, Trial, promoted

#: Candidates of a sampler that are tried without a budget.
DRAWN_TRIALS = 60

Sampler = Literal["grid", "random", "optuna"]


@dataclass(frozen=True, eq=False)
class SearchSpec:
    """All parameters of a search; see `StructureSearch` for their meaning.

    Raises
    ------
    ValueError
        If a parameter is outside its range, or has no effect beside another one.
    """

    estimator: BaseTart
    space: Space
    trials: int | None
    seconds: float | None
    rule: Rule
    max_leaves: int | None
    folds: Any
    seeds: int
    scoring: str | None
    size: SizeName
    halving: float | None
    rungs: int
    max_rows: int
    sampler: Sampler
    storage: Any
    study_name: str | None
    pruner: Any
    refit: bool
    callbacks: tuple[Callable[[Any], Any], ...]
    n_jobs: int | None
    random_state: Any
    verbose: int

    def __post_init__(self) -> None:
        for name, least in (("trials", 1), ("max_leaves", 1), ("seeds", 1), ("rungs", 1), ("max_rows", 2)):
            value = getattr(self, name)
            if value is not None or name not in ("trials", "max_leaves"):
                check_integer(name, value, least)
        for name, above in (("seconds", 0), ("halving", 1)):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int | float | np.number) or not value > above):
                raise ValueError(f"{name} must be None or a number above {above}, got {value!r}")
        for name, choices in (("rule", get_args(Rule)), ("size", get_args(SizeName)), ("sampler", get_args(Sampler))):
            if getattr(self, name) not in choices:
                choices = ("auto", *choices) if name == "sampler" else choices
                raise ValueError(f"{name} must be one of {', '.join(choices)}, got {getattr(self, name)!r}")
        self._check_storage()
        if not isinstance(self.estimator, BaseTart):
            raise TypeError(
                f"estimator must be a TartClassifier or TartRegressor, got {type(self.estimator).__name__}; put the "
                "search into the pipeline, not the pipeline into the search"
            )

    @classmethod
    def from_parameters(cls, parameters: Parameters) -> SearchSpec:
        """Return the spec of the parameters of a `StructureSearch`, with an unfitted copy of its estimator."""
        values = dict(parameters)
        estimator, callbacks, sampler = values.pop("estimator"), values.pop("callbacks"), values.pop("sampler")
        if estimator is None:
            estimator = TartClassifier()
        if isinstance(estimator, BaseTart):
            estimator = clone(estimator).set_params(warm_start=False)
        if sampler == "auto":
            sampler = "optuna" if isinstance(values["space"], str) and values["space"] == "full" else "grid"
        callbacks = (callbacks,) if callable(callbacks) else tuple(callbacks or ())
        return cls(estimator=estimator, callbacks=callbacks, sampler=sampler, **values)

    def _check_storage(self) -> None:
        if self.sampler != "optuna":
            for name in ("storage", "study_name", "pruner"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} needs sampler='optuna', got sampler={self.sampler!r}")
        if isinstance(self.storage, str) and "://" not in self.storage:
            raise ValueError(
                f"storage must be the address of a database, got {self.storage!r}; for a file, "
                f"'sqlite:///{self.storage}'"
            )
        if self.storage is not None and self.study_name is None:
            raise ValueError("a study in a storage must have a name, by which it is resumed; set study_name")

    @property
    def fractions(self) -> list[float]:
        """Shares of the epochs after which scores are compared."""
        if self.halving is None:
            return [1.0]
        return [float(self.halving) ** -step for step in reversed(range(self.rungs))]

    def promoted(self, alive: Sequence[Trial]) -> list[Trial]:
        """Return the trials that train on after a rung."""
        return promoted(alive, self.halving or 1.0, self.size, self.rule, max_leaves=self.max_leaves)

    def draw_seed(self) -> int:
        """Draw the seed of folds, weights and candidates."""
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def refit_seed(self, seed: int) -> int:
        """Return the seed of the refit: the user's, or that of the search."""
        return int(self.random_state) if isinstance(self.random_state, numbers.Integral) else seed

    def candidates(self, seed: int) -> list[Parameters]:
        """Return the parameters of all candidates of the sampler "grid" or "random"."""
        params = expand(self.space, self.estimator.get_params(deep=False))
        default = DRAWN_TRIALS if self.sampler == "random" else len(params)
        most = default if self.trials is None else self.trials
        if most < len(params):
            drawn = np.random.default_rng(seed).permutation(len(params))[:most]
            params = [params[index] for index in (np.sort(drawn) if self.sampler == "grid" else drawn)]
        return params
