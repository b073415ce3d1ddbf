"""Certificates: a bound of the change from a tree to a smaller one, for every row of a box.

Both trees are traversed together from their roots. For a node ``a`` of the larger tree and the node ``b`` that
replaces it, the interval of ``V_a(x) - V_b(x)`` over the box comes from those of their children; README.md has the
steps. The box is then divided where the bound is largest, a limited number of times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from tartree.explain import tree_evaluation as ev
from tartree.explain.text.number_text import at_most
from tartree.explain.tree_view.function_views import scaled_logits
from tartree.explain.verification.boxes import (
    Boxes,
    Interval,
    affine,
    branching_interval,
    chosen_interval,
    combine,
    leaf_interval,
    node_intervals,
)
from tartree.nn import ConstantLeaf, MLPDecision, MLPLeaf, Tree
from tartree.nn.families import is_fixed
from tartree.nn.products import GroupedMLP
from tartree.nn.subtree import Node, Origin, logit_map, logits_by_node, shrink_tree
from tartree.structure import Structure

#: Added to every bound: far more than rounding errors.
SLACK = 1e-9
#: Number of boxes divided at once.
TOGETHER = 64


@dataclass(frozen=True)
class Certificate:
    """The change of predictions by a simplification, measured and proven.

    Changes are those of predicted probabilities, or of predicted values in standard deviations of the training target.

    Parameters
    ----------
    measured : float
        The largest change on the given rows.
    bound : float
        No row whose encoded values lie inside the box changes by more. A bound of 1 is trivial for probabilities.
    sampled : float
        Largest change on random rows inside the box, a lower limit of the bound.
    tolerance : float or None
        The tolerance of `simplify`; `within_tolerance` is whether `measured` is within it.
    n_rows : int
        Number of rows of `measured`.
    leaves_before, leaves_after : int
        Number of leaves of one member.
    terms_before, terms_after : int or None
        Number of non-zero weights of all decisions and leaves, None for perceptrons.
    low, high : tuple of float
        The box, in encoded units, for each feature.
    unit : str
        Unit of the changes, empty for probabilities.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier, explain
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TartClassifier(depth=1, epochs=5, random_state=0).fit(X, y)
    >>> certificate = model.simplify(X, max_leaves=1).certificate_
    >>> certificate.leaves_after, certificate.measured <= certificate.bound
    (1, True)
    """

    measured: float
    bound: float
    sampled: float
    tolerance: float | None
    n_rows: int
    leaves_before: int
    leaves_after: int
    terms_before: int | None
    terms_after: int | None
    low: tuple[float, ...]
    high: tuple[float, ...]
    unit: str = ""

    def __post_init__(self) -> None:
        # A bound that is exceeded is a bug.
        if max(self.measured, self.sampled) > self.bound:
            raise RuntimeError(
                f"a change of {max(self.measured, self.sampled)} was seen where none above {self.bound} can be: "
                "please report this as a bug"
            )

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the certificate as plain data: JSON has neither tuples nor infinity, which a bound may be.

        Returns
        -------
        tuple of dict and dict of ndarray
            Plain data, and arrays by name.
        """
        state = asdict(self) | {"low": list(self.low), "high": list(self.high), "bound": repr(float(self.bound))}
        return state, {}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], arrays: dict[str, NDArray[Any]], n_features: int) -> Certificate:
        """Read what `to_state` returned, and check it.

        Parameters
        ----------
        state : mapping
            Plain data.
        arrays : dict of ndarray
            Arrays by name.
        n_features : int
            Number of encoded features of the tree.

        Returns
        -------
        Certificate
            The record.
        """
        box = {name: tuple(float(value) for value in state[name]) for name in ("low", "high")}
        changes = {name: float(state[name]) for name in ("measured", "bound", "sampled")}
        if any(len(side) != n_features for side in box.values()) or not all(value >= 0 for value in changes.values()):
            raise ValueError(f"the certificate must have {n_features} sides of a box and changes of at least 0")
        return cls(**{**state, **box, **changes})

    @property
    def within_tolerance(self) -> bool:
        """Whether the measured change is within the tolerance."""
        return self.tolerance is None or self.measured <= self.tolerance

    def __str__(self) -> str:
        terms = "" if self.terms_before is None else f", {self.terms_before} to {self.terms_after} terms"
        return (
            f"{self.leaves_before} to {self.leaves_after} leaves{terms}; predictions change by at most "
            f"{at_most(self.measured, 4)}{self.unit} on {self.n_rows} rows, and by at most {at_most(self.bound, 4)} "
            f"inside the data's box, where random rows changed by up to {at_most(self.sampled, 4)}"
        )


