"""Corrections as text: the model for all rows, what nodes change of it, and how to read both."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tartree.explain.text.column_effects import ANOTHER, MISSING, ColumnEffect, amount_text
from tartree.explain.text.number_text import format_number, percent
from tartree.explain.text.terms import TEXT_LEVELS
from tartree.explain.tree_view.views import ColumnView, CorrectionView, TreeView

#: Rounding of amounts: of log odds and logits, and in regression in standard deviations of the target, about.
STEP = 0.001


def amount_step(tree: TreeView, function: int) -> float:
    """Return the power of ten that the amounts of a function are rounded to."""
    scale = float(tree.output.function_scale[function])
    return STEP * 10.0 ** math.floor(math.log10(scale)) if scale > 0 else STEP


def correction_lines(
    correction: CorrectionView, step: float, max_terms: int, indent: str, *, is_root: bool
) -> list[str]:
    """Return the lines of the model for all rows, or of what a node changes; none if it changes nothing.

    >>> effect = ColumnEffect(0, "colour", "levels", levels=(("red", 0.5), ("blue", -0.25)))
    >>> correction_lines(CorrectionView("price", 2.0, (effect,), 1), 0.01, 3, "", is_root=True)
    ['all rows: price = 2, plus', '    colour: 0.5 red, -0.25 blue']
    """
    constant = amount_text(correction.constant, step)
    shown = correction.effects[:max_terms]
    if not is_root and not shown and constant == "0":
        return []
    if is_root:
        lead = f"all rows: {correction.name} = {constant}"
    else:
        lead = f"{correction.name} changes" + (f" by {constant}" if constant != "0" else "")
    rest = correction.n_effects - len(shown)
    plus = ", plus" if is_root or constant != "0" else " by"
    lines = [f"{indent}{lead}{plus if correction.n_effects else ''}"]
    lines += [f"{indent}    {effect.name}: {effect.text(step, max(max_terms, TEXT_LEVELS))}" for effect in shown]
    if rest:
        lines.append(f"{indent}    and {rest} smaller term{'s' * (rest > 1)}")
    return lines


def reading_notes(tree: TreeView, max_terms: int) -> list[str]:
    """Return the lines that say how a prediction follows from the text, as far as it needs them."""
    effects = list(_shown_effects(tree, max_terms))
    notes = [_prediction_note(tree)]
    curves = [effect for effect in effects if effect.points]
    if curves:
        notes += _curve_notes(tree, curves)
    decided = _decided_columns(tree)
    whole = [tree.columns[k].name for k in sorted(decided) if tree.columns[k].whole]
    if whole:
        notes.append(f"Thresholds of {', '.join(whole)} are for whole numbers.")
    columns = [tree.columns[k] for k in sorted({effect.column for effect in effects} | decided)]
    if any(column.levels and column.kind != "boolean" for column in columns):
        missing = " or is missing" if any(column.kind == "category" and not column.gaps for column in columns) else ""
        notes.append(
            f'A level that is not listed adds 0; "{ANOTHER}" is one that was rare or not seen in training{missing}.'
        )
    texts = [text for text in map(_typical_text, columns) if text]
    if texts:
        notes.append(f"A {MISSING} value counts as: {', '.join(texts)}.")
    return notes


def _prediction_note(tree: TreeView) -> str:
    if not tree.output.is_classes:
        note = f"The prediction is {tree.output.mean_text} along the path"
        if tree.output.limits is None:
            return f"{note}."
        ends = [
            " to ".join(format_number(float(center + scale * end)) for end in limits)
            for center, scale, limits in zip(tree.output.center, tree.output.scale, tree.output.limits, strict=True)
        ]
        return f"{note}, within {', '.join(ends)}."
    if len(tree.outputs) == 2:
        no, yes = tree.outputs
        return f"The prediction is {yes} where the sum along the path is above 0, otherwise {no}."
    return "The prediction is the class of the largest sum along the path."


def _curve_notes(tree: TreeView, curves: list[ColumnEffect]) -> list[str]:
    notes = ["Between its points a curve is linear, beyond its ends it stays as it is if nothing else is said."]
    shares = [f.reach / (f.ends[1] - f.ends[0]) for f in tree.features if f.kind == "value" and f.ends is not None]
    if shares and any(effect.limits is not None for effect in curves):
        notes.append(
            "At distance d beyond an end, it has gone the share d / (d + r) of the way to its amount far below or far "
            f"above; r is {percent(shares[0])} of its range."
        )
    return notes


def _shown_effects(tree: TreeView, max_terms: int) -> Iterator[ColumnEffect]:
    for member in tree.members:
        for functions in member.corrections or ():
            for correction in functions:
                yield from correction.effects[:max_terms]


def _decided_columns(tree: TreeView) -> set[int]:
    """Return the columns in conditions."""
    used: set[int] = set()
    for member in tree.members:
        for condition in member.conditions:
            if condition is not None:
                used |= {term.column for function in condition.functions for term in function.terms}
    return used


def _typical_text(column: ColumnView) -> str:
    """Return what a missing value counts as, if training has seen none."""
    if column.gaps or column.kind == "category" or column.typical is None:
        return ""
    return f"{column.name} {column.typical_text}"
