"""Choice of a structure by the rule of a search, and its fit to all rows."""

from __future__ import annotations

from typing import Any, NamedTuple

from tartree.estimators.base import BaseTart
from tartree.search.candidates import configured
from tartree.search.engine import describe
from tartree.search.fold_scores import fit_completely
from tartree.search.search_spec import SearchSpec
from tartree.search.sizes import Size, size_of
from tartree.search.trials import Trial, ranked


class Refit(NamedTuple):
    """A model fitted to all rows, and its size on them."""

    model: BaseTart
    size: Size


def choices(spec: SearchSpec, trials: list[Trial]) -> list[Trial]:
    """Return the trials that may be chosen, the best by the rule first; raise if there are none."""
    allowed = ranked(trials, spec.rule, spec.size, spec.max_leaves)
    if allowed:
        return allowed
    scored = [trial for trial in trials if trial.is_scored]
    if scored and spec.max_leaves is not None:
        fewest = min(trial.most_leaves for trial in scored)
        raise ValueError(
            f"max_leaves must allow for some structure, got {spec.max_leaves}, and the smallest structure uses "
            f"{fewest:g} leaves; put smaller ones into the space"
        )
    raise ValueError(f"a search needs one candidate that can be trained, got {_reasons(trials) or 'none'}")


def refit(spec: SearchSpec, trial: Trial, X: Any, y: Any, sample_weight: Any, seed: int) -> Refit | None:
    """Fit a structure to all rows; return None, with a reason in the trial, if it fails or uses too many leaves."""
    model = configured(spec.estimator, trial.params).set_params(random_state=spec.refit_seed(seed))
    try:
        fit_completely(model, X, y, sample_weight)
        size = size_of(model, X)
    except Exception as error:
        trial.reason = f"it could not be fitted to all rows: {describe(error)}"
        return None
    # Fitted to all rows, a structure may use more leaves than in any fold.
    if spec.max_leaves is not None and size.leaves > spec.max_leaves:
        trial.reason = f"fitted to all rows, it uses {size.leaves:g} leaves"
        return None
    return Refit(model, size)


def all_failed(spec: SearchSpec, trials: list[Trial]) -> ValueError:
    """Return the error for the case that no structure could be fitted to all rows."""
    limit = "" if spec.max_leaves is None else f" with max_leaves={spec.max_leaves}"
    return ValueError(
        f"a search needs one structure that can be fitted to all rows{limit}, got {_reasons(trials)}; put smaller "
        "ones into the space"
    )


def _reasons(trials: list[Trial]) -> str:
    return "; ".join(sorted({str(trial.reason) for trial in trials}))
