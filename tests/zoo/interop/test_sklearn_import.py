"""Imported trees predict what their source predicts: on every row, on thresholds and beside them, and with gaps."""

import inspect
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from sklearn import datasets, ensemble, tree
from threadpoolctl import threadpool_limits

from tartree import zoo

NEEDS = {
    package: pytest.mark.skipif(find_spec(package) is None, reason=f"{package} is not installed")
    for package in ("xgboost", "lightgbm")
}
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


@pytest.fixture(autouse=True)
def _one_thread():
    with threadpool_limits(1):  # on a busy machine, threads for so few rows wait for each other
        yield


def with_gaps(X, share=0.15):
    return np.where(np.random.default_rng(1).random(X.shape) < share, np.nan, X)


def iris(gaps=False, binary=False):
    X, y = datasets.load_iris(return_X_y=True)
    return with_gaps(X) if gaps else X, np.array(["setosa", "versicolor", "virginica"])[
        np.minimum(y, 1) if binary else y
    ]


def diabetes(gaps=False):
    X, y = datasets.load_diabetes(return_X_y=True)
    return with_gaps(X) if gaps else X, y


def grid():
    """Few different values, so that rows fall onto thresholds, and values that no float32 is equal to."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (300, 4)) / 10
    return X, (X.sum(axis=1) + rng.normal(size=300) * 0.2 > 1).astype(int)


def levels(gaps=True):
    X, y = diabetes(gaps)
    X[:, 2] = np.random.default_rng(0).integers(0, 9, len(X))
    return X, y + 90 * np.isin(X[:, 2], [1, 4, 7])


def deep(rows=200):
    """Numbers that double from row to row, so that a tree cuts off one after the other; then noise."""
    y = np.concatenate([2.0 ** np.arange(60, 0, -1), np.random.default_rng(0).random(rows - 60)])
    return np.arange(rows, dtype=float)[:, None], y


def zeros():
    X, y = diabetes(gaps=True)
    return np.where(np.random.default_rng(0).random(X.shape) < 0.3, 0.0, X), y


def shares():
    X, y = diabetes(gaps=True)
    return X, (y - y.min()) / np.ptp(y)


def both_signs():
    X, y = diabetes()
    return X, y - np.median(y)


def two_targets():
    X, y = diabetes()
    return X, np.stack([y, -np.square(y)], axis=1)


def xgb(name, **settings):
    import xgboost

    return getattr(xgboost, name)(n_estimators=12, n_jobs=1, **settings)


def lgb(name, **settings):
    import lightgbm

    return getattr(lightgbm, name)(n_estimators=12, verbose=-1, n_jobs=1, **settings)


CASES = {
    "tree, three classes": (iris, lambda: tree.DecisionTreeClassifier(random_state=0)),
    "tree, two classes": (lambda: datasets.load_breast_cancer(return_X_y=True), tree.DecisionTreeClassifier),
    "tree, gaps": (lambda: iris(gaps=True), lambda: tree.DecisionTreeClassifier(random_state=0)),
    "tree, rows on thresholds": (grid, lambda: tree.DecisionTreeClassifier(random_state=0)),
    "tree, single node": (iris, lambda: tree.DecisionTreeClassifier(min_samples_split=1000)),
    "tree, ten classes": (
        lambda: datasets.load_digits(return_X_y=True),
        lambda: tree.ExtraTreeClassifier(random_state=0),
    ),
    "tree, values": (lambda: diabetes(gaps=True), lambda: tree.DecisionTreeRegressor(random_state=0)),
    "tree, two targets": (two_targets, lambda: tree.DecisionTreeRegressor(max_depth=5, random_state=0)),
    "tree, depth above 30": (deep, lambda: tree.DecisionTreeRegressor(random_state=0)),
    "tree, 1000 leaves": (lambda: deep(3000), lambda: tree.DecisionTreeRegressor(max_leaf_nodes=1000)),
    "forest, classes": (lambda: iris(gaps=True), lambda: ensemble.RandomForestClassifier(10, random_state=0)),
    "forest, equal votes": (grid, lambda: ensemble.RandomForestClassifier(4, random_state=0)),
    "forest, values": (lambda: diabetes(gaps=True), lambda: ensemble.RandomForestRegressor(6, random_state=0)),
    "extra trees": (iris, lambda: ensemble.ExtraTreesClassifier(10, random_state=0)),
    "extra trees, values": (diabetes, lambda: ensemble.ExtraTreesRegressor(5, random_state=0)),
    "boosting, two classes": (grid, lambda: ensemble.GradientBoostingClassifier(n_estimators=10, random_state=0)),
    "boosting, three classes": (iris, lambda: ensemble.GradientBoostingClassifier(n_estimators=5, random_state=0)),
    "boosting, exponential": (
        lambda: iris(binary=True),
        lambda: ensemble.GradientBoostingClassifier(n_estimators=5, loss="exponential", random_state=0),
    ),
    "boosting, values": (diabetes, lambda: ensemble.GradientBoostingRegressor(n_estimators=10, random_state=0)),
    "adaboost, two classes": (grid, lambda: ensemble.AdaBoostClassifier(n_estimators=10, random_state=0)),
    "adaboost, deeper, three classes": (
        iris,
        lambda: ensemble.AdaBoostClassifier(tree.DecisionTreeClassifier(max_depth=2), n_estimators=8, random_state=0),
    ),
    "histograms, two classes": (
        lambda: iris(gaps=True, binary=True),
        lambda: ensemble.HistGradientBoostingClassifier(max_iter=8),
    ),
    "histograms, three classes": (lambda: iris(gaps=True), lambda: ensemble.HistGradientBoostingClassifier(max_iter=8)),
    "histograms, values": (lambda: diabetes(gaps=True), lambda: ensemble.HistGradientBoostingRegressor(max_iter=8)),
    "histograms, counts": (
        lambda: diabetes(gaps=True),
        lambda: ensemble.HistGradientBoostingRegressor(max_iter=8, loss="poisson"),
    ),
    "histograms, levels": (
        levels,
        lambda: ensemble.HistGradientBoostingRegressor(max_iter=8, categorical_features=[2]),
    ),
    "xgboost, two classes": (lambda: (grid()[0], grid()[1]), lambda: xgb("XGBClassifier")),
    "xgboost, three classes": (lambda: numbered(iris(gaps=True)), lambda: xgb("XGBClassifier")),
    "xgboost, a number for gaps": (lambda: numbered(iris(gaps=True)), lambda: xgb("XGBClassifier", missing=5.0)),
    "xgboost, dart": (lambda: numbered(iris()), lambda: xgb("XGBClassifier", booster="dart", rate_drop=0.5)),
    "xgboost, forest": (lambda: numbered(iris(gaps=True)), lambda: xgb("XGBRFClassifier")),
    "xgboost, values": (lambda: diabetes(gaps=True), lambda: xgb("XGBRegressor")),
    "xgboost, counts": (lambda: diabetes(gaps=True), lambda: xgb("XGBRegressor", objective="count:poisson")),
    "xgboost, two targets": (two_targets, lambda: xgb("XGBRegressor")),
    "lightgbm, two classes": (lambda: iris(gaps=True, binary=True), lambda: lgb("LGBMClassifier")),
    "lightgbm, three classes": (lambda: iris(gaps=True), lambda: lgb("LGBMClassifier")),
    "lightgbm, one against all": (iris, lambda: lgb("LGBMClassifier", objective="multiclassova")),
    "lightgbm, forest": (
        iris,
        lambda: lgb("LGBMClassifier", boosting_type="rf", subsample=0.7, subsample_freq=1, random_state=0),
    ),
    "lightgbm, values": (lambda: diabetes(gaps=True), lambda: lgb("LGBMRegressor")),
    "lightgbm, no gaps in fit": (diabetes, lambda: lgb("LGBMRegressor")),
    "lightgbm, zero is a gap": (zeros, lambda: lgb("LGBMRegressor", zero_as_missing=True)),
    "lightgbm, counts": (lambda: diabetes(gaps=True), lambda: lgb("LGBMRegressor", objective="poisson")),
    "lightgbm, sigmoid": (lambda: iris(gaps=True, binary=True), lambda: lgb("LGBMClassifier", sigmoid=3.0)),
    "lightgbm, roots": (both_signs, lambda: lgb("LGBMRegressor", reg_sqrt=True)),
    "lightgbm, shares": (shares, lambda: lgb("LGBMRegressor", objective="cross_entropy")),
    "lightgbm, rates": (shares, lambda: lgb("LGBMRegressor", objective="cross_entropy_lambda")),
    "lightgbm, classes by shares": (
        lambda: iris(gaps=True, binary=True),
        lambda: lgb("LGBMClassifier", objective="cross_entropy"),
    ),
    "lightgbm, classes by rates": (
        lambda: iris(binary=True),
        lambda: lgb("LGBMClassifier", objective="cross_entropy_lambda"),
    ),
    "xgboost, classes by shares": (grid, lambda: xgb("XGBClassifier", objective="reg:logistic")),
    "lightgbm, levels": (levels, lambda: lgb("LGBMRegressor", min_data_per_group=1, cat_smooth=0)),
}


def numbered(data):
    X, y = data
    return X, np.unique(y, return_inverse=True)[1]


def probes(X, model, rng):
    """The rows, and rows with a feature on a threshold of the model or on the nearest number beside it."""
    rows = [X]
    for split in model.splits_[:3]:
        inner = [node for node in np.flatnonzero(split.left >= 0) if node not in split.levels][:40]
        for node in inner:
            threshold = split.threshold[node]
            if not abs(threshold) < 1e30:
                continue
            single = np.float32(threshold)
            near = [threshold, np.nextafter(threshold, -np.inf), np.nextafter(threshold, np.inf), float(single)]
            near += [float(np.nextafter(single, np.float32(side))) for side in (-np.inf, np.inf)]
            some = X[rng.integers(0, len(X), len(near))].copy()
            some[:, split.feature[node]] = near
            rows.append(some)
    X = np.concatenate(rows)
    if model.encoder_.takes_missing:
        gaps = X[: len(rows[0])].copy()
        gaps[rng.random(gaps.shape) < 0.3] = np.nan
        X = np.concatenate([X, gaps])
    return X


def marks(name):
    return [NEEDS[package] for package in NEEDS if name.startswith(package)]


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in CASES])
def test_predictions_equal_the_sources(name):
    data, make = CASES[name]
    X, y = data()
    source = make()
    source.fit(X, y, **({"categorical_feature": [2]} if name == "lightgbm, levels" else {}))
    model = zoo.from_sklearn(source)
    X = probes(X, model, np.random.default_rng(2))
    if hasattr(model, "classes_"):
        np.testing.assert_array_equal(model.predict(X), source.predict(X))
        mine, theirs = model.predict_proba(X), source.predict_proba(X)
    else:
        mine, theirs = model.predict(X), source.predict(X)
    scale = max(1.0, np.abs(theirs).max())
    np.testing.assert_allclose(mine / scale, theirs / scale, rtol=0, atol=1e-6)

    # The same by transition matrices: one tree, or all below a root that splits evenly.
    rows = X[:200]
    with torch.no_grad():
        raw = model.tree_.predict(torch.from_numpy(model.encoder_.transform(rows)))[0].numpy()
    raw = (model.sum_.base + raw * len(model.splits_)) / model.sum_.average
    linked = model.sum_.linked(raw)
    tolerance = 3e-6 if model.sum_.single else 1e-9  # XGBoost adds in single precision
    np.testing.assert_allclose(linked.reshape(mine[:200].shape) / scale, mine[:200] / scale, rtol=0, atol=tolerance)
    if name.startswith("tree"):
        np.testing.assert_array_equal(model.apply(X), source.apply(X))
        assert model.get_depth() == source.get_depth()
        assert model.get_n_leaves() == source.get_n_leaves()


def covertype_like():
    """Numbers of several sizes beside columns of 0 and 1, and seven classes of which some are rare."""
    rng = np.random.default_rng(3)
    ground = np.stack([rng.normal(2900, 280, 600), rng.uniform(0, 360, 600), rng.exponential(250, 600)], axis=1)
    soil = np.eye(10)[rng.integers(0, 10, 600)]
    y = np.minimum(6, np.digitize(ground[:, 0], [2400, 2700, 3000, 3300]) + soil[:, :2].sum(axis=1).astype(int))
    return np.concatenate([ground, soil], axis=1), y


def constant_columns():
    X, y = datasets.load_wine(return_X_y=True)
    return np.concatenate([np.zeros((len(X), 2)), X, np.full((len(X), 1), 7.0)], axis=1), y


def repeated_rows():
    """Equal rows with unequal classes: leaves that are not pure."""
    X, y = datasets.make_classification(120, random_state=2)
    return np.round(np.concatenate([X, X, X]), 1), np.concatenate([y, y, 1 - y])


def whole_numbers():
    rng = np.random.default_rng(4)
    X = rng.poisson(3, (400, 6))
    return X, (X[:, 0] * X[:, 1] > X[:, 2] + 5).astype(int)


def booleans():
    rng = np.random.default_rng(5)
    X = rng.random((300, 8)) < 0.5
    return X, np.array(["even", "odd"])[X[:, :3].sum(axis=1) % 2]


def wide_ranges():
    """Numbers of very different sizes, and of both signs."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(300, 5)) * 10.0 ** rng.integers(-20, 20, (300, 5))
    return X, np.sign(X[:, 0]) + np.log10(np.abs(X[:, 1]))


