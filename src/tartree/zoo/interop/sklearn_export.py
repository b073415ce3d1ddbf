"""`to_sklearn`: a hard axis-aligned tree as a decision tree of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.tree._tree import NODE_DTYPE
from sklearn.tree._tree import Tree as SklearnTree
from sklearn.utils.validation import check_is_fitted

from tartree.estimators import TartClassifier, TartRegressor
from tartree.model import FittedModel, fitted_model
from tartree.nn import AxisDecision, ConstantLeaf
from tartree.structure import Structure
from tartree.table import Feature
from tartree.zoo.interop.imported_model import ImportedModel
from tartree.zoo.interop.sklearn_import import STATISTICS
from tartree.zoo.interop.split_tree import Booleans, Floats, Integers, SplitTree


def to_sklearn(
    model: ImportedModel | TartClassifier | TartRegressor,
) -> DecisionTreeClassifier | DecisionTreeRegressor:
    """Return a tree of scikit-learn that predicts what a hard axis-aligned tree predicts.

    Parameters
    ----------
    model : estimator
        A fitted ``zoo.make("dt")``, or one tree that `from_sklearn` imported from scikit-learn.

    Returns
    -------
    DecisionTreeClassifier or DecisionTreeRegressor
        Of columns of numbers and booleans, with or without missing values. A tree that came from scikit-learn has its
        nodes in the order of its source, with their impurities and counts. Nodes of a trained tree are numbered layer
        by layer, without training statistics: impurities are 0, and every node counts one row.

    Raises
    ------
    ValueError
        If the model is another tree, or an ensemble.

    Notes
    -----
    Scikit-learn rounds numbers to single precision. Thresholds are moved, by less than one step of that precision, so
    that every such number goes the same way in both.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import zoo
    >>> X, y = load_iris(return_X_y=True)
    >>> model = zoo.make("dt", depth=2, epochs=20, random_state=0).fit(X, y)
    >>> bool((zoo.to_sklearn(model).predict(X) == model.predict(X)).all())
    True
    """
    if not isinstance(model, ImportedModel | TartClassifier | TartRegressor):
        raise TypeError(f"to_sklearn takes a fitted model of the zoo, got {type(model).__name__}")
    check_is_fitted(model)
    tree = _imported(model) if isinstance(model, ImportedModel) else _trained(fitted_model(model))
    if tree.levels:
        _refuse("one that splits levels, while scikit-learn compares numbers only")
    exported = _exported(tree, int(model.n_features_in_), getattr(model, "classes_", None))
    if hasattr(model, "feature_names_in_"):
        exported.feature_names_in_ = model.feature_names_in_
    return exported


def _refuse(model: str) -> NoReturn:
    """Raise, because a model cannot be exported."""
    raise ValueError(f"the model must be one hard axis-aligned tree with constant leaves, got {model}")


def _imported(model: ImportedModel) -> SplitTree:
    """Return the nodes of an imported tree, in the order of its source unless some were pruned."""
    total = model.sum_
    if len(model.splits_) > 1:
        _refuse(f"an ensemble of {len(model.splits_)} trees; export its source")
    if total.link != "identity" or not model.encoder_.single or model.encoder_.missing_value is not None:
        _refuse("one whose source compares or adds in another way than scikit-learn's trees")
    tree = model.splits_[0]
    tree = replace(tree, value=total.base + total.weights[0] * tree.value)
    if len(tree.source) != len(tree.statistics.get("impurity", ())):
        return replace(tree, statistics={})
    order = np.argsort(tree.source)

    def child(nodes: Integers) -> Integers:
        return np.where(nodes >= 0, tree.source[nodes], -1)[order]

    return SplitTree(
        child(tree.left),
        child(tree.right),
        tree.feature[order],
        tree.threshold[order],
        tree.value[order],
        tree.missing_left[order],
        tree.zero_is_missing[order],
        statistics=tree.statistics,
    )


def _trained(model: FittedModel) -> SplitTree:
    """Return the nodes of a trained tree in units of the table and the target."""
    tree = model.tree
    if not isinstance(tree.decision, AxisDecision) or not isinstance(tree.leaf, ConstantLeaf):
        _refuse(f"decisions {type(tree.decision).__name__} and leaves {type(tree.leaf).__name__}")
    if model.n_members > 1:
        _refuse(f"{model.n_members} members")
    feature = tree.decision.feature[0].cpu().numpy()
    threshold = tree.decision.threshold[0].detach().cpu().double().numpy()
    with torch.no_grad():
        leaf_values = tree.output.mean(tree.leaf.values.detach().cpu().double().unsqueeze(1))[0, 0].numpy()
    if not model.is_classifier:
        center, scale = model.target_scaling
        leaf_values = center + scale * leaf_values[:, : model.n_outputs]
    splits = [_original_split(model, int(f), float(t)) for f, t in zip(feature, threshold, strict=True)]
    left, right, decision, leaf = nodes_of(tree.structure)
    inner = decision >= 0
    index = np.where(inner, decision, 0)

    def of_nodes(values: list[Any], kind: Any, default: Any) -> NDArray[Any]:
        if not values:
            return np.full(1, default)
        return np.where(inner, np.asarray(values, dtype=kind)[index], default)

    missing_left: Booleans = of_nodes([split[2] for split in splits], bool, False)
    return SplitTree(
        left,
        right,
        of_nodes([split[0] for split in splits], np.int64, 0),
        of_nodes([split[1] for split in splits], np.float64, 0.0),
        np.where(inner[:, None], 0.0, leaf_values[np.where(inner, 0, leaf)]),
        missing_left,
        np.zeros_like(missing_left),
    )


def nodes_of(structure: Structure) -> tuple[Integers, Integers, Integers, Integers]:
    """Return the nodes of a structure without shared children: left and right child, decision and leaf, or -1."""
    first_decision = np.concatenate(
        [[0], np.cumsum([int((structure.n_children(d) > 1).sum()) for d in range(structure.depth)])]
    )
    left, right, decision, leaf = [-1], [-1], [-1], [-1]
    queue = [(0, 0, 0)]  # layer, position in it, node
    for layer, position, node in queue:
        while layer < structure.depth and len(structure.children(layer)[position]) == 1:  # passed on
            layer, position = layer + 1, structure.children(layer)[position][0]
        if layer == structure.depth:
            leaf[node] = position
            continue
        counts = structure.n_children(layer)
        decision[node] = int(first_decision[layer] + (counts[:position] > 1).sum())
        left[node], right[node] = len(left), len(left) + 1
        for child in structure.children(layer)[position]:
            queue.append((layer + 1, child, len(left)))
            for column in (left, right, decision, leaf):
                column.append(-1)
    return np.array(left), np.array(right), np.array(decision), np.array(leaf)


def _original_split(model: FittedModel, index: int, threshold: float) -> tuple[int, float, bool]:
    """Return column, threshold and whether missing values go left, in units of the table, of an encoded feature."""
    feature = model.encoder.features_[index]
    column: Any = model.encoder.columns_[feature.column]
    if feature.kind == "missing":
        splits = 0 <= threshold < 1  # present values go left; otherwise all go one way
        return feature.column, np.inf if threshold >= 0 else -np.inf, not splits and threshold >= 1
    if feature.kind == "level" and feature.level is True:
        limit = 0.5 if 0 <= threshold < 1 else np.inf if threshold >= 1 else -np.inf
        fill = 0.0 if column.gaps else float(column.fill)  # with an indicator, a missing value is encoded as false
        return feature.column, limit, fill <= threshold
    if feature.kind != "value" or not feature.quantity.is_bare:
        _refuse(f"one that splits {feature.label!r}, while scikit-learn's trees take columns of numbers only")
    return feature.column, *_number_split(feature, column, threshold)


def _number_split(feature: Feature, column: Any, threshold: float) -> tuple[float, bool]:
    """Return the threshold of a column of numbers, and whether its missing values go left."""

    def goes_left(values: NDArray[Any]) -> bool:
        encoded = feature.scaling.encode(values.astype(np.float64)).astype(np.float32)
        return bool(encoded[0] <= np.float32(threshold))

    return last_single(goes_left), goes_left(np.array([float(column.fill)]))


def last_single(holds: Callable[[NDArray[np.float32]], bool]) -> float:
    """Return the largest number in single precision for which a predicate holds that holds for all smaller ones.

    >>> last_single(lambda value: float(value[0]) <= 0.1)
    0.09999999403953552
    """

    def number(order: int) -> NDArray[np.float32]:  # from the integers in the order of the numbers
        bits = order if order >= 0 else -(2**31) - order - 1 + 2**32
        return np.array([bits], dtype=np.uint32).view(np.float32)

    top = int(np.array([np.finfo(np.float32).max]).view(np.uint32)[0])
    low, high = -top - 1, top  # the lowest and the highest finite number
    if not holds(number(low)):
        return -np.inf
    if holds(number(high)):
        return np.inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(number(middle)) else (low, middle)
    return float(number(low)[0])


def _exported(
    tree: SplitTree, n_features: int, classes: NDArray[Any] | None
) -> DecisionTreeClassifier | DecisionTreeRegressor:
    """Return a tree of scikit-learn around some nodes."""
    n_nodes, n_outputs = tree.value.shape
    nodes = np.zeros(n_nodes, dtype=NODE_DTYPE)
    inner = tree.left >= 0
    nodes["left_child"], nodes["right_child"] = tree.left, tree.right
    nodes["feature"] = np.where(inner, tree.feature, -2)
    nodes["threshold"] = np.where(inner, tree.threshold, -2.0)
    nodes["missing_go_to_left"] = tree.missing_left
    nodes["n_node_samples"], nodes["weighted_n_node_samples"] = 1, 1.0
    for name in STATISTICS:
        if name in tree.statistics:
            nodes[name] = tree.statistics[name]
    if classes is not None:
        exported = DecisionTreeClassifier()
        exported.classes_, exported.n_classes_, exported.n_outputs_ = classes, len(classes), 1
        values: Floats = tree.value.reshape(n_nodes, 1, n_outputs)
    else:
        exported = DecisionTreeRegressor()
        exported.n_outputs_ = n_outputs
        values = tree.value.reshape(n_nodes, n_outputs, 1)
    n_classes = np.full(exported.n_outputs_, values.shape[2], dtype=np.intp)
    exported.n_features_in_ = exported.max_features_ = n_features
    exported.tree_ = SklearnTree(exported.n_features_in_, n_classes, exported.n_outputs_)
    exported.tree_.__setstate__(
        {"max_depth": tree.depth, "node_count": n_nodes, "nodes": nodes, "values": np.ascontiguousarray(values)}
    )
    return exported
