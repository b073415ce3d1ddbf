"""Alternating training of deep neural decision forests: decisions by gradient, leaves by counting."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from tartree.estimators import TartClassifier
from tartree.nn import ConstantLeaf
from tartree.zoo.warming import target_of

SMALLEST = 1e-6  # of a leaf's probabilities: what no row has is unlikely, not impossible


def fit_alternating(
    model: TartClassifier, X: Any, y: ArrayLike, *, rounds: int = 10, iterations: int = 20
) -> TartClassifier:
    """Fit a classifier with constant leaves as Kontschieder et al.: in turns the decisions and the leaves.

    Parameters
    ----------
    model : TartClassifier
        Not fitted, with constant leaves, such as ``zoo.make("dndf")``. Its epochs are shared out over the rounds; the
        decisions learn by gradient while the leaves stand still.
    X, y : table and labels
    rounds : int, default=10
    iterations : int, default=20
        Of the update of the leaves in each round; see `update_leaves`.

    Returns
    -------
    TartClassifier
        The same model, fitted. Without this, leaves learn by gradient too, together with the decisions.
    """
    if not isinstance(model, TartClassifier):
        raise TypeError(f"alternating updates are for classes, however: {type(model).__name__}")
    if rounds < 1:
        raise ValueError(f"rounds must be at least 1, however: {rounds=}")
    given = model.get_params()
    recipe = model._recipe()
    each = replace(recipe, epochs=max(1, round(recipe.epochs / rounds)), schedule="constant")
    try:
        for number in range(rounds):
            rate = recipe.rate(number / rounds)  # the schedule, round by round
            model.set_params(
                recipe=replace(each, learning_rate=rate),
                epochs=None,
                learning_rate=None,
                early_stopping=False,
                warm_start=number > 0,
            )
            if number == 0:
                _build(model, X, y)
            model.set_params(warm_start=True)
            _leaf(model).values.requires_grad_(False)
            model.fit(X, y)
            update_leaves(model, X, y, iterations=iterations)
    finally:
        model.set_params(**given)
        if hasattr(model, "tree_"):
            _leaf(model).values.requires_grad_(True)
    return model


def _build(model: TartClassifier, X: Any, y: ArrayLike) -> None:
    """A model with its first weights, and even leaves."""
    recipe = model._recipe()
    model.set_params(recipe=replace(recipe, epochs=1, learning_rate=1e-30, decision_decay=0.0, leaf_decay=0.0))
    model.fit(X, y)
    model.set_params(recipe=recipe)
    with torch.no_grad():
        _leaf(model).values.zero_()
    update_leaves(model, X, y)


def _leaf(model: TartClassifier) -> ConstantLeaf:
    leaf = model.tree_.leaf
    if not isinstance(leaf, ConstantLeaf):
        raise ValueError(f"leaves must be constant, leaf_layers=0, however: {type(leaf).__name__}")
    return leaf


@torch.no_grad()
def update_leaves(model: TartClassifier, X: Any, y: ArrayLike, *, iterations: int = 20) -> TartClassifier:
    """Set constant leaves to what maximises the likelihood of the mixture, given the decisions.

    Each iteration shares a row out over the leaves by what each contributes to the probability of its class, and makes
    a leaf's probabilities the shares of the classes that it got; the likelihood never falls.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import zoo
    >>> X, y = load_iris(return_X_y=True)
    >>> model = zoo.make("tree-1", depth=0, epochs=1).fit(X, y)  # one leaf
    >>> zoo.update_leaves(model, X, y).predict_proba(X[:1]).round(3)
    array([[0.333, 0.333, 0.333]])
    """
    check_is_fitted(model, "tree_")
    leaf = _leaf(model)
    tree, device = model.tree_.eval(), leaf.values.device
    target = target_of(model, y).to(device)
    arrivals = torch.cat([tree(part.to(device, leaf.values.dtype)).arrival for part in model._chunks(X)], dim=1)
    indicators = torch.nn.functional.one_hot(target, len(model.classes_)).to(arrivals)  # (batch, classes)
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
