"""Fitted models of XGBoost and LightGBM as imported models; neither package is imported here."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tartree.nn.split_decision import ZERO
from tartree.zoo.interop.plain_encoder import PlainEncoder
from tartree.zoo.interop.sklearn_import import Imported, column_names, imported, refuse
from tartree.zoo.interop.split_tree import Floats, SplitTree
from tartree.zoo.interop.tree_sum import TreeSum

#: For each objective of XGBoost: the link, and how its base score becomes a raw value.
XGBOOST = {
    "reg:squarederror": ("identity", "identity"),
    "reg:absoluteerror": ("identity", "identity"),
    "reg:pseudohubererror": ("identity", "identity"),
    "reg:squaredlogerror": ("identity", "identity"),
    "reg:quantileerror": ("identity", "identity"),
    "reg:logistic": ("expit", "logit"),
    "count:poisson": ("exp", "log"),
    "reg:gamma": ("exp", "log"),
    "reg:tweedie": ("exp", "log"),
    "binary:logistic": ("two classes", "logit"),
    "multi:softprob": ("softmax", "identity"),
    "multi:softmax": ("softmax", "identity"),
}
#: Raw values of base scores, by the inverse of the link.
INVERSES: dict[str, Callable[[Any], Any]] = {
    "logit": lambda score: -np.log(1 / score - 1),
    "log": np.log,
    "identity": lambda score: score,
}
#: For each objective of LightGBM: the link.
LIGHTGBM = {
    **dict.fromkeys(["regression", "regression_l1", "huber", "fair", "quantile", "mape"], "identity"),
    **dict.fromkeys(["poisson", "gamma", "tweedie"], "exp"),
    "binary": "two classes",
    "multiclass": "softmax",
    "multiclassova": "one against all",
    "cross_entropy": "expit",
    "cross_entropy_lambda": "log1p exp",
}


def read_xgboost(source: Any) -> Imported:
    """Import a model of XGBoost's scikit-learn interface, or a booster."""
    is_booster = type(source).__name__ == "Booster"
    booster = source if is_booster else source.get_booster()
    learner = json.loads(bytes(booster.save_raw(raw_format="json")))["learner"]
    gradient_booster, objective = learner["gradient_booster"], learner["objective"]["name"]
    what = f"a model of XGBoost with objective {objective!r}"
    if objective not in XGBOOST:
        refuse(what, f"supported objectives are {', '.join(XGBOOST)}")
    if gradient_booster["name"] not in ("gbtree", "dart"):
        refuse(what, f"its booster is {gradient_booster['name']!r}, which has no trees")
    dart = gradient_booster["name"] == "dart"
    model = (gradient_booster["gbtree"] if dart else gradient_booster)["model"]
    trees, columns = model["trees"], np.asarray(model["tree_info"], dtype=np.int64)
    stop = _iterations(source, booster)
    if stop is not None:  # as predict does after early stopping
        trees = trees[: model["iteration_indptr"][stop]]
    weights = np.asarray(gradient_booster["weight_drop"] if dart else np.ones(len(trees)), dtype=np.float64)
    splits = [_xgboost_tree(tree, what) for tree in trees]
    link, start = XGBOOST[objective]
    n_targets = int(learner["learner_model_param"].get("num_target", 1))
    n_outputs = max(1, int(learner["learner_model_param"]["num_class"]), n_targets)
    classes = _classes(source, link, n_outputs, what)
    if classes is not None and n_targets > 1:
        refuse(what, f"it predicts {n_targets} labels of each row; fit one model a label")
    if classes is not None and link == "expit":
        link = "two classes"
    base = _base_score(learner["learner_model_param"]["base_score"], start, n_outputs)
    total = TreeSum(
        base,
        weights[: len(splits)],
        columns=columns[: len(splits)],
        link=link,
        single=True,
        decides="probabilities",
    )
    missing = getattr(source, "missing", None)
    if missing is not None and np.isnan(missing):
        missing = None
    names = column_names(source) if not is_booster else _as_array(booster.feature_names)
    encoder = PlainEncoder(
        int(learner["learner_model_param"]["num_feature"]),
        names,
        single=True,
        missing_value=missing,
        dense_only=True,
        spelling="text",
    )
    return imported(splits, encoder, total, classes)


def _classes(source: Any, link: str, n_outputs: int, what: str) -> NDArray[Any] | None:
    """Return the classes if the source has some or its objective is for classes."""
    for_classes = link in ("two classes", "softmax", "one against all")
    if not hasattr(source, "classes_"):
        return np.arange(max(2, n_outputs)) if for_classes else None
    classes = np.asarray(source.classes_)
    if not for_classes and link not in ("expit", "log1p exp"):
        refuse(what, "it is a classifier with an objective for values")
    if len(classes) != max(2, n_outputs):
        refuse(what, f"it was fitted to {len(classes)} classes, and has trees for {max(2, n_outputs)}")
    return classes


def _iterations(source: Any, booster: Any) -> int | None:
    """Return the number of rounds up to the best one, if early stopping was used."""
    best = booster.attr("best_iteration")
    return None if source is booster or best is None else int(best) + 1  # a booster itself predicts with all of them


