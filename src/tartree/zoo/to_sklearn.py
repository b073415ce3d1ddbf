"""`to_sklearn`: a hard axis-aligned tree of ours as a decision tree of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.tree._tree import NODE_DTYPE
from sklearn.tree._tree import Tree as SklearnTree
from sklearn.utils.validation import check_is_fitted

from tartree.estimators import TartClassifier, TartRegressor
from tartree.nn import AxisDecision, ConstantLeaf
from tartree.structure import Structure
from tartree.table import TableEncoder
from tartree.zoo.from_sklearn import STATISTICS
from tartree.zoo.imported import ImportedModel
from tartree.zoo.splits import Booleans, Floats, Integers, SplitTree


def to_sklearn(model: Any) -> DecisionTreeClassifier | DecisionTreeRegressor:
    """A fitted tree of scikit-learn that predicts what a hard axis-aligned tree of ours predicts.

    Parameters
    ----------
    model : estimator
        A fitted ``zoo.make("dt")``, or one tree that `from_sklearn` imported from scikit-learn.

    Returns
    -------
    DecisionTreeClassifier or DecisionTreeRegressor
        Of columns of numbers and booleans, with or without gaps. A tree that came from scikit-learn has its nodes in
        the order of its source, with their impurities and counts. Nodes of a trained tree are numbered layer by layer
        and know nothing of training rows: impurities are 0, and every node counts one row.

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
        raise TypeError(f"to_sklearn takes a fitted model of the zoo, however: {type(model).__name__}")
    check_is_fitted(model)
    tree = _imported(model) if isinstance(model, ImportedModel) else _trained(model)
    if tree.levels:
        _refuse("it splits levels, where scikit-learn compares numbers only")
    made = _fill(tree, model)
    if hasattr(model, "feature_names_in_"):
        made.feature_names_in_ = model.feature_names_in_
    return made


def _refuse(reason: str) -> NoReturn:
    raise ValueError(f"the model must be one hard axis-aligned tree with constant leaves, however: {reason}")


def _imported(model: ImportedModel) -> SplitTree:
    total = model.sum_
    if len(model.splits_) > 1:
        _refuse(f"it is an ensemble of {len(model.splits_)} trees; export its source")
    if total.link != "identity" or not model.encoder_.single or model.encoder_.missing is not None:
        _refuse("its source compares or adds in another way than scikit-learn's trees")
    tree = model.splits_[0]
    tree = replace(tree, value=total.base + total.weights[0] * tree.value)
    if len(tree.source) != len(tree.statistics.get("impurity", ())):  # pruned nodes have left gaps in the numbers
        return replace(tree, statistics={})
    place = np.argsort(tree.source)  # of each node of the source

    def child(nodes: Integers) -> Integers:
        return np.where(nodes >= 0, tree.source[nodes], -1)[place]

    return SplitTree(
        child(tree.left),
        child(tree.right),
        tree.feature[place],
        tree.threshold[place],
        tree.value[place],
        tree.gap_left[place],
        tree.zero_is_gap[place],
        statistics=tree.statistics,
    )


def _trained(model: TartClassifier | TartRegressor) -> SplitTree:
    tree = model.tree_
    if not isinstance(tree.decision, AxisDecision) or not isinstance(tree.leaf, ConstantLeaf):
        _refuse(f"decisions are {type(tree.decision).__name__}, leaves {type(tree.leaf).__name__}")
    if len(tree.leaf.values) > 1:
        _refuse(f"it has {len(tree.leaf.values)} members")
    feature = tree.decision.feature[0].cpu().numpy()
    threshold = tree.decision.threshold[0].detach().cpu().double().numpy()
    with torch.no_grad():
        said = tree.output.mean(tree.leaf.values.detach().cpu().double().unsqueeze(1))[0, 0].numpy()  # (leaves, ...)
    if isinstance(model, TartRegressor):
        said = model.target_center_ + model.target_scale_ * said[:, : len(model.target_center_)]
    columns = [_original(model.encoder_, int(f), float(t)) for f, t in zip(feature, threshold, strict=True)]
    left, right, decision, leaf = _nodes(tree.structure)
    inner = decision >= 0
    places = np.where(inner, decision, 0)

    def of_nodes(values: list[Any], kind: Any, rest: Any) -> NDArray[Any]:
        return np.where(inner, np.asarray(values, dtype=kind)[places], rest) if len(values) else np.full(1, rest)

    gap_left: Booleans = of_nodes([c[2] for c in columns], bool, False)
    return SplitTree(
        left,
        right,
        of_nodes([c[0] for c in columns], np.int64, 0),
        of_nodes([c[1] for c in columns], np.float64, 0.0),
        np.where(inner[:, None], 0.0, said[np.where(inner, 0, leaf)]),
        gap_left,
        np.zeros_like(gap_left),
    )


