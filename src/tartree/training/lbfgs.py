"""Training to the optimum: L-BFGS on the whole table in double precision, for models with a convex loss."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from tartree.nn import Tree
from tartree.training.batches import Batch, Rows
from tartree.training.loss_gradient import loss_of
from tartree.training.recipe import Recipe
from tartree.training.step import enough_threads

if TYPE_CHECKING:
    from tartree.training.history import Callback, History


class _Stopped(Exception):
    """A callback has returned true."""


def solve(tree: Tree, rows: Rows, recipe: Recipe, callbacks: Sequence[Callback] = ()) -> History:
    """Minimise the mean loss of all members plus the penalties, in place; an epoch is an iteration.

    The decays of the recipe are penalties here: ``decay / (2 rows) * sum of squares`` of all weights but the biases. A
    `leaf_decay` of ``1 / C`` is thus the penalty of scikit-learn's logistic regression with ``C``. Batches, learning
    rate, schedule, jitter and dropout are not used.
    """
    from scipy.optimize import minimize

    from tartree.training.history import Epoch, History

    if not tree.output.has_exact_gradient:
        recipe = replace(recipe, loss="mixture")
    parameters = [p for p in tree.parameters() if p.requires_grad]
    dtype = parameters[0].dtype
    was_training = tree.training
    tree.eval().double()
    batch = _double(rows.take(None))
    penalties = _penalties(tree, recipe, getattr(rows, "total", None) or len(rows))
    history, start, last = History(), time.perf_counter(), np.zeros(0)

    def objective(numbers: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        nonlocal last
        _write(parameters, numbers)
        tree.zero_grad(set_to_none=True)
        loss = loss_of(tree, batch.x, batch, recipe)  # (members,)
        last = loss.detach().cpu().numpy()
        total = loss.sum() + sum(weight * p.square().sum() for p, weight in penalties)
        total.backward()
        return float(total.detach()), _read([p.grad if p.grad is not None else torch.zeros_like(p) for p in parameters])

    def report(intermediate_result: Any) -> None:
        epoch = Epoch(
            len(history) + 1, recipe.epochs, recipe.learning_rate, last.copy(), None, None, time.perf_counter() - start
        )
        history.epochs.append(epoch)
        if [callback for callback in callbacks if callback(epoch)]:
            raise _Stopped

    try:
        options = {"maxiter": recipe.epochs, "maxfun": 10 * recipe.epochs, "ftol": 1e-14, "gtol": 1e-9, "maxcor": 20}
        with enough_threads(tree, len(rows)):
            result = minimize(
                objective, _read(parameters), jac=True, method="L-BFGS-B", callback=report, options=options
            )
        _write(parameters, result.x)
        if result.status == 1:  # iterations or evaluations ran out
            warnings.warn(
                f"L-BFGS ended before the optimum, after {len(history)} iterations; give more epochs, now "
                f"{recipe.epochs}, or scale the columns",
                ConvergenceWarning,
                stacklevel=2,
            )
    except _Stopped:
        pass
    tree.zero_grad(set_to_none=True)
    tree.to(dtype).train(was_training)
    return history


def _double(batch: Batch) -> Batch:
    target = batch.target.double() if batch.target.is_floating_point() else batch.target
    return Batch(batch.x.double(), target, None if batch.weight is None else batch.weight.double())


def _penalties(tree: Tree, recipe: Recipe, total: float) -> list[tuple[Tensor, float]]:
    parts = ((tree.decision, recipe.decision_decay), (tree.leaf, recipe.leaf_decay * tree.output.leaf_penalty))
    return [
        (parameter, decay / (2 * total))
        for module, decay in parts
        for name, parameter in module.named_parameters()
        if decay and "bias" not in name and parameter.requires_grad
    ]


def _read(tensors: Sequence[Tensor]) -> NDArray[np.float64]:
    return np.concatenate([t.detach().cpu().double().numpy().ravel() for t in tensors])


@torch.no_grad()
def _write(parameters: Sequence[Tensor], numbers: NDArray[np.float64]) -> None:
    first = 0
    for parameter in parameters:
        values = torch.from_numpy(numbers[first : first + parameter.numel()])
        parameter.copy_(values.view(parameter.shape))
        first += parameter.numel()
