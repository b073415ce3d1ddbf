"""Imported trees predict what their source predicts: on every row, on thresholds and beside them, and with gaps."""

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
RNG = np.random.default_rng(0)


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
    X = RNG.integers(0, 6, (300, 4)) / 10
    return X, (X.sum(axis=1) + RNG.normal(size=300) * 0.2 > 1).astype(int)


def levels(gaps=True):
    X, y = diabetes(gaps)
    X[:, 2] = RNG.integers(0, 9, len(X))
    return X, y + 90 * np.isin(X[:, 2], [1, 4, 7])


def deep(rows=200):
    """Numbers that double from row to row, so that a tree cuts off one after the other; then noise."""
    y = np.concatenate([2.0 ** np.arange(60, 0, -1), RNG.random(rows - 60)])
    return np.arange(rows, dtype=float)[:, None], y


def zeros():
    X, y = diabetes(gaps=True)
    return np.where(RNG.random(X.shape) < 0.3, 0.0, X), y


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
    if model.encoder_.gaps:
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
    np.testing.assert_allclose(mine / scale, theirs / scale, rtol=0, atol=1e-6 if "counts" not in name else 3e-6)

    # The same by transition matrices: one tree, or all below a root that splits evenly.
    rows = X[:200]
    with torch.no_grad():
        raw = model.tree_.predict(torch.from_numpy(model.encoder_.transform(rows)))[0].numpy()
    if model.sum_.columns is not None:
        raw = (model.sum_.base + raw * len(model.splits_)) / model.sum_.average
    linked = model._linked(raw)
    np.testing.assert_allclose(linked.reshape(mine[:200].shape) / scale, mine[:200] / scale, rtol=0, atol=1e-9)
    if name.startswith("tree"):
        np.testing.assert_array_equal(model.apply(X), source.apply(X))
        assert model.get_depth() == source.get_depth()
        assert model.get_n_leaves() == source.get_n_leaves()


def test_enough_kinds_of_sets():
    assert len(CASES) >= 20
    assert sum(not name.startswith(("xgboost", "lightgbm")) for name in CASES) >= 20


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
    source.fit(X[::2], y[::2], eval_X=X[1::2], eval_y=y[1::2], callbacks=callbacks)
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
    with pytest.raises(TypeError, match=r"XGBoost and LightGBM\), however: LinearRegression"):
        zoo.from_sklearn(LinearRegression())
    two = tree.DecisionTreeClassifier().fit(X, np.stack([y, y], axis=1))
    with pytest.raises(ValueError, match="it predicts 2 targets of classes"):
        zoo.from_sklearn(two)
    boosted = ensemble.GradientBoostingRegressor(n_estimators=2, init=tree.DecisionTreeRegressor())
    with pytest.raises(ValueError, match="it starts from a model of its own"):
        zoo.from_sklearn(boosted.fit(*diabetes()))
    boosted = ensemble.GradientBoostingRegressor(n_estimators=2).fit(*diabetes())
    with pytest.raises(ValueError, match="column 0 has a gap in row 3"):
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
    with pytest.raises(ValueError, match="only these objectives are known"):
        zoo.from_sklearn(xgb("XGBRanker").fit(X, y, qid=np.zeros(len(X), dtype=int)))


@NEEDS["xgboost"]
def test_sparse_rows():
    from scipy import sparse

    X, y = numbered(iris())
    X = np.where(X < 1, 0.0, X)
    rows = sparse.csr_matrix(X)
    forest = ensemble.RandomForestClassifier(5, random_state=0).fit(rows, y)
    np.testing.assert_array_equal(zoo.from_sklearn(forest).predict(rows), forest.predict(rows))
    with pytest.raises(ValueError, match="reads zeros of a sparse matrix as gaps"):
        zoo.from_sklearn(xgb("XGBClassifier").fit(X, y)).predict(rows)


@NEEDS["lightgbm"]
def test_models_of_lightgbm_that_cannot_be_imported():
    X, y = diabetes()
    with pytest.raises(ValueError, match="its leaves are linear"):
        zoo.from_sklearn(lgb("LGBMRegressor", linear_tree=True).fit(X, y))
