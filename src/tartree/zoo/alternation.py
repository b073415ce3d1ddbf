"""Alternating training of deep neural decision forests: decisions by gradient, leaves by counting."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils.class_weight import compute_sample_weight
from torch import Tensor

from tartree.checks import check_integer
from tartree.estimators import TartClassifier
from tartree.model import FittedModel, fit, fitted_model, prepare
from tartree.model.memory_source import MemorySource, check_equal_rows, check_weights, number_of_rows
from tartree.model.target import ClassWeight
from tartree.nn import ConstantLeaf
from tartree.training import History

SMALLEST = 1e-6  # of a leaf's probabilities: a class without rows is unlikely, not impossible


def fit_alternating(
    model: TartClassifier,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    rounds: int = 10,
    iterations: int = 20,
) -> TartClassifier:
    """Fit a classifier with constant leaves as Kontschieder et al.: decisions and leaves in turns.

    Parameters
    ----------
    model : TartClassifier
        Not fitted, with constant leaves, such as ``zoo.make("dndf")``. Its epochs are divided among the rounds, at
        most as many as there are epochs; decisions learn by gradient while the leaves are fixed. Without early
        stopping.
    X, y : table and labels
    sample_weight : array of shape (rows,), optional
        Weights of rows, for decisions and leaves; multiplied by those of the model's ``class_weight``.
    rounds : int, default=10
    iterations : int, default=20
        Iterations of the update of the leaves in each round; see `update_leaves`.

    Returns
    -------
    TartClassifier
        The same model, fitted; `history_` has the epochs of all rounds. If anything fails, the model is left as it
        was.

    Raises
    ------
    ValueError
        If leaves are not constant, or the model uses early stopping.

    Notes
    -----
    By ``model.fit`` leaves learn by gradient too, together with the decisions.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import zoo
    >>> X, y = load_iris(return_X_y=True)
    >>> model = zoo.make("tree-1", depth=2, epochs=4, random_state=0)
    >>> len(zoo.fit_alternating(model, X, y, rounds=2).history_)
    4
    """
    if not isinstance(model, TartClassifier):
        raise TypeError(f"alternating updates are for classes, got {type(model).__name__}")
    check_integer("rounds", rounds, 1)
    check_integer("iterations", iterations, 1)
    if model.early_stopping not in (False, "auto"):
        raise ValueError(
            f"early_stopping must be 'auto' or False for alternating updates, got {model.early_stopping!r}"
        )
    spec = replace(model.spec(), early_stopping=False, warm_start=False)
    recipe = spec.recipe
    rounds = min(rounds, recipe.epochs)
    source = MemorySource(X, y, sample_weight)
    fitted, history = prepare(spec, source).finish(None), History()
    with torch.no_grad():
        _leaf(fitted).values.zero_()  # equal probabilities
    _update(fitted, X, y, sample_weight, spec.class_weight, iterations)
    for index in range(rounds):
        epochs = recipe.epochs * (index + 1) // rounds - recipe.epochs * index // rounds
        rate = recipe.rate(index / rounds)  # the schedule, round by round
        round_recipe = replace(recipe, epochs=epochs, learning_rate=rate, schedule="constant")
        _leaf(fitted).values.requires_grad_(False)
        fitted = fit(replace(spec, recipe=round_recipe), source, resumed=fitted)
        _update(fitted, X, y, sample_weight, spec.class_weight, iterations)
        assert fitted.provenance.history is not None
        history.epochs += fitted.provenance.history.epochs
        history.interrupted = fitted.provenance.history.interrupted
        if history.interrupted:
            break
    fitted.tree.leaf.requires_grad_(True)
    return model.adopt(fitted.record(history=history))


def _leaf(model: FittedModel) -> ConstantLeaf:
    leaf = model.tree.leaf
    if not isinstance(leaf, ConstantLeaf):
        raise ValueError(f"leaves must be constant, leaf_layers=0, got {type(leaf).__name__}")
    return leaf


def update_leaves(
    model: TartClassifier, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, *, iterations: int = 20
) -> TartClassifier:
    """Set constant leaves to those that maximise the likelihood of the mixture for fixed decisions.

    Each iteration divides a row among the leaves in proportion to their contributions to the probability of its
    class, and sets a leaf's probabilities to the shares of the classes in its rows; the likelihood never falls.

    Parameters
    ----------
    model : TartClassifier
        Fitted, with constant leaves; they are changed in place.
    X, y : table and labels
    sample_weight : array of shape (rows,), optional
        Weights of rows; multiplied by those of the model's ``class_weight``.
    iterations : int, default=20

    Returns
    -------
    TartClassifier
        The same model.

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
        raise TypeError(f"leaves that count classes need a TartClassifier, got {type(model).__name__}")
    check_integer("iterations", iterations, 1)
    _update(fitted_model(model), X, y, sample_weight, model.class_weight, iterations)
    return model


@torch.no_grad()
def _update(
    model: FittedModel,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    class_weight: ClassWeight,
    iterations: int,
) -> None:
    """Set the leaves of a model, in place."""
    leaf, tree = _leaf(model), model.tree.eval()
    target = model.codec.encode(y).to(model.device)
    n_rows = number_of_rows(X)
    check_equal_rows(n_rows, len(target))
    weight = check_weights(sample_weight, n_rows)
    if class_weight is not None:
        class_factors = compute_sample_weight(class_weight, np.asarray(y))
        weight = class_factors if weight is None else class_factors * weight
    chunks = (chunk.to(model.device, leaf.values.dtype) for chunk in model.encoded_chunks(X, model.chunk_rows))
    arrivals = torch.cat([tree(x).arrival for x in chunks], dim=1)
    indicators = torch.nn.functional.one_hot(target, model.n_outputs).to(arrivals)  # (batch, classes)
    if weight is not None:
        indicators = indicators * torch.from_numpy(weight).to(indicators).unsqueeze(1)
    probabilities = torch.softmax(leaf.values, -1)  # (members, leaves, classes)
    for _ in range(iterations):
        probabilities = _iterate(probabilities, arrivals, indicators, target)
    leaf.values.copy_(probabilities.clamp_min(SMALLEST).log())


def _iterate(probabilities: Tensor, arrivals: Tensor, indicators: Tensor, target: Tensor) -> Tensor:
    """Return the probabilities of the leaves after one iteration, (members, leaves, classes)."""
    members, rows, _ = arrivals.shape
    tiny = torch.finfo(arrivals.dtype).tiny
    of_class = (arrivals @ probabilities).gather(-1, target.expand(members, rows).unsqueeze(-1))  # (members, batch, 1)
    shares = (arrivals / of_class.clamp_min(tiny)).transpose(-1, -2) @ indicators
    counts = probabilities * shares  # (members, leaves, classes)
    total = counts.sum(-1, keepdim=True)
    return torch.where(total > 0, counts / total.clamp_min(tiny), probabilities)