@torch.no_grad()
def bound_change(
    before: Tree, after: Tree, origin: Origin | None, box: Boxes, selection: str, *, max_boxes: int = 512
) -> float:
    """Return a bound of ``|prediction before - prediction after|`` over a box; trees are in float64.

    Without an origin the two trees are bounded separately.
    """
    importance = _weights_by_feature(before) + _weights_by_feature(after)
    boxes, bounds = box, change_bounds(before, after, origin, box, selection)
    n_boxes = 1
    while n_boxes < max_boxes and box.low.shape[1]:  # a box without features has no halves
        worst = bounds.topk(min(len(bounds), TOGETHER)).indices
        worst = worst[bounds[worst] > 0.5 * bounds.max()]
        halves = _halve(Boxes(boxes.low[worst], boxes.high[worst]), importance)
        new = change_bounds(before, after, origin, halves, selection)
        # The bound of a box holds for its halves, too.
        new = torch.minimum(new, bounds[worst].repeat(2))
        rest = torch.ones(len(bounds), dtype=torch.bool)
        rest[worst] = False
        top = bounds.max()
        boxes = Boxes(torch.cat([boxes.low[rest], halves.low]), torch.cat([boxes.high[rest], halves.high]))
        bounds = torch.cat([bounds[rest], new])
        n_boxes += len(new)
        if bounds.max() == 0 or not torch.isfinite(top):
            break
    return float(bounds.max()) + SLACK


def _weights_by_feature(tree: Tree) -> Tensor:
    total = torch.zeros((), dtype=torch.float64)
    for module in (tree.decision, tree.leaf):
        if isinstance(module, MLPDecision | MLPLeaf):
            total = total + module.mlp.weights[0].abs().mean(1).sum(0)
    return total


def _halve(boxes: Boxes, importance: Tensor) -> Boxes:
    """Halve each box across the feature that changes the functions most: first all lower, then all upper halves."""
    score = boxes.radius * (importance if importance.dim() else torch.ones(boxes.low.shape[1], dtype=torch.float64))
    axis = score.argmax(1, keepdim=True)
    middle = boxes.center.gather(1, axis)
    return Boxes(
        torch.cat([boxes.low, boxes.low.scatter(1, axis, middle)]),
        torch.cat([boxes.high.scatter(1, axis, middle), boxes.high]),
    )


def change_bounds(before: Tree, after: Tree, origin: Origin | None, boxes: Boxes, selection: str) -> Tensor:
    """Return the bound of each box, the largest over the outputs: (boxes,)."""
    pair = _Pair(before, after, origin, boxes)
    chosen = selection == "single"
    interval = pair.chosen(before) - pair.chosen(after) if chosen else pair.difference((0, 0), (0, 0))
    mean = Interval(interval.low.mean(0), interval.high.mean(0))  # over members
    bounds = mean.size().amax(-1)
    return bounds.clamp_max(before.output.max_change)