#: Data sets of different kinds: all of them different, and more than the 20 that a tree must be imported on.
SETS = {
    "iris": iris,
    "iris, gaps": lambda: iris(gaps=True),
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "breast cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "digits": lambda: datasets.load_digits(return_X_y=True),
    "diabetes": diabetes,
    "diabetes, gaps": lambda: diabetes(gaps=True),
    "linnerud, three targets": lambda: datasets.load_linnerud(return_X_y=True),
    "few values": grid,
    "zeros and gaps": zeros,
    "doubling": deep,
    "moons": lambda: datasets.make_moons(300, noise=0.2, random_state=0),
    "circles": lambda: datasets.make_circles(300, noise=0.1, factor=0.5, random_state=0),
    "blobs": lambda: datasets.make_blobs(300, centers=6, random_state=0),
    "quantiles of a ball": lambda: datasets.make_gaussian_quantiles(n_samples=300, n_classes=4, random_state=0),
    "binary, many features": lambda: datasets.make_classification(200, 60, random_state=0),
    "eight classes": lambda: datasets.make_classification(400, n_informative=8, n_classes=8, random_state=0),
    "rare class": lambda: datasets.make_classification(400, weights=[0.97], random_state=1),
    "friedman 1": lambda: datasets.make_friedman1(200, noise=1.0, random_state=0),
    "friedman 2": lambda: datasets.make_friedman2(200, random_state=0),
    "friedman 3": lambda: datasets.make_friedman3(200, random_state=1),
    "swiss roll": lambda: datasets.make_swiss_roll(300, random_state=0),
    "s curve": lambda: datasets.make_s_curve(300, random_state=0),
    "sparse and uncorrelated": lambda: datasets.make_sparse_uncorrelated(200, random_state=0),
    "ground and soil": covertype_like,
    "constant columns": constant_columns,
    "repeated rows": repeated_rows,
    "whole numbers": whole_numbers,
    "booleans": booleans,
    "wide ranges": wide_ranges,
}


