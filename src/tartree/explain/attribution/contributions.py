"""Contributions of features to a prediction, compared with a reference row; they add up. README.md has the derivation.

The prediction is ``F(x) = sum over leaves of p_u(x) g_u(x)``. Its change from the reference has two parts:

- leaf part, ``sum of p_u(x) (g_u(x) - g_u(ref))``: the leaves predict something else for this row;
- path part, ``sum over nodes of p_n(x) sum over children of (b_nj(x) - b_nj(ref)) v_j``: the row takes other
  paths, and ``v_j`` is predicted for the reference from child ``j`` down.

The change of the function of each node and leaf is shared among features by the line integral of `integrals`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from tartree.explain import tree_evaluation as ev
from tartree.explain.attribution.integrals import completed, mean_gradient
from tartree.explain.tree_view.function_views import scaled_logits
from tartree.nn import Tree
from tartree.nn.families import is_fixed, linear_parameters, step_parameters

#: Numbers held at once.
CHUNK_NUMBERS = 2**22
#: Below this change of a logit, its slope is taken at the point instead of between the two ends.
SMALL = 1e-6
#: Points of an integral through a perceptron, whose kinks more points would not see either.
FEW_POINTS = (8, 32)


class Parts(NamedTuple):
    """Means over the members, in units of the tree: base + path + leaf = prediction."""

    base: Tensor  # (outputs,): the prediction for the reference
    path: Tensor  # (rows, features, outputs)
    leaf: Tensor  # (rows, features, outputs)
    prediction: Tensor  # (rows, outputs)


def contributions(tree: Tree, x: Tensor, reference: Tensor, selection: str) -> Parts:
    """Compute the contributions of each encoded feature for rows, (rows, features), and a reference, (features,)."""
    at_reference = ev.evaluate(tree, reference[None])
    base = ev.predicted(tree, at_reference, selection).mean(0)[0]
    classes = tree.output.n_targets
    per_row = x.shape[1] * classes + ev.n_members(tree) * classes * (
        tree.structure.n_leaves * classes + 2 * tree.structure.n_branches
    )
    pieces = [_part(tree, rows, at_reference, selection) for rows in x.split(max(8, CHUNK_NUMBERS // per_row))]
    path, leaf, prediction = (torch.cat(column) for column in zip(*pieces, strict=True))
    return Parts(base, path, leaf, prediction)


def _part(tree: Tree, x: Tensor, at_reference: ev.Evaluation, selection: str) -> tuple[Tensor, Tensor, Tensor]:
    at_rows = ev.evaluate(tree, x)
    moves = x - at_reference.x  # (rows, features)
    prediction = ev.predicted(tree, at_rows, selection).mean(0)
    arrival = at_rows.arrivals[-1]
    if selection == "single" and step_parameters(tree.decision) is None:  # steps send all one way: multi is single
        chosen = arrival.argmax(-1)  # (members, rows)
        arrival = torch.nn.functional.one_hot(chosen, arrival.shape[-1]).to(arrival)
        path = _choice_part(tree, at_rows, at_reference, moves, chosen)
    else:
        path = _path_part(tree, at_rows, at_reference, moves)
    return path, _leaf_part(tree, at_rows, at_reference, moves, arrival), prediction


# Leaves


def _leaf_part(tree: Tree, at_rows: ev.Evaluation, ref: ev.Evaluation, moves: Tensor, arrival: Tensor) -> Tensor:
    """Return the parts of ``sum of p_u(x) (g_u(x) - g_u(ref))``, (rows, features, outputs)."""
    outputs = tree.output.n_targets
    if is_fixed(tree.leaf):
        return moves.new_zeros(*moves.shape, outputs)
    change = torch.einsum("mru,mruo->ro", arrival, at_rows.values - ref.values) / len(arrival)
    parameters = linear_parameters(tree.leaf) if tree.output.has_linear_mean or tree.output.is_classes else None
    if parameters is None:

        def mean_outputs(rows: Tensor, inputs: Tensor) -> Tensor:
            values = tree.output.mean(tree.leaf(inputs))[..., :outputs]
            return torch.einsum("mru,mruo->ro", arrival[:, rows], values.expand(-1, len(inputs), -1, -1)) / len(arrival)

        return _by_inputs(mean_outputs, ref.x[0], moves, change, tree.output.is_classes)
    weight = parameters[0].unflatten(1, (-1, tree.output.n_numbers))  # (members, leaves, numbers, features)
    if tree.output.has_linear_mean:  # its terms are the parts
        slope = torch.einsum("mru,muof->rfo", arrival, weight[:, :, :outputs]) / len(arrival)
        return completed(slope * moves.unsqueeze(-1), change, moves)
    numbers, numbers_ref = tree.leaf(at_rows.x), tree.leaf(ref.x)  # (members, rows or 1, leaves, classes)
    if outputs == 2:  # one coordinate, the log odds
        move = (numbers - numbers_ref).diff(dim=-1).squeeze(-1)  # (members, rows, leaves)
        slope = _secant(torch.sigmoid, (numbers_ref[..., 1] - numbers_ref[..., 0]).expand_as(move), move)
        odds = weight[:, :, 1] - weight[:, :, 0]  # (members, leaves, features)
        second = torch.einsum("mru,mruf->rf", arrival * slope, odds.unsqueeze(1).expand(-1, len(moves), -1, -1))
        parts = (second * moves / len(arrival)).unsqueeze(-1)
        return completed(torch.cat([-parts, parts], dim=-1), change, moves)
    flat = (numbers - numbers_ref).flatten(2)  # (members, rows, leaves * classes)

    def gradient(rows: Tensor, way: Tensor) -> Tensor:
        between = numbers_ref + way[:, None, None] * (numbers[:, rows] - numbers_ref)
        share = torch.softmax(between, dim=-1)  # (members, rows, leaves, classes)
        jacobian = torch.diag_embed(share) - share.unsqueeze(-1) * share.unsqueeze(-2)
        return (arrival[:, rows, :, None, None] * jacobian).flatten(2, 3)

    mean = mean_gradient(gradient, flat, torch.einsum("mru,mruo->mro", arrival, at_rows.values - ref.values))
    parts = torch.einsum("mrzo,mzf->rfo", mean, weight.flatten(1, 2)) / len(arrival)
    return completed(parts * moves.unsqueeze(-1), change, moves)


# Paths, where all leaves count by arrival


def _path_part(tree: Tree, at_rows: ev.Evaluation, ref: ev.Evaluation, moves: Tensor) -> Tensor:
    """Return the parts of ``sum of p_n(x) (b_nj(x) - b_nj(ref)) v_j``, (rows, features, outputs)."""
    structure, outputs = tree.structure, tree.output.n_targets
    if is_fixed(tree.decision) or not structure.n_logits:
        return moves.new_zeros(*moves.shape, outputs)
    below = ev.expected_values(structure, ref.branching, ref.values)  # for each layer, (members, 1, nodes, outputs)
    owner, value = _branch_values(tree, below)  # (branches,), (members, branches, outputs)
    arrival = torch.cat(at_rows.arrivals[:-1], dim=-1)[..., owner]  # (members, rows, branches)
    members = len(arrival)
    change = torch.einsum("mrb,mbo->ro", arrival * (at_rows.branching - ref.branching), value) / members
    thresholds = step_parameters(tree.decision)
    if thresholds is not None:  # a node looks at one feature, which has the whole change
        first, second = torch.from_numpy(structure.fans[0].branches).unbind(1)
        pull = (value[:, first] - value[:, second]).unsqueeze(1)  # (members, 1, nodes, outputs)
        moved = (arrival * (at_rows.branching - ref.branching))[..., first].unsqueeze(-1) * pull / members
        parts = moves.new_zeros(*moves.shape, outputs)
        for m in range(members):
            parts.index_add_(1, thresholds[0][m], moved[m])
        return parts
    parameters = linear_parameters(tree.decision)
    if parameters is None:

        def mean_below(rows: Tensor, inputs: Tensor) -> Tensor:
            branching = tree.branching.probabilities(tree.decision(inputs))
            return torch.einsum("mrb,mbo->ro", arrival[:, rows] * branching, value) / members

        return _by_inputs(mean_below, ref.x[0], moves, change, tree.output.is_classes)
    weight, _ = scaled_logits(tree)  # (members, logits, features)
    logits_ref = tree.branching.scale(ref.logits)  # (members, 1, logits)
    move = tree.branching.scale(at_rows.logits) - logits_ref  # (members, rows, logits)
    slopes = moves.new_zeros((*move.shape, outputs))
    for fan in structure.fans:
        logits, branches = torch.from_numpy(fan.logits), torch.from_numpy(fan.branches)
        if fan.n_children == 2:
            z = logits[:, 0]
            pull = value[:, branches[:, 0]] - value[:, branches[:, 1]]  # (members, nodes, outputs)
            slope = _secant(
                lambda t: ev.first_child_share(tree, t), logits_ref[..., z].expand_as(move[..., z]), move[..., z]
            )
            slopes[..., z, :] = (arrival[..., branches[:, 0]] * slope).unsqueeze(-1) * pull.unsqueeze(1)
        else:
            slopes[..., logits.flatten(), :] = _fan_slopes(
                tree, logits, branches, value, arrival, at_rows, ref, logits_ref, move
            )
    parts = torch.einsum("mrlo,mlf->rfo", slopes, weight) / members
    return completed(parts * moves.unsqueeze(-1), change, moves)


def _fan_slopes(
    tree: Tree,
    logits: Tensor,
    branches: Tensor,
    value: Tensor,
    arrival: Tensor,
    at_rows: ev.Evaluation,
    ref: ev.Evaluation,
    logits_ref: Tensor,
    move: Tensor,
) -> Tensor:
    """Return mean slopes of nodes with three children or more, (members, rows, their logits, outputs)."""
    child_values = value[:, branches].unsqueeze(1)  # (members, 1, nodes, children, outputs)
    mass = arrival[..., branches[:, 0]]  # (members, rows, nodes)
    start, step = logits_ref[..., logits], move[..., logits]  # (members, rows, nodes, children)

    def gradient(rows: Tensor, way: Tensor) -> Tensor:
        between = start + way[:, None, None] * step[:, rows]
        if tree.branching.is_softmax:
            share = torch.softmax(between, dim=-1).unsqueeze(-1)
            slope = share * (child_values - (share * child_values).sum(-2, keepdim=True))
        else:
            slope = _activation_slope(tree, between, child_values)
        return (mass[:, rows, :, None, None] * slope).flatten(2, 3)

    difference = (at_rows.branching - ref.branching)[..., branches]
    change = torch.einsum("mrn,mrnj,mnjo->mro", mass, difference, child_values[:, 0])
    return mean_gradient(gradient, step.flatten(2), change)


def _activation_slope(tree: Tree, between: Tensor, child_values: Tensor) -> Tensor:
    """Return the gradient of ``sum of b_j v_j`` by the logits, (members, rows, nodes, children, outputs)."""
    slopes = []
    with torch.enable_grad():
        logits = between.detach().requires_grad_(True)
        share = tree.branching.activation(logits, -1)
        for k in range(child_values.shape[-1]):
            total = (share * child_values[..., k]).sum()
            slopes.append(torch.autograd.grad(total, logits, retain_graph=True)[0])
    return torch.stack(slopes, dim=-1)


def _branch_values(tree: Tree, below: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Return the node of each branch, over all layers, and the value below it, (members, branches, outputs)."""
    structure = tree.structure
    owners, values, first = [], [], 0
    for d in range(structure.depth):
        parents, children, branches = (torch.from_numpy(part) for part in structure.edges(d))
        decides = branches >= 0
        owners.append(first + parents[decides])
        values.append(below[d + 1][:, 0].index_select(1, children[decides]))
        first += structure.widths[d]
    return torch.cat(owners), torch.cat(values, dim=1)