def _nodes(structure: Structure) -> tuple[Integers, Integers, Integers, Integers]:
    """A structure whose nodes have one parent each as lists of nodes: children, decision and leaf, or -1."""
    first_decision = np.concatenate(
        [[0], np.cumsum([int((structure.n_children(d) > 1).sum()) for d in range(structure.depth)])]
    )
    left, right, decision, leaf = [-1], [-1], [-1], [-1]
    waiting = [(0, 0, 0)]  # layer, place in it, number of the node
    for layer, place, number in waiting:
        while layer < structure.depth and len(structure.children(layer)[place]) == 1:  # passed on
            layer, place = layer + 1, structure.children(layer)[place][0]
        if layer == structure.depth:
            leaf[number] = place
            continue
        counts = structure.n_children(layer)
        decision[number] = int(first_decision[layer] + (counts[:place] > 1).sum())
        left[number], right[number] = len(left), len(left) + 1
        for child in structure.children(layer)[place]:
            waiting.append((layer + 1, child, len(left)))
            for column in (left, right, decision, leaf):
                column.append(-1)
    return np.array(left), np.array(right), np.array(decision), np.array(leaf)


def _original(encoder: TableEncoder, index: int, threshold: float) -> tuple[int, float, bool]:
    """Column, threshold and way of gaps in the units of the table, for a split of an encoded feature."""
    feature = encoder.features_[index]
    if feature.kind == "missing":
        between = 0 <= threshold < 1  # those without a gap go left; otherwise all go one way
        return feature.column, np.inf if threshold >= 0 else -np.inf, not between and threshold >= 1
    if feature.kind == "level" and feature.level is True:
        column: Any = encoder.columns_[feature.column]
        limit = 0.5 if 0 <= threshold < 1 else np.inf if threshold >= 1 else -np.inf
        fill = 0.0 if column.gaps else float(column.fill)  # a gap that has a feature of its own is not true
        return feature.column, limit, fill <= threshold
    if feature.kind != "value" or feature.unit != "number":
        _refuse(f"it looks at {feature.label!r}, and scikit-learn's trees take columns of numbers only")
    scaling = feature.scaling

    def goes_left(values: NDArray[np.float32]) -> bool:
        encoded = scaling.encode(values.astype(np.float64)).astype(np.float32)
        return bool(encoded[0] <= np.float32(threshold))

    numbers: Any = encoder.columns_[feature.column]
    filled = scaling.encode(np.array([float(numbers.fill)]))
    gap_left = bool(filled.astype(np.float32)[0] <= np.float32(threshold))
    return feature.column, last_single(goes_left), gap_left


def last_single(holds: Callable[[NDArray[np.float32]], bool]) -> float:
    """The largest number in single precision for which something holds that holds for all smaller ones too.

    >>> last_single(lambda value: float(value[0]) <= 0.1)
    0.09999999403953552
    """

    def number(order: int) -> NDArray[np.float32]:  # whole numbers in the order of the numbers that their bits make
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


def _fill(tree: SplitTree, model: Any) -> DecisionTreeClassifier | DecisionTreeRegressor:
    """A tree of scikit-learn around nodes of ours."""
    n_nodes, n_outputs = tree.value.shape
    classes = model.classes_ if is_classifier(model) else None
    nodes = np.zeros(n_nodes, dtype=NODE_DTYPE)
    inner = tree.left >= 0
    nodes["left_child"], nodes["right_child"] = tree.left, tree.right
    nodes["feature"] = np.where(inner, tree.feature, -2)
    nodes["threshold"] = np.where(inner, tree.threshold, -2.0)
    nodes["missing_go_to_left"] = tree.gap_left
    nodes["n_node_samples"], nodes["weighted_n_node_samples"] = 1, 1.0
    for name in STATISTICS:
        if name in tree.statistics:
            nodes[name] = tree.statistics[name]
    if classes is not None:
        made = DecisionTreeClassifier()
        made.classes_, made.n_classes_, made.n_outputs_ = classes, len(classes), 1
        values: Floats = tree.value.reshape(n_nodes, 1, n_outputs)
    else:
        made = DecisionTreeRegressor()
        made.n_outputs_ = n_outputs
        values = tree.value.reshape(n_nodes, n_outputs, 1)
    n_classes = np.full(made.n_outputs_, len(classes) if classes is not None else 1, dtype=np.intp)
    made.n_features_in_ = int(model.n_features_in_)
    made.max_features_ = made.n_features_in_
    made.tree_ = SklearnTree(made.n_features_in_, n_classes, made.n_outputs_)
    made.tree_.__setstate__(
        {"max_depth": tree.depth, "node_count": n_nodes, "nodes": nodes, "values": np.ascontiguousarray(values)}
    )
    return made
