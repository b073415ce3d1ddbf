"""Candidates by Optuna: its samplers, pruners, storage and dashboard, with rounds of candidates trained together."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from tartree.search.candidates import WITHOUT_EFFECT
from tartree.search.sizes import Size
from tartree.search.spaces import Parameters, Space, blocks_of, identity
from tartree.search.trials import Trial

if TYPE_CHECKING:
    from tartree.estimators.base import BaseTart
    from tartree.search.engine import Engine
    from tartree.search.structure_search import StructureSearch

#: Candidates that are asked for at a time, so that those of one shape can be trained together.
ROUND = 12
#: Rounds without a new candidate after which the space counts as known.
IDLE_ROUNDS = 3
#: States of trials of which nothing more can be found out.
DECIDED = ("complete", "dropped", "failed")
#: Where a trial of Optuna keeps what was found.
FOUND = "tartree"


def open_study(search: StructureSearch, seed: int) -> Any:
    """A new study, or the one of this name in a storage."""
    optuna = _optuna()
    with _quiet(optuna, search.verbose):
        study = optuna.create_study(
            direction="maximize",
            storage=search.storage,
            study_name=search.study_name,
            pruner=search.pruner or optuna.pruners.NopPruner(),
            load_if_exists=search.study_name is not None,
        )
        # Who goes on with a study should not be asked for the same again.
        own = (seed + len(study.get_trials(deepcopy=False))) % 2**31
        study.sampler = optuna.samplers.TPESampler(seed=own, n_startup_trials=ROUND)
    return study


def seed_of(study: Any, seed: int) -> int:
    """The seed of folds and weights: that of the study, since scores of other folds mean something else."""
    return int(study.user_attrs.get(FOUND, {}).get("seed", seed))


def explore(search: StructureSearch, engine: Engine, base: BaseTart, study: Any, default_trials: int) -> None:
    """Ask a study for candidates until the budget is spent."""
    choices = Choices(search.space, base.get_params(deep=False))
    with _quiet(_optuna(), search.verbose):
        _check_table(study, engine, base, choices)
        search._trials.extend(_earlier(study, choices))
        known = {choices.identity(trial.params): trial for trial in search._trials if trial.state in DECIDED}
        left: float = default_trials if search.trials is None and search.seconds is None else search.trials or math.inf
        idle = late = 0
        while left > 0 and idle < IDLE_ROUNDS:
            if engine.is_up:  # something has to be found out, but not at any price
                late += 1
                if late > IDLE_ROUNDS or any(trial.is_scored for trial in search._trials):
                    break
            asked = [study.ask() for _ in range(int(min(ROUND, left)))]
            left -= len(asked)
            new = _round(search, engine, base, study, choices, asked, known)
            idle = 0 if new else idle + 1


def _round(
    search: StructureSearch,
    engine: Engine,
    base: BaseTart,
    study: Any,
    choices: Choices,
    trials: Sequence[Any],
    known: dict[str, Trial],
) -> int:
    """Train some candidates together and tell the study; how many of them were new."""
    optuna = _optuna()
    new: dict[str, tuple[Any, Parameters]] = {}
    asked = [(one, choices.pick(one)) for one in trials]
    for one, params in asked:
        if choices.identity(params) not in known:
            new.setdefault(choices.identity(params), (one, params))
    first = len(search._trials)
    by_number = {first + place: one for place, (one, _) in enumerate(new.values())}

    def choose(part: int, alive: Sequence[Trial]) -> Sequence[Trial]:
        for trial in alive:
            if [epochs for epochs, _ in trial.history].count(trial.epochs) == 1:  # not said before
                by_number[trial.number].report(trial.score, trial.epochs)
        if search.pruner is None:
            return search._who_goes_on(alive)
        return [trial for trial in alive if not by_number[trial.number].should_prune()]

    engine.choose = choose
    states = optuna.trial.TrialState
    try:
        engine.run(search._candidates(engine, base, [params for _, params in new.values()]))
    finally:
        mine = {trial.number: trial for trial in search._trials if trial.number >= first}
        known |= {choices.identity(trial.params): trial for trial in mine.values() if trial.state in DECIDED}
        for one, params in asked:
            trial = known.get(choices.identity(params))
            if trial is None or trial.state == "failed":
                unfinished = next((own for number, own in mine.items() if by_number[number] is one), None)
                said = trial or unfinished
                one.set_user_attr(FOUND, _state(said) if said else {})
                study.tell(one, state=states.FAIL)
                continue
            one.set_user_attr(FOUND, _state(trial))
            if trial.state == "complete":
                study.tell(one, trial.score)
            else:
                if trial.number not in by_number or by_number[trial.number] is not one:
                    one.report(trial.score, trial.epochs)
                study.tell(one, state=states.PRUNED)
    return len(new)


class Choices:
    """A space as Optuna sees it: one choice a parameter, within one of its blocks."""

    def __init__(self, space: Space, base: Parameters) -> None:
        self.blocks = blocks_of(space)
        self.base = base  # what holds where the space says nothing

    def identity(self, params: Parameters) -> str:
        return identity(params, self.base)

    def digest(self) -> str:
        """The same for the same choices, in another process too."""
        said = [
            [(name, [_label(value, i) for i, value in enumerate(values)]) for name, values in block.items()]
            for block in self.blocks
        ]
        return hashlib.sha256(repr(said).encode()).hexdigest()

    def pick(self, trial: Any) -> Parameters:
        """The parameters of a trial; what is not decided yet is asked for."""
        place = 0
        if len(self.blocks) > 1:
            place = trial.suggest_categorical("block", list(range(len(self.blocks))))
        found = {}
        for name, values in self.blocks[place].items():
            labels = {_label(value, i): value for i, value in enumerate(values)}
            own = name if len(self.blocks) == 1 else f"{place}.{name}"
            label = trial.suggest_categorical(own, list(labels)) if len(values) > 1 else next(iter(labels))
            found[name] = labels[label]
        return found


def _label(value: Any, place: int) -> Any:
    """What Optuna can store: plain values, and the place of all others."""
    plain = value is None or isinstance(value, str | bool | int | float)
    return value if plain else value.item() if isinstance(value, np.generic) else f"#{place}"


def _state(trial: Trial) -> dict[str, Any]:
    """A trial as plain data, which a storage keeps as JSON."""
    size = trial.size
    return {
        "state": trial.state,
        "reason": trial.reason,
        "epochs": trial.epochs,
        "all_epochs": trial.all_epochs,
        "scores": [float(value) for value in trial.scores],
        "size": None if size is None else [size.leaves, size.conditions, size.features, size.parameters],
        "most_leaves": None if math.isnan(trial.most_leaves) else trial.most_leaves,
        "history": [list(pair) for pair in trial.history],
    }


def _earlier(study: Any, choices: Choices) -> list[Trial]:
    """What a study found out before, each candidate once."""
    optuna = _optuna()
    found: dict[str, Trial] = {}
    for old in study.get_trials(deepcopy=False):
        state = old.user_attrs.get(FOUND)
        if not state or not (state.get("scores") or state["state"] == "failed"):
            continue
        params = choices.pick(optuna.trial.FixedTrial(old.params))
        trial = Trial(len(found), params, state["all_epochs"], state=state["state"], reason=state["reason"])
        trial.epochs, trial.scores = state["epochs"], np.array(state["scores"])
        trial.size = None if state["size"] is None else Size(*state["size"])
        trial.most_leaves = math.nan if state["most_leaves"] is None else state["most_leaves"]
        trial.history = [(int(epochs), float(score)) for epochs, score in state["history"]]
        before = found.get(choices.identity(params))
        if before is None or before.state not in DECIDED:  # what the time was too short for may have come later
            trial.number = len(found) if before is None else before.number
            found[choices.identity(params)] = trial
    return list(found.values())


def _check_table(study: Any, engine: Engine, base: BaseTart, choices: Choices) -> None:
    """Raise where a study was made with other data, folds, estimator or space: its scores would mean nothing here."""
    problem = engine.problem
    table = next(iter(problem.tables.values()))
    digest = hashlib.sha256()
    for part in (table.x, table.target, table.weight, problem.score_weight):
        digest.update(b"none" if part is None else part.contiguous().numpy().tobytes())
    for fold in problem.parts[0]:
        for rows in fold:
            digest.update(np.asarray(rows, dtype=np.int64).tobytes())
            digest.update(b"|")
    params = base.get_params(deep=False).items()
    own = {
        "rows": len(table.x),
        "features": table.x.shape[1],
        "folds": len(problem.parts[0]),
        "seeds": problem.seeds,
        "scoring": problem.scoring,
        "estimator": {name: _word(value) for name, value in sorted(params) if name not in WITHOUT_EFFECT},
        "data": digest.hexdigest(),
        "space": choices.digest(),
        "seed": problem.random_state,
    }
    before = study.user_attrs.get(FOUND)
    if before is None:
        study.set_user_attr(FOUND, own)
        return
    if differ := [name for name, value in own.items() if before.get(name) != value]:
        said = "; ".join(
            f"{name} was another" if name in ("data", "space") else f"{name} was {before.get(name)} and is {own[name]}"
            for name in differ
        )
        raise ValueError(
            f"a study must be gone on with on its own table, with its own estimator and space, however: {said}; "
            "give another study_name"
        )


def _word(value: Any) -> str:
    """A parameter in words that are the same in another process."""
    if callable(value) or " at 0x" in repr(value):
        own = value if hasattr(value, "__qualname__") else type(value)
        return f"{own.__module__}.{own.__qualname__}"
    return repr(value)


@contextmanager
def _quiet(optuna: Any, verbose: int) -> Iterator[None]:
    """Without Optuna's own lines, unless they are asked for."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(before if verbose > 1 else optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise ImportError(
            "sampler='optuna' needs Optuna, however: it is not installed; pip install 'tartree[search]'"
        ) from error
    return optuna
