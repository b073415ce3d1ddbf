"""Smaller trees with a certificate: fewer leaves, fewer terms, sharper decisions, refitted to the predictions."""

from __future__ import annotations

import copy
import numbers
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from tartree.checks import check_integer
from tartree.explain.simplification.distillation import Lesson, largest_change, predict_rows, refit
from tartree.explain.simplification.removal_order import removal_order
from tartree.explain.verification.boxes import data_box
from tartree.explain.verification.certificates import Certificate, bound_change
from tartree.model import FittedModel, Model, fitted_model, like
from tartree.nn import MLPDecision, MLPLeaf, Tree
from tartree.nn.families import linear_parameters
from tartree.nn.subtree import (
    Origin,
    check_shrinkable,
    logits_by_node,
    shrink_structure,
    shrink_tree,
)

#: Maximum number of rows of a refit; changes are measured on all rows.
REFIT_ROWS = 2000
#: Random rows between and around those of the data, so that the smaller tree fits there too.
EXTRA_ROWS = 400
#: Share of the tolerance to fit to, so that rounding to single precision does not exceed it.
MARGIN = 0.95
#: Refits in search of the fewest terms.
TERM_TRIALS = 4
SHARPER = (16.0, 8.0, 4.0, 2.0)


def simplify(
    estimator: Model,
    X: Any,
    *,
    tolerance: float | None = None,
    max_leaves: int | None = None,
    max_terms: int | None = None,
    max_boxes: int = 512,
) -> Model:
    """Return a smaller model that predicts nearly the same, with a proof in ``certificate_``.

    Leaves are removed in the order of their importance, and the rest is refitted to the predictions of the given model.
    With a tolerance, sizes are tried from one leaf up, each to 8 and then in steps of a quarter; a bisection follows
    the first that keeps it. Terms are then dropped and decisions sharpened as far as the tolerance allows.

    Parameters
    ----------
    estimator : fitted estimator or FittedModel
        Model to simplify; it is not changed. Decisions and leaves must be perceptrons, linear functions or constants.
    X : table of shape (rows, columns)
        Rows where the predictions must stay the same, such as those of training; also the box of the certificate.
    tolerance : float, optional
        Largest change of any predicted probability on the given rows; for regression, of a value in standard deviations
        of the training target. 0.01 if none of the three limits is given.
    max_leaves : int, optional
        Maximum number of leaves of a member. It takes precedence: ``certificate_.within_tolerance`` is whether the
        tolerance is kept, too.
    max_terms : int, optional
        Maximum number of features of a decision or a leaf (linear ones only).
    max_boxes : int, default=512
        Maximum number of parts of the data's box that the bound is computed on.

    Returns
    -------
    estimator or FittedModel
        The smaller model, in the form of its source.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier, explain
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TartClassifier(depth=4, random_state=0, epochs=20).fit(X, y)
    >>> small = explain.simplify(model, X, max_leaves=3)
    >>> model.get_n_leaves(), small.get_n_leaves(), small.certificate_.measured < 0.1
    (16, 3, True)
    """
    _check_limits(tolerance, max_leaves, max_terms)
    check_integer("max_boxes", max_boxes, 1)
    if tolerance is None and max_leaves is None and max_terms is None:
        tolerance = 0.01
    work = _Work(fitted_model(estimator), X)
    n_leaves = work.tree.structure.n_leaves
    most = n_leaves if max_leaves is None else min(int(max_leaves), n_leaves)
    if max_terms is not None and not work.linear:
        raise ValueError("max_terms requires linear decisions or leaves, got none")
    terms = None if max_terms is None else int(max_terms)
    if tolerance is None:
        origin, small, _ = work.fitted(most, 0.0, terms)
    else:
        origin, small = work.smallest(most, float(tolerance), terms)
        small = work.fewer_terms(small, float(tolerance), terms)
        work.sharpen(small, float(tolerance))
    return like(estimator, work.finished(origin, small, tolerance, max_boxes))


def simplification_path(estimator: Model, X: Any, sizes: Iterable[int], *, max_boxes: int = 128) -> list[Model]:
    """Return the model with each of several numbers of leaves, with its ``certificate_``.

    Parameters
    ----------
    estimator : fitted estimator or FittedModel
        Model to simplify; it is not changed.
    X : table of shape (rows, columns)
        Rows where the predictions must stay the same.
    sizes : iterable of int
        Numbers of leaves; more than the model has are as many as it has.
    max_boxes : int, default=128
        Maximum number of parts of the data's box that a bound is computed on.

    Returns
    -------
    list of estimator or FittedModel
        The smaller models, in the form of their source.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier, explain
    >>> X, y = load_iris(return_X_y=True)
    >>> path = explain.simplification_path(TartClassifier(random_state=0, depth=2, epochs=5).fit(X, y), X, [1, 2, 4])
    >>> [model.get_n_leaves() for model in path]
    [1, 2, 4]
    """
    work = _Work(fitted_model(estimator), X)
    models = []
    for size in sizes:
        _check_limits(None, size, None)
        n = min(int(size), work.tree.structure.n_leaves)
        if n == work.tree.structure.n_leaves:
            origin = shrink_structure(work.tree.structure, [])
            small = shrink_tree(work.tree, origin)
        else:
            origin, small, _ = work.fitted(n, 0.0, None, steps=80)
        models.append(like(estimator, work.finished(origin, small, None, max_boxes)))
    return models


