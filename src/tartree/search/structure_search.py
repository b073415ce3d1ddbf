"""StructureSearch: the best balance between score and size, as a scikit-learn estimator."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tartree.estimators import TartClassifier
from tartree.estimators.base import BaseTart
from tartree.search.engine import Engine
from tartree.search.exploration import Exploration
from tartree.search.refit import all_failed, choices, refit
from tartree.search.search_data import SearchData
from tartree.search.search_spec import SearchSpec
from tartree.search.spaces import Space
from tartree.search.trials import Rule, SizeName, Trial, front_of


def _has(method: str) -> Callable[[Any], bool]:
    """Return a check whether the estimator of a search has a method."""

    def check(search: StructureSearch) -> bool:
        estimator = getattr(search, "best_estimator_", None)
        if estimator is None:
            estimator = TartClassifier() if search.estimator is None else search.estimator
        return hasattr(estimator, method)

    return check


class StructureSearch(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Search for the structure with the best balance between score and size.

    Many structures are tried by cross-validation. Candidates of one shape, with their folds and seeds, are members of
    one tree and are trained together; the worse ones are dropped after a part of their epochs (successive halving). The
    result is the Pareto front of score and size. One structure of it is chosen by a rule and fitted to all rows.

    Parameters
    ----------
    estimator : TartClassifier or TartRegressor, optional
        Its parameters hold unless the space replaces them. By default ``TartClassifier()``.
    space : {"readable", "small", "paper", "full"}, dict or list of dict, default="small"
        Parameters of the estimator to try. "readable": 10 candidates to be read, a linear model, a sum of curves and
        readable trees of 2 to 8 leaves. "small": 32 candidates, a linear model, trees with constant or linear leaves,
        and from one perceptron to sixteen.
        "paper": the 24 structures of Tables 7 to 9, trained as there. "full": structures, branching and training,
        thousands of candidates, from which a sampler draws. A dict of lists: every combination. A list of dicts: those
        of each.
    trials : int, optional
        The most candidates to try; drawn at random if the space has more. By default all, or 60 of a sampler.
    seconds : float, optional
        The most time of the search; the best so far is taken when it is up. The refit comes after it.
    rule : {"1se", "best"}, default="1se"
        "1se": the smallest structure whose score is within one standard error (over the folds) of the best. "best": the
        best score.
    max_leaves : int, optional
        Only structures that use at most so many leaves; the rule chooses among them.
    folds : int or a scikit-learn splitter, default=4
        Of the cross-validation; a splitter gets the `groups` of `fit`. Folds of a splitter or list are rows of the
        table; rows that the search leaves out are removed from them.
    seeds : int, default=1
        Trainings of each fold from different weights; their scores are averaged.
    scoring : str, optional
        Name of a metric of the task in `tartree.search.scores.METRICS`, such as "neg_log_loss"; by default "accuracy",
        and "r2" for a regression.
    size : {"leaves", "parameters"}, default="leaves"
        The size in the front and the rules; see `tartree.search.sizes`.
    halving : float or None, default=4
        After each rung, one in so many candidates of a kind (with equally many layers) trains on, two at least, and
        with the rule "1se" the smaller ones on the front within one standard error of the best. None: all are trained
        to the end.
    rungs : int, default=3
        How often scores are compared: with ``halving=4``, after a sixteenth, a quarter and all of the epochs.
    max_rows : int, default=20000
        The most rows of the search, drawn at random. The chosen structure is fitted to all.
    sampler : {"auto", "grid", "random", "optuna"}, default="auto"
        How candidates are taken from the space: all in order ("grid", or some at random with `trials`), in random
        order, or by Optuna (extra `search`). "auto" is Optuna for the space "full" and the grid otherwise.
    storage, study_name : optional
        Where Optuna keeps its study, such as ``"sqlite:///search.db"``; an existing study of this name is resumed, with
        its own table.
    pruner : optuna.pruners.BasePruner, optional
        Decides which candidates train on, in place of `halving`.
    refit : bool, default=True
        Whether the chosen structure is fitted to all rows; if that fails, or breaks `max_leaves`, the next one is.
    callbacks : sequence of callable, default=()
        Called with the search after each change of `trials_` and `front_`.
    n_jobs : int, optional
        Groups of candidates trained at the same time, by joblib and its current backend. None: in this process.
    random_state : int, RandomState or None, default=None
        Seed of folds, weights and draws. The same seed and number of trials give the same front on a CPU.
    verbose : int, default=0
        1 prints a line after each change of the trials.

    Attributes
    ----------
    front_ : list of dict
        The front from small to large: score, its standard error, leaves, conditions, features, parameters, params.
    trials_ : list of dict
        The same of every candidate, with its state ("complete", "dropped", "failed" or "unfinished"), the reason, the
        scores of the folds and those after each rung.
    best_params_, best_score_, best_index_
        Of the chosen structure; the index is its position in `trials_`.
    best_estimator_ : TartClassifier or TartRegressor
        The chosen structure, fitted to all rows.
    best_size_ : tartree.search.Size
        Its size on these rows.
    splits_ : list of pairs of arrays
        Rows learnt from and held out in each fold.
    scoring_ : str
        The name of the metric.
    interrupted_ : bool
        Whether Ctrl-C ended the search, or the refit, after which there is no `best_estimator_`.
    search_seconds_, refit_seconds_ : float
    study_ : optuna.Study
        With the sampler of Optuna.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The table is encoded once, from the rows of `fit` and no others: the inner folds share the encoder (and, in
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
        estimator: BaseTart | None = None,
        space: Space = "small",
        *,
        trials: int | None = None,
        seconds: float | None = None,
        rule: Rule = "1se",
        max_leaves: int | None = None,
        folds: Any = 4,
        seeds: int = 1,
        scoring: str | None = None,
        size: SizeName = "leaves",
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
            Groups of rows that are held out together, such as the visits of a patient.

        Returns
        -------
        self
        """
        start = time.perf_counter()
        spec = SearchSpec.from_parameters(self.get_params(deep=False))
        seed = spec.draw_seed()
        for name in ("best_estimator_", "best_params_", "best_score_", "best_index_", "best_size_", "study_"):
            self.__dict__.pop(name, None)
        self._trials: list[Trial] = []
        self.interrupted_ = False
        if spec.sampler == "optuna":
            from tartree.search.optuna_study import open_study, seed_of

            self.study_ = open_study(spec, seed)
            seed = seed_of(self.study_, seed)
        data = SearchData(spec, X, y, sample_weight, groups, seed)
        self._adopt(data)
        engine = Engine(
            data.problem,
            spec.fractions,
            lambda part, alive: spec.promoted(alive),
            start + (math.inf if spec.seconds is None else float(spec.seconds)),
            spec.n_jobs,
            lambda: self._notify(spec),
            spec.max_leaves,
            [self._trials],
        )
        try:
            self._explore(Exploration(spec, data, engine), seed)
        except KeyboardInterrupt:
            if not any(trial.is_scored for trial in self._trials):
                raise
            self.interrupted_ = True
            warnings.warn("the search was interrupted; the best so far is taken", UserWarning, stacklevel=2)
        self.search_seconds_ = time.perf_counter() - start
        self._take_best(spec, X, y, sample_weight, seed)
        return self

    def _adopt(self, data: SearchData) -> None:
        """Set the attributes that describe the table."""
        encoder, codec = data.source.encoder, data.source.codec
        self.n_features_in_ = encoder.n_features_in_
        for name, holder in (("feature_names_in_", encoder), ("classes", codec)):
            attribute = f"{name.rstrip('_')}_"
            self.__dict__.pop(attribute, None)
            if hasattr(holder, name):
                setattr(self, attribute, getattr(holder, name))
        self.splits_, self.scoring_ = data.splits, data.problem.metric.name

    def _explore(self, exploration: Exploration, seed: int) -> None:
        if exploration.spec.sampler == "optuna":
            from tartree.search.optuna_study import explore

            explore(exploration, self.study_)
        else:
            exploration.run(exploration.spec.candidates(seed))

    def _notify(self, spec: SearchSpec) -> None:
        for callback in spec.callbacks:
            callback(self)
        if spec.verbose:
            self._print_best()

    def _print_best(self) -> None:
        from rich.console import Console

        best = max((trial for trial in self._trials if trial.is_scored), key=lambda trial: trial.score, default=None)
        if best is not None and best.size is not None:
            tried = sum(trial.state != "waiting" for trial in self._trials)
            Console(stderr=True).print(
                f"search: {tried} of {len(self._trials)} tried, best {best.score:.4f}, {best.size.leaves:.3g} leaves",
                highlight=False,
            )

    # The results

    @property
    def trials_(self) -> list[dict[str, Any]]:
        """Records of all candidates."""
        check_is_fitted(self, "_trials")
        return [trial.to_dict() for trial in sorted(self._trials, key=lambda trial: trial.number)]

    @property
    def front_(self) -> list[dict[str, Any]]:
        """Records of the Pareto front, from small to large."""
        check_is_fitted(self, "_trials")
        return [trial.to_dict() for trial in front_of(self._trials, self.size)]

    def _take_best(self, spec: SearchSpec, X: Any, y: Any, sample_weight: Any, seed: int) -> None:
        """Choose by the rule, and fit to all rows; if that fails, take the next structure."""
        start, allowed = time.perf_counter(), choices(spec, self._trials)
        try:
            for trial in allowed:
                self._choose(trial)
                if not spec.refit:
                    break
                self._notify(spec)
                refitted = refit(spec, trial, X, y, sample_weight, seed)
                if refitted is not None:
                    self.best_estimator_, self.best_size_ = refitted
                    break
            else:
                self._choose(allowed[0])
                raise all_failed(spec, allowed)
        except KeyboardInterrupt:
            self.interrupted_ = True
            warnings.warn(
                "the fit of the chosen structure to all rows was interrupted: there is no best_estimator_; "
                "best_params_, front_ and trials_ hold the results of the search",
                UserWarning,
                stacklevel=3,
            )
        self.refit_seconds_ = time.perf_counter() - start

    def _choose(self, trial: Trial) -> None:
        self.best_index_, self.best_params_, self.best_score_ = trial.number, dict(trial.params), trial.score

    # The chosen model

    def _best(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def predict(self, X: Any, **options: Any) -> Any:
        """Predict by the chosen model.

        Parameters
        ----------
        X : table of shape (rows, columns)
        **options : dict
            Of `predict` of the estimator.

        Returns
        -------
        ndarray of shape (rows,) or (rows, targets)
        """
        return self._best().predict(X, **options)

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the probability of each class by the chosen model.

        Parameters
        ----------
        X : table of shape (rows, columns)

        Returns
        -------
        ndarray of shape (rows, classes)
        """
        probabilities: NDArray[np.float64] = self._best().predict_proba(X)
        return probabilities

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy or R2 of the chosen model.

        Parameters
        ----------
        X : table of shape (rows, columns)
        y : array of shape (rows,) or (rows, targets)
        sample_weight : array of shape (rows,), optional

        Returns
        -------
        float
        """
        return float(self._best().score(X, y, sample_weight))

    def explain(self, X: Any, **options: Any) -> Any:
        """Explain rows by the chosen model; see `TartClassifier.explain`.

        Parameters
        ----------
        X : table of shape (rows, columns)
        **options : dict
            Of `explain` of the estimator.

        Returns
        -------
        list of explanations
        """
        return self._best().explain(X, **options)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        searched = (TartClassifier() if self.estimator is None else self.estimator).__sklearn_tags__()
        tags.estimator_type = searched.estimator_type
        tags.classifier_tags, tags.regressor_tags = searched.classifier_tags, searched.regressor_tags
        tags.input_tags, tags.target_tags = searched.input_tags, searched.target_tags
        return tags
