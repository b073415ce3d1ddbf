import numpy as np
import pytest
from sklearn import datasets, ensemble, tree

from tartree import Structure, TartClassifier, zoo
from tartree.zoo.interop.sklearn_export import last_single, nodes_of

from ...tolerances import assert_same, within


def single(X):
    """Numbers that single precision holds, as scikit-learn's trees see them."""
    return X.astype(np.float32).astype(np.float64)


def near(X, rng):
    """Rows at many distances from those of a table, none in between two numbers of single precision."""
    steps = rng.normal(size=(20, *X.shape)) * 10.0 ** rng.integers(-7, 4, size=(20, *X.shape))
    return single((X + steps).reshape(-1, X.shape[1]))


@pytest.mark.parametrize("numeric", ["standard", "quantile"])
@pytest.mark.parametrize("load_set", [datasets.load_iris, datasets.load_breast_cancer, datasets.load_diabetes])
@pytest.mark.parametrize("gaps", [False, True])
def test_a_trained_tree_goes_to_scikit_learn(load_set, numeric, gaps):
    rng = np.random.default_rng(0)
    X, y = load_set(return_X_y=True)
    X = single(X)
    if gaps:
        X[rng.random(X.shape) < 0.1] = np.nan
    task = "regression" if load_set is datasets.load_diabetes else "classification"
    model = zoo.make("dt", task=task, numeric=numeric, epochs=20, random_state=0).fit(X, y)
    exported = zoo.to_sklearn(model)
    rows = np.concatenate([X, near(X, rng)])
    np.testing.assert_allclose(exported.predict(rows), model.predict(rows), rtol=within(1e-12))
    if task == "classification":
        np.testing.assert_allclose(exported.predict_proba(rows), model.predict_proba(rows), rtol=0, atol=within(1e-12))
    assert len(np.unique(exported.apply(rows))) > 2
    np.testing.assert_allclose(zoo.from_sklearn(exported).predict(rows), exported.predict(rows), rtol=1e-12)


def test_there_and_back():
    X, y = datasets.load_breast_cancer(return_X_y=True)
    source = tree.DecisionTreeClassifier(random_state=0).fit(X, np.array(["no", "yes"])[y])
    again = zoo.to_sklearn(zoo.from_sklearn(source))
    rows = near(X, np.random.default_rng(0))
    np.testing.assert_array_equal(again.predict(rows), source.predict(rows))
    np.testing.assert_array_equal(again.predict_proba(rows), source.predict_proba(rows))
    assert again.get_depth() == source.get_depth()
    assert again.get_n_leaves() == source.get_n_leaves()
    X, y = datasets.load_diabetes(return_X_y=True)
    source = tree.DecisionTreeRegressor(max_depth=4).fit(X, np.stack([y, -y], axis=1))
    np.testing.assert_array_equal(zoo.to_sklearn(zoo.from_sklearn(source)).predict(X), source.predict(X))


def test_marks_of_gaps_and_booleans():
    import pandas as pd

    rng = np.random.default_rng(0)
    flag, number = rng.random(300) < 0.5, single(rng.normal(size=300))
    number[rng.random(300) < 0.3] = np.nan
    frame = pd.DataFrame({"flag": flag, "number": number})
    y = np.isnan(number).astype(int) + 2 * flag
    model = zoo.make("dt", depth=4, epochs=100, random_state=0).fit(frame, y)
    kinds = {model.encoder_.features_[feature].kind for feature in model.tree_.decision.feature[0].tolist()}
    assert kinds == {"level", "value", "missing"}
    assert_same(zoo.to_sklearn(model).predict(frame), model.predict(frame))


def test_nodes_of_an_irregular_structure():
    left, right, decision, leaf = nodes_of(Structure.from_tree([[1, 2], [], [3, 4], [], []]))
    assert left.tolist() == [1, -1, 3, -1, -1]
    assert right.tolist() == [2, -1, 4, -1, -1]
    assert decision.tolist() == [0, -1, 1, -1, -1]
    assert leaf.tolist() == [-1, 0, -1, 1, 2]


@pytest.mark.parametrize("threshold", [-3.4e38, -1.5, -1e-45, 0.0, 1e-40, 0.1, 7.0, 3.4e38])
def test_the_last_number_of_single_precision(threshold):
    found = last_single(lambda value: float(value[0]) <= threshold)
    assert found <= threshold
    assert float(np.nextafter(np.float32(found), np.float32(np.inf))) > threshold


def test_the_last_number_may_be_none_or_any():
    assert last_single(lambda value: False) == -np.inf
    assert last_single(lambda value: True) == np.inf


def test_what_cannot_be_exported_says_why():
    X, y = datasets.load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="got decisions MLPDecision and leaves MLPLeaf"):
        zoo.to_sklearn(TartClassifier(depth=1, epochs=1).fit(X, y))
    with pytest.raises(ValueError, match="got 2 members"):
        zoo.to_sklearn(zoo.make("dt", members=2, epochs=1).fit(X, y))
    with pytest.raises(ValueError, match="got an ensemble of 3 trees"):
        zoo.to_sklearn(zoo.from_sklearn(ensemble.RandomForestClassifier(3).fit(X, y)))
    with pytest.raises(TypeError, match="takes a fitted model of the zoo"):
        zoo.to_sklearn(tree.DecisionTreeClassifier().fit(X, y))
    levels = np.array(["a", "b", "c"], dtype=object)[y]
    with pytest.raises(ValueError, match="scikit-learn's trees take columns of numbers only"):
        zoo.to_sklearn(zoo.make("dt", epochs=5).fit(levels[:, None], y))


def test_nodes_come_back_with_their_numbers_and_counts():
    for load_set, make in (
        (datasets.load_iris, tree.DecisionTreeClassifier),
        (datasets.load_diabetes, tree.DecisionTreeRegressor),
    ):
        X, y = load_set(return_X_y=True)
        source = make(max_leaf_nodes=9, random_state=0).fit(X, y)
        again = zoo.to_sklearn(zoo.from_sklearn(source))
        np.testing.assert_array_equal(again.apply(X), source.apply(X))
        np.testing.assert_allclose(again.feature_importances_, source.feature_importances_)
        for name in ("impurity", "n_node_samples", "weighted_n_node_samples", "children_left", "threshold", "value"):
            np.testing.assert_array_equal(getattr(again.tree_, name), getattr(source.tree_, name))
        assert tree.export_text(again) == tree.export_text(source)