# Paths, where one leaf is chosen


def _choice_part(tree: Tree, at_rows: ev.Evaluation, ref: ev.Evaluation, moves: Tensor, chosen: Tensor) -> Tensor:
    """Return the parts of ``g_u(ref) - g_v(ref)``, the row's leaf against the reference's, (rows, features, outputs).

    The row has leaf u because ``log p_u - log p_v`` rises from at most 0 to at least 0: the jump is shared among
    features like that rise.
    """
    outputs = tree.output.n_targets
    if is_fixed(tree.decision) or not tree.structure.n_logits:
        return moves.new_zeros(*moves.shape, outputs)
    members = len(chosen)
    reference_leaf = ref.arrivals[-1].argmax(-1).expand_as(chosen)  # (members, rows)
    at_reference = ref.values[:, 0]  # (members, leaves, outputs)
    jump = torch.take_along_dim(at_reference, chosen[..., None], 1) - torch.take_along_dim(
        at_reference, reference_leaf[..., None], 1
    )
    total = moves.new_zeros(*moves.shape, outputs)
    for m in range(members):
        changed = (chosen[m] != reference_leaf[m]).nonzero().squeeze(1)
        if not len(changed):
            continue
        pair = torch.stack([chosen[m, changed], reference_leaf[m, changed]], dim=-1)

        def lead(rows: Tensor, inputs: Tensor, m: int = m, pair: Tensor = pair) -> Tensor:
            logs = log_arrival(tree, tree.decision(inputs))[m]
            return -torch.take_along_dim(logs, pair[rows], dim=-1).diff(dim=-1)  # (rows, 1)

        ends = moves[changed]
        with torch.no_grad():
            all_rows = torch.arange(len(changed))
            rise = lead(all_rows, ref.x[0] + ends) - lead(all_rows, ref.x.expand(len(changed), -1))
        share = _by_inputs(lead, ref.x[0], ends, rise) / rise.clamp_min(1e-300).unsqueeze(1)  # (rows, features, 1)
        parts = share * jump[m, changed].unsqueeze(1)
        total[changed] += completed(parts, jump[m, changed], ends) / members
    return total


