"""`from_sklearn`: fitted trees and ensembles of scikit-learn, XGBoost and LightGBM as models of ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tartree.zoo.imported import ImportedClassifier, ImportedModel, ImportedRegressor, PlainEncoder, Sum
from tartree.zoo.splits import Floats, SplitTree

Imported = ImportedClassifier | ImportedRegressor
#: What a node of scikit-learn knows of its training rows.
STATISTICS = ("impurity", "n_node_samples", "weighted_n_node_samples")


def from_sklearn(fitted: Any) -> Imported:
    """A fitted tree or ensemble of another library as a model of ours that predicts the same for every row.

    Parameters
    ----------
    fitted : estimator
        Of scikit-learn: a decision tree, extra tree, random forest, extra trees, gradient boosting, histogram
        gradient boosting, or an AdaBoost classifier of decision trees; of XGBoost and LightGBM: their scikit-learn
        estimators, or a booster.

    Returns
    -------
    ImportedClassifier or ImportedRegressor
        With `predict`, `predict_proba`, `apply` and `score`; `tree_` is a `tartree.nn.Tree` with an irregular
        structure, whose f is an indicator of one feature and whose g is constant.

    Notes
    -----
    Predictions equal the source's because rows are compared as the source compares them: scikit-learn's trees and
    XGBoost round numbers to single precision, histogram gradient boosting and LightGBM do not. That is why the result
    is no `TartClassifier`, whose encoder standardises; `warm_start` makes one of it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from tartree import zoo
    >>> X, y = load_iris(return_X_y=True)
    >>> model = zoo.from_sklearn(DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y))
    >>> model.structure_
    Structure(depth=2, leaves=3, irregular)
    """
    for owner in type(fitted).__mro__:
        room = owner.__module__.split(".")[0]
        reader = READERS.get(owner.__name__) if room == "sklearn" else None
        if reader is not None:
            check_is_fitted(fitted)
            return reader(fitted)
        if room in ("xgboost", "lightgbm"):
            from tartree.zoo import boosters

            return boosters.read_xgboost(fitted) if room == "xgboost" else boosters.read_lightgbm(fitted)
    raise TypeError(
        "from_sklearn takes fitted trees and ensembles (DecisionTree, ExtraTree, RandomForest, ExtraTrees, "
        "GradientBoosting and HistGradientBoosting of scikit-learn, for classes and values, AdaBoostClassifier, and "
        f"those of XGBoost and LightGBM), however: {type(fitted).__name__}"
    )


def refuse(what: str, reason: str) -> NoReturn:
    """Say why a model cannot be imported."""
    raise ValueError(f"{what} cannot be imported, however: {reason}")


def names_of(fitted: Any) -> NDArray[np.object_] | None:
    names = getattr(fitted, "feature_names_in_", None)
    return None if names is None else np.asarray(names, dtype=object)


def _classes(fitted: Any) -> NDArray[Any]:
    if fitted.n_outputs_ > 1:
        refuse(type(fitted).__name__, f"it predicts {fitted.n_outputs_} targets of classes; fit one model a target")
    classes: NDArray[Any] = fitted.classes_
    return classes


def read_tree(tree: Any, *, classes: bool) -> SplitTree:
    """The nodes of scikit-learn's `tree_`."""
    value = tree.value  # (nodes, outputs, classes or 1)
    value = value[:, 0, :] if classes else value[:, :, 0]
    if classes:  # shares already in newer versions, counts in older ones
        value = value / np.where((total := value.sum(axis=1, keepdims=True)) == 0, 1.0, total)
    gap_left = getattr(tree, "missing_go_to_left", None)
    return SplitTree.make(
        tree.children_left,
        tree.children_right,
        tree.feature,
        tree.threshold,
        value,
        gap_left=gap_left,
        statistics={name: np.asarray(getattr(tree, name)) for name in STATISTICS},
    )


def _read_one(fitted: Any) -> Imported:
    return _read_forest(fitted, [fitted])


def _read_many(fitted: Any) -> Imported:
    return _read_forest(fitted, fitted.estimators_)


def _read_forest(fitted: Any, estimators: list[Any]) -> Imported:
    classes = _classes(fitted) if hasattr(fitted, "classes_") else None
    splits = [read_tree(estimator.tree_, classes=classes is not None) for estimator in estimators]
    base = np.zeros(splits[0].value.shape[1])
    # A single tree divides by nothing, a forest by the number of its trees.
    total = Sum(base, np.ones(len(splits)), average=len(splits))
    encoder = PlainEncoder(fitted.n_features_in_, names_of(fitted), single=True, infinite=False)
    return imported(splits, encoder, total, classes)


def _read_gradient_boosting(fitted: Any) -> Imported:
    if fitted.init_ != "zero" and not type(fitted.init_).__name__.startswith("Dummy"):
        refuse(type(fitted).__name__, f"it starts from a model of its own, init={fitted.init_!r}; use init=None")
    classes = fitted.classes_ if hasattr(fitted, "classes_") else None
    base: Floats = np.asarray(fitted._raw_predict_init(np.zeros((1, fitted.n_features_in_), dtype=np.float32)))[0]
    stages, outputs = fitted.estimators_.shape
    splits = [read_tree(tree.tree_, classes=False) for tree in fitted.estimators_.ravel()]
    link, scale = "identity", 1.0
    if classes is not None:
        link = "two classes" if outputs == 1 else "softmax"
        scale = 2.0 if fitted.loss == "exponential" else 1.0
    total = Sum(
        base,
        np.full(len(splits), fitted.learning_rate),
        columns=np.tile(np.arange(outputs), stages),
        link=link,
        scale=scale,
    )
    encoder = PlainEncoder(fitted.n_features_in_, names_of(fitted), single=True, gaps=False, infinite=False)
    model = imported(splits, encoder, total, classes)
    if isinstance(model, ImportedClassifier):
        model._tie_first = False
    return model


