"""The temperature of a soft tree, chosen by cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import _safe_indexing
from sklearn.utils.class_weight import compute_sample_weight
from torch import Tensor

from tartree.model import ClassCodec, ModelSpec
from tartree.model.memory_source import MemorySource, check_equal_rows, number_of_rows
from tartree.nn import Tree
from tartree.zoo.interop.imported_model import ImportedModel
from tartree.zoo.interop.split_tree import Floats
from tartree.zoo.soft_tree import import_one_tree, prepare_soft_tree

#: Temperatures to choose from, in standard deviations of a feature.
TEMPERATURES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
COST_SIZE = 2**24  # elements of leaf outputs at a time, when temperatures are compared


def choose_temperature(
    source: Any, spec: ModelSpec, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Return the temperature of the best likelihood in folds, always the same, of trees grown as the source was.

    An imported tree cannot be grown again: its splits stay, and its leaves count the rows of each fold.
    """
    labels = np.asarray(y)
    n_rows = number_of_rows(X)
    check_equal_rows(n_rows, len(labels))
    n_folds = min(5, n_rows)
    if n_folds < 2:
        return TEMPERATURES[len(TEMPERATURES) // 2]
    weights = np.ones(n_rows) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    check_equal_rows(n_rows, len(weights))
    has_classes = spec.codec_type.is_classes
    is_rare = has_classes and np.unique(labels, return_counts=True)[1].min() < n_folds
    folds = (StratifiedKFold if has_classes and not is_rare else KFold)(n_folds, shuffle=True, random_state=0)
    counted = weights * compute_sample_weight(spec.class_weight, labels) if has_classes else weights
    cost = np.zeros(len(TEMPERATURES))
    for train, test in folds.split(np.zeros(n_rows), labels):
        train = train[counted[train] > 0]
        if not len(train) or (has_classes and len(np.unique(labels[train])) < 2):
            continue
        fold_weights = None if sample_weight is None else weights[train]
        rows = MemorySource(_take(X, train), labels[train], fold_weights)
        grown = source
        if not isinstance(source, ImportedModel):
            grown = clone(source).fit(rows.X, rows.y, sample_weight=fold_weights)
        prepared = prepare_soft_tree(import_one_tree(grown), spec, rows, temperature=1.0)
        test = test[counted[test] > 0]
        if isinstance(rows.codec, ClassCodec):
            test = test[np.isin(labels[test], rows.codec.classes)]
        if len(test):
            x = torch.from_numpy(rows.encoder.transform(_take(X, test)))
            cost += costs(prepared.tree, x, rows.codec.encode(labels[test]), counted[test])
    return TEMPERATURES[int(np.argmin(cost))]


@torch.no_grad()
def costs(tree: Tree, x: Tensor, target: Tensor, weight: Floats) -> Floats:
    """Return the negative log likelihood of rows at each temperature, summed by weight; the tree's is 1."""
    device = next(tree.parameters()).device
    total = np.zeros(len(TEMPERATURES))
    size = max(1, COST_SIZE // (tree.structure.n_leaves * tree.output.n_numbers))  # a large tree has large products
    for start in range(0, len(x), size):
        rows = slice(start, start + size)
        inputs = x[rows].to(device)
        logits, leaf_costs = tree.decision(inputs), tree.output.cost(tree.leaf(inputs), target[rows].to(device))
        row_weight = torch.from_numpy(weight[rows]).to(logits)
        for k, temperature in enumerate(TEMPERATURES):
            # As `losses.mixture`; the costs of the leaves, (1, rows, leaves), are the same at every temperature.
            arrival = tree.branching(logits / temperature)
            joint = arrival.clamp_min(torch.finfo(arrival.dtype).tiny).log() - leaf_costs
            total[k] -= float((joint.logsumexp(-1) * row_weight).sum())
    return total


def _take(X: Any, rows: NDArray[np.intp]) -> Any:
    """Return rows of a table."""
    return _safe_indexing(X if hasattr(X, "shape") else np.asarray(X), rows)
