"""Interval arithmetic over boxes of encoded rows: bounds of what a tree computes inside, sound but not always tight.

Intervals are pairs of tensors, low and high; boxes are in the batch axis, as rows are elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from tartree.explain import tree_evaluation as ev
from tartree.explain.tree_view.function_views import scaled_logits
from tartree.nn import ConstantLeaf, MLPDecision, MLPLeaf, Tree
from tartree.nn.families import is_fixed
from tartree.nn.paths import edge_shares
from tartree.nn.products import GroupedMLP
from tartree.ops import ActivationFunction
from tartree.structure import Structure


class Interval(NamedTuple):
    low: Tensor
    high: Tensor

    def __sub__(self, other: Interval) -> Interval:
        return Interval(self.low - other.high, self.high - other.low)

    def plus(self, other: Interval) -> Interval:
        return Interval(self.low + other.low, self.high + other.high)

    def meet(self, other: Interval) -> Interval:
        """Return the intersection; each contains the truth, so they overlap except for rounding."""
        low, high = torch.maximum(self.low, other.low), torch.minimum(self.high, other.high)
        return Interval(torch.minimum(low, high), torch.maximum(low, high))

    def size(self) -> Tensor:
        """Return the largest absolute value inside."""
        return torch.maximum(self.low.abs(), self.high.abs())

    def pick(self, index: Any) -> Interval:
        return Interval(self.low[index], self.high[index])


@dataclass(frozen=True)
class Boxes:
    """Boxes of encoded rows."""

    low: Tensor  # (boxes, features)
    high: Tensor  # (boxes, features)

    @property
    def center(self) -> Tensor:
        return (self.low + self.high) / 2

    @property
    def radius(self) -> Tensor:
        return (self.high - self.low) / 2

    def __len__(self) -> int:
        return len(self.low)


def affine(boxes: Boxes, weight: Tensor, bias: Tensor) -> Interval:
    """Return the exact intervals of linear functions, (members, functions, features): (members, boxes, functions)."""
    middle = boxes.center @ weight.transpose(-1, -2) + bias.unsqueeze(-2)
    reach = boxes.radius @ weight.abs().transpose(-1, -2)
    return Interval(middle - reach, middle + reach)


def perceptron(boxes: Boxes, mlp: GroupedMLP) -> Interval:
    """Return intervals of grouped perceptrons over boxes, (members, boxes, outputs)."""
    first = affine(boxes, mlp.weights[0], mlp.biases[0])
    if len(mlp.weights) == 1:
        return first
    groups = len(mlp.sizes)
    low, high = (part.unflatten(-1, (groups, mlp.hidden)) for part in first)  # (members, boxes, groups, hidden)
    for weight, bias in zip(mlp.weights[1:-1], mlp.biases[1:-1], strict=True):
        low, high = F.elu(low), F.elu(high)  # ELU rises
        middle = torch.einsum("mbgh,mgkh->mbgk", (low + high) / 2, weight) + bias.unsqueeze(1)
        reach = torch.einsum("mbgh,mgkh->mbgk", (high - low) / 2, weight.abs())
        low, high = middle - reach, middle + reach
    low, high = F.elu(low), F.elu(high)
    owner = torch.repeat_interleave(torch.arange(groups), torch.tensor(mlp.sizes))  # (outputs,)
    output_low, output_high = low[:, :, owner], high[:, :, owner]  # (members, boxes, outputs, hidden)
    weight, bias = mlp.weights[-1].unsqueeze(1), mlp.biases[-1].unsqueeze(1)
    middle = ((output_low + output_high) / 2 * weight).sum(-1) + bias
    reach = ((output_high - output_low) / 2 * weight.abs()).sum(-1)
    return Interval(middle - reach, middle + reach)


def combine(share: Interval, value: Interval) -> Interval:
    """Return means of children's values, (..., children, outputs), by shares, (..., children): (..., outputs)."""
    high = _most(share, value.high)
    low = -_most(share, -value.low)
    return Interval(low, high)


def _most(share: Interval, value: Tensor) -> Tensor:
    """Return the largest mean: every child has its smallest share, and the rest goes to the largest values first."""
    order = value.argsort(dim=-2, descending=True)
    least, most = (part.unsqueeze(-1).expand_as(value) for part in share)
    room = torch.take_along_dim(most - least, order, dim=-2)
    left = (1 - share.low.sum(-1)).clamp_min(0)[..., None, None]
    added = (left - (room.cumsum(-2) - room)).clamp_min(0).minimum(room)
    # Apart from rounding nothing remains; if so, it goes to the largest value.
    rest = (left.squeeze(-2) - added.sum(-2)).clamp_min(0)
    best = value.amax(-2)
    return (least * value).sum(-2) + (added * torch.take_along_dim(value, order, dim=-2)).sum(-2) + rest * best