def _check_limits(tolerance: Any, max_leaves: Any, max_terms: Any) -> None:
    is_number = isinstance(tolerance, numbers.Real) and not isinstance(tolerance, bool)
    if tolerance is not None and not (is_number and 0 <= float(tolerance) < float("inf")):
        raise ValueError(f"tolerance must be a number of at least 0, got {tolerance!r}")
    for name, value in (("max_leaves", max_leaves), ("max_terms", max_terms)):
        if value is not None:
            check_integer(name, value, 1)


class _Work:
    """Search of smaller models for one model and its rows."""

    def __init__(self, model: FittedModel, X: Any) -> None:
        self.model = model
        self.tree = model.double_tree()
        check_shrinkable(self.tree)
        self.selection: str = model.selection
        self.x = model.encode(X)
        if not len(self.x):
            raise ValueError("X must have at least one row to simplify a model on, got none")
        self.target = predict_rows(self.tree, self.x, self.selection)
        self.generator = torch.Generator().manual_seed(0)
        self.lesson = self._lesson()
        self.linear = any(linear_parameters(module) is not None for module in (self.tree.decision, self.tree.leaf))
        self._order: list[int] | None = None

    def _lesson(self) -> Lesson:
        n = len(self.x)
        chosen = torch.linspace(0, n - 1, min(n, REFIT_ROWS)).long()
        real = self.x[chosen]
        first, second = (torch.randint(n, (EXTRA_ROWS,), generator=self.generator) for _ in range(2))
        way = torch.rand(EXTRA_ROWS, 1, generator=self.generator, dtype=torch.float64) * 1.4 - 0.2
        extra = self.x[first] + way * (self.x[second] - self.x[first])
        box = data_box(self.x)
        extra = extra.clamp(box.low, box.high)
        x = torch.cat([real, extra])
        return Lesson(x, torch.cat([self.target[chosen], predict_rows(self.tree, extra, self.selection)]), len(real))

    @property
    def order(self) -> list[int]:
        if self._order is None:
            self._order = removal_order(self.tree, self.x)
        return self._order

    def change(self, small: Tree) -> float:
        return largest_change(small, self.x, self.target, self.selection)

    def fitted(self, size: int, enough: float, terms: int | None, *, steps: int = 150) -> tuple[Origin, Tree, float]:
        """Return the tree of `size` leaves, refitted, and the largest change on the given rows."""
        structure = self.tree.structure
        removed = [(structure.depth, leaf) for leaf in self.order[: structure.n_leaves - size]]
        origin = shrink_structure(structure, removed)
        small = shrink_tree(self.tree, origin)
        masks = () if terms is None else self._masks(small, terms)
        if not removed and terms is None:
            return origin, small, self.change(small)
        return origin, small, self._refit(small, masks, enough, steps)

    def _refit(self, small: Tree, masks: Any, enough: float, steps: int = 150) -> float:
        refit(small, self.lesson, self.selection, masks=masks, steps=steps, enough=enough * MARGIN)
        change = self.change(small)
        if enough and change > enough and self.lesson.n_real < len(self.x):  # on some row that is not in the refit
            predicted = predict_rows(small, self.x, self.selection)
            worst = (predicted - self.target).abs().amax(-1).topk(min(len(self.x), 200)).indices
            lesson = self.lesson
            lesson = Lesson(
                torch.cat([self.x[worst], lesson.x]),
                torch.cat([self.target[worst], lesson.target]),
                lesson.n_real + len(worst),
            )
            refit(small, lesson, self.selection, masks=masks, steps=steps, enough=enough * MARGIN)
            change = self.change(small)
        return change

    def smallest(self, most: int, tolerance: float, terms: int | None) -> tuple[Origin, Tree]:
        """Return the smallest tree tried that keeps the tolerance, or one with `most` leaves."""
        too_few, size = 0, 1
        while size < most:
            origin, small, change = self.fitted(size, tolerance, terms)
            if change <= tolerance:
                break
            too_few, size = size, size + 1 if size < 8 else size + size // 4
        else:
            size = most
            origin, small, change = self.fitted(most, tolerance, terms)
        while change <= tolerance and size - too_few > 1:
            middle = (too_few + size) // 2
            trial = self.fitted(middle, tolerance, terms)
            if trial[2] <= tolerance:
                size, (origin, small, change) = middle, trial
            else:
                too_few = middle
        return origin, small

    def fewer_terms(self, small: Tree, tolerance: float, terms: int | None) -> Tree:
        """Return the tree with the fewest terms that keep the tolerance, by bisection."""
        if not self.linear or self.change(small) > tolerance:
            return small
        low, high = 0, min(self.x.shape[1], terms or self.x.shape[1])
        for _ in range(TERM_TRIALS):
            middle = (low + high) // 2
            if not low < middle < high:
                break
            trial = copy.deepcopy(small)
            if self._refit(trial, self._masks(trial, middle), tolerance) <= tolerance:
                small, high = trial, middle
            else:
                low = middle
        return small

    def _masks(self, small: Tree, terms: int) -> list[tuple[nn.Parameter, Tensor]]:
        """Keep the strongest features of each decision and leaf; return masks of the weights that stay."""
        spread = self.x.std(0, correction=0)
        masks = []
        for module, groups in (
            (small.decision, [list(rows) for rows in logits_by_node(small.structure).values()]),
            (small.leaf, _leaf_rows(small)),
        ):
            if linear_parameters(module) is None:
                continue
            assert isinstance(module, MLPDecision | MLPLeaf)
            weight = module.mlp.weights[0]
            mask = torch.zeros_like(weight)
            for rows in groups:
                strength = weight[:, rows].square().sum(1).sqrt() * spread  # (members, features)
                kept = strength.topk(min(terms, strength.shape[-1]), dim=-1).indices
                kept_mask = torch.zeros_like(strength).scatter(-1, kept, 1.0)
                mask[:, rows] = kept_mask.unsqueeze(1)
            mask *= weight != 0  # removed terms stay removed
            with torch.no_grad():
                weight.mul_(mask)
            masks.append((weight, mask))
        return masks

    @torch.no_grad()
    def sharpen(self, small: Tree, tolerance: float) -> None:
        """Make decisions steeper, in place, one node after another, as far as the tolerance allows."""
        decision = small.decision
        spherical = small.branching.activation.turning_point is not None  # steeper is not more certain there
        if not isinstance(decision, MLPDecision) or spherical or self.change(small) > tolerance:
            return
        weight, bias = decision.mlp.weights[-1], decision.mlp.biases[-1]
        for rows in map(list, logits_by_node(small.structure).values()):
            before = weight[:, rows].clone(), bias[:, rows].clone()
            for factor in SHARPER:
                weight[:, rows], bias[:, rows] = before[0] * factor, before[1] * factor
                if self.change(small) <= tolerance * MARGIN:
                    break
                weight[:, rows], bias[:, rows] = before

    def finished(self, origin: Origin, small: Tree, tolerance: float | None, max_boxes: int) -> FittedModel:
        """Return the model around the tree, with its certificate."""
        smaller = self.model.with_tree(small)
        final = smaller.double_tree()
        box = data_box(self.x)
        random = torch.rand(2000, self.x.shape[1], generator=self.generator, dtype=torch.float64)
        inside = box.low + random * (box.high - box.low)
        sampled = largest_change(final, inside, predict_rows(self.tree, inside, self.selection), self.selection)
        certificate = Certificate(
            measured=self.change(final),
            bound=bound_change(self.tree, final, origin, box, self.selection, max_boxes=max_boxes),
            sampled=sampled,
            tolerance=None if tolerance is None else float(tolerance),
            n_rows=len(self.x),
            leaves_before=self.tree.structure.n_leaves,
            leaves_after=final.structure.n_leaves,
            terms_before=count_terms(self.tree),
            terms_after=count_terms(final),
            low=tuple(box.low[0].tolist()),
            high=tuple(box.high[0].tolist()),
            unit=self.tree.output.change_unit,
        )
        return smaller.record(certificate=certificate)


def count_terms(tree: Tree) -> int | None:
    """Count the weights other than 0 of linear decisions and leaves of all members; None if there are none."""
    parameters = [linear_parameters(module) for module in (tree.decision, tree.leaf)]
    counts = [int((weights[0] != 0).sum()) for weights in parameters if weights is not None]
    return sum(counts) if counts else None


def _leaf_rows(tree: Tree) -> list[list[int]]:
    if not isinstance(tree.leaf, MLPLeaf):
        return []
    per = tree.output.n_numbers
    return [list(range(u * per, (u + 1) * per)) for u in range(tree.structure.n_leaves)]
