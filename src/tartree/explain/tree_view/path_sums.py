"""Sums along a path: what the nodes from the root to a node add together, and where the path leads through."""

from __future__ import annotations

import re
from itertools import pairwise

from tartree.explain.text.column_effects import ColumnEffect, effects_sum
from tartree.explain.tree_view.node_models import condition_texts
from tartree.explain.tree_view.views import CorrectionView, TreeView

THRESHOLD = re.compile(r"(.*\S) (<=|<|>=|>) (-?\d+(?:\.\d*)?(?:e[+-]?\d+)?)")


def path_to(tree: TreeView, number: int) -> list[int]:
    """Return the nodes from the root to a node of a tree."""
    path = [number]
    while tree.nodes[path[0]].parents:
        path.insert(0, tree.nodes[path[0]].parents[0])
    return path


def path_conditions(tree: TreeView, member: int, number: int) -> list[str]:
    """Return the conditions on the path from the root to a node, none if one of them is too long to be read."""
    texts = []
    path = path_to(tree, number)
    for parent, child in pairwise(path):
        condition = tree.members[member].conditions[parent]
        if condition is None or condition.kind == "pass":
            continue
        if len(condition.functions) != 1 or not condition.functions[0].is_one_column:
            return []
        texts.append(condition_texts(condition, 1)[tree.nodes[parent].children.index(child)])
    return joined_ranges([text for text in texts if text != "always"])


def joined_ranges(conditions: list[str]) -> list[str]:
    """Return conditions with the thresholds of one column joined to one range.

    >>> joined_ranges(["age > 20", "sex = f", "age > 30", "age <= 50"])
    ['30 < age <= 50', 'sex = f']
    >>> joined_ranges(["version > 1.2.3"])
    ['version > 1.2.3']
    """
    ranges: dict[str, dict[bool, tuple[float, str, str]]] = {}
    for k, text in enumerate(conditions):
        match = THRESHOLD.fullmatch(text)
        if match is None or " or " in text:
            ranges[f"{k} {text}"] = {}
            continue
        name, sign, limit = match.groups()
        is_upper = sign[0] == "<"
        ends = ranges.setdefault(name, {})
        old = ends.get(is_upper)
        if old is None or (float(limit) < old[0] if is_upper else float(limit) > old[0]):
            ends[is_upper] = float(limit), sign, limit
    return [_range_text(name, ends) for name, ends in ranges.items()]


def _range_text(name: str, ends: dict[bool, tuple[float, str, str]]) -> str:
    if not ends:
        return name.partition(" ")[2]
    if len(ends) == 1:
        ((_, sign, limit),) = ends.values()
        return f"{name} {sign} {limit}"
    (_, lower_sign, low), (_, upper_sign, high) = ends[False], ends[True]
    return f"{low} {lower_sign.replace('>', '<')} {name} {upper_sign} {high}"


def path_sum(
    corrections: tuple[tuple[CorrectionView, ...], ...], path: list[int], function: int
) -> tuple[dict[int, ColumnEffect], float]:
    """Return the effects by column and the constant that the nodes of a path add together to a function."""
    by_column: dict[int, list[ColumnEffect]] = {}
    constant = 0.0
    for number in path:
        correction = corrections[number][function]
        constant += correction.constant
        for effect in correction.effects:
            by_column.setdefault(effect.column, []).append(effect)
    return {column: effects_sum(effects) for column, effects in by_column.items()}, constant
