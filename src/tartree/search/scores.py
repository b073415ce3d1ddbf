"""Metrics of a search: scores of members on the rows that each holds out; greater is better.

To add one, write its record into `METRICS`: the other modules read from it all that they need to know.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from tartree.model.target import Task


def accuracy(predicted: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """Return the share of the rows whose most probable class is right."""
    return _mean((predicted.argmax(-1) == target).double(), weight)


def balanced_accuracy(predicted: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """Return the mean recall of the classes that occur."""
    is_right = (predicted.argmax(-1) == target).double()
    class_weight = torch.nn.functional.one_hot(target, predicted.shape[-1]).double() * weight.unsqueeze(-1)
    total = class_weight.sum(-2)  # (members, classes)
    recall = (class_weight * is_right.unsqueeze(-1)).sum(-2) / total.clamp_min(1e-300)
    return recall.sum(-1) / (total > 0).sum(-1)


def log_loss(predicted: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """Return the mean negative logarithm of the probability of the true class."""
    probabilities = predicted / predicted.sum(-1, keepdim=True)
    of_truth = probabilities.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    return _mean(-of_truth.double().clamp_min(torch.finfo(torch.float32).eps).log(), weight)


def r2(predicted: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """Return the share of the variance of the held-out rows that is explained, the mean over the targets."""
    target, weights = target.double(), weight.unsqueeze(-1)
    center = (target * weights).sum(1, keepdim=True) / weights.sum(1, keepdim=True)
    error = ((predicted[..., : target.shape[-1]].double() - target).square() * weights).sum(1)
    spread = ((target - center).square() * weights).sum(1)
    share = torch.where(spread > 0, error / spread.clamp_min(1e-300), (error > 0).double())  # as in scikit-learn
    return (1 - share).mean(-1)


def _mean(values: Tensor, weight: Tensor) -> Tensor:
    return (values * weight).sum(-1) / weight.sum(-1)


@dataclass(frozen=True)
class Metric:
    """A metric by which candidates are compared.

    Parameters
    ----------
    name : str
        That of the scorer of scikit-learn, by which other models are scored.
    task : {"classification", "regression"}
    function : callable
        Maps predictions of members, (members, batch, ...), a target and weights, (members, batch), to (members,).
        Values of a regression are in units of the target.
    label : str
        Name of the score in pictures and pages.
    greater_is_better : bool
        If not, scores are the negated values of the function.
    least_rows : int
        Fewest rows that have a score.
    """

    name: str
    task: Task
    function: Callable[[Tensor, Tensor, Tensor], Tensor]
    label: str
    greater_is_better: bool = True
    least_rows: int = 1

    def score(self, predicted: Tensor, target: Tensor, weight: Tensor) -> Tensor:
        """Return the scores of members, (members,)."""
        values = self.function(predicted, target, weight.double())
        return values if self.greater_is_better else -values


#: Metrics by name; the first of a task is its default.
METRICS = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "classification", accuracy, "accuracy"),
        Metric("balanced_accuracy", "classification", balanced_accuracy, "balanced accuracy"),
        Metric("neg_log_loss", "classification", log_loss, "log likelihood", greater_is_better=False),
        Metric("r2", "regression", r2, "R2", least_rows=2),
    )
}


def find_metric(task: Task, name: str | None = None) -> Metric:
    """Return a metric of a task, by default the first."""
    names = [metric.name for metric in METRICS.values() if metric.task == task]
    if name is not None and name not in names:
        raise ValueError(f"scoring must be one of {', '.join(names)}, got {name!r}")
    return METRICS[names[0] if name is None else name]
