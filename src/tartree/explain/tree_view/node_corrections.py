"""Corrections: linear leaves as a model for all rows at the root, and what each node changes for the rows below it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tartree.explain.text.column_effects import column_effects
from tartree.explain.tree_view.views import CorrectionView
from tartree.model import FittedModel
from tartree.model.reading_size import count_numbers
from tartree.nn import Tree
from tartree.nn.families import is_fixed, linear_parameters
from tartree.nn.path_leaf import path_shares, shared_parts
from tartree.table import Feature

FloatArray = NDArray[np.float64]
#: Leaves up to which leaves are compared; nobody reads more.
MOST_LEAVES = 256
#: Differences below this share of the largest weight are rounding errors.
ROUNDING = 1e-12


def corrections_of(
    model: FittedModel, tree: Tree, member: int, spread: FloatArray, max_terms: int
) -> tuple[tuple[CorrectionView, ...], ...] | None:
    """Return what each node adds to the functions of the leaves below it.

    None if leaves are not linear, a node has several parents, or the leaves of a soft tree have nothing in common.
    """
    parts = shared_weights(tree, member, model.encoder.features_)
    if parts is None:
        return None
    weights, biases = parts  # (nodes, numbers, features), (nodes, numbers)
    mix = tree.output.functions()  # (functions, numbers)
    names = tree.output.function_names(model.output_names)
    encoder = model.encoder
    center, scale = model.function_scaling
    units = list(zip(center.tolist(), scale.tolist(), strict=True))
    mixed = np.einsum("kn,vnf->vkf", mix, weights)
    mixed[np.abs(mixed) <= ROUNDING * np.abs(weights).max(initial=0.0)] = 0.0
    constants = biases @ mix.T  # (nodes, functions)
    result = []
    for node in range(len(mixed)):
        functions = []
        for k, (middle, unit) in enumerate(units):
            effects, n_effects = column_effects(
                encoder.columns_, encoder.features_, mixed[node, k], spread, unit_scale=float(unit), most=max_terms
            )
            constant = float(constants[node, k]) * unit + (middle if node == 0 else 0.0)
            functions.append(CorrectionView(names[k], constant, effects, n_effects))
        result.append(tuple(functions))
    return tuple(result)


def shared_weights(tree: Tree, member: int, all_features: Sequence[Feature]) -> tuple[FloatArray, FloatArray] | None:
    """Return the weights and biases that nodes add to the raw outputs of the leaves below them.

    Terms are compared column by column, so that a leaf that differs in one column is a correction of that column.
    """
    structure, n_numbers = tree.structure, tree.output.n_numbers
    if obstacle(tree) is not None:
        return None
    parameters = linear_parameters(tree.leaf)
    assert parameters is not None
    of_leaves, constants = (part[member].double().cpu().numpy() for part in parameters)
    is_shown = (tree.output.functions() != 0).any(axis=0)  # (numbers,): the others are no part of any text
    of_leaves = of_leaves.reshape(structure.n_leaves, n_numbers, -1) * is_shown[:, None]
    constants = constants.reshape(structure.n_leaves, n_numbers) * is_shown
    is_hard = tree.branching.activation.name == "hard"
    if not is_hard and not _has_equal_weights(of_leaves):
        return None
    mix = tree.output.functions()
    columns = np.array([feature.column for feature in all_features], dtype=np.intp)
    negligible = ROUNDING * np.abs(of_leaves).max(initial=0.0)
    weights = np.zeros((sum(structure.widths), *of_leaves.shape[1:]))
    n_separate = n_shared = 0
    for column in np.unique(columns):
        features = np.flatnonzero(columns == column)
        of_column = [all_features[k] for k in features.tolist()]

        def count(parts: FloatArray, of_column: Sequence[Feature] = of_column) -> NDArray[np.int64]:
            is_used = np.abs(mix @ parts) > negligible  # (parts, functions, features)
            return np.asarray(count_numbers(is_used, of_column).sum(axis=-1))

        weights[:, :, features] = shared_parts(of_leaves[:, :, features], structure, count)
        n_separate += int(np.count_nonzero(of_leaves[:, :, features].any(axis=(1, 2))))
        n_shared += int(np.count_nonzero(weights[:, :, features].any(axis=(1, 2))))
    return (weights, shared_parts(constants, structure)) if is_hard or n_shared < n_separate else None


def obstacle(tree: Tree) -> str | None:
    """Return what the leaves or nodes of a tree must be to have corrections and what they are, or None."""
    if is_fixed(tree.leaf):
        return "leaves must be linear, got constants, to which no column adds"
    if linear_parameters(tree.leaf) is None:
        return f"leaves must be linear, got {type(tree.leaf).__name__}, as with leaf_layers above 1"
    if tree.structure.n_leaves > MOST_LEAVES:
        return f"a tree must have at most {MOST_LEAVES} leaves, got {tree.structure.n_leaves}"
    if not np.isin(path_shares(tree.structure), (0.0, 1.0)).all():
        return "each node must have one parent, got children with several, as with a stride below the window"
    return None


def _has_equal_weights(of_leaves: FloatArray) -> bool:
    """Return whether two leaves have the same weights of a feature, other than 0; leaves of most models have none."""
    n_numbers = of_leaves.shape[1]
    keys = np.sort(
        np.einsum("unf,n->uf", of_leaves, np.sqrt(np.arange(2, n_numbers + 2))), axis=0
    )  # (leaves, features)
    return bool(((keys[1:] == keys[:-1]) & (keys[1:] != 0)).any())