class _Pair:
    """Two trees over the same boxes; all intervals are (members, boxes, outputs)."""

    def __init__(self, before: Tree, after: Tree, origin: Origin | None, boxes: Boxes) -> None:
        self.trees = (before, after)
        self.origin = origin
        self.boxes = boxes
        self.branching = tuple(branching_interval(tree, boxes) for tree in self.trees)
        self.leaves = tuple(leaf_interval(tree, boxes) for tree in self.trees)
        self.values = tuple(
            node_intervals(tree.structure, branching, leaves)
            for tree, branching, leaves in zip(self.trees, self.branching, self.leaves, strict=True)
        )
        self.drift = {} if origin is None else _logit_drift(before, after, origin, boxes)
        self.branches_of_node = tuple(_branches_by_node(tree) for tree in self.trees)
        self.cache: dict[tuple[Node, Node], Interval] = {}

    def chosen(self, tree: Tree) -> Interval:
        """Return the interval of the predictions of all leaves that can have the largest arrival."""
        k = 0 if tree is self.trees[0] else 1
        return chosen_interval(tree.structure, self.branching[k], self.leaves[k], SLACK)

    def value(self, which: int, node: Node) -> Interval:
        return self.values[which][node[0]].pick((slice(None), slice(None), node[1]))

    def down(self, which: int, node: Node) -> Node:
        """Return the end of a chain of single children."""
        structure = self.trees[which].structure
        layer, index = node
        while layer < structure.depth and len(structure.children(layer)[index]) == 1:
            layer, index = layer + 1, structure.children(layer)[index][0]
        return layer, index

    def difference(self, a: Node, b: Node) -> Interval:
        a, b = self.down(0, a), self.down(1, b)
        if (a, b) not in self.cache:
            apart = self.value(0, a) - self.value(1, b)
            closer = self._closer(a, b)
            self.cache[a, b] = apart if closer is None else apart.meet(closer)
        return self.cache[a, b]

    def _closer(self, a: Node, b: Node) -> Interval | None:
        large, small = (tree.structure for tree in self.trees)
        a_leaf, b_leaf = a[0] == large.depth, b[0] == small.depth
        if a_leaf and b_leaf:
            return _leaf_difference(*self.trees, a[1], b[1], self.boxes)
        if a_leaf or self.origin is None:
            return None
        children = [(a[0] + 1, child) for child in large.children(a[0])[a[1]]]
        shares = self.branching[0].pick((..., torch.tensor(self.branches_of_node[0][a])))
        if not b_leaf and self.origin.nodes[b] == a:
            return self._aligned(a, b, children, shares)
        goal = None if b_leaf else self.origin.nodes[b]
        parts = [
            self.difference(child, b)
            if goal is None or self._reaches(child, goal)
            else self.value(0, child) - self.value(1, b)
            for child in children
        ]
        return combine(shares, _stack(parts))

    def _aligned(self, a: Node, b: Node, children: list[Node], shares: Interval) -> Interval:
        """Compare nodes with the same decision: children in pairs, removed ones with the whole, and shares."""
        assert self.origin is not None
        small = self.trees[1].structure
        kept = [(b[0] + 1, child) for child in small.children(b[0])[b[1]]]
        partners: list[Node | None] = [None] * len(children)
        for child, before in zip(kept, self.origin.children[b], strict=True):
            partners[children.index((a[0] + 1, before))] = child
        parts = [
            self.value(0, child) - self.value(1, b) if partner is None else self.difference(child, partner)
            for child, partner in zip(children, partners, strict=True)
        ]
        values = [self.value(1, child) for child in kept]
        spread = torch.stack([t.high for t in values]).amax(0) - torch.stack([t.low for t in values]).amin(0)
        moved = self._moved(a, b, len(kept) == len(children)).unsqueeze(-1) * spread
        return combine(shares, _stack(parts)).plus(Interval(-moved, moved))

    def _moved(self, a: Node, b: Node, whole: bool) -> Tensor:
        """Return the largest total variation between the shares of the kept children, (members, boxes)."""
        most = torch.ones(self.branching[0].low.shape[:2], dtype=torch.float64)
        if whole:
            first = self.branching[0].pick((..., torch.tensor(self.branches_of_node[0][a])))
            second = self.branching[1].pick((..., torch.tensor(self.branches_of_node[1][b])))
            apart = torch.maximum(first.high - second.low, second.high - first.low).clamp(0, 1)
            most = (apart.sum(-1) / 2).clamp_max(1.0)
        return torch.minimum(most, self.drift[b]) if b in self.drift else most

    def _reaches(self, node: Node, goal: Node) -> bool:
        structure = self.trees[0].structure
        layer, nodes = node[0], {node[1]}
        while layer < goal[0]:
            nodes = {child for i in nodes for child in structure.children(layer)[i]}
            layer += 1
        return layer == goal[0] and goal[1] in nodes


def _stack(parts: list[Interval]) -> Interval:
    return Interval(torch.stack([p.low for p in parts], dim=-2), torch.stack([p.high for p in parts], dim=-2))


def _branches_by_node(tree: Tree) -> dict[Node, list[int]]:
    """Return the branches of each deciding node."""
    structure = tree.structure
    branches_of_node: dict[Node, list[int]] = {}
    for d in range(structure.depth):
        parents, _, branches = structure.edges(d)
        for parent, branch in zip(parents.tolist(), branches.tolist(), strict=True):
            if branch >= 0:
                branches_of_node.setdefault((d, parent), []).append(branch)
    return branches_of_node


