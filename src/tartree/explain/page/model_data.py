"""A `TreeView` as the page's scripts read it: packed parameters, and data about each node."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tartree.explain.text.column_effects import ColumnEffect
from tartree.explain.text.terms import LinearView
from tartree.explain.tree_view.function_views import FunctionView
from tartree.explain.tree_view.path_sums import path_to
from tartree.explain.tree_view.views import (
    ColumnView,
    ConditionView,
    CorrectionView,
    FeatureView,
    LeafModelView,
    MemberView,
    NodeData,
    TreeView,
)
from tartree.table.quantities import QUANTITIES

MOST_TERMS = 7  # of a condition or a leaf, listed on the page
DIGITS = 5  # of what is shown; parameters are exact

FloatArray = NDArray[np.float64]


def plain_model(tree: TreeView) -> dict[str, Any]:
    """Return what the page draws and computes of one model."""
    layers: list[list[list[int]]] = [[] for _ in range(tree.depth)]
    for node in tree.nodes:
        if node.children:
            layers[node.layer].append([tree.nodes[child].index for child in node.children])
    return {
        "layers": layers,
        "nLeaves": tree.n_leaves,
        "selection": tree.selection,
        "branching": tree.activation,
        "output": {
            "kind": tree.output.kind,
            "isClasses": tree.output.is_classes,
            "hasLinearMean": tree.output.has_linear_mean,
            "nTargets": tree.output.n_targets,
            "nNumbers": tree.output.n_numbers,
            "center": tree.output.center.tolist(),
            "scale": tree.output.scale.tolist(),
            "floor": tree.output.floor,
            "limits": tree.output.limits,
        },
        "members": [_member(tree, member) for member in tree.members],
    }


def plain_column(column: ColumnView) -> dict[str, Any]:
    return {
        "name": column.name,
        "kind": column.kind,
        "unit": column.unit,
        "quantity": QUANTITIES[column.unit].page,
        "whole": column.whole,
        "low": column.low,
        "high": column.high,
        "levels": list(column.levels),
        "gaps": column.gaps,
        "typical": column.typical,
        "used": bool(column.features),
    }


def plain_feature(feature: FeatureView) -> dict[str, Any]:
    return {
        "column": feature.column,
        "label": feature.label,
        "kind": feature.kind,
        "level": feature.level,
        "fill": feature.fill,
        "center": feature.center,
        "scale": feature.scale,
        "knots": list(feature.knots),
        "heights": list(feature.heights),
        "ends": feature.ends,
        "reach": feature.reach,
        "bin": feature.bin,
    }


def pack(array: FloatArray) -> dict[str, str]:
    """Return an array as base64 of little-endian numbers, in single precision if that is exact, as for all weights."""
    single = array.astype("<f4")
    exact = bool(np.array_equal(single.astype(np.float64), array))
    data = single if exact else array.astype("<f8")
    return {"type": "f4" if exact else "f8", "data": base64.b64encode(data.tobytes()).decode("ascii")}


def _member(tree: TreeView, member: MemberView) -> dict[str, Any]:
    scaled = bool((member.logit_scales != 1).any())
    computed: dict[str, Any] = {}
    if tree.recomputable:
        computed = {
            "decision": _function(member.decision),
            "leaf": _function(member.leaf),
            "scales": pack(member.logit_scales) if scaled else None,
        }
    return computed | {
        "conditions": [None if condition is None else _condition(condition) for condition in member.conditions],
        "leafModels": [_leaf_model(model) for model in member.leaf_models],
        "nodes": None if member.nodes is None else [_node(node) for node in member.nodes],
        "flows": None if member.flows is None else _rounded(member.flows),
        "corrections": None if member.corrections is None else _corrections(tree, member.corrections),
    }


def _corrections(tree: TreeView, corrections: tuple[tuple[CorrectionView, ...], ...]) -> dict[str, Any]:
    """Return what each node changes, and the path to it."""
    return {
        "nodes": [
            [
                {
                    "name": correction.name,
                    "constant": _round(correction.constant),
                    "effects": [_effect(effect) for effect in correction.effects],
                    "nEffects": correction.n_effects,
                }
                for correction in functions
            ]
            for functions in corrections
        ],
        "paths": [path_to(tree, node.number) for node in tree.nodes],
    }


def _effect(effect: ColumnEffect) -> dict[str, Any]:
    return {
        "column": effect.column,
        "kind": effect.kind,
        "points": [[value, _round(part)] for value, part in effect.points],
        "levels": [[level, _round(part)] for level, part in effect.levels],
        "missing": None if effect.missing is None else _round(effect.missing),
        "strength": _round(effect.strength),
    }


def _function(function: FunctionView) -> dict[str, Any]:
    return {
        "kind": function.kind,
        "sizes": list(function.sizes),
        "hidden": function.hidden,
        "weights": [pack(weight) for weight in function.weights],
        "biases": [pack(bias) for bias in function.biases],
    }


def _condition(condition: ConditionView) -> dict[str, Any]:
    return {
        "kind": condition.kind,
        "functions": [_linear(function) for function in condition.functions],
        "texts": list(condition.texts),
        "isShort": len(condition.functions) == 1 and condition.functions[0].is_one_column,
    }


def _leaf_model(model: LeafModelView) -> dict[str, Any]:
    return {
        "kind": model.kind,
        "functions": [_linear(function) for function in model.functions],
        "names": list(model.names),
    }


def _linear(function: LinearView) -> dict[str, Any]:
    terms = function.terms[:MOST_TERMS]
    return {
        "method": function.method,
        "nTerms": function.n_terms,
        "bias": None if function.bias is None else _round(function.bias),
        "encodedBias": None if function.encoded_bias is None else _round(function.encoded_bias),
        "effects": [_effect(effect) for effect in function.effects[:MOST_TERMS]],
        "nEffects": function.n_effects,
        # feature, weight in original units, weight of the encoded feature, strength
        "terms": [
            [term.feature, _round(term.weight), _round(term.encoded_weight), _round(term.strength)] for term in terms
        ],
    }


def _node(node: NodeData) -> dict[str, Any]:
    record = {"arrival": _round(node.arrival), "rows": node.rows, "predicted": _rounded(node.predicted)}
    for name, values in (("classes", node.classes), ("mean", node.target_mean), ("spread", node.target_spread)):
        if values is not None:
            record[name] = _rounded(values)
    if node.typical_rows:
        record["typical"] = list(node.typical_rows)
    return record


def _rounded(values: FloatArray) -> list[float]:
    return [_round(value) for value in np.asarray(values, dtype=np.float64).ravel().tolist()]


def _round(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
