"""Refit of a smaller tree to the predictions of a larger one, in double precision, to minimise the largest change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from tartree.explain import tree_evaluation as ev
from tartree.nn import Tree
from tartree.training.step import enough_threads

#: Power of the mean change that the second stage minimises, in place of the largest change; even.
POWER = 12
#: Weight of a random row, compared with a row of the data.
EXTRA = 0.1
#: A refit ends if the change is so many times the tolerance after the first or the second stage.
FAR, HOPELESS = 30.0, 4.0


@dataclass(frozen=True)
class Lesson:
    """Rows and the predictions to fit for them."""

    x: Tensor  # (rows, features)
    target: Tensor  # (rows, outputs), mean over the members
    n_real: int  # the first rows are the data's; the others are random ones of the box and count less


def predict_mean(tree: Tree, x: Tensor, selection: str) -> Tensor:
    """Return the prediction of the model, (rows, outputs), with gradients, except through the choice of "single"."""
    arrival, numbers = tree(x)
    values = tree.output.mean(numbers)[..., : tree.output.n_targets]
    if selection == "single":
        arrival = nn.functional.one_hot(arrival.argmax(-1), arrival.shape[-1]).to(values)
    return torch.einsum("mru,mruo->ro", arrival, values.expand(-1, len(x), -1, -1)) / len(arrival)


@torch.no_grad()
def predict_rows(tree: Tree, x: Tensor, selection: str) -> Tensor:
    """Return the same, computed in chunks without gradients."""
    return torch.cat([ev.predicted(tree, part, selection).mean(0) for part in ev.in_chunks(tree, x)])


def largest_change(tree: Tree, x: Tensor, target: Tensor, selection: str) -> float:
    return float((predict_rows(tree, x, selection) - target).abs().max()) if len(x) else 0.0


def refit(
    tree: Tree,
    lesson: Lesson,
    selection: str,
    *,
    masks: Sequence[tuple[nn.Parameter, Tensor]] = (),
    steps: int = 150,
    enough: float = 0.0,
) -> float:
    """Fit the parameters, in place, so that predictions on the data's rows change least; return the largest change.

    First the likelihood of the predictions is fitted, then a high power of the change; the better state of both is
    kept, and the second stops once the change is below `enough`. `masks` are 0 where a parameter stays 0.
    """
    parameters = [p for p in tree.parameters() if p.numel()]
    for parameter in parameters:
        parameter.requires_grad_(True)
    best, kept = float("inf"), [p.detach().clone() for p in parameters]
    share = torch.ones(len(lesson.x), 1, dtype=torch.float64)
    share[lesson.n_real :] = EXTRA
    root_share = share.sqrt()
    share = share / share.sum()

    def worst_change() -> float:
        return largest_change(tree, lesson.x[: lesson.n_real], lesson.target[: lesson.n_real], selection)

    def loss(stage: int) -> Tensor:
        predicted = predict_mean(tree, lesson.x, selection)
        if stage == 0 and tree.output.is_classes:
            return -(share * lesson.target * (predicted + 1e-9).log()).sum()
        if stage == 0:
            return (share * (predicted - lesson.target).square()).sum()
        change = root_share * (predicted - lesson.target).abs() + 1e-12
        scale = change.detach().max()
        return scale * (((change / scale) ** POWER).mean()) ** (1 / POWER)

    with enough_threads(tree, len(lesson.x)):
        for stage in (0, 1):
            for _ in range(2 if stage else 1):
                _descend(partial(loss, stage), parameters, masks, steps)
                now = worst_change()
                if now < best:
                    best, kept = now, [p.detach().clone() for p in parameters]
                if best <= enough or best > HOPELESS * enough:
                    break
            if best <= enough or best > FAR * enough > 0:
                break
    with torch.no_grad():
        for parameter, value in zip(parameters, kept, strict=True):
            parameter.copy_(value)
    tree.requires_grad_(False)
    return best


def _descend(
    loss: Callable[[], Tensor], parameters: list[nn.Parameter], masks: Sequence[tuple[nn.Parameter, Tensor]], steps: int
) -> None:
    optimizer = torch.optim.LBFGS(
        parameters, max_iter=steps, history_size=20, line_search_fn="strong_wolfe", tolerance_change=1e-10
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        for parameter, mask in masks:
            if parameter.grad is not None:
                parameter.grad *= mask
        return value

    optimizer.step(closure)