def log_arrival(tree: Tree, logits: Tensor) -> Tensor:
    """Return log arrivals at the leaves, (members, rows, leaves), which sharp decisions do not make vanish."""
    structure = tree.structure
    branching = _log_branching(tree, logits)
    level = logits.new_zeros((*logits.shape[:-1], 1))
    for d in range(structure.depth):
        parents, children, branches = (torch.from_numpy(part) for part in structure.edges(d))
        flow = level.index_select(-1, parents)
        decides = branches >= 0
        log_shares = torch.zeros_like(flow)
        log_shares[..., decides] = branching.index_select(-1, branches[decides])
        flow = torch.cat([flow + log_shares, torch.full_like(flow[..., :1], -torch.inf)], dim=-1)
        # Edges of each child side by side, padded with an edge without flow.
        counts = torch.bincount(children, minlength=structure.widths[d + 1])
        table = torch.full((len(counts), int(counts.max())), len(children), dtype=torch.long)
        order = children.argsort(stable=True)
        position = torch.arange(len(children)) - (counts.cumsum(0) - counts)[children[order]]
        table[children[order], position] = order
        level = flow[..., table].logsumexp(-1)
    return level


def _log_branching(tree: Tree, logits: Tensor) -> Tensor:
    if not tree.branching.is_softmax:
        return tree.branching.probabilities(logits).clamp_min(1e-100).log()
    scaled = tree.branching.scale(logits)
    result = logits.new_zeros((*logits.shape[:-1], tree.structure.n_branches))
    for fan in tree.structure.fans:
        logits_of_fan = scaled[..., torch.from_numpy(fan.logits)]
        logits_of_fan = (
            torch.cat([logits_of_fan, torch.zeros_like(logits_of_fan)], dim=-1)
            if fan.n_children == 2
            else logits_of_fan
        )
        result[..., torch.from_numpy(fan.branches)] = torch.log_softmax(logits_of_fan, dim=-1)
    return result