def _read_ada_boost(fitted: Any) -> Imported:
    what, classes = type(fitted).__name__, fitted.classes_
    if len(classes) < 2:
        refuse(what, "it was fitted to a single class")
    splits = []
    for one in fitted.estimators_:
        if not any(owner.__name__ == "BaseDecisionTree" for owner in type(one).__mro__):
            refuse(what, f"it boosts {type(one).__name__}; decision trees can be imported")
        own = read_tree(one.tree_, classes=True)
        said = np.searchsorted(classes, one.classes_)[own.value.argmax(axis=1)]
        votes = np.where(np.eye(len(classes), dtype=bool)[said], 1.0, -1 / (len(classes) - 1))
        splits.append(replace(own, value=votes))
    weights = np.asarray(fitted.estimator_weights_[: len(splits)], dtype=np.float64)
    total = Sum(
        np.zeros(len(classes)),
        weights,
        average=float(fitted.estimator_weights_.sum()),
        link="softmax",
        scale=1 / (len(classes) - 1),
    )
    encoder = PlainEncoder(fitted.n_features_in_, names_of(fitted), single=True, gaps=False, infinite=False)
    return imported(splits, encoder, total, classes)


def _refuse_ada_boost(fitted: Any) -> Imported:
    refuse(type(fitted).__name__, "it gives the weighted median of its trees, which is no sum of them")


def _read_histogram(fitted: Any) -> Imported:
    classes = fitted.classes_ if hasattr(fitted, "classes_") else None
    order, categories = _columns_of_histogram(fitted)
    splits = []
    for predictor in (one for stage in fitted._predictors for one in stage):
        nodes = predictor.nodes
        leaf = nodes["is_leaf"].astype(bool)
        levels = {
            int(i): _bits(predictor.raw_left_cat_bitsets[nodes["bitset_idx"][i]])
            for i in np.flatnonzero(nodes["is_categorical"].astype(bool) & ~leaf)
        }
        splits.append(
            SplitTree.make(
                np.where(leaf, -1, nodes["left"].astype(np.int64)),
                np.where(leaf, -1, nodes["right"].astype(np.int64)),
                order[np.where(leaf, 0, nodes["feature_idx"])],
                nodes["num_threshold"],
                nodes["value"],
                gap_left=nodes["missing_go_to_left"],
                levels=levels,
            )
        )
    outputs = fitted.n_trees_per_iteration_
    link = {"squared_error": "identity", "absolute_error": "identity", "quantile": "identity"}.get(fitted.loss, "exp")
    if classes is not None:
        link = "two classes" if outputs == 1 else "softmax"
    elif fitted.loss not in ("squared_error", "absolute_error", "quantile", "poisson", "gamma"):
        refuse(type(fitted).__name__, f"its loss is {fitted.loss!r}")
    base = np.asarray(fitted._baseline_prediction, dtype=np.float64).reshape(-1)
    columns = np.tile(np.arange(outputs), len(fitted._predictors))
    total = Sum(base, np.ones(len(splits)), columns=columns, link=link)
    return imported(
        splits, PlainEncoder(fitted.n_features_in_, names_of(fitted), categories=categories), total, classes
    )


def _columns_of_histogram(fitted: Any) -> tuple[NDArray[np.int64], dict[int, list[Any]]]:
    """The column that each feature of the trees is, and the levels of columns of levels, which come first there."""
    if fitted.is_categorical_ is None:
        return np.arange(fitted.n_features_in_), {}
    own = np.asarray(fitted.is_categorical_, dtype=bool)
    order = np.concatenate([np.flatnonzero(own), np.flatnonzero(~own)])
    levels = fitted._preprocessor.named_transformers_["encoder"].categories_
    known = {int(column): _plain_levels(found) for column, found in zip(order, levels, strict=False)}
    return order, known


def _plain_levels(levels: Any) -> list[Any]:
    return [level for level in np.asarray(levels, dtype=object).tolist() if level is not None and level == level]


def _bits(words: NDArray[np.uint32]) -> NDArray[np.int64]:
    """The numbers in a set that is held as bits of 32-bit words."""
    bits = np.unpackbits(np.ascontiguousarray(words, dtype="<u4").view(np.uint8), bitorder="little")
    return np.flatnonzero(bits).astype(np.int64)


def imported(
    splits: list[SplitTree], encoder: PlainEncoder, total: Sum, classes: NDArray[Any] | None
) -> ImportedClassifier | ImportedRegressor:
    """A classifier where there are classes, otherwise a regressor."""
    model: ImportedModel = ImportedRegressor() if classes is None else ImportedClassifier()
    model._set(splits, encoder, total)
    if isinstance(model, ImportedClassifier):
        model.classes_ = np.asarray(classes)
    assert isinstance(model, ImportedClassifier | ImportedRegressor)
    return model


READERS: dict[str, Callable[[Any], Imported]] = {
    "BaseDecisionTree": _read_one,
    "ForestClassifier": _read_many,
    "ForestRegressor": _read_many,
    "BaseGradientBoosting": _read_gradient_boosting,
    "BaseHistGradientBoosting": _read_histogram,
    "AdaBoostClassifier": _read_ada_boost,
    "AdaBoostRegressor": _refuse_ada_boost,
}