def test_enough_different_sets():
    found = {name: data() for name, data in SETS.items()}
    different = {(np.asarray(X).shape, np.nan_to_num(np.asarray(X, dtype=float)).tobytes()) for X, _ in found.values()}
    assert len(different) == len(SETS)
    assert len(different) >= 20
    for package in ("tree", "forest", "boosting", "histograms", "xgboost", "lightgbm"):
        assert sum(name.startswith(package) for name in CASES) >= 3


@pytest.mark.parametrize("name", SETS)
def test_trees_of_every_set(name):
    X, y = SETS[name]()
    values = np.asarray(y).dtype.kind == "f"
    source = (tree.DecisionTreeRegressor if values else tree.DecisionTreeClassifier)(random_state=0).fit(X, y)
    model = zoo.from_sklearn(source)
    rows = probes(np.asarray(X, dtype=float), model, np.random.default_rng(2))
    np.testing.assert_array_equal(model.predict(rows), source.predict(rows))
    np.testing.assert_array_equal(model.apply(rows), source.apply(rows))
    if not values:
        np.testing.assert_allclose(model.predict_proba(rows), source.predict_proba(rows), rtol=0, atol=1e-6)
    with torch.no_grad():
        raw = model.tree_.predict(torch.from_numpy(model.encoder_.transform(rows[:100])))[0].numpy()
    expected = source.predict(rows[:100]) if values else source.predict_proba(rows[:100])
    np.testing.assert_allclose(
        raw.reshape(expected.shape), expected, rtol=0, atol=1e-6 * max(1, np.abs(expected).max())
    )