# Integrals


def _secant(function: Callable[[Tensor], Tensor], start: Tensor, move: Tensor) -> Tensor:
    """Return the mean slope of a scalar function between two points, or the slope at the point if they are close."""
    small = move.abs() < SMALL
    reach = torch.where(small, torch.full_like(move, 1e-4), move)
    start = torch.where(small, start - reach / 2, start)
    return (function(start + reach) - function(start)) / reach


def _by_inputs(
    function: Callable[[Tensor, Tensor], Tensor],
    reference: Tensor,
    moves: Tensor,
    change: Tensor,
    complementary: bool = False,
) -> Tensor:
    """Return the parts of the change, (rows, features, outputs), of any function of row indices and rows.

    `complementary` outputs, such as probabilities, have a constant sum.
    """

    def gradient(rows: Tensor, way: Tensor) -> Tensor:
        slopes: list[Tensor] = []
        with torch.enable_grad():
            inputs = (reference + way[:, None] * moves[rows]).requires_grad_(True)
            out = function(rows, inputs)
            for k in range(out.shape[-1]):
                slope = None
                if k == out.shape[-1] - 1 and complementary:  # probabilities: the last is 1 less the others
                    slopes.append(-torch.stack(slopes).sum(0))
                    break
                if out.requires_grad:  # a user's function may have no gradient
                    total = out[:, k].sum()
                    (slope,) = torch.autograd.grad(total, inputs, retain_graph=True, allow_unused=True)
                slopes.append(torch.zeros_like(inputs) if slope is None else slope)
        return torch.stack(slopes, dim=-1).detach()

    mean = mean_gradient(gradient, moves, change, points=FEW_POINTS)
    return completed(mean * moves.unsqueeze(-1), change, moves)