def _base_score(text: str, start: str, n_outputs: int) -> Floats:
    """Return the raw value of each output before the first tree."""
    score = np.atleast_1d(np.asarray(json.loads(text.lower()), dtype=np.float64)).astype(np.float32)  # as the source
    raw = INVERSES[start](score).astype(np.float64)
    return np.broadcast_to(raw, (n_outputs,)).copy() if len(raw) == 1 else raw


def _as_array(names: list[str] | None) -> NDArray[np.object_] | None:
    return None if names is None else np.asarray(names, dtype=object)


def _xgboost_tree(tree: dict[str, Any], what: str) -> SplitTree:
    if int(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
        refuse(what, "a leaf has several values, multi_strategy='multi_output_tree'; use 'one_output_per_tree'")
    if any(tree["split_type"]):
        refuse(what, "it splits categories; encode them as one column of 0 and 1 a level")
    left = np.asarray(tree["left_children"], dtype=np.int64)
    conditions = np.asarray(tree["split_conditions"], dtype=np.float32)
    # XGBoost goes left where x < t. In single precision that is where x is at most the number before t.
    before = np.nextafter(conditions, np.float32(-np.inf)).astype(np.float64)
    return SplitTree.make(
        left,
        np.asarray(tree["right_children"], dtype=np.int64),
        np.asarray(tree["split_indices"], dtype=np.int64),
        before,
        conditions,  # of a leaf, its output
        missing_left=np.asarray(tree["default_left"], dtype=bool),
    )


def read_lightgbm(source: Any) -> Imported:
    """Import a model of LightGBM's scikit-learn interface, or a booster."""
    booster = source if type(source).__name__ == "Booster" else source.booster_
    model = booster.dump_model()  # up to the best round, if early stopping was used
    objective, *settings = (model.get("objective") or "none").split()
    what = f"a model of LightGBM with objective {objective!r}"
    if objective not in LIGHTGBM:
        refuse(what, f"supported objectives are {', '.join(LIGHTGBM)}")
    options = dict(setting.split(":") for setting in settings if ":" in setting)
    n_outputs = int(model["num_tree_per_iteration"])
    splits = [_lightgbm_tree(tree["tree_structure"], what) for tree in model["tree_info"]]
    link = LIGHTGBM[objective]
    if objective.startswith("regression") and "sqrt" in settings:
        link = "signed square"
    classes = _classes(source, link, n_outputs, what)
    if classes is not None and link in ("expit", "log1p exp"):
        link = {"expit": "two classes", "log1p exp": "two classes by rate"}[link]
    total = TreeSum(
        np.zeros(n_outputs),
        np.ones(len(splits)),
        columns=np.arange(len(splits)) % n_outputs,
        average=len(splits) // n_outputs if model.get("average_output") else 1,
        link=link,
        scale=float(options.get("sigmoid", 1.0)),
        decides="probabilities",
    )
    n_columns = int(model["max_feature_idx"]) + 1
    is_named = model["feature_names"] != [f"Column_{i}" for i in range(n_columns)]
    if model.get("pandas_categorical"):
        refuse(what, "it was fitted with columns of pandas categories; use their codes, with categorical_feature")
    names = _as_array(model["feature_names"]) if is_named else None
    encoder = PlainEncoder(n_columns, names, zero=ZERO, spelling="underscores")
    return imported(splits, encoder, total, classes)


def _lightgbm_tree(root: dict[str, Any], what: str) -> SplitTree:
    nodes: list[dict[str, Any]] = [root]
    left, right = [], []
    for node in nodes:  # grows while it is read: layer by layer
        if "leaf_coeff" in node:
            refuse(what, "its leaves are linear, linear_tree=True")
        if "split_feature" in node:
            left.append(len(nodes))
            right.append(len(nodes) + 1)
            nodes += [node["left_child"], node["right_child"]]
        else:
            left.append(-1)
            right.append(-1)
    threshold, missing_left, zero_is_missing, levels = np.zeros(len(nodes)), [], [], {}
    for i, node in enumerate(nodes):
        kind, missing = node.get("decision_type"), node.get("missing_type")
        if kind == "<=":
            # What is written as 1e300 is infinity: all numbers go left, and only missing values go right.
            threshold[i] = np.inf if node["threshold"] >= 1e300 else node["threshold"]
        elif kind == "==":
            levels[i] = np.array([int(level) for level in str(node["threshold"]).split("||")], dtype=np.int64)
        # If the source has seen none, a missing value counts as zero; among levels it goes right.
        zero_left = bool(threshold[i] >= 0)
        missing_left.append(kind == "<=" and (zero_left if missing == "None" else bool(node["default_left"])))
        zero_is_missing.append(kind == "<=" and missing == "Zero")
    return SplitTree.make(
        np.array(left),
        np.array(right),
        np.array([node.get("split_feature", 0) for node in nodes]),
        threshold,
        np.array([node.get("leaf_value", 0.0) for node in nodes]),
        missing_left=np.array(missing_left),
        zero_is_missing=np.array(zero_is_missing),
        levels=levels,
    )