def test_a_deep_tree_needs_memory_for_its_own_nodes_only():
    X, y = deep(3000)
    source = tree.DecisionTreeRegressor(max_leaf_nodes=1000, random_state=0).fit(X, y)
    assert source.get_depth() >= 30
    assert source.get_n_leaves() == 1000
    one = zoo.from_sklearn(source).tree_
    assert one.structure.routes.n_slots == 1999
    assert one.structure.n_logits == 999
    held = sum(t.numel() * t.element_size() for t in [*one.parameters(), *one.buffers()])
    assert held < 100_000
    x = torch.from_numpy(np.concatenate([X, np.zeros_like(X)], axis=1))
    np.testing.assert_allclose(one.predict(x)[0, :, 0].numpy(), source.predict(X))


@NEEDS["xgboost"]
def test_early_stopping_of_xgboost():
    X, y = numbered(iris())
    source = xgb("XGBClassifier", early_stopping_rounds=1, learning_rate=1.0)
    source.fit(X[::2], y[::2], eval_set=[(X[1::2], y[1::2])], verbose=False)
    assert source.best_iteration < 11
    model = zoo.from_sklearn(source)
    assert len(model.splits_) == 3 * (source.best_iteration + 1)
    np.testing.assert_allclose(model.predict_proba(X), source.predict_proba(X), atol=1e-6)


