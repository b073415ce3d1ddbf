"""Single-path trees: every row follows the most probable branch at every node, compared with the soft tree."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tartree.explain import tree_evaluation as ev
from tartree.explain.text.number_text import at_most, percent
from tartree.model import Model, fitted_model, like
from tartree.nn import Tree
from tartree.nn.families import is_fixed, last_layer

#: Factor of the logits: a decision of 50.1 % becomes one of 98 %.
SHARPNESS = 1e3
#: Predictions of a regression this close agree, in standard deviations of the training target.
AGREE = 0.1


@dataclass(frozen=True)
class Hardening:
    """Comparison of a single-path tree with the tree it was made from, on the given rows.

    Parameters
    ----------
    agreement : float
        Share of rows with the same predicted class; in regression, with a change of at most 0.1 standard deviations of
        the training target.
    bounds : ndarray of shape (rows,)
        Bound of the change of each row: 1 less the arrival at the leaf that is followed, for probabilities. In
        regression, this share times the largest difference between the leaf that is followed and another one, in
        standard deviations. The mean over the members.
    changes : ndarray of shape (rows,)
        Largest change of a probability, or of a value in standard deviations.
    to_largest : float
        Share of rows (and members) whose path leads to the leaf of the largest arrival.
    unit : str
        Unit of the changes: "" for probabilities, " standard deviations of the target" for values.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier, explain
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TartClassifier(depth=1, epochs=5, random_state=0).fit(X, y)
    >>> comparison = model.harden(X).hardening_
    >>> 0 <= comparison.agreement <= 1, comparison.bounds.shape
    (True, (150,))
    """

    agreement: float
    bounds: NDArray[np.float64]
    changes: NDArray[np.float64]
    to_largest: float
    unit: str = ""

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the comparison as plain data and arrays for a file.

        Returns
        -------
        tuple of dict and dict of ndarray
            Plain data, and arrays by name.
        """
        state = {"agreement": float(self.agreement), "to_largest": float(self.to_largest), "unit": self.unit}
        return state, {"bounds": self.bounds, "changes": self.changes}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], arrays: dict[str, NDArray[Any]], n_features: int) -> Hardening:
        """Read what `to_state` returned, and check it.

        Parameters
        ----------
        state : mapping
            Plain data.
        arrays : dict of ndarray
            Arrays by name.
        n_features : int
            Number of encoded features of the tree.

        Returns
        -------
        Hardening
            The record.
        """
        bounds, changes = (np.asarray(arrays[name], dtype=np.float64) for name in ("bounds", "changes"))
        if bounds.ndim != 1 or bounds.shape != changes.shape:
            raise ValueError(f"hardening must have a bound and a change a row, got {bounds.shape}, {changes.shape}")
        return cls(float(state["agreement"]), bounds, changes, float(state["to_largest"]), str(state["unit"]))

    def __str__(self) -> str:
        within = f" within {AGREE}{self.unit}" if self.unit else ""
        return (
            f"{percent(self.agreement, 1)} of {len(self.bounds)} rows agree{within}; a row changes by at most "
            f"{at_most(float(self.changes.max(initial=0.0)), 3)}{self.unit}, by {float(self.changes.mean()):.3f} on "
            f"the mean; proven bounds: at most {at_most(float(self.bounds.max(initial=0.0)), 3)}, "
            f"{at_most(float(self.bounds.mean()), 3)} on the mean"
        )


def harden(estimator: Model, X: Any) -> Model:
    """Return the single-path model, in which every node sends a row to its most probable child and one leaf predicts.

    Parameters
    ----------
    estimator : fitted estimator or FittedModel
        Model to harden; it is not changed.
    X : table of shape (rows, columns)
        Rows to compare the two models on.

    Returns
    -------
    estimator or FittedModel
        A model in the form of its source, with ``selection="single"`` and sharp decisions, so that its conditions can
        be read as yes or no. ``hardening_`` compares the two on the given rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier, explain
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TartClassifier(depth=1, epochs=5, random_state=0).fit(X, y)
    >>> hard = explain.harden(model, X)
    >>> hard.selection, bool((hard.hardening_.changes <= hard.hardening_.bounds + 1e-9).all())
    ('single', True)
    """
    model = fitted_model(estimator)
    before = model.double_tree()
    x = model.encode(X)
    if not len(x):
        raise ValueError("X must have at least one row to compare the models on, got none")
    harder = replace(model.with_tree(sharpened(before, SHARPNESS)), selection="single")
    after = harder.double_tree()
    changes, bounds, agree, largest = [], [], [], []
    soft, hard = ev.in_chunks(before, x), ev.in_chunks(after, x)
    for old, new in zip(soft, hard, strict=True):
        followed = new.arrivals[-1].argmax(-1)  # (members, rows)
        arrival = old.arrivals[-1]
        if model.selection == "single":  # one leaf predicted before, too
            arrival = torch.nn.functional.one_hot(arrival.argmax(-1), arrival.shape[-1]).to(arrival)
        first = ev.predicted(before, old, model.selection).mean(0)
        second = ev.predicted(after, new, "single").mean(0)
        change = (first - second).abs().amax(-1)
        left = 1 - arrival.gather(-1, followed[..., None])[..., 0]  # (members, rows)
        if model.is_classifier:
            bounds.append(left.mean(0))
        else:
            chosen = old.values.take_along_dim(followed[..., None, None], dim=-2)  # (members, rows, 1, outputs)
            apart = (old.values - chosen).abs().amax(-2)  # (members, rows, outputs)
            bounds.append((left.unsqueeze(-1) * apart).mean(0).amax(-1))
        changes.append(change)
        agree.append(first.argmax(-1) == second.argmax(-1) if model.is_classifier else change <= AGREE)
        largest.append((old.arrivals[-1].argmax(-1) == followed).double().mean(0))
    comparison = Hardening(
        float(torch.cat(agree).double().mean()),
        torch.cat(bounds).clamp_min(0).numpy(),
        torch.cat(changes).numpy(),
        float(torch.cat(largest).mean()),
        before.output.change_unit,
    )
    return like(estimator, harder.record(hardening=comparison))


@torch.no_grad()
def sharpened(tree: Tree, factor: float) -> Tree:
    """Return a copy with all logits multiplied by a factor, which keeps their order; a hard tree stays as it is."""
    if tree.branching.activation.name == "hard":
        return copy.deepcopy(tree)
    if not tree.branching.activation.is_monotone:
        raise ValueError(
            f"the branching must be monotone in its logits to be hardened, got {tree.branching.activation.name!r}; "
            "fit with branching='softmax'"
        )
    copied = copy.deepcopy(tree)
    if is_fixed(copied.decision):
        return copied
    layer = last_layer(copied.decision)
    if layer is None:
        raise ValueError(
            "decisions must be the library's linear functions or perceptrons to be hardened, got "
            f"{type(copied.decision).__name__}"
        )
    for parameter in layer:
        parameter.mul_(factor)
    return copied