def branching_interval(tree: Tree, boxes: Boxes) -> Interval:
    """Return intervals of branching probabilities over boxes, (members, boxes, branches)."""
    structure = tree.structure
    members = ev.n_members(tree)
    shape = (members, len(boxes), structure.n_branches)
    result = Interval(boxes.low.new_zeros(shape), boxes.low.new_ones(shape))
    if is_fixed(tree.decision):
        even = tree.branching.probabilities(boxes.low.new_zeros(members, len(boxes), structure.n_logits))
        return Interval(even, even)
    if type(tree.decision) is not MLPDecision:
        return result
    logits = perceptron(boxes, tree.decision.mlp)
    logits = Interval(tree.branching.scale(logits.low), tree.branching.scale(logits.high))
    linear = len(tree.decision.mlp.weights) == 1
    for fan in structure.fans:
        logits_of_fan, branches = torch.from_numpy(fan.logits), torch.from_numpy(fan.branches)
        if fan.n_children == 2:
            first = _first_child(tree, logits.pick((..., logits_of_fan[:, 0])))
            result.low[..., branches[:, 0]], result.high[..., branches[:, 0]] = first
            result.low[..., branches[:, 1]], result.high[..., branches[:, 1]] = 1 - first.high, 1 - first.low
        elif linear and tree.branching.is_softmax:
            weight, bias = (part[:, logits_of_fan] for part in scaled_logits(tree))
            shares = softmax_interval(boxes, weight, bias)  # (members, boxes, nodes, children)
            result.low[..., branches], result.high[..., branches] = shares
        elif tree.branching.activation.is_monotone:
            shares = _by_corners(logits.pick((..., logits_of_fan)), tree.branching.activation)
            result.low[..., branches], result.high[..., branches] = shares
    return result


def _first_child(tree: Tree, logit: Interval) -> Interval:
    """Return the share of the first of two children, from its logit over the temperature."""
    low, high = (ev.first_child_share(tree, z) for z in logit)
    if tree.branching.activation.is_monotone:
        return Interval(low, high)
    if tree.branching.activation.turning_point == 2:  # rises from -2 to 2, falls outside
        ends = torch.stack([low, high])
        low, high = ends.amin(0), ends.amax(0)
        low = torch.where((logit.low <= -2) & (logit.high >= -2), torch.zeros_like(low), low)
        return Interval(low, torch.where((logit.low <= 2) & (logit.high >= 2), torch.ones_like(high), high))
    return Interval(torch.zeros_like(logit.low), torch.ones_like(logit.low))


def _by_corners(logits: Interval, activation: ActivationFunction) -> Interval:
    """Return shares, (..., logits), of an activation that increases with its logit and decreases with the others."""
    eye = torch.eye(logits.low.shape[-1], dtype=torch.bool)
    least = torch.where(eye, logits.low.unsqueeze(-2), logits.high.unsqueeze(-2))  # (..., logit, logits)
    most = torch.where(eye, logits.high.unsqueeze(-2), logits.low.unsqueeze(-2))
    low, high = (activation(corner, -1).diagonal(dim1=-2, dim2=-1) for corner in (least, most))
    return Interval(low, high)


def softmax_interval(boxes: Boxes, weight: Tensor, bias: Tensor) -> Interval:
    """Return softmax intervals of linear functions, (members, groups, functions, features).

    The result is (members, boxes, groups, functions). The differences of the functions have exact intervals, and the
    softmax is a function of them.
    """
    members, groups, k, _ = weight.shape
    low = boxes.low.new_zeros(members, len(boxes), groups, k)
    high = torch.zeros_like(low)
    for j in range(k):
        less = affine(
            boxes, (weight - weight[:, :, j : j + 1]).flatten(1, 2), (bias - bias[:, :, j : j + 1]).flatten(1)
        )
        others = torch.arange(k) != j
        for part, out in ((less.high, low), (less.low, high)):
            rest = part.unflatten(-1, (groups, k))[..., others].logsumexp(-1)
            out[..., j] = torch.sigmoid(-rest)
    return Interval(low, high)