@NEEDS["lightgbm"]
def test_early_stopping_of_lightgbm():
    import lightgbm

    X, y = numbered(iris())
    source = lgb("LGBMClassifier", learning_rate=1.0)
    callbacks = [lightgbm.early_stopping(1, verbose=False)]
    if "eval_X" in inspect.signature(source.fit).parameters:
        held_out = {"eval_X": X[1::2], "eval_y": y[1::2]}
    else:  # LightGBM before 4.7
        held_out = {"eval_set": [(X[1::2], y[1::2])]}
    source.fit(X[::2], y[::2], callbacks=callbacks, **held_out)
    assert 0 < source.best_iteration_ < 12
    model = zoo.from_sklearn(source)
    np.testing.assert_allclose(model.predict_proba(X), source.predict_proba(X), atol=1e-12)


@NEEDS["xgboost"]
@NEEDS["lightgbm"]
def test_boosters_without_the_scikit_learn_interface():
    import lightgbm
    import xgboost

    X, y = numbered(iris(gaps=True))
    booster = xgboost.train({"objective": "multi:softprob", "num_class": 3}, xgboost.DMatrix(X, y), 5)
    np.testing.assert_allclose(
        zoo.from_sklearn(booster).predict_proba(X), booster.predict(xgboost.DMatrix(X)), atol=1e-6
    )
    booster = lightgbm.train({"objective": "binary", "verbose": -1}, lightgbm.Dataset(X, y > 0), 5)
    np.testing.assert_allclose(zoo.from_sklearn(booster).predict_proba(X)[:, 1], booster.predict(X), atol=1e-12)


