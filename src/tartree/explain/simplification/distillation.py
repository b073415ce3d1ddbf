"""Refit of a smaller tree to what a larger one predicts, in double precision, for the smallest largest change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from tartree.explain import tree_evaluation as ev
from tartree.nn import Tree

#: The largest change is pressed by a mean of so high a power; the even power of the second stage.
POWER = 12
#: What a random row counts beside a given one.
EXTRA = 0.1
#: A refit ends where what is left is so many times what was asked for, after either stage.
FAR, HOPELESS = 30.0, 4.0


@dataclass(frozen=True)
class Lesson:
    """Rows and what is to be predicted for them."""

    x: Tensor  # (rows, features)
    target: Tensor  # (rows, outputs), mean over the members
    n_real: int  # the first rows are the data's; the others are random ones of the box and count less


def predict_mean(tree: Tree, x: Tensor, selection: str) -> Tensor:
    """The prediction as the estimators make it, (rows, outputs), with gradients; "single" has none by its choice."""
    arrival, numbers = tree(x)
    values = tree.output.mean(numbers)[..., : tree.output.n_targets]
    if selection == "single":
        arrival = nn.functional.one_hot(arrival.argmax(-1), arrival.shape[-1]).to(values)
    return torch.einsum("mru,mruo->ro", arrival, values.expand(-1, len(x), -1, -1)) / len(arrival)


@torch.no_grad()
def predict_rows(tree: Tree, x: Tensor, selection: str) -> Tensor:
    """The same in pieces, without gradients."""
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
    """Move the parameters, in place, so that predictions on the given rows change least; returns the largest change.

    First the likelihood of what was predicted, then a high power of the change; the better state of both stages is
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
