"""Soft trees: a grown tree with sigmoids in place of its thresholds, and linear leaves that count rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tartree.model import ClassCodec, ModelSpec, Prepared, prepare
from tartree.model.memory_source import MemorySource
from tartree.nn import MLPDecision, MLPLeaf
from tartree.structure import Structure
from tartree.table import TableEncoder
from tartree.zoo.interop.imported_model import ImportedClassifier, ImportedModel
from tartree.zoo.interop.sklearn_import import from_sklearn
from tartree.zoo.interop.split_tree import Floats, SplitTree

MISSING_LOGIT = 3.0  # logit of the learnt path of a missing value
PRIOR = 1.0  # weight of the distribution of all rows in each leaf, in rows


def import_one_tree(source: Any) -> ImportedModel:
    """Return a decision tree as an imported model, or raise if it cannot be softened."""
    imported = source if isinstance(source, ImportedModel) else from_sklearn(source)
    reasons = {
        f"which has {len(imported.splits_)} trees": len(imported.splits_) != 1,
        "which sums trees, for a link function": imported.sum_.link != "identity",
        "which splits levels": any(tree.levels for tree in imported.splits_),
    }
    if any(reasons.values()):
        reason = next(reason for reason, holds in reasons.items() if holds)
        raise ValueError(
            f"a warm start needs one decision tree that compares numbers, got {type(source).__name__}, {reason}"
        )
    return imported


def structure_of(imported: ImportedModel) -> Structure:
    """Return the structure of a single imported tree."""
    return imported.splits_[0].layout()[0]


def prepare_soft_tree(imported: ImportedModel, spec: ModelSpec, source: MemorySource, temperature: float) -> Prepared:
    """Do everything that a fit does before training, and set the weights to those of an imported tree.

    The temperature is that of the sigmoids, in standard deviations of a feature.
    """
    tree = imported.splits_[0]
    structure, decisions, leaves = tree.layout()
    prepared = prepare(spec, source, structure=structure)
    if isinstance(imported, ImportedClassifier) and isinstance(source.codec, ClassCodec):
        new = sorted(set(source.codec.classes.tolist()) - set(imported.classes_.tolist()), key=str)
        if new:
            raise ValueError(f"y must hold classes of the tree, {imported.classes_.tolist()}, got {new[0]!r}")
    leaf_index = np.full(len(tree.left), -1)
    leaf_index[leaves] = np.arange(len(leaves))
    _write_leaves(prepared, source, leaf_index[tree.route(*imported.encoder_.read(source.X))])
    if isinstance(prepared.tree.decision, MLPDecision):
        slope, bias = _soft_splits(tree, decisions, source.encoder, temperature)
        with torch.no_grad():
            prepared.tree.decision.mlp.weights[0].copy_(torch.from_numpy(slope).unsqueeze(0))
            prepared.tree.decision.mlp.biases[0].copy_(torch.from_numpy(bias).unsqueeze(0))
    prepared.tree.eval()
    prepared.temperature = temperature
    return prepared


def _write_leaves(prepared: Prepared, source: MemorySource, leaf: NDArray[np.intp]) -> None:
    """Set leaves to the distribution of the target in their rows, with a little of that in all rows.

    They do not depend on the input yet. `leaf` is the index of the leaf of each row, (rows,).
    """
    module = prepared.tree.leaf
    assert isinstance(module, MLPLeaf)
    n_leaves, target, weight = prepared.tree.structure.n_leaves, source.target.numpy(), source.weight
    # Only ratios of weights count; a row of weight 0 is left out.
    row_weight = np.ones(len(target)) if weight is None else weight / weight[weight > 0].mean()
    leaf_weight = np.bincount(leaf, row_weight, n_leaves)[:, None]  # (leaves, 1)

    def leaf_means(values: Floats) -> Floats:  # drawn to the mean of all rows; (leaves, columns)
        sums = np.stack([np.bincount(leaf, row_weight * column, n_leaves) for column in values.T], axis=1)
        means: Floats = (sums + PRIOR * np.average(values, axis=0, weights=row_weight)) / (leaf_weight + PRIOR)
        return means

    if source.codec.is_classes:
        shares = leaf_means(np.eye(source.codec.output.n_targets)[target])
        raw = np.log(np.maximum(shares, np.finfo(np.float32).tiny))  # the weight of a class may be 0
    else:
        center = leaf_means(target.astype(np.float64))
        spread = np.sqrt(np.maximum(leaf_means(np.square(target - center[leaf])), 1e-4))
        raw = np.concatenate([center, np.log(np.expm1(spread))], axis=1)  # the inverse of softplus
    with torch.no_grad():
        module.mlp.weights[0].zero_()
        module.mlp.biases[0].copy_(torch.from_numpy(raw.ravel()).unsqueeze(0))


def _soft_splits(
    tree: SplitTree, decisions: NDArray[np.int64], encoder: TableEncoder, temperature: float
) -> tuple[Floats, Floats]:
    """Return weights, (decisions, features), and biases whose sigmoids stand for the splits."""
    weight, bias = np.zeros((len(decisions), len(encoder.features_))), np.zeros(len(decisions))
    index = {(feature.column, feature.kind): i for i, feature in enumerate(encoder.features_)}
    for row, node in enumerate(decisions):
        column = int(tree.feature[node])
        value, indicator = index.get((column, "value"), index.get((column, "level"))), index.get((column, "missing"))
        if not np.isfinite(tree.threshold[node]) or value is None:  # numbers go one way, missing values the other
            fill_logit = bias[row] = MISSING_LOGIT if tree.threshold[node] > 0 else -MISSING_LOGIT
        else:
            numbers: Any = encoder.columns_[column]
            split_and_fill = np.array([tree.threshold[node], float(numbers.fill)])
            threshold, filled = encoder.features_[value].scaling.encode(split_and_fill)
            weight[row, value], bias[row] = -1 / temperature, threshold / temperature
            fill_logit = (threshold - filled) / temperature
        if indicator is not None:
            weight[row, indicator] = (1.0 if tree.missing_left[node] else -1.0) * MISSING_LOGIT - fill_logit
    return weight, bias
