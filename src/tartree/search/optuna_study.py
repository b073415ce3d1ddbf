"""Candidates by Optuna: its samplers, pruners, storage and dashboard, with rounds of candidates trained together."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tartree.search.candidates import WITHOUT_EFFECT
from tartree.search.exploration import Exploration
from tartree.search.search_spec import DRAWN_TRIALS, SearchSpec
from tartree.search.sizes import Size
from tartree.search.spaces import Parameters, Space, blocks_of, identity
from tartree.search.trials import Trial

#: Candidates that are asked for at a time, so that those of one shape can be trained together.
ROUND = 12
#: Rounds without a new candidate after which the space counts as exhausted.
IDLE_ROUNDS = 3
#: States of trials that do not change.
DECIDED = ("complete", "dropped", "failed")
#: Name of the attribute of a trial or study in which results are stored.
ATTRIBUTE = "tartree"


def open_study(spec: SearchSpec, seed: int) -> Any:
    """Return a new study, or the one of this name in a storage."""
    optuna = _optuna()
    with _quiet(optuna, spec.verbose):
        study = optuna.create_study(
            direction="maximize",
            storage=spec.storage,
            study_name=spec.study_name,
            pruner=spec.pruner or optuna.pruners.NopPruner(),
            load_if_exists=spec.study_name is not None,
        )
        # A resumed study should not be asked for the same candidates again.
        sampler_seed = (seed + len(study.get_trials(deepcopy=False))) % 2**31
        study.sampler = optuna.samplers.TPESampler(seed=sampler_seed, n_startup_trials=ROUND)
    return study


def seed_of(study: Any, seed: int) -> int:
    """Return the seed of folds and weights: that of a resumed study, since scores of other folds do not compare."""
    return int(study.user_attrs.get(ATTRIBUTE, {}).get("seed", seed))


def explore(exploration: Exploration, study: Any) -> None:
    """Ask a study for candidates until the budget is spent."""
    spec, trials = exploration.spec, exploration.trials
    choices = Choices(spec.space, spec.estimator.get_params(deep=False))
    with _quiet(_optuna(), spec.verbose):
        _check_table(study, exploration, choices)
        trials.extend(_earlier_trials(study, choices))
        decided = {choices.identity(trial.params): trial for trial in trials if trial.state in DECIDED}
        remaining: float = DRAWN_TRIALS if spec.trials is None and spec.seconds is None else spec.trials or math.inf
        idle = late = 0
        while remaining > 0 and idle < IDLE_ROUNDS:
            if exploration.engine.is_out_of_time:  # some rounds more, if nothing is scored yet
                late += 1
                if late > IDLE_ROUNDS or any(trial.is_scored for trial in trials):
                    break
            asked = [study.ask() for _ in range(int(min(ROUND, remaining)))]
            remaining -= len(asked)
            idle = 0 if _run_round(exploration, study, choices, asked, decided) else idle + 1


def _run_round(
    exploration: Exploration, study: Any, choices: Choices, asked: Sequence[Any], decided: dict[str, Trial]
) -> int:
    """Train some candidates together, tell the study, and return how many were new.

    `asked` are trials of Optuna; `decided` are trials by identity, to which the new ones are added.
    """
    states = _optuna().trial.TrialState
    params = [choices.pick(asked_trial) for asked_trial in asked]
    identities = [choices.identity(picked) for picked in params]
    new: dict[str, tuple[Any, Parameters]] = {}
    for asked_trial, picked, key in zip(asked, params, identities, strict=True):
        if key not in decided:
            new.setdefault(key, (asked_trial, picked))
    first = len(exploration.trials)
    by_number = {first + i: asked_trial for i, (asked_trial, _) in enumerate(new.values())}

    def choose(part: int, alive: Sequence[Trial]) -> Sequence[Trial]:
        for trial in alive:
            if [epochs for epochs, _ in trial.history].count(trial.epochs) == 1:  # not reported before
                by_number[trial.number].report(trial.score, trial.epochs)
        if exploration.spec.pruner is None:
            return exploration.spec.promoted(alive)
        return [trial for trial in alive if not by_number[trial.number].should_prune()]

    exploration.engine.choose = choose
    try:
        exploration.run([picked for _, picked in new.values()])
    finally:
        of_round = {trial.number: trial for trial in exploration.trials if trial.number >= first}
        decided |= {choices.identity(trial.params): trial for trial in of_round.values() if trial.state in DECIDED}
        for asked_trial, key in zip(asked, identities, strict=True):
            trial = decided.get(key)
            if trial is None or trial.state == "failed":
                unfinished = next((t for number, t in of_round.items() if by_number[number] is asked_trial), None)
                recorded = trial or unfinished
                asked_trial.set_user_attr(ATTRIBUTE, _state(recorded) if recorded else {})
                study.tell(asked_trial, state=states.FAIL)
                continue
            asked_trial.set_user_attr(ATTRIBUTE, _state(trial))
            if trial.state == "complete":
                study.tell(asked_trial, trial.score)
            else:
                if by_number.get(trial.number) is not asked_trial:
                    asked_trial.report(trial.score, trial.epochs)
                study.tell(asked_trial, state=states.PRUNED)
    return len(new)


class Choices:
    """A space as Optuna sees it: one choice for each parameter, within one of its blocks.

    Parameters
    ----------
    space : Space
    base : dict
        Parameters that hold if the space does not name them.
    """

    def __init__(self, space: Space, base: Parameters) -> None:
        self.blocks = blocks_of(space)
        self.base = base

    def identity(self, params: Parameters) -> str:
        """Return a text that is equal for equal candidates."""
        return identity(params, self.base)

    def digest(self) -> str:
        """Return a text that is equal for equal choices, also in another process."""
        labels = [
            [(name, [_label(value, i) for i, value in enumerate(values)]) for name, values in block.items()]
            for block in self.blocks
        ]
        return hashlib.sha256(repr(labels).encode()).hexdigest()

    def pick(self, trial: Any) -> Parameters:
        """Return the parameters of a trial of Optuna, which suggests those that are not decided yet."""
        index = 0
        if len(self.blocks) > 1:
            index = trial.suggest_categorical("block", list(range(len(self.blocks))))
        params = {}
        for name, values in self.blocks[index].items():
            labels = {_label(value, i): value for i, value in enumerate(values)}
            suggested = name if len(self.blocks) == 1 else f"{index}.{name}"
            label = trial.suggest_categorical(suggested, list(labels)) if len(values) > 1 else next(iter(labels))
            params[name] = labels[label]
        return params


def _label(value: Any, index: int) -> Any:
    """Return what Optuna can store: plain values, and the index of all others."""
    is_plain = value is None or isinstance(value, str | bool | int | float)
    return value if is_plain else value.item() if isinstance(value, np.generic) else f"#{index}"


def _state(trial: Trial) -> dict[str, Any]:
    """Return a trial as plain data, which a storage keeps as JSON."""
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


def _earlier_trials(study: Any, choices: Choices) -> list[Trial]:
    """Return the trials of a resumed study, each candidate once."""
    optuna = _optuna()
    trials: dict[str, Trial] = {}
    for stored in study.get_trials(deepcopy=False):
        state = stored.user_attrs.get(ATTRIBUTE)
        if not state or not (state.get("scores") or state["state"] == "failed"):
            continue
        params = choices.pick(optuna.trial.FixedTrial(stored.params))
        trial = Trial(len(trials), params, state["all_epochs"], state=state["state"], reason=state["reason"])
        trial.epochs, trial.scores = state["epochs"], np.array(state["scores"])
        trial.size = None if state["size"] is None else Size(*state["size"])
        trial.most_leaves = math.nan if state["most_leaves"] is None else state["most_leaves"]
        trial.history = [(int(epochs), float(score)) for epochs, score in state["history"]]
        before = trials.get(choices.identity(params))
        if before is None or before.state not in DECIDED:  # an unfinished candidate may have been decided later
            trial.number = len(trials) if before is None else before.number
            trials[choices.identity(params)] = trial
    return list(trials.values())


def _check_table(study: Any, exploration: Exploration, choices: Choices) -> None:
    """Raise if a study was made with other data, folds, estimator or space, since its scores would not compare."""
    problem = exploration.engine.problem
    table = next(iter(problem.tables.values()))
    digest = hashlib.sha256()
    for part in (table.x, table.target, table.weight, problem.score_weight):
        digest.update(b"none" if part is None else part.contiguous().numpy().tobytes())
    for fold in problem.parts[0]:
        for rows in fold:
            digest.update(np.asarray(rows, dtype=np.int64).tobytes())
            digest.update(b"|")
    params = exploration.spec.estimator.get_params(deep=False).items()
    current = {
        "rows": len(table.x),
        "features": table.x.shape[1],
        "folds": len(problem.parts[0]),
        "seeds": problem.seeds,
        "scoring": problem.metric.name,
        "estimator": {name: _text(value) for name, value in sorted(params) if name not in WITHOUT_EFFECT},
        "data": digest.hexdigest(),
        "space": choices.digest(),
        "seed": problem.random_state,
    }
    before = study.user_attrs.get(ATTRIBUTE)
    if before is None:
        study.set_user_attr(ATTRIBUTE, current)
        return
    if changed := [name for name, value in current.items() if before.get(name) != value]:
        changes = "; ".join(
            f"another {name}" if name in ("data", "space") else f"{name} {current[name]}, before {before.get(name)}"
            for name in changed
        )
        raise ValueError(
            f"a study must be resumed with its own table, estimator and space, got {changes}; set another study_name"
        )


def _text(value: Any) -> str:
    """Return a text of a parameter that is equal in another process."""
    if callable(value) or " at 0x" in repr(value):
        named = value if hasattr(value, "__qualname__") else type(value)
        return f"{named.__module__}.{named.__qualname__}"
    return repr(value)


@contextmanager
def _quiet(optuna: Any, verbose: int) -> Iterator[None]:
    """Silence the log of Optuna unless `verbose` is above 1."""
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
            "sampler='optuna' needs Optuna, which is not installed; pip install 'tartree[search]'"
        ) from error
    return optuna
