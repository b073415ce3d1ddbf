"""Conditions of nodes and models of leaves in original names and units; gradients where they are not linear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tartree.explain.attribution.gradients import mean_gradients
from tartree.explain.text.number_text import format_number
from tartree.explain.text.terms import TEXT_TERMS, LinearView, constant_view, linear_view, threshold_text
from tartree.explain.tree_view.views import ConditionView, LeafModelView, NodeView
from tartree.model import FittedModel
from tartree.nn import ConstantLeaf, Tree
from tartree.nn.families import is_fixed, linear_parameters, step_parameters
from tartree.table import Column, Feature

FloatArray = NDArray[np.float64]
#: Logarithm of the probability of an impossible class, so that its log odds are finite.
SMALLEST_LOG = float(np.log(1e-12))


def conditions_of(
    tree: Tree,
    member: int,
    features: Sequence[Feature],
    spread: FloatArray,
    x: Tensor | None,
    nodes: Sequence[NodeView],
    max_terms: int,
    columns: Sequence[Column] | None = None,
) -> tuple[ConditionView | None, ...]:
    """Return the condition of each node of a member, None for leaves."""
    parameters = linear_parameters(tree.decision)
    thresholds = step_parameters(tree.decision)
    if thresholds is not None:  # a comparison with a threshold is the sign of a linear function
        parameters = (-torch.nn.functional.one_hot(thresholds[0], len(features)).double(), thresholds[1])
    gradients: list[LinearView] | None = None
    if parameters is None and not is_fixed(tree.decision) and x is not None and len(x):
        slopes = zip(*mean_gradients(tree.decision, member, x), strict=True)
        gradients = [_gradient_view(features, slope, spread, 1.0, max_terms) for slope in slopes]

    def function(logit: int) -> LinearView:
        if parameters is None:
            assert gradients is not None
            return gradients[logit]
        weight, bias = parameters[0][member, logit].numpy(), float(parameters[1][member, logit])
        function_view = linear_view(features, weight, bias, spread, max_terms=max_terms, columns=columns)
        if thresholds is None or not function_view.terms or function_view.terms[0].kind != "value":
            return function_view
        feature = features[function_view.terms[0].feature]  # a row on the threshold goes to the first child
        return replace(function_view, condition=f"{feature.name} <= {threshold_text(feature, bias, up=False)}")

    def condition(node: NodeView) -> ConditionView | None:
        if not node.children:
            return None
        if len(node.children) == 1:
            return ConditionView("pass", (), ("always",))
        if is_fixed(tree.decision):
            return ConditionView("even", (), (f"an even share, 1 of {len(node.children)}",) * len(node.children))
        kind = "gradient" if parameters is None else "linear"
        if parameters is None and gradients is None:
            return ConditionView("gradient", (), ("a function",) * len(node.children))
        functions = tuple(function(logit) for logit in node.logits)
        texts = branch_texts(functions, TEXT_TERMS)
        if len(functions) == 1 and functions[0].n_effects > 1 and functions[0].opposite is not None:
            texts = functions[0].condition, functions[0].opposite  # curves of several columns, without their numbers
        return ConditionView(kind, functions, texts)  # type: ignore[arg-type]

    return tuple(condition(node) for node in nodes)


def condition_texts(condition: ConditionView, max_terms: int) -> tuple[str, ...]:
    """Return when each child of a node is the most probable, with at most so many terms."""
    return branch_texts(condition.functions, max_terms) if condition.functions else condition.texts


def branch_texts(functions: Sequence[LinearView], max_terms: int) -> tuple[str, ...]:
    """Return when each child is the most probable."""
    if len(functions) == 1:
        (function,) = functions
        return function.condition_of(max_terms), negated(function, max_terms)
    return tuple(f"score {j} is largest: {function.text_of(max_terms)}" for j, function in enumerate(functions))


def negated(function: LinearView, max_terms: int = TEXT_TERMS) -> str:
    """Return when a function is not above 0, as text."""
    text = function.condition_of(max_terms)
    opposite = function.opposite_of(max_terms)
    if opposite is not None:
        return opposite
    if function.method == "gradient":
        return f"otherwise ({text})"
    if text in ("always", "never", "even"):
        return {"always": "never", "never": "always", "even": "even"}[text]
    if function.n_terms == 1 and function.terms[0].kind != "value":
        return text[5:-1] if text.startswith("not (") else f"not ({text})"
    if " <= " in text:
        return " > ".join(text.rsplit(" <= ", 1))
    left, sign, right = text.rpartition(" > ") if " > " in text else text.rpartition(" < ")
    return f"{left} {'<=' if sign == ' > ' else '>='} {right}"


def leaf_models_of(
    model: FittedModel,
    tree: Tree,
    member: int,
    spread: FloatArray,
    x: Tensor | None,
    outputs: Sequence[str],
    max_terms: int,
) -> tuple[LeafModelView, ...]:
    """Return the model of each leaf of a member."""
    features = model.encoder.features_
    center, scale = model.function_scaling
    mix = tree.output.functions()  # (functions, numbers): logits less their mean, log odds, or means
    names = tree.output.function_names(outputs)
    shares: FloatArray | None = None
    shape = (tree.structure.n_leaves, tree.output.n_numbers)
    parameters = linear_parameters(tree.leaf)
    units = list(zip(center, scale, strict=True))
    views: list[list[LinearView]]
    if isinstance(tree.leaf, ConstantLeaf):
        numbers = tree.leaf.values[member].detach().numpy()  # (leaves, numbers)
        if np.isneginf(numbers).any():  # leaves of imported trees, where a class may be impossible
            shares = np.exp(numbers) / np.exp(numbers).sum(axis=1, keepdims=True)
            numbers = np.maximum(numbers, SMALLEST_LOG)
        constants = numbers @ mix.T  # (leaves, functions)
        views = [[constant_view(float(c + s * v)) for v, (c, s) in zip(row, units, strict=True)] for row in constants]
    elif parameters is not None:
        weights = np.einsum("kn,unf->ukf", mix, parameters[0][member].numpy().reshape(*shape, -1))
        biases = parameters[1][member].numpy().reshape(shape) @ mix.T  # (leaves, functions)
        views = [
            [
                linear_view(
                    features, leaf_functions[k], bias[k] + c / s, spread, unit_scale=float(s), max_terms=max_terms
                )
                for k, (c, s) in enumerate(units)
            ]
            for leaf_functions, bias in zip(weights, biases, strict=True)
        ]
    elif x is not None and len(x):
        slopes = zip(*mean_gradients(tree.leaf, member, x, torch.from_numpy(mix)), strict=True)
        flat = [
            _gradient_view(features, slope, spread, float(units[k % len(mix)][1]), max_terms)
            for k, slope in enumerate(slopes)
        ]
        views = [flat[u * len(mix) : (u + 1) * len(mix)] for u in range(shape[0])]
    else:
        views = [[] for _ in range(shape[0])]
    kind = "constant" if is_fixed(tree.leaf) else "gradient" if parameters is None else "linear"
    return tuple(
        LeafModelView(
            kind,  # type: ignore[arg-type]
            tuple(leaf_functions),
            names[: len(leaf_functions)],
            tuple(_leaf_text(name, function, TEXT_TERMS) for name, function in zip(names, leaf_functions, strict=False))
            if shares is None
            else tuple(
                f"probability of {name} = {format_number(p)}" for name, p in zip(outputs, shares[u], strict=True)
            ),
        )
        for u, leaf_functions in enumerate(views)
    )


def leaf_texts(model: LeafModelView, max_terms: int) -> tuple[str, ...]:
    """Return the functions of a leaf as text, with at most so many terms each."""
    if model.kind == "constant":
        return model.texts
    return tuple(
        _leaf_text(name, function, max_terms) for name, function in zip(model.names, model.functions, strict=True)
    )


def _leaf_text(name: str, function: LinearView, max_terms: int) -> str:
    if function.method == "gradient":
        return f"{name}: a function, mostly of {', '.join(term.name for term in function.terms[:max_terms])}"
    if function.method == "constant":
        return f"{name} = {format_number(function.bias or 0.0)}"
    return f"{name} = {function.text_of(max_terms)}"


def _gradient_view(
    features: Sequence[Feature],
    slope: tuple[Tensor, Tensor],
    spread: FloatArray,
    scale: float,
    max_terms: int,
) -> LinearView:
    mean, size = (part.numpy() for part in slope)
    return linear_view(
        features,
        mean,
        None,
        spread,
        strength=size * spread,
        method="gradient",
        unit_scale=scale,
        max_terms=max_terms,
    )
