"""Scores of members on the rows that each holds out; higher is better."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tartree.nn import Classes, Output

Score = Callable[[Tensor, Tensor, Tensor], Tensor]


def accuracy(predicted: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """Share of the rows whose most probable class is right."""
    return _mean((predicted.argmax(-1) == target).double(), weight)


def balanced_accuracy(predicted: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """The mean over the classes, of those that are there, of the share of their rows that is right."""
    right = (predicted.argmax(-1) == target).double()
    own = torch.nn.functional.one_hot(target, predicted.shape[-1]).double() * weight.unsqueeze(-1)
    there = own.sum(-2)  # (members, classes)
    recall = (own * right.unsqueeze(-1)).sum(-2) / there.clamp_min(1e-300)
    return recall.sum(-1) / (there > 0).sum(-1)


def neg_log_loss(predicted: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """The mean logarithm of the probability of the true class."""
    share = predicted / predicted.sum(-1, keepdim=True)
    said = share.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    return _mean(said.double().clamp_min(torch.finfo(torch.float32).eps).log(), weight)


def r2(predicted: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """1 less the squared error over that of the mean of the rows held out; the mean over the targets."""
    target, weights = target.double(), weight.unsqueeze(-1)
    center = (target * weights).sum(1, keepdim=True) / weights.sum(1, keepdim=True)
    error = ((predicted[..., : target.shape[-1]].double() - target).square() * weights).sum(1)
    spread = ((target - center).square() * weights).sum(1)
    share = torch.where(spread > 0, error / spread.clamp_min(1e-300), (error > 0).double())  # as scikit-learn has it
    return (1 - share).mean(-1)


CLASSIFICATION: dict[str, Score] = {
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "neg_log_loss": neg_log_loss,
}
REGRESSION: dict[str, Score] = {"r2": r2}


def scoring_name(scoring: str | None, output: Output) -> str:
    """The name of a score that suits the output, by default accuracy or R2."""
    known = CLASSIFICATION if isinstance(output, Classes) else REGRESSION
    name = next(iter(known)) if scoring is None else scoring
    if name not in known:
        raise ValueError(f"scoring must be one of {', '.join(known)}, however: {scoring!r}")
    return name


def score(name: str, predicted: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """Scores, (members,), of what members predict, (members, batch, ...), weighted by (members, batch)."""
    return {**CLASSIFICATION, **REGRESSION}[name](predicted, target, weight.double())


def _mean(values: Tensor, weight: Tensor) -> Tensor:
    return (values * weight).sum(-1) / weight.sum(-1)
