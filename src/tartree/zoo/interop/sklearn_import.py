"""`from_sklearn`: fitted trees and ensembles of scikit-learn, XGBoost and LightGBM as models of this library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from tartree.zoo.interop.imported_model import ImportedClassifier, ImportedRegressor
from tartree.zoo.interop.plain_encoder import PlainEncoder
from tartree.zoo.interop.split_tree import Floats, SplitTree
from tartree.zoo.interop.tree_sum import TreeSum

Imported = ImportedClassifier | ImportedRegressor
#: Training statistics of the nodes of scikit-learn's trees.
STATISTICS = ("impurity", "n_node_samples", "weighted_n_node_samples")


def from_sklearn(fitted: object) -> Imported:
    """Import a fitted tree or ensemble of another library; the model predicts the same for every row.

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

    Raises
    ------
    TypeError
        If it is not one of these models.
    ValueError
        If it is one of them in a form that cannot be imported; the message says why.

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
    for base in type(fitted).__mro__:
        package = base.__module__.split(".")[0]
        reader = READERS.get(base.__name__) if package == "sklearn" else None
        if reader is not None:
            check_is_fitted(fitted)
            return reader(fitted)
        if package in ("xgboost", "lightgbm"):
            from tartree.zoo.interop import booster_import

            return (booster_import.read_xgboost if package == "xgboost" else booster_import.read_lightgbm)(fitted)
    raise TypeError(
        "from_sklearn takes fitted trees and ensembles (DecisionTree, ExtraTree, RandomForest, ExtraTrees, "
        "GradientBoosting and HistGradientBoosting of scikit-learn, for classes and values, AdaBoostClassifier, and "
        f"those of XGBoost and LightGBM), got {type(fitted).__name__}"
    )


def refuse(model: str, reason: str) -> NoReturn:
    """Raise, because a model cannot be imported."""
    raise ValueError(f"{model} cannot be imported: {reason}")


def imported(splits: list[SplitTree], encoder: PlainEncoder, total: TreeSum, classes: NDArray[Any] | None) -> Imported:
    """Return a classifier if there are classes, otherwise a regressor."""
    if classes is None:
        return ImportedRegressor.of(splits, encoder, total)
    model = ImportedClassifier.of(splits, encoder, total)
    model.classes_ = np.asarray(classes)
    return model


def column_names(source: Any) -> NDArray[np.object_] | None:
    """Return the names of the columns that a source was fitted to, if it has them."""
    names = getattr(source, "feature_names_in_", None)
    return None if names is None else np.asarray(names, dtype=object)


def _encoder(source: Any, **settings: Any) -> PlainEncoder:
    return PlainEncoder(source.n_features_in_, column_names(source), **settings)


def read_tree(tree: Any, *, has_classes: bool) -> SplitTree:
    """Return the nodes of scikit-learn's `tree_`."""
    value = tree.value  # (nodes, outputs, classes or 1)
    value = value[:, 0, :] if has_classes else value[:, :, 0]
    if has_classes:  # shares already in newer versions, counts in older ones
        value = value / np.where((total := value.sum(axis=1, keepdims=True)) == 0, 1.0, total)
    return SplitTree.make(
        tree.children_left,
        tree.children_right,
        tree.feature,
        tree.threshold,
        value,
        missing_left=getattr(tree, "missing_go_to_left", None),
        statistics={name: np.asarray(getattr(tree, name)) for name in STATISTICS},
    )


def _read_tree(source: Any) -> Imported:
    return _read_average(source, [source])


def _read_forest(source: Any) -> Imported:
    return _read_average(source, source.estimators_)


def _read_average(source: Any, estimators: list[Any]) -> Imported:
    """Import the mean of some trees."""
    classes = getattr(source, "classes_", None)
    if classes is not None and source.n_outputs_ > 1:
        refuse(type(source).__name__, f"it predicts {source.n_outputs_} targets of classes; fit one model a target")
    splits = [read_tree(estimator.tree_, has_classes=classes is not None) for estimator in estimators]
    total = TreeSum(np.zeros(splits[0].value.shape[1]), np.ones(len(splits)), average=len(splits))
    return imported(splits, _encoder(source, single=True, takes_infinity=False), total, classes)


def _read_gradient_boosting(source: Any) -> Imported:
    if source.init_ != "zero" and not type(source.init_).__name__.startswith("Dummy"):
        refuse(type(source).__name__, f"it starts from another model, init={source.init_!r}; use init=None")
    classes = getattr(source, "classes_", None)
    base: Floats = np.asarray(source._raw_predict_init(np.zeros((1, source.n_features_in_), dtype=np.float32)))[0]
    stages, outputs = source.estimators_.shape
    splits = [read_tree(tree.tree_, has_classes=False) for tree in source.estimators_.ravel()]
    total = TreeSum(
        base,
        np.full(len(splits), source.learning_rate),
        columns=np.tile(np.arange(outputs), stages),
        link="identity" if classes is None else _class_link(outputs),
        scale=2.0 if classes is not None and source.loss == "exponential" else 1.0,
        tie_first=False,
    )
    encoder = _encoder(source, single=True, takes_missing=False, takes_infinity=False)
    return imported(splits, encoder, total, classes)


