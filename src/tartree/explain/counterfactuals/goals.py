"""The goal of a change, and a proof that no change of one column reaches it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tartree.explain.verification.boxes import Boxes, Interval, prediction_interval
from tartree.nn import ConstantLeaf, MLPLeaf, Tree
from tartree.nn.families import linear_parameters, step_parameters

#: Parts of a column's range at the start of a proof, and in all; maximum number of values of a part.
PARTS, MOST_PARTS, MOST_NUMBERS = 64, 4096, 100_000
#: How surely the goal must be missed: far more than rounding.
SLACK = 1e-9


@dataclass(frozen=True)
class Goal:
    """A goal: one of some classes must become the most probable or, without classes, a value must be reached."""

    classes: tuple[int, ...] = ()
    value: float = 0.0
    up: bool = True

    def margin(self, predicted: Tensor) -> Tensor:
        """Return how far predictions, (rows, outputs), are beyond the goal, (rows,): above 0 it is reached."""
        return self.most(Interval(predicted, predicted))

    def most(self, predicted: Interval) -> Tensor:
        """Return the largest margin of any prediction inside, (rows,)."""
        if self.classes:
            wanted = list(self.classes)
            others = [k for k in range(predicted.low.shape[1]) if k not in self.classes]
            return predicted.high[:, wanted].amax(-1) - predicted.low[:, others].amax(-1)
        beyond = predicted.high[:, 0] - self.value if self.up else self.value - predicted.low[:, 0]
        return beyond + 1e-12


@dataclass(frozen=True)
class NumberRange:
    """The range of a number: its features, its lowest and highest encoded value, and its features at some values.

    `features_at` must not fall as values rise.
    """

    features: list[int]
    low: float
    high: float
    features_at: Callable[[Tensor], Tensor]


def is_out_of_reach(
    tree: Tree, selection: str, goal: Goal, row: Tensor, columns: Sequence[NumberRange], units: Any
) -> bool:
    """Return whether interval arithmetic proves that no value of one number within its range reaches the goal.

    `units` are center and scale of the outputs. False if it cannot be proven.
    """
    if not isinstance(tree.leaf, ConstantLeaf | MLPLeaf):
        return False
    if tree.structure.n_leaves * tree.output.n_numbers * len(columns) > MOST_NUMBERS:
        return False
    return all(_is_column_out_of_reach(tree, selection, goal, row, column, units) for column in columns)


def _is_column_out_of_reach(
    tree: Tree, selection: str, goal: Goal, row: Tensor, column: NumberRange, units: Any
) -> bool:
    center, scale = units
    ends = torch.linspace(column.low, column.high, PARTS + 1, dtype=torch.float64)
    parts = torch.stack([ends[:-1], ends[1:]], dim=1)  # (parts, 2)
    n_parts = 0
    while len(parts):
        n_parts += len(parts)
        if n_parts > MOST_PARTS:
            return False
        boxes = Boxes(row.repeat(len(parts), 1), row.repeat(len(parts), 1))
        boxes.low[:, column.features] = column.features_at(parts[:, 0])
        boxes.high[:, column.features] = column.features_at(parts[:, 1])
        interval = prediction_interval(tree, boxes, selection)
        open_still = goal.most(Interval(center + scale * interval.low, center + scale * interval.high)) > -SLACK
        parts = parts[open_still]
        middle = parts.mean(1, keepdim=True)
        parts = torch.cat([torch.cat([parts[:, :1], middle], dim=1), torch.cat([middle, parts[:, 1:]], dim=1)])
    return True


def decision_lines(tree: Tree, n_features: int) -> tuple[Tensor, Tensor] | None:
    """Return weights (lines, features) and biases (lines,) of functions that are 0 where two children are equal.

    None if decisions are not linear.
    """
    thresholds = step_parameters(tree.decision)
    parameters = linear_parameters(tree.decision)
    if parameters is None and thresholds is None:
        return None
    if parameters is None:
        assert thresholds is not None
        return torch.nn.functional.one_hot(thresholds[0].flatten(), n_features).double(), -thresholds[1].flatten()
    weights, biases = [], []
    for fan in tree.structure.fans:
        for logits in torch.from_numpy(fan.logits):  # of a node
            weight, bias = parameters[0][:, logits], parameters[1][:, logits]  # (members, logits, features)
            if len(logits) > 1:
                first, second = torch.combinations(torch.arange(len(logits)), 2).T
                weight, bias = weight[:, first] - weight[:, second], bias[:, first] - bias[:, second]
            weights.append(weight.flatten(0, 1))
            biases.append(bias.flatten())
    return (torch.cat(weights).double(), torch.cat(biases).double()) if weights else None
