"""Alternating training of deep neural decision forests: decisions by gradient, leaves by counting."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from tartree.estimators import TartClassifier
from tartree.estimators.rows import check_equal_rows, number_of_rows
from tartree.nn import ConstantLeaf
from tartree.training import History
from tartree.zoo.warming import target_of

SMALLEST = 1e-6  # of a leaf's probabilities: what no row has is unlikely, not impossible


def fit_alternating(
    model: TartClassifier,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    rounds: int = 10,
    iterations: int = 20,
) -> TartClassifier:
    """Fit a classifier with constant leaves as Kontschieder et al.: in turns the decisions and the leaves.

    Parameters
    ----------
    model : TartClassifier
        Not fitted, with constant leaves, such as ``zoo.make("dndf")``. Its epochs are shared out over the rounds, at
        most as many as there are epochs; the decisions learn by gradient while the leaves stand still. Without early
        stopping.
    X, y : table and labels
    sample_weight : array of shape (rows,), optional
        Weights of rows, of decisions and leaves; those of the model's ``class_weight`` come on top.
    rounds : int, default=10
    iterations : int, default=20
        Of the update of the leaves in each round; see `update_leaves`.

    Returns
    -------
    TartClassifier
        The same model, fitted; `history_` has the epochs of all rounds. Without this, leaves learn by gradient too,
        together with the decisions.
    """
    if not isinstance(model, TartClassifier):
        raise TypeError(f"alternating updates are for classes, however: {type(model).__name__}")
    for name, value in (("rounds", rounds), ("iterations", iterations)):
        _check_count(name, value)
    if model.early_stopping not in (False, "auto"):
        raise ValueError(
            f"early_stopping must be 'auto' or False for alternating updates, however: {model.early_stopping!r}"
        )
    given = model.get_params(deep=False)
    recipe = model._recipe()
    rounds = min(rounds, recipe.epochs)
    told = History()
    try:
        model.set_params(early_stopping=False, warm_start=False)
        model._prepare(X, y, sample_weight)
        with torch.no_grad():
            _leaf(model).values.zero_()  # even leaves
        update_leaves(model, X, y, sample_weight, iterations=iterations)
        for number in range(rounds):
            share = recipe.epochs * (number + 1) // rounds - recipe.epochs * number // rounds
            rate = recipe.rate(number / rounds)  # the schedule, round by round
            each = replace(recipe, epochs=share, learning_rate=rate, schedule="constant")
            model.set_params(recipe=each, epochs=None, learning_rate=None, warm_start=True)
            _leaf(model).values.requires_grad_(False)
            model.fit(X, y, sample_weight)
            update_leaves(model, X, y, sample_weight, iterations=iterations)
            told.epochs += model.history_.epochs
            told.interrupted = model.history_.interrupted
            if told.interrupted:
                break
        model.history_ = told
    finally:
        model.set_params(**given)
        if hasattr(model, "tree_"):
            model.tree_.leaf.requires_grad_(True)
    return model


def _check_count(name: str, value: Any) -> None:
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1, however: {name}={value!r}")


def _leaf(model: TartClassifier) -> ConstantLeaf:
    leaf = model.tree_.leaf
    if not isinstance(leaf, ConstantLeaf):
        raise ValueError(f"leaves must be constant, leaf_layers=0, however: {type(leaf).__name__}")
    return leaf


@torch.no_grad()
def update_leaves(
    model: TartClassifier, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, *, iterations: int = 20
) -> TartClassifier:
    """Set constant leaves to what maximises the likelihood of the mixture, given the decisions.

    Each iteration shares a row out over the leaves by what each contributes to the probability of its class, and makes
    a leaf's probabilities the shares of the classes that it got; the likelihood never falls. Rows count by
    `sample_weight` and by the model's ``class_weight``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import zoo
    >>> X, y = load_iris(return_X_y=True)
    >>> model = zoo.make("tree-1", depth=0, epochs=1).fit(X, y)  # one leaf
    >>> zoo.update_leaves(model, X, y).predict_proba(X[:1]).round(3)
    array([[0.333, 0.333, 0.333]])
    """
    if not isinstance(model, TartClassifier):
        raise TypeError(f"leaves that count are those of classes, however: {type(model).__name__}")
    check_is_fitted(model, "tree_")
    _check_count("iterations", iterations)
    leaf = _leaf(model)
    tree, device = model.tree_.eval(), leaf.values.device
    target = target_of(model, y).to(device)
    n_rows = number_of_rows(X)
    check_equal_rows(n_rows, len(target))
    weight = model._sample_weight(sample_weight, n_rows)
    if model.class_weight is not None:
        by_class = compute_sample_weight(model.class_weight, np.asarray(y))
        weight = by_class if weight is None else by_class * weight
    arrivals = torch.cat([tree(part.to(device, leaf.values.dtype)).arrival for part in model._chunks(X)], dim=1)
    indicators = torch.nn.functional.one_hot(target, len(model.classes_)).to(arrivals)  # (batch, classes)
    if weight is not None:
        indicators = indicators * torch.from_numpy(weight).to(indicators).unsqueeze(1)
    probabilities = torch.softmax(leaf.values, -1)  # (members, leaves, classes)
    for _ in range(iterations):
        probabilities = _reckon(probabilities, arrivals, indicators, target)
    leaf.values.copy_(probabilities.clamp_min(SMALLEST).log())
    return model


def _reckon(probabilities: Tensor, arrivals: Tensor, indicators: Tensor, target: Tensor) -> Tensor:
    members, rows, _ = arrivals.shape
    own = (arrivals @ probabilities).gather(-1, target.expand(members, rows).unsqueeze(-1))  # (members, batch, 1)
    shares = (arrivals / own.clamp_min(torch.finfo(own.dtype).tiny)).transpose(-1, -2) @ indicators
    counted = probabilities * shares  # (members, leaves, classes)
    total = counted.sum(-1, keepdim=True)
    return torch.where(total > 0, counted / total.clamp_min(torch.finfo(own.dtype).tiny), probabilities)