def leaf_interval(tree: Tree, boxes: Boxes) -> Interval:
    """Return intervals of the predictions of leaves over boxes, (members, boxes, leaves, outputs)."""
    outputs = tree.output.n_targets
    if isinstance(tree.leaf, ConstantLeaf):
        values = tree.output.mean(tree.leaf.values.unsqueeze(1))[..., :outputs].expand(-1, len(boxes), -1, -1)
        return Interval(values, values)
    assert isinstance(tree.leaf, MLPLeaf)
    mlp = tree.leaf.mlp
    if not tree.output.is_classes:  # means rise with the raw outputs, so the ends of an interval stay its ends
        low, high = (part.unflatten(-1, (-1, tree.leaf.n_numbers)) for part in perceptron(boxes, mlp))
        return Interval(tree.output.point(low), tree.output.point(high))
    if len(mlp.weights) == 1:
        weight, bias = (part.unflatten(1, (-1, outputs)) for part in (mlp.weights[0], mlp.biases[0]))
        return softmax_interval(boxes, weight, bias)
    low, high = (part.unflatten(-1, (-1, outputs)) for part in perceptron(boxes, mlp))
    return _by_corners(Interval(low, high), torch.softmax)


def node_intervals(structure: Structure, branching: Interval, leaves: Interval) -> list[Interval]:
    """Return predictions from each node down, for each layer, root first, (members, boxes, nodes, outputs)."""
    layers = [leaves]
    for d in reversed(range(structure.depth)):
        below = layers[-1]
        children, counts = structure.children(d), structure.n_children(d)
        _, _, branches = structure.edges(d)
        firsts = torch.from_numpy(counts).cumsum(0) - torch.from_numpy(counts)
        shape = (*below.low.shape[:2], structure.widths[d], below.low.shape[-1])
        layer = Interval(below.low.new_zeros(shape), below.low.new_zeros(shape))
        for k in sorted(set(counts.tolist())):
            nodes = torch.from_numpy((counts == k).nonzero()[0])
            child_index = torch.tensor([children[int(i)] for i in nodes])  # (nodes, children)
            value = below.pick((slice(None), slice(None), child_index))
            if k == 1:
                layer.low[:, :, nodes], layer.high[:, :, nodes] = value.low[..., 0, :], value.high[..., 0, :]
                continue
            branch_index = torch.from_numpy(branches)[firsts[nodes, None] + torch.arange(k)]
            layer.low[:, :, nodes], layer.high[:, :, nodes] = combine(branching.pick((..., branch_index)), value)
        layers.append(layer)
    return layers[::-1]


def arrival_interval(structure: Structure, branching: Interval) -> Interval:
    """Return intervals of arrivals at the leaves over boxes, (members, boxes, leaves)."""
    low = high = branching.low.new_ones((*branching.low.shape[:-1], 1))
    for d in range(structure.depth):
        parents, children, branches = (torch.from_numpy(part) for part in structure.edges(d))
        parts = []
        for level, share in ((low, branching.low), (high, branching.high)):
            flow = level.index_select(-1, parents) * edge_shares(share, branches)
            below = flow.new_zeros((*flow.shape[:-1], structure.widths[d + 1]))
            parts.append(below.index_add_(-1, children, flow))
        low, high = parts[0], parts[1].clamp_max(1.0)
    return Interval(low, high)


def chosen_interval(structure: Structure, branching: Interval, leaves: Interval, slack: float) -> Interval:
    """Return the interval over all leaves that can have the largest arrival, (members, boxes, outputs)."""
    arrival = arrival_interval(structure, branching)
    can = (arrival.high >= arrival.low.amax(-1, keepdim=True) - slack).unsqueeze(-1)  # largest somewhere in the box
    low = leaves.low.masked_fill(~can, torch.inf).amin(-2)
    return Interval(low, leaves.high.masked_fill(~can, -torch.inf).amax(-2))


def prediction_interval(tree: Tree, boxes: Boxes, selection: str) -> Interval:
    """Return intervals of the prediction over boxes, the mean of the members, (boxes, outputs)."""
    branching, leaves = branching_interval(tree, boxes), leaf_interval(tree, boxes)
    if selection == "single":
        low, high = chosen_interval(tree.structure, branching, leaves, 1e-12)
    else:
        low, high = (part.squeeze(-2) for part in node_intervals(tree.structure, branching, leaves)[0])
    return Interval(low.mean(0), high.mean(0))


def data_box(x: Tensor) -> Boxes:
    """Return the smallest box around encoded rows, (rows, features)."""
    return Boxes(x.amin(0, keepdim=True), x.amax(0, keepdim=True))