def _logit_drift(before: Tree, after: Tree, origin: Origin, boxes: Boxes) -> dict[Node, Tensor]:
    """Bound the change of the shares of each node by the change of its logits, (members, boxes).

    The share of any set of children moves by at most a quarter of the range that logits move by, for the softmax. For
    other activations, and for perceptrons, only decisions without any change are bounded.
    """
    nodes = logits_by_node(origin.structure)
    still = torch.zeros(ev.n_members(before), len(boxes), dtype=torch.float64)
    if not nodes:
        return {}
    whole = [node for node in nodes if _n_children(origin.structure, node) == _n_children_before(before, origin, node)]
    if is_fixed(before.decision):
        is_even = before.branching.activation.is_even
        return dict.fromkeys(nodes if is_even else whole, still)
    assert isinstance(before.decision, MLPDecision)
    assert isinstance(after.decision, MLPDecision)
    if len(before.decision.mlp.weights) > 1 or not before.branching.is_softmax:
        return dict.fromkeys(whole, still) if _decisions_kept(before, after, origin) else {}
    weight, bias = scaled_logits(before)
    matrix = logit_map(before.structure, origin)
    weight_after, bias_after = scaled_logits(after)
    moved = torch.einsum("no,mof->mnf", matrix, weight) - weight_after, bias @ matrix.T - bias_after
    drift: dict[Node, Tensor] = {}
    for node, rows in nodes.items():
        difference = (moved[0][:, list(rows)], moved[1][:, list(rows)])
        drift[node] = (affine(boxes, *difference).size()[..., 0] if len(rows) == 1 else _range(boxes, *difference)) / 4
    return drift


def _n_children(structure: Structure, node: Node) -> int:
    return len(structure.children(node[0])[node[1]])


def _n_children_before(before: Tree, origin: Origin, node: Node) -> int:
    return _n_children(before.structure, origin.nodes[node])


def _range(boxes: Boxes, weight: Tensor, bias: Tensor) -> Tensor:
    """Return the largest difference between any two linear functions, (members, functions, features), over boxes."""
    n = weight.shape[1]
    if n > 32:  # pairs would be many
        interval = affine(boxes, weight, bias)
        return interval.high.amax(-1) - interval.low.amin(-1)
    pairs = torch.combinations(torch.arange(n), 2) if n > 1 else torch.zeros(1, 2, dtype=torch.long)
    less = affine(boxes, weight[:, pairs[:, 0]] - weight[:, pairs[:, 1]], bias[:, pairs[:, 0]] - bias[:, pairs[:, 1]])
    return less.size().amax(-1)


def _decisions_kept(before: Tree, after: Tree, origin: Origin) -> bool:
    """Return whether the decisions of the smaller tree are unchanged."""
    taken = shrink_tree(before, origin)
    pairs = zip(
        (*taken.decision.parameters(), *taken.branching.parameters()),
        (*after.decision.parameters(), *after.branching.parameters()),
        strict=True,
    )
    return all(torch.equal(old, new) for old, new in pairs)


def _leaf_difference(before: Tree, after: Tree, u: int, h: int, boxes: Boxes) -> Interval | None:
    """Return the difference of two leaves: exact if linear, for classes by the change of the logits."""
    if isinstance(before.leaf, ConstantLeaf) or not isinstance(before.leaf, MLPLeaf):
        return None
    assert isinstance(after.leaf, MLPLeaf)
    first, second = before.leaf.mlp, after.leaf.mlp
    per, outputs = before.output.n_numbers, before.output.n_targets
    rows = [slice(leaf * per, leaf * per + outputs) for leaf in (u, h)]
    if len(first.weights) == 1:
        weight = first.weights[0][:, rows[0]] - second.weights[0][:, rows[1]]
        bias = first.biases[0][:, rows[0]] - second.biases[0][:, rows[1]]
        if before.output.has_linear_mean:
            return affine(boxes, weight, bias)
        if not before.output.is_classes:
            return None
        most = (_range(boxes, weight, bias) / 4).clamp_max(1.0).unsqueeze(-1).expand(-1, -1, outputs)
        return Interval(-most, most)
    if all(
        torch.equal(_group(old, u, first), _group(new, h, second))
        for old, new in zip(first.parameters(), second.parameters(), strict=True)
    ):
        zero = torch.zeros(ev.n_members(before), len(boxes), outputs, dtype=torch.float64)
        return Interval(zero, zero)
    return None


def _group(parameter: Tensor, group: int, mlp: GroupedMLP) -> Tensor:
    """Return the part of a grouped parameter that belongs to one leaf."""
    return parameter.reshape(len(parameter), len(mlp.sizes), -1)[:, group]
