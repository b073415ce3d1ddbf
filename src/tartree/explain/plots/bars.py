"""Conditions and leaf models as data of bars: which features push a row to which side, and how strongly.

The length of a bar is the change by one standard deviation of its feature, which compares between features. For one
row it is the change by the row's value, compared with the mean of training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tartree.explain.plots.style import LESS, MORE, branch_colours, class_colours
from tartree.explain.text.curve_terms import merged
from tartree.explain.text.number_text import format_rounded
from tartree.explain.text.terms import LinearView
from tartree.explain.tree_view.views import FeatureView, MemberView, TreeView
from tartree.table.quantities import QUANTITIES

FloatArray = NDArray[np.float64]
MOST_PARTS = 6  # bars side by side for one feature; with more classes, the strongest alone


@dataclass(frozen=True)
class Bar:
    """A bar of one feature: its label, the value where its push changes sign (" > 19.4"), signed lengths and colours.

    A row above the turning point is pushed to the side the bar points to, a row below it to the other. For one row,
    `turn` is its value (" = 21.3"), and the bar points to where that value pushes.
    """

    feature: int
    label: str
    turn: str
    parts: tuple[tuple[float, str], ...]

    @property
    def reach(self) -> float:
        """Length of the longest part."""
        return max(abs(length) for length, _ in self.parts)


@dataclass(frozen=True)
class Bars:
    """Bars of the strongest features of a function, and the names and colours of its two directions."""

    bars: tuple[Bar, ...]
    left: tuple[str, str] | None
    right: tuple[str, str] | None
    n_features: int  # with a strength at all

    @property
    def reach(self) -> float:
        """Length of the longest bar, 0 without bars."""
        return max((bar.reach for bar in self.bars), default=0.0)


def feature_value(tree: TreeView, feature: FeatureView, encoded: float) -> str:
    """Return an encoded value in the units of its column as short text, "yes" or "no" for indicators."""
    if feature.kind != "value":
        return "yes" if encoded > 0.5 else "no"
    value = (
        float(np.interp(encoded, feature.heights, feature.knots))
        if feature.knots
        else feature.center + feature.scale * encoded
    )
    quantity = QUANTITIES[tree.columns[feature.column].unit]
    return quantity.short_text(value) if quantity.step is not None else format_rounded(value) + quantity.suffix


def turning_point(tree: TreeView, feature: FeatureView) -> str:
    """Return the value where a feature's push changes sign, the mean of training, as " > 19.4"; "" for indicators."""
    return f" > {feature_value(tree, feature, 0.0)}" if feature.kind == "value" else ""


def condition_bars(
    tree: TreeView, number: int, *, member: int = 0, max_terms: int = 3, row: TreeView | None = None
) -> Bars:
    """Return bars of a deciding node. With two children, they point to the child they favour."""
    effects = condition_effects(tree, tree.members[member], number, by_curve=row is None)
    if len(effects) == 1:  # above 0 favours the first child, which stands on the left
        colours = branch_colours(2)
        sides = (("left", colours[0]), ("right", colours[1]))
        bars = _bars(tree, -effects, [(colours[0], colours[1])], max_terms, row, *sides)
    else:
        names = [f"node {child}" for child in tree.nodes[number].children]
        bars = _bars(tree, effects, [(c, c) for c in branch_colours(len(effects))], max_terms, row, names=names)
    condition = tree.members[member].conditions[number]
    return _counted(bars, () if condition is None else condition.functions, row)


def leaf_bars(
    tree: TreeView,
    number: int,
    *,
    member: int = 0,
    output: int = 0,
    max_terms: int = 3,
    row: TreeView | None = None,
) -> Bars:
    """Return bars of the model of a leaf, none if it is constant."""
    effects = leaf_effects(tree, tree.members[member], number, by_curve=row is None)
    functions = tree.members[member].leaf_models[tree.nodes[number].leaf or 0].functions
    if not tree.output.is_classes:
        sides = (("lower", LESS), ("higher", MORE))
        shown = slice(output, output + 1)
        return _counted(_bars(tree, effects[shown], [(LESS, MORE)], max_terms, row, *sides), functions[shown], row)
    colours = class_colours(len(tree.outputs))
    if len(tree.outputs) == 2:
        first, second = zip(tree.outputs, colours, strict=True)
        bars = _bars(tree, effects, [(colours[0], colours[1])], max_terms, row, first, second)
    else:
        bars = _bars(tree, effects, [(c, c) for c in colours], max_terms, row, names=tree.outputs)
    return _counted(bars, functions, row)


