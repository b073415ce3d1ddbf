"""StructureSearch: the best balance between score and size, as a scikit-learn estimator."""

from __future__ import annotations

import math
import numbers
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tartree.estimators import TartClassifier
from tartree.estimators.base import BaseTart
from tartree.estimators.rows import number_of_rows, number_with_weight
from tartree.nn import Classes
from tartree.search.candidates import Candidate, configured, make_candidate
from tartree.search.engine import Engine, describe
from tartree.search.folds import draw_rows, make_folds, read_groups
from tartree.search.problem import Problem, Rows, Table
from tartree.search.scores import scoring_name
from tartree.search.sizes import Size, size_of
from tartree.search.spaces import Parameters, Space, expand
from tartree.search.trials import Rule, Trial, front_of, ranked, who_goes_on

#: Where there is no budget, so many candidates of a sampler are tried.
DRAWN_TRIALS = 60


def _has(method: str) -> Callable[[Any], bool]:
    def check(search: Any) -> bool:
        estimator = getattr(search, "best_estimator_", None)
        if estimator is None:
            estimator = TartClassifier() if search.estimator is None else search.estimator
        return hasattr(estimator, method)

    return check


class StructureSearch(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Search for the structure with the best balance between score and size.

    Many structures are tried by cross-validation. Candidates of one shape, with their folds and seeds, are members of
    one tree and are trained together; those that fall behind are dropped after a part of their epochs (successive
    halving). What is found is the front: the structures that no smaller one equals. One of them is chosen by a rule,
    and fitted to all rows.

    Parameters
    ----------
    estimator : TartClassifier or TartRegressor, optional
        What is searched for: its parameters hold wherever the space does not replace them. By default
        ``TartClassifier()``.
    space : {"readable", "small", "paper", "full"}, dict or list of dict, default="small"
        Parameters of the estimator to try. "readable": 13 candidates that can be read as they stand, one linear model
        and trees with constant or linear leaves. "small": these, and from one perceptron to sixteen; 32 candidates.
        "paper": the 24 structures of Tables 7 to 9, trained as there. "full": structures, branching and training,
        thousands of them, from which a sampler draws. A dict of lists: every combination. A list of dicts: those of
        each.
    trials : int, optional
        The most candidates to try; drawn at random where the space has more. By default all, or 60 of a sampler's.
    seconds : float, optional
        The most time of the search; the best so far is taken when it is up. The fit of the chosen one comes after it.
    rule : {"1se", "best"}, default="1se"
        "1se": the smallest structure whose score is within one standard error (over the folds) of the best. "best": the
        best score.
    max_leaves : int, optional
        Only structures that use at most so many leaves; the rule chooses among them.
    folds : int or a scikit-learn splitter, default=4
        Of the cross-validation; a splitter gets the `groups` of `fit`. Own folds name rows of the table; rows that the
        search leaves out are left out of them.
    seeds : int, default=1
        Trainings of each fold from different weights; their scores are averaged.
    scoring : str, optional
        "accuracy" (default), "balanced_accuracy" or "neg_log_loss"; for regression "r2".
    size : {"leaves", "parameters"}, default="leaves"
        What the front and the rules go by; see `tartree.search.sizes`.
    halving : float or None, default=4
        After each rung, one in so many candidates of a kind (with equally many layers) goes on, two at least, and with
        the rule "1se" the smaller ones on the front within one standard error of the best. None: all are trained to the
        end.
    rungs : int, default=3
        Looks at the scores: with ``halving=4``, after a sixteenth, a quarter and all of the epochs.
    max_rows : int, default=20000
        Rows that the search looks at, at most; drawn at random. The chosen one is fitted to all.
    sampler : {"auto", "grid", "random", "optuna"}, default="auto"
        How candidates come from the space: all in order ("grid", or some at random with `trials`), at random without an
        end, or by Optuna (extra `search`). "auto" is Optuna for the space "full" and the grid otherwise.
    storage, study_name : optional
        Where Optuna keeps its study, such as ``"sqlite:///search.db"``; one of this name that is there is gone on with,
        on its own table.
    pruner : optuna.pruners.BasePruner, optional
        Who goes on from rung to rung, in place of `halving`.
    refit : bool, default=True
        Whether the chosen one is fitted to all rows; where that fails, or breaks `max_leaves`, the next one is.
    callbacks : sequence of callable, default=()
        Called with the search whenever something new is known; `trials_` and `front_` are up to date.
    n_jobs : int, optional
        Groups of candidates trained at the same time, by joblib and its current backend. None: in this process.
    random_state : int, RandomState or None, default=None
        Seed of folds, weights and draws. The same seed and number of trials give the same front on a CPU.
    verbose : int, default=0
        1 prints a line whenever the best changes.

    Attributes
    ----------
    front_ : list of dict
        The front from small to large: score, its standard error, leaves, conditions, features, parameters, params.
    trials_ : list of dict
        The same of every candidate, with its state ("complete", "dropped", "failed" or "unfinished"), the reason, the
        scores of the folds and those after each rung.
    best_params_, best_score_, best_index_
        Of the chosen one; the index is its place in `trials_`.
    best_estimator_ : TartClassifier or TartRegressor
        The chosen one, fitted to all rows.
    best_size_ : tartree.search.Size
        Its size on these rows.
    splits_ : list of pairs of arrays
        Rows learnt from and held out in each fold.
    scoring_ : str
        The name of the score.
    interrupted_ : bool
        Whether Ctrl-C ended the search, or the fit after it, when there is no `best_estimator_`.
    search_seconds_, refit_seconds_ : float
    study_ : optuna.Study
        With the sampler of Optuna.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The table is encoded once, from the rows given to `fit` and no others: the inner folds share the encoder (and, in
    regression, the scale of the target), but no label reaches it. Rows of an outer test part are never seen.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import StructureSearch, TartClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> space = {"depth": [0, 1, 2], "leaf_layers": [0, 1]}
    >>> search = StructureSearch(TartClassifier(epochs=30), space, random_state=0).fit(X, y)
    >>> search.best_estimator_.depth == search.best_params_["depth"]
    True
    """

    best_estimator_: Any
    classes_: NDArray[Any]

    def __init__(
        self,
        estimator: Any = None,
        space: Space = "small",
        *,
        trials: int | None = None,
        seconds: float | None = None,
        rule: Rule = "1se",
        max_leaves: int | None = None,
        folds: Any = 4,
        seeds: int = 1,
        scoring: str | None = None,
        size: Literal["leaves", "parameters"] = "leaves",
        halving: float | None = 4,
        rungs: int = 3,
        max_rows: int = 20_000,
        sampler: Literal["auto", "grid", "random", "optuna"] = "auto",
        storage: Any = None,
        study_name: str | None = None,
        pruner: Any = None,
        refit: bool = True,
        callbacks: Sequence[Callable[[StructureSearch], Any]] = (),
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.space = space
        self.trials = trials
        self.seconds = seconds
        self.rule = rule
        self.max_leaves = max_leaves
        self.folds = folds
        self.seeds = seeds
        self.scoring = scoring
        self.size = size
        self.halving = halving
        self.rungs = rungs
        self.max_rows = max_rows
        self.sampler = sampler
        self.storage = storage
        self.study_name = study_name
        self.pruner = pruner
        self.refit = refit
        self.callbacks = callbacks
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # The search

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Self:
        """Search on a table and its target, then fit the chosen structure to all rows.

        Parameters
        ----------
        X : table of shape (rows, columns)
        y : array of shape (rows,), or (rows, targets) for regression
        sample_weight : array of shape (rows,), optional
            Weights of rows, in training and in the scores.
        groups : array of shape (rows,), optional
            What rows belong to, such as patients with several visits: rows of one group are held out together.
        """
        start = time.perf_counter()
        self._check()
        base = self._base()
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(np.iinfo(np.int32).max))
        for name in ("best_estimator_", "best_params_", "best_score_", "best_index_", "best_size_", "study_"):
            self.__dict__.pop(name, None)
        self._trials: list[Trial] = []
        self.interrupted_ = False
        if self._sampler() == "optuna":
            from tartree.search.optuna_study import open_study, seed_of

            self.study_ = open_study(self, seed)
            seed = seed_of(self.study_, seed)
        problem = self._problem(base, X, y, sample_weight, groups, seed)
        engine = Engine(
            problem,
            self._fractions(),
            lambda part, alive: self._who_goes_on(alive),
            start + (math.inf if self.seconds is None else float(self.seconds)),
            self.n_jobs,
            self._tell,
            self.max_leaves,
        )
        engine.trials = [self._trials]
        try:
            self._explore(engine, base, seed)
        except KeyboardInterrupt:
            if not any(trial.is_scored for trial in self._trials):
                raise
            self.interrupted_ = True
            warnings.warn("the search was interrupted; the best so far is taken", UserWarning, stacklevel=2)
        self.search_seconds_ = time.perf_counter() - start
        self._take_best(base, X, y, sample_weight, seed)
        return self

    def _check(self) -> None:
        for name, least in (("trials", 1), ("max_leaves", 1), ("seeds", 1), ("rungs", 1), ("max_rows", 2)):
            value = getattr(self, name)
            if value is None and name in ("trials", "max_leaves"):
                continue
            if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name} must be an integer of at least {least}, however: {name}={value!r}")
        for name, above in (("seconds", 0), ("halving", 1)):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int | float | np.number) or not value > above):
                raise ValueError(f"{name} must be None or a number above {above}, however: {name}={value!r}")
        for name, known in (
            ("rule", ("1se", "best")),
            ("size", ("leaves", "parameters")),
            ("sampler", ("auto", "grid", "random", "optuna")),
        ):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, however: {name}={getattr(self, name)!r}")
        if self._sampler() != "optuna":
            for name in ("storage", "study_name", "pruner"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} is Optuna's, however: sampler={self.sampler!r}; use sampler='optuna'")
        if isinstance(self.storage, str) and "://" not in self.storage:
            raise ValueError(
                f"storage must be the address of a database, however: storage={self.storage!r}; for a file, "
                f"'sqlite:///{self.storage}'"
            )
        if self.storage is not None and self.study_name is None:
            raise ValueError("a study in a storage must have a name, by which it is found again; give study_name")

    def _base(self) -> BaseTart:
        base = TartClassifier() if self.estimator is None else self.estimator
        if not isinstance(base, BaseTart):
            raise TypeError(
                f"estimator must be a TartClassifier or TartRegressor, however: {type(base).__name__}; a pipeline goes "
                "around the search, not into it"
            )
        own: BaseTart = clone(base).set_params(warm_start=False)
        return own

    def _sampler(self) -> str:
        if self.sampler == "auto":
            return "optuna" if isinstance(self.space, str) and self.space == "full" else "grid"
        return str(self.sampler)

    def _who_goes_on(self, alive: Sequence[Trial]) -> list[Trial]:
        return who_goes_on(alive, self.halving or 1.0, self.size, self.rule, max_leaves=self.max_leaves)

    def _fractions(self) -> list[float]:
        if self.halving is None:
            return [1.0]
        return [float(self.halving) ** -step for step in reversed(range(self.rungs))]

    def _problem(self, base: BaseTart, X: Any, y: ArrayLike, sample_weight: Any, groups: Any, seed: int) -> Problem:
        """Encode once, and split into folds."""
        if number_of_rows(X) < 2:
            raise ValueError(
                f"a search needs rows to learn from and others to check with, however: n_samples={number_of_rows(X)}"
            )
        first = clone(base).set_params(random_state=seed)
        target, weight = first._prepare(X, y, sample_weight)
        groups = None if groups is None else read_groups(groups, len(target))
        self.n_features_in_ = first.n_features_in_
        for name in ("feature_names_in_", "classes_"):
            if hasattr(first, name):
                setattr(self, name, getattr(first, name))
            else:
                self.__dict__.pop(name, None)
        strata = target.numpy() if isinstance(first._output(), Classes) else None
        rows = draw_rows(len(target), strata, self.max_rows, seed)
        given = first._sample_weight(sample_weight, len(target))
        if given is not None:
            rows = rows[given[rows] > 0]
        self.splits_ = make_folds(self.folds, target.numpy(), strata, groups, rows, seed)
        self.scoring_ = scoring_name(self.scoring, first._output())
        if self.scoring_ == "r2" and (fewest := min(len(held) for _, held in self.splits_)) < 2:
            raise ValueError(f"folds must hold out 2 rows at least, since R2 compares rows, however: {fewest}")
        key = (first.numeric, repr(getattr(first, "class_weight", None)))
        self._data = X, y, sample_weight, rows, number_with_weight(len(target), weight)
        place = np.zeros(len(target), dtype=np.intp)
        place[rows] = np.arange(len(rows))  # only these rows are encoded
        return Problem(
            {key: _table(first, X, target, weight, rows)},
            first._output(),
            (tuple((place[learnt], place[held]) for learnt, held in self.splits_),),
            self.scoring_,
            None if given is None else torch.from_numpy(given[rows]).float(),
            self.seeds,
            seed,
            first._device(),
        )

    def _explore(self, engine: Engine, base: BaseTart, seed: int) -> None:
        sampler = self._sampler()
        if sampler == "optuna":
            from tartree.search.optuna_study import explore

            explore(self, engine, base, self.study_, DRAWN_TRIALS)
            return
        params = expand(self.space, base.get_params(deep=False))
        most = self.trials if self.trials is not None else DRAWN_TRIALS if sampler == "random" else len(params)
        if most < len(params):
            drawn = np.random.default_rng(seed).permutation(len(params))[:most]
            params = [params[place] for place in (np.sort(drawn) if sampler == "grid" else drawn)]
        engine.run(self._candidates(engine, base, params))

    def _candidates(self, engine: Engine, base: BaseTart, params: Sequence[Parameters]) -> list[Candidate]:
        """Candidates with the tables they need; what is no candidate at all is noted as failed."""
        found = []
        *_, n_rows = self._data  # those of the refit
        for number, own in enumerate(params, start=len(self._trials)):
            configured(base, own)  # a name that no estimator knows is an error of the whole space
            try:
                one = make_candidate(base, own, number, n_rows)
                hash(one.training)  # values that cannot be compared are found here, where they harm no other candidate
                if one.table not in engine.problem.tables:
                    engine.problem.tables[one.table] = self._other_table(base, own)
                found.append(one)
            except Exception as error:
                self._trials.append(Trial(number, own, 0, state="failed", reason=describe(error)))
        return found

    def _other_table(self, base: BaseTart, params: Parameters) -> Table:
        X, y, sample_weight, rows, _ = self._data
        own = configured(base, params)
        target, weight = own._prepare(X, y, sample_weight)
        return _table(own, X, target, weight, rows)

    def _tell(self) -> None:
        for callback in (self.callbacks,) if callable(self.callbacks) else tuple(self.callbacks or ()):
            callback(self)
        if self.verbose:
            self._say()

    def _say(self) -> None:
        from rich.console import Console

        best = max((trial for trial in self._trials if trial.is_scored), key=lambda one: one.score, default=None)
        if best is not None and best.size is not None:
            done = sum(trial.state != "waiting" for trial in self._trials)
            Console(stderr=True).print(
                f"search: {done} of {len(self._trials)} tried, best {best.score:.4f}, {best.size.leaves:.3g} leaves",
                highlight=False,
            )

    # The outcome

    @property
    def trials_(self) -> list[dict[str, Any]]:
        check_is_fitted(self, "_trials")
        return [trial.to_dict() for trial in sorted(self._trials, key=lambda one: one.number)]

    @property
    def front_(self) -> list[dict[str, Any]]:
        check_is_fitted(self, "_trials")
        return [trial.to_dict() for trial in front_of(self._trials, self.size)]

    def _take_best(self, base: BaseTart, X: Any, y: Any, sample_weight: Any, seed: int) -> None:
        """Choose by the rule, and fit to all rows; where that cannot be done, the next one is taken."""
        del self._data
        choices = ranked(self._trials, self.rule, self.size, self.max_leaves)
        if not choices:
            self._raise_without_choice()
        start = time.perf_counter()
        for trial in choices:
            self._choose(trial)
            if not self.refit:
                break
            state = self.random_state if isinstance(self.random_state, numbers.Integral) else seed
            try:
                self._tell()
                model, size = self._fitted(configured(base, trial.params), X, y, sample_weight, state)
            except _NotFitted as error:
                trial.reason = str(error)
                continue
            except KeyboardInterrupt:
                self.interrupted_ = True
                warnings.warn(
                    "the fit of the chosen structure to all rows was interrupted: there is no best_estimator_; "
                    "best_params_, front_ and trials_ say what was found",
                    UserWarning,
                    stacklevel=3,
                )
                break
            # Fitted to all rows, a structure may use more leaves than in any fold.
            if self.max_leaves is None or size.leaves <= self.max_leaves:
                self.best_estimator_, self.best_size_ = model, size
                break
            trial.reason = f"fitted to all rows, it uses {size.leaves:g} leaves"
        else:
            self._choose(choices[0])
            reasons = "; ".join(sorted({str(trial.reason) for trial in choices}))
            limit = "" if self.max_leaves is None else f" with max_leaves={self.max_leaves}"
            raise ValueError(
                f"a search needs one structure that can be fitted to all rows{limit}, however: {reasons}; put smaller "
                "ones into the space"
            )
        self.refit_seconds_ = time.perf_counter() - start

    def _fitted(self, model: BaseTart, X: Any, y: Any, sample_weight: Any, state: Any) -> tuple[BaseTart, Size]:
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="fit was interrupted")
                model.set_params(random_state=state).fit(X, y, sample_weight)
            if model.history_.interrupted:  # it has kept what it has learnt, which is not what was chosen
                raise KeyboardInterrupt
            return model, size_of(model, X)
        except Exception as error:
            raise _NotFitted(f"it could not be fitted to all rows: {describe(error)}") from error

    def _choose(self, trial: Trial) -> None:
        self.best_index_, self.best_params_, self.best_score_ = trial.number, dict(trial.params), trial.score

    def _raise_without_choice(self) -> None:
        scored = [trial for trial in self._trials if trial.is_scored]
        if scored and self.max_leaves is not None:
            fewest = min(trial.most_leaves for trial in scored)
            raise ValueError(
                f"max_leaves must allow for some structure, however: the smallest tried uses {fewest:g} leaves and "
                f"max_leaves={self.max_leaves}; put smaller ones into the space"
            )
        reasons = "; ".join(sorted({str(trial.reason) for trial in self._trials}))
        raise ValueError(f"a search needs one candidate that can be trained, however: {reasons or 'there is none'}")

    # The chosen one

    def _best(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def predict(self, X: Any, **options: Any) -> Any:
        """What the chosen model predicts."""
        return self._best().predict(X, **options)

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probability of each class, (rows, classes)."""
        probabilities: NDArray[np.float64] = self._best().predict_proba(X)
        return probabilities

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy or R2 of the chosen model."""
        return float(self._best().score(X, y, sample_weight))

    def explain(self, X: Any, **options: Any) -> Any:
        """Explain rows; see `TartClassifier.explain`."""
        return self._best().explain(X, **options)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        own = (TartClassifier() if self.estimator is None else self.estimator).__sklearn_tags__()
        tags.estimator_type = own.estimator_type
        tags.classifier_tags, tags.regressor_tags = own.classifier_tags, own.regressor_tags
        tags.input_tags, tags.target_tags = own.input_tags, own.target_tags
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_data"}


class _NotFitted(Exception):
    """Why a structure could not be fitted to all rows."""


def _table(estimator: BaseTart, X: Any, target: torch.Tensor, weight: NDArray[np.float64] | None, rows: Rows) -> Table:
    """Some rows of a table, encoded."""
    own = None if weight is None else torch.from_numpy((weight / weight[weight > 0].mean())[rows]).float()
    if len(rows) < len(target):
        X = X.take(rows) if hasattr(X, "take") and hasattr(X, "column_names") else _safe_indexing(X, rows)
    return Table(estimator._encoded(X), target[torch.from_numpy(rows)], own)


__all__ = ["Size", "StructureSearch"]