def test_frames_keep_their_names():
    import pandas as pd

    X, y = iris()
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    source = tree.DecisionTreeClassifier(random_state=0).fit(frame, y)
    model = zoo.from_sklearn(source)
    np.testing.assert_array_equal(model.predict(frame), source.predict(frame))
    assert [feature.label for feature in model.encoder_.features_[:5]] == ["a", "b", "c", "d", "a=(missing)"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a", "c", "d"]])
    for make in (ensemble.GradientBoostingClassifier, ensemble.HistGradientBoostingClassifier):
        source = make(**{"n_estimators" if "Hist" not in make.__name__ else "max_iter": 3}).fit(frame, y)
        np.testing.assert_array_equal(zoo.from_sklearn(source).predict_proba(frame), source.predict_proba(frame))


def test_levels_of_a_frame():
    import pandas as pd

    X, y = levels()
    frame = pd.DataFrame(X).rename(columns=str)
    frame["2"] = pd.Categorical(np.array(list("abcdefghi"))[X[:, 2].astype(int)])
    source = ensemble.HistGradientBoostingRegressor(max_iter=8, categorical_features="from_dtype").fit(frame, y)
    np.testing.assert_allclose(zoo.from_sklearn(source).predict(frame), source.predict(frame))


def test_what_cannot_be_imported_says_why():
    from sklearn.linear_model import LinearRegression

    X, y = iris()
    with pytest.raises(TypeError, match=r"XGBoost and LightGBM\), got LinearRegression"):
        zoo.from_sklearn(LinearRegression())
    two = tree.DecisionTreeClassifier().fit(X, np.stack([y, y], axis=1))
    with pytest.raises(ValueError, match="it predicts 2 targets of classes"):
        zoo.from_sklearn(two)
    boosted = ensemble.GradientBoostingRegressor(n_estimators=2, init=tree.DecisionTreeRegressor())
    with pytest.raises(ValueError, match="it starts from another model"):
        zoo.from_sklearn(boosted.fit(*diabetes()))
    boosted = ensemble.GradientBoostingRegressor(n_estimators=2).fit(*diabetes())
    with pytest.raises(ValueError, match="the first in row 3 of column 0"):
        zoo.from_sklearn(boosted).predict(np.where(np.arange(442)[:, None] == 3, np.nan, diabetes()[0]))
    model = zoo.from_sklearn(tree.DecisionTreeClassifier().fit(X, y))
    with pytest.raises(ValueError, match="X has 3 features, but the imported model is expecting 4"):
        model.predict(X[:, :3])
    with pytest.raises(TypeError, match="cannot be fitted again"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="cannot be saved"):
        model.save("somewhere")


@NEEDS["xgboost"]
def test_models_of_xgboost_that_cannot_be_imported():
    X, y = numbered(iris())
    with pytest.raises(ValueError, match="'gblinear', which has no trees"):
        zoo.from_sklearn(xgb("XGBRegressor", booster="gblinear").fit(X, y))
    with pytest.raises(ValueError, match="supported objectives are"):
        zoo.from_sklearn(xgb("XGBRanker").fit(X, y, qid=np.zeros(len(X), dtype=int)))


@NEEDS["xgboost"]
def test_sparse_rows():
    from scipy import sparse

    X, y = numbered(iris())
    X = np.where(X < 1, 0.0, X)
    rows = sparse.csr_matrix(X)
    forest = ensemble.RandomForestClassifier(5, random_state=0).fit(rows, y)
    np.testing.assert_array_equal(zoo.from_sklearn(forest).predict(rows), forest.predict(rows))
    with pytest.raises(ValueError, match="reads zeros of a sparse matrix as missing values"):
        zoo.from_sklearn(xgb("XGBClassifier").fit(X, y)).predict(rows)


@NEEDS["lightgbm"]
def test_models_of_lightgbm_that_cannot_be_imported():
    X, y = diabetes()
    with pytest.raises(ValueError, match="its leaves are linear"):
        zoo.from_sklearn(lgb("LGBMRegressor", linear_tree=True).fit(X, y))


@NEEDS["xgboost"]
@NEEDS["lightgbm"]
@pytest.mark.parametrize("columns", ["given", "whole numbers"])
def test_frames_whose_names_the_source_changes(columns):
    frame, y = datasets.load_iris(return_X_y=True, as_frame=True)  # "sepal length (cm)"
    if columns == "whole numbers":
        frame.columns = range(4)
    for source in (lgb("LGBMClassifier"), xgb("XGBClassifier"), ensemble.RandomForestClassifier(3)):
        model = zoo.from_sklearn(source.fit(frame, y))
        np.testing.assert_allclose(model.predict_proba(frame), source.predict_proba(frame), atol=1e-6)
        if columns == "given" or not isinstance(source, ensemble.RandomForestClassifier):
            with pytest.raises(ValueError, match="feature names should match"):
                model.predict(frame[frame.columns[::-1]])


def test_a_single_class():
    X, _ = iris()
    for source in (tree.DecisionTreeClassifier(), ensemble.RandomForestClassifier(3)):
        model = zoo.from_sklearn(source.fit(X, np.full(len(X), "one")))
        np.testing.assert_array_equal(model.predict(X), source.predict(X))
        np.testing.assert_array_equal(model.predict_proba(X), source.predict_proba(X))


@NEEDS["xgboost"]
@NEEDS["lightgbm"]
def test_classifiers_that_are_no_classifiers_of_ours():
    X, y = numbered(iris())
    with pytest.raises(ValueError, match="it predicts 2 labels of each row"):
        zoo.from_sklearn(xgb("XGBClassifier").fit(X, np.stack([y > 0, y > 1], axis=1).astype(int)))
    with pytest.raises(ValueError, match="a classifier with an objective for values"):
        zoo.from_sklearn(lgb("LGBMClassifier", objective="regression").fit(X, y > 0))
    with pytest.raises(ValueError, match="fitted to 1 classes"):
        zoo.from_sklearn(lgb("LGBMClassifier").fit(X, np.zeros(len(X), dtype=int)))


@NEEDS["xgboost"]
@NEEDS["lightgbm"]
def test_ties_are_those_of_the_source():
    """Margins so small that probabilities are 1/2 in the precision of the source; and exactly even votes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    sources = [xgb("XGBClassifier", learning_rate=rate, base_score=0.5) for rate in (1e-7, 3e-8, 1e-8, 1e-9)]
    sources += [lgb("LGBMClassifier", learning_rate=rate, boost_from_average=False) for rate in (1e-16, 1e-18)]
    for source in sources:
        model = zoo.from_sklearn(source.fit(X, y))
        assert (model.raw_values(X) != 0).any()
        np.testing.assert_array_equal(model.predict(X), source.predict(X))
    rng = np.random.default_rng(42)
    X, four = rng.normal(size=(400, 4)).round(1), rng.integers(0, 4, 400)
    for rate in (1e-7, 3e-8, 2e-8, 1e-8):  # probabilities of four classes differ in their last digits, or not at all
        source = xgb("XGBClassifier", learning_rate=rate).fit(X, four)
        np.testing.assert_array_equal(zoo.from_sklearn(source).predict(X), source.predict(X))
    even, both = np.zeros((10, 2)), np.tile([0, 1], 5)
    for source in (
        ensemble.GradientBoostingClassifier(n_estimators=2),  # it alone says the second class
        ensemble.GradientBoostingClassifier(n_estimators=2, loss="exponential"),
        ensemble.HistGradientBoostingClassifier(max_iter=2),
        ensemble.RandomForestClassifier(2, bootstrap=False),
        xgb("XGBClassifier", base_score=0.5),
        lgb("LGBMClassifier"),
    ):
        source.fit(even, both)
        np.testing.assert_array_equal(zoo.from_sklearn(source).predict(even), source.predict(even))
    assert ensemble.GradientBoostingClassifier(n_estimators=2).fit(even, both).predict(even)[0] == 1


@NEEDS["xgboost"]
@NEEDS["lightgbm"]
def test_infinities_and_numbers_too_large():
    X, y = numbered(iris())
    X = X - X.mean(axis=0)  # so that zero is not where a large negative number goes
    far = X.copy()
    far[0, 2], far[1, 2], far[2, 3], far[3, 3] = np.inf, -np.inf, 1e300, -1e39
    for source in (lgb("LGBMClassifier"), xgb("XGBClassifier"), ensemble.HistGradientBoostingClassifier(max_iter=3)):
        model = zoo.from_sklearn(source.fit(X, y))
        np.testing.assert_allclose(model.predict_proba(far), source.predict_proba(far), atol=1e-6)
        assert np.abs(model.predict_proba(far[:1]) - model.predict_proba(far[1:2])).max() > 0.1
    for source in (
        tree.DecisionTreeClassifier(),
        ensemble.ExtraTreesClassifier(2),
        ensemble.GradientBoostingClassifier(n_estimators=2),
        ensemble.AdaBoostClassifier(n_estimators=2),
    ):
        model = zoo.from_sklearn(source.fit(X, y))
        for row in range(4):
            for own in (source, model):
                with np.errstate(over="ignore"), pytest.raises(ValueError, match="infinity or a value too large"):
                    own.predict(far[row : row + 1])


@NEEDS["lightgbm"]
def test_gaps_alone_go_right_where_lightgbm_writes_a_huge_threshold():
    """A split between numbers and gaps: its threshold is written as 1e300, and a larger number still goes left."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((400, 1)) < 0.4, np.nan, rng.normal(size=(400, 1)))
    y = np.isnan(X[:, 0]).astype(float)
    source = lgb("LGBMRegressor").fit(X, y)
    model = zoo.from_sklearn(source)
    assert any(np.isinf(split.threshold).any() for split in model.splits_)
    rows = np.array([[np.nan], [0.0], [1e299], [1e301], [1.7e308], [np.inf], [-np.inf]])
    np.testing.assert_allclose(model.predict(rows), source.predict(rows), atol=1e-12)


def test_what_adaboost_cannot_be():
    from sklearn.linear_model import LogisticRegression

    X, y = iris()
    with pytest.raises(ValueError, match="it predicts the weighted median of its trees"):
        zoo.from_sklearn(ensemble.AdaBoostRegressor(n_estimators=2).fit(*diabetes()))
    with pytest.raises(ValueError, match="it boosts LogisticRegression; decision trees can be imported"):
        zoo.from_sklearn(ensemble.AdaBoostClassifier(LogisticRegression(), n_estimators=2).fit(X, y))


def test_an_imported_model_is_an_estimator():
    from sklearn.base import clone
    from sklearn.exceptions import NotFittedError

    X, y = iris()
    source = ensemble.RandomForestClassifier(3, max_depth=2, random_state=0).fit(X, y)
    model = zoo.from_sklearn(source)
    np.testing.assert_array_equal(np.exp(model.predict_log_proba(X)).round(12), source.predict_proba(X).round(12))
    empty = clone(model)
    for call in (empty.predict, empty.predict_proba, empty.predict_log_proba, empty.apply):
        with pytest.raises(NotFittedError):
            call(X)
    one = model.one_tree(1)
    np.testing.assert_array_equal(one.predict_proba(X), source.estimators_[1].predict_proba(X))
    assert one.predict(X)[0] in y
    with pytest.raises(ValueError, match="index must be from 0 to 2, got 3"):
        model.one_tree(3)