def _class_link(n_outputs: int) -> str:
    return "two classes" if n_outputs == 1 else "softmax"


def _read_ada_boost(source: Any) -> Imported:
    name, classes = type(source).__name__, source.classes_
    if len(classes) < 2:
        refuse(name, "it was fitted to a single class")
    splits = []
    for estimator in source.estimators_:
        if not any(base.__name__ == "BaseDecisionTree" for base in type(estimator).__mro__):
            refuse(name, f"it boosts {type(estimator).__name__}; decision trees can be imported")
        tree = read_tree(estimator.tree_, has_classes=True)
        code = np.searchsorted(classes, estimator.classes_)[tree.value.argmax(axis=1)]
        votes = np.where(np.eye(len(classes), dtype=bool)[code], 1.0, -1 / (len(classes) - 1))
        splits.append(replace(tree, value=votes))
    total = TreeSum(
        np.zeros(len(classes)),
        np.asarray(source.estimator_weights_[: len(splits)], dtype=np.float64),
        average=float(source.estimator_weights_.sum()),
        link="softmax",
        scale=1 / (len(classes) - 1),
    )
    encoder = _encoder(source, single=True, takes_missing=False, takes_infinity=False)
    return imported(splits, encoder, total, classes)


def _refuse_ada_boost(source: Any) -> Imported:
    refuse(type(source).__name__, "it predicts the weighted median of its trees, which is no sum of them")


def _read_histogram(source: Any) -> Imported:
    classes = getattr(source, "classes_", None)
    losses = {"squared_error": "identity", "absolute_error": "identity", "quantile": "identity"}
    losses |= {"poisson": "exp", "gamma": "exp"}
    if classes is None and source.loss not in losses:
        refuse(type(source).__name__, f"its loss is {source.loss!r}")
    order, levels = _histogram_columns(source)
    splits = [_histogram_tree(predictor, order) for stage in source._predictors for predictor in stage]
    outputs = source.n_trees_per_iteration_
    total = TreeSum(
        np.asarray(source._baseline_prediction, dtype=np.float64).reshape(-1),
        np.ones(len(splits)),
        columns=np.tile(np.arange(outputs), len(source._predictors)),
        link=losses[source.loss] if classes is None else _class_link(outputs),
    )
    return imported(splits, _encoder(source, levels=levels), total, classes)


def _histogram_tree(predictor: Any, order: NDArray[np.int64]) -> SplitTree:
    nodes = predictor.nodes
    leaf = nodes["is_leaf"].astype(bool)
    levels = {
        int(i): _set_bits(predictor.raw_left_cat_bitsets[nodes["bitset_idx"][i]])
        for i in np.flatnonzero(nodes["is_categorical"].astype(bool) & ~leaf)
    }
    return SplitTree.make(
        np.where(leaf, -1, nodes["left"].astype(np.int64)),
        np.where(leaf, -1, nodes["right"].astype(np.int64)),
        order[np.where(leaf, 0, nodes["feature_idx"])],
        nodes["num_threshold"],
        nodes["value"],
        missing_left=nodes["missing_go_to_left"],
        levels=levels,
    )


def _histogram_columns(source: Any) -> tuple[NDArray[np.int64], dict[int, list[Any]]]:
    """Return the column of each feature of the trees, where categories come first, and the levels of categories."""
    if source.is_categorical_ is None:
        return np.arange(source.n_features_in_), {}
    is_category = np.asarray(source.is_categorical_, dtype=bool)
    order = np.concatenate([np.flatnonzero(is_category), np.flatnonzero(~is_category)])
    levels = source._preprocessor.named_transformers_["encoder"].categories_
    return order, {int(column): _present(values) for column, values in zip(order, levels, strict=False)}


def _present(levels: Any) -> list[Any]:
    """Return levels without missing values."""
    return [level for level in np.asarray(levels, dtype=object).tolist() if level is not None and level == level]


def _set_bits(words: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the positions of the bits that are set in 32-bit words."""
    bits = np.unpackbits(np.ascontiguousarray(words, dtype="<u4").view(np.uint8), bitorder="little")
    return np.flatnonzero(bits).astype(np.int64)


READERS: dict[str, Callable[[Any], Imported]] = {
    "BaseDecisionTree": _read_tree,
    "ForestClassifier": _read_forest,
    "ForestRegressor": _read_forest,
    "BaseGradientBoosting": _read_gradient_boosting,
    "BaseHistGradientBoosting": _read_histogram,
    "AdaBoostClassifier": _read_ada_boost,
    "AdaBoostRegressor": _refuse_ada_boost,
}