def _counted(bars: Bars, functions: Sequence[LinearView], row: TreeView | None) -> Bars:
    """Return bars that count all features of the functions, also those that a view does not list."""
    unlisted = any(function.n_terms > len(function.terms) for function in functions)
    if row is not None or not unlisted:
        return bars
    return replace(bars, n_features=max(bars.n_features, *(function.n_terms for function in functions)))


def condition_effects(tree: TreeView, member: MemberView, number: int, *, by_curve: bool = True) -> FloatArray:
    """Return signed strengths of a node's condition, (functions, features), less their mean if there are several.

    With `by_curve`, bins have no strength of their own: that of their curve is the value's.
    """
    node, condition = tree.nodes[number], member.conditions[number]
    logits = list(node.logits)
    if condition is None or not condition.functions:
        return np.zeros((1 if len(node.children) == 2 else len(node.children), len(tree.features)))
    if member.decision.kind == "linear" and not (by_curve and _has_curves(tree)):
        effects = member.decision.weights[0][logits] * _spread(tree)
    else:
        effects = _effects(tree, condition.functions)
    scaled: FloatArray = effects * member.logit_scales[logits, None]
    return scaled - scaled.mean(axis=0) if len(logits) > 1 else scaled


def leaf_effects(tree: TreeView, member: MemberView, number: int, *, by_curve: bool = True) -> FloatArray:
    """Return signed strengths of a leaf's functions, (functions, features), in the order of `LeafModelView`."""
    leaf = tree.nodes[number].leaf
    if leaf is None:
        raise ValueError(f"number must be that of a leaf, got node {number}, which decides")
    if member.leaf.kind != "linear" or (by_curve and _has_curves(tree)):
        return _effects(tree, member.leaf_models[leaf].functions)
    weights = member.leaf.weights[0].reshape(tree.n_leaves, tree.output.n_numbers, -1)
    effects: FloatArray = weights[leaf, : tree.output.n_targets] * _spread(tree)
    if not tree.output.is_classes:
        return effects * tree.output.function_scale[:, None]
    return effects[1:] - effects[:1] if len(effects) == 2 else effects - effects.mean(axis=0)


def _has_curves(tree: TreeView) -> bool:
    return any(feature.bin is not None for feature in tree.features)


def _spread(tree: TreeView) -> FloatArray:
    return np.array([feature.spread for feature in tree.features])


def _effects(tree: TreeView, functions: tuple[LinearView, ...]) -> FloatArray:
    effects = np.zeros((len(functions), len(tree.features)))
    for row_effects, function in zip(effects, functions, strict=True):
        for term in function.terms:
            row_effects[term.feature] = np.copysign(term.strength, term.encoded_weight)
    return effects


def _bars(
    tree: TreeView,
    effects: FloatArray,
    colours: list[tuple[str, str]],
    max_terms: int,
    row: TreeView | None,
    left: tuple[str, str] | None = None,
    right: tuple[str, str] | None = None,
    names: Sequence[str] = (),
) -> Bars:
    """Return bars from (functions, features); `colours` of a function are those of its negative and positive side."""
    if row is not None:
        spread, values = _spread(tree), np.array([feature.mean for feature in row.features])
        effects = np.divide(effects * values, spread, out=np.zeros_like(effects), where=spread > 0)
        owners = np.maximum.accumulate([0 if f.bin is not None else k for k, f in enumerate(tree.features)])
        effects = merged(effects, owners)
    strength = np.abs(effects).max(axis=0, initial=0.0)
    order = [int(k) for k in np.argsort(-strength, kind="stable") if strength[k] > 0]
    bars = []
    for k in order[:max_terms]:
        parts = [(float(values[k]), pair[int(values[k] > 0)]) for values, pair in zip(effects, colours, strict=True)]
        feature = tree.features[k]
        turn = turning_point(tree, feature)
        if row is not None:
            turn = f" = {feature_value(tree, feature, row.features[k].mean)}" if feature.kind == "value" else ""
        if len(parts) > MOST_PARTS:  # the strongest alone, by its name
            strongest = int(np.abs(effects[:, k]).argmax())
            parts, turn = [parts[strongest]], f"{turn} → {names[strongest]}"
        bars.append(Bar(k, feature.label, turn, tuple(parts)))
    return Bars(tuple(bars), left, right, len(order))
