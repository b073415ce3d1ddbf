"""The estimators as a scikit-learn user meets them."""

import _thread
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import tartree
from tartree import Structure, TartClassifier, TartRegressor
from tartree.table import ColumnWarning
from tartree.training import Recipe

from ..optional import optional
from ..tolerances import assert_same, within

pl = optional("polars")


@parametrize_with_checks([TartClassifier(), TartRegressor()])
def test_scikit_learn_checks(estimator, check):
    if any(word in check.func.__name__ for word in ("invariance", "equivalence", "idempotent", "consistency")):
        estimator.set_params(device="cpu")  # they compare to 1e-7, which single precision does not promise
    check(estimator)


def quick(**parameters):
    return TartClassifier(**{"depth": 2, "epochs": 30, "random_state": 0, **parameters})


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def mixed_frame(rows=120, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 10, rows).round(),
            "smoker": rng.choice(["yes", "no", None], rows),
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, rows), unit="D"),
            "id": [f"p{i}" for i in range(rows)],
            "site": "A",
        }
    )
    frame.loc[::7, "age"] = np.nan
    label = np.where((frame["age"].fillna(50) > 50) ^ (frame["smoker"] == "yes"), "ill", "well")
    return frame, label


def test_a_mixed_frame_with_gaps_and_text():
    frame, label = mixed_frame()
    with pytest.warns(ColumnWarning, match="column 'id': left out"):
        model = TartClassifier(random_state=0).fit(frame, label)
    assert model.score(frame, label) > 0.9
    assert model.feature_names_in_.tolist() == frame.columns.tolist()
    assert set(model.classes_) == {"ill", "well"}
    new = frame.iloc[:3].assign(smoker=["never seen", None, "no"], age=[np.nan, 1e9, -3])
    assert np.isfinite(model.predict_proba(new)).all()
    for other in (pl.from_pandas(frame), pl.from_pandas(frame).to_arrow()):
        assert_same(model.predict(other), model.predict(frame))


def test_it_works_with_scikit_learn(iris):
    X, y = iris
    model = quick()
    assert cross_val_score(model, X, y, cv=3, n_jobs=2).mean() > 0.8
    search = GridSearchCV(make_pipeline(StandardScaler(), model), {"tartclassifier__depth": [1, 2]}, cv=2).fit(X, y)
    assert search.best_params_["tartclassifier__depth"] in (1, 2)
    calibrated = CalibratedClassifierCV(model, cv=2).fit(X, y)
    assert calibrated.predict_proba(X).shape == (150, 3)
    assert "TartClassifier" in model._repr_html_()
    assert clone(model).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model.fit(X, y)))
    assert_same(again.predict_proba(X), model.predict_proba(X))


def test_metadata_routing(iris):
    import sklearn

    X, y = iris
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        routed = make_pipeline(scaler, quick().set_fit_request(sample_weight=True))
        routed.fit(X, y, sample_weight=np.where(y == 0, 0.0, 1.0))
    assert 0 not in routed.predict(X)


def test_the_same_seed_gives_the_same_bits(iris):
    X, y = iris
    first, second = quick().fit(X, y), quick().fit(X, y)
    assert_same(first.predict_proba(X), second.predict_proba(X))
    assert not np.array_equal(first.predict_proba(X), quick(random_state=1).fit(X, y).predict_proba(X))


def test_the_same_seed_gives_the_same_bits_with_dropout(iris):
    X, y = iris
    settings = {"leaf_layers": 2, "hidden": 8, "dropout": 0.3}
    first, second = quick(**settings).fit(X, y), quick(**settings).fit(X, y)
    assert_same(first.predict_proba(X), second.predict_proba(X))


def test_the_same_seed_gives_the_same_bits_with_a_decision_of_your_own(iris):
    import torch

    class Axis(torch.nn.Module):
        def __init__(self, structure, n_features, members):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(members, n_features, structure.n_logits))

        def forward(self, x):
            return x @ self.weight

    X, y = iris
    first, second = (quick(decision=Axis).fit(X, y).predict_proba(X) for _ in range(2))
    assert_same(first, second)


def test_the_order_of_rows_does_not_matter(iris):
    X, y = iris
    order = np.random.default_rng(0).permutation(len(y))
    np.testing.assert_allclose(quick().fit(X, y).predict_proba(X), quick().fit(X[order], y[order]).predict_proba(X))


def test_members_are_averaged(iris):
    X, y = iris
    model = quick(members=3).fit(X, y)
    members = np.concatenate(list(model.model_.predict_members(X)), axis=1)
    assert members.shape == (3, 150, 3)
    np.testing.assert_allclose(model.predict_proba(X), members.mean(0), rtol=1e-6)
    assert model.apply(X).shape == (150, 3)
    indicator, starts = model.decision_path(X)
    assert indicator.shape == (150, 3 * 7)
    assert starts.tolist() == [0, 7, 14, 21]


@pytest.mark.parametrize(("window", "stride"), [(2, 2), (3, 2), (2, 1)])
def test_apply_and_decision_path(iris, window, stride):
    X, y = iris
    model = quick(window=window, stride=stride).fit(X, y)
    structure = Structure(2, window, stride)
    leaf, path = model.apply(X), model.decision_path(X)
    assert path.shape == (150, sum(structure.widths))
    assert (path.sum(1) == 3).all()  # a node of each layer
    assert (path[:, 0] == 1).sum() == 150
    assert (np.asarray(path[np.arange(150), leaf]) == 1).all()
    offsets = [0, 1, 1 + structure.widths[1]]
    for row in path:
        nodes = row.indices - offsets
        for d in range(2):
            assert nodes[d + 1] in structure.children(d)[nodes[d]]
    assert model.get_depth() == 2
    assert model.get_n_leaves() == structure.n_leaves


def test_class_weight_and_sample_weight(iris):
    X, y = iris
    noisy = np.where(np.arange(150) % 3 == 0, (y + 1) % 3, y)
    plain = quick().fit(X, noisy)
    leaning = quick(class_weight={0: 20, 1: 1, 2: 1}).fit(X, noisy)
    assert (leaning.predict(X) == 0).mean() > (plain.predict(X) == 0).mean()
    balanced, plain = quick(class_weight="balanced").fit(X, y), quick().fit(X, y)
    np.testing.assert_allclose(balanced.predict_proba(X), plain.predict_proba(X), atol=1e-5)  # equally many of each


def test_warm_start_goes_on(iris):
    X, y = iris
    model = quick(warm_start=True, epochs=5).fit(X, y)
    first = model.history_["loss"][-1]
    model.fit(X, y)
    assert model.history_["loss"][0] < first
    for change, message in (
        ({"depth": 3}, "must keep the structure"),
        ({"depth": 2, "leaf_layers": 3}, "must keep leaf_layers=1, got leaf_layers=3"),
        ({"leaf_layers": 1, "members": 2}, "must keep members=1, got members=2"),
    ):
        with pytest.raises(ValueError, match=message):
            model.set_params(**change).fit(X, y)
    regressor = TartRegressor(warm_start=True, epochs=1).fit(X, y)
    with pytest.raises(ValueError, match=r"must keep the 1 target\(s\), got 2"):
        regressor.fit(X, np.stack([y, y], 1))
    assert regressor.predict(X).shape == (150,)


def test_depth_by_itself_follows_the_rows(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1001, 2)), rng.integers(0, 2, 1001)
    short = {"epochs": 1, "random_state": 0, "readable": False}

    def depth(n_rows, **parameters):
        return TartClassifier(**short, **parameters).fit(X[:n_rows], y[:n_rows]).get_depth()

    assert [depth(999), depth(1000)] == [4, 6]
    for wide in ({"window": 3}, {"leaf_layers": 2, "hidden": 3}, {"leaf": tartree.nn.Pieces(hidden=3)}):
        assert depth(1000, **wide) == 4
    assert [depth(1000, leaf_layers=0), depth(1000, depth=2)] == [6, 2]
    assert TartRegressor(**short).fit(X, X[:, 0]).get_depth() == 0  # a linear model predicts it better
    weight = np.r_[0.0, 0.0, np.ones(999)]
    assert TartClassifier(**short).fit(X, y, sample_weight=weight).get_depth() == 4  # rows without weight do not count

    model = TartClassifier(**short, warm_start=True).fit(X[:50], y[:50])
    assert model.fit(X, y).get_depth() == 4  # the tree at hand goes on
    model.save(tmp_path / "model.tart")
    loaded = tartree.load(tmp_path / "model.tart")
    assert (loaded.depth, loaded.get_depth()) == ("auto", 4)
    assert clone(loaded).set_params(warm_start=False).fit(X, y).get_depth() == 6


def test_the_default_is_readable_unless_another_model_is_described():
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    for kind in (TartClassifier, TartRegressor):
        model = kind(epochs=2, random_state=0, device="cpu").fit(X, y)
        assert (model.reading_size_.columns, model.reading_size_.leaves <= 8) in {(1, True), (0, True)}
        for same in (
            {"max_features": 2},
            {"max_terms": 3},
            {"window": np.int64(2)},
            {"extrapolation": None},
            {"early_stopping": True},
        ):
            assert kind(**same).spec().is_readable, same
        for other in (
            {"depth": 3},
            {"window": 3},
            {"leaf_layers": 0},
            {"selection": "single"},
            {"members": 2},
            {"branching": "sparsemax"},
            {"leaf": tartree.nn.Path()},
            {"numeric": "curve"},
            {"numeric": "standard"},
            {"recipe": "paper"},
            {"recipe": Recipe()},
            {"readable": False},
        ):
            assert not kind(**other).spec().is_readable, other
        assert kind(readable=True, depth=1).spec().is_readable
        with pytest.raises(ValueError, match="readable must be True, False or 'auto', got 'yes'"):
            kind(readable="yes").fit(X, y)


def test_early_stopping_keeps_shares_of_classes(iris):
    X, y = iris
    model = quick(early_stopping=True, epochs=200).fit(X, y)
    assert model.history_["validation_loss"].shape[1] == 1
    assert model.history_.best_epoch is not None
    from tartree.model.memory_source import split_rows

    kept, held = split_rows(150, y, 0.1, np.random.RandomState(0))
    assert len(held) == 15
    assert np.bincount(y[held.numpy()]).tolist() == [5, 5, 5]
    assert sorted([*kept.tolist(), *held.tolist()]) == list(range(150))
    for seed in range(50):  # a class of one row is always learnt from
        lonely = np.array([0] * 30 + [1])
        assert 30 in split_rows(31, lonely, 0.2, np.random.RandomState(seed))[0]


def test_early_stopping_never_validates_on_rows_without_weight(iris):
    X, y = iris
    weight = np.zeros(150)
    weight[::10] = 1
    for seed in range(5):
        model = quick(early_stopping=True, random_state=seed).fit(X, y, sample_weight=weight)
        assert np.isfinite(model.history_["validation_loss"]).all()
        assert (model.history_.best_epoch >= 1).all()


def test_refit_uses_all_rows_for_the_best_number_of_epochs(iris):
    X, y = iris
    settings = {"members": 3, "early_stopping": "refit", "learning_rate": 0.2, "epochs": 60}
    model = quick(**settings).fit(X, y)
    best = model.history_.best_epoch
    assert len(model.refit_history_) == best.max()
    assert model.refit_history_.best_epoch.tolist() == best.tolist()
    stopped = quick(**{**settings, "early_stopping": True}).fit(X, y)
    np.testing.assert_array_equal(stopped.history_.best_epoch, best)
    assert not np.allclose(stopped.predict_proba(X), model.predict_proba(X))


def test_ctrl_c_leaves_a_fitted_model(iris):
    X, y = iris

    def interrupt(epoch):
        if epoch.number == 4:
            _thread.interrupt_main()

    with pytest.warns(UserWarning, match="interrupted after"):
        model = quick(callbacks=[interrupt]).fit(X, y)
    assert model.history_.interrupted
    assert model.predict(X).shape == (150,)


@pytest.mark.parametrize("number", [0, 1, 3])
def test_ctrl_c_in_a_refit_keeps_what_early_stopping_found(iris, monkeypatch, number):
    from tartree.model import pipeline

    X, y = iris
    stopped = quick(early_stopping=True).fit(X, y)
    train = pipeline.train

    def interrupt(epoch):
        if epoch.number == number:
            raise KeyboardInterrupt

    def interrupted(*arguments, **keywords):
        if "keep_epoch" in keywords:
            if not number:
                raise KeyboardInterrupt
            keywords["callbacks"] = [interrupt]
        return train(*arguments, **keywords)

    monkeypatch.setattr(pipeline, "train", interrupted)
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        model = quick(early_stopping="refit").fit(X, y)
    assert [str(note.message) for note in noted] == [
        "fit was interrupted in the refit; the weights of early stopping are kept"
    ]
    assert model.history_.interrupted
    assert not hasattr(model, "refit_history_")
    assert_same(model.predict_proba(X), stopped.predict_proba(X))


def test_ctrl_c_before_anything_was_learnt_is_an_interrupt(iris):
    X, y = iris

    def stop_in_first_epoch(structure, n_features, members):
        from tartree.nn import MLPDecision

        class Interrupting(MLPDecision):
            def forward(self, x):
                raise KeyboardInterrupt

        return Interrupting(structure, n_features, members=members)

    with pytest.raises(KeyboardInterrupt):
        quick(decision=stop_in_first_epoch).fit(X, y)


def test_numpy_numbers_as_parameters(iris):
    X, y = iris
    model = quick(epochs=np.int64(3), batch_size=np.int32(64), learning_rate=np.float32(0.01), depth=np.int8(1))
    assert len(model.fit(X, y).history_) == 3


def test_fit_leaves_the_generator_and_threads_of_torch_alone(iris):
    import torch

    X, y = iris
    threads = torch.get_num_threads()
    torch.manual_seed(0)
    wanted = torch.rand(3)
    torch.manual_seed(0)
    quick(leaf_layers=2, hidden=4, dropout=0.1).fit(X, y)
    torch.testing.assert_close(torch.rand(3), wanted, rtol=0, atol=0)
    assert torch.get_num_threads() == threads


def test_callbacks_none_or_one(iris):
    seen = []
    quick(callbacks=None, epochs=2).fit(*iris)
    quick(callbacks=seen.append, epochs=2).fit(*iris)
    assert len(seen) == 2


def test_a_lazy_frame_is_told_to_collect(iris):
    X, y = iris
    with pytest.raises(TypeError, match="collect"):
        quick().fit(pl.DataFrame(X).lazy(), y)


def test_a_large_memory_map_is_read_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("tartree.model.memory_source.IN_MEMORY_BYTES", 100)
    X, y = load_iris(return_X_y=True)
    mapped = np.memmap(tmp_path / "x.bin", dtype=np.float64, mode="w+", shape=X.shape)
    mapped[:] = X
    model = quick(batch_size=32).fit(mapped, y)
    assert model.score(mapped, y) > 0.9
    stopped = quick(batch_size=32, early_stopping=True).fit(mapped, y)
    assert stopped.score(mapped, y) > 0.9
    assert_same(model.predict_proba(mapped), model.predict_proba(X))


def test_regression_with_uncertainty():
    X, y = load_diabetes(return_X_y=True)
    train, test = slice(0, 330), slice(330, None)
    model = TartRegressor(random_state=0).fit(X[train], y[train])
    ridge = make_pipeline(StandardScaler(), Ridge()).fit(X[train], y[train])
    assert model.score(X[test], y[test]) > ridge.score(X[test], y[test]) - 0.05
    mean, std = model.predict(X[test], return_std=True)
    assert (std > 0).all()
    low, middle, high = model.predict_quantiles(X[test]).T
    assert ((low < middle) & (middle < high)).all()
    assert 0.8 < np.mean((low <= y[test]) & (y[test] <= high)) < 0.99
    assert np.abs(middle - mean).max() < 2 * std.max()


def test_quantiles_are_those_of_the_mixture():
    X, y = load_diabetes(return_X_y=True)
    model = TartRegressor(depth=2, members=2, epochs=20, device="cpu", random_state=0).fit(X, y)
    rng = np.random.default_rng(0)
    import torch

    with torch.no_grad():
        x = torch.from_numpy(model.encoder_.transform(X[:3]))
        arrival, numbers = model.tree_(x)
        mean, spread = model.tree_.output.parameters(numbers)
    for row in range(3):
        share = arrival[:, row].flatten().double().numpy()
        leaf = rng.choice(len(share), size=200_000, p=share / share.sum())
        draws = rng.normal(mean[:, row].flatten()[leaf], spread[:, row].flatten()[leaf])
        want = model.target_center_ + model.target_scale_ * np.quantile(draws, [0.05, 0.5, 0.95])
        np.testing.assert_allclose(model.predict_quantiles(X[row : row + 1])[0], want, rtol=0.01, atol=0.5)
    single = TartRegressor(depth=2, selection="single", epochs=5, random_state=0).fit(X, y)
    mean, std = single.predict(X[:4], return_std=True)
    np.testing.assert_allclose(single.predict_quantiles(X[:4], [0.5])[:, 0], mean, rtol=within(1e-7))
    np.testing.assert_allclose(single.predict_quantiles(X[:4], [0.8413447])[:, 0], mean + std, rtol=1e-5)


def test_several_targets():
    X, y = load_diabetes(return_X_y=True)
    targets = np.stack([y, 1e6 + 3 * y, -y], axis=1)
    model = TartRegressor(epochs=60, random_state=0).fit(X, targets)
    mean, std = model.predict(X, return_std=True)
    assert mean.shape == std.shape == (442, 3)
    assert model.predict_quantiles(X[:5], [0.1, 0.9]).shape == (5, 2, 3)
    assert model.score(X, targets) > 0.4


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"depth": -1}, "depth must be .* got -1"),
        ({"depth": "deep"}, "depth must be an integer of at least 0 or 'auto', got 'deep'"),
        ({"window": 1}, "window must be .* got 1"),
        ({"stride": 5}, "stride must be .* got 5"),
        ({"members": 0}, "members must be an integer of at least 1, got 0"),
        ({"selection": "both"}, "selection must .* got 'both'"),
        (
            {"recipe": "secret"},
            "recipe must be one of default, deep, readable, readable-values, paper or a Recipe, got 'secret'",
        ),
        ({"epochs": 0}, "epochs must .* got 0"),
        ({"early_stopping": "maybe"}, "early_stopping must .* got 'maybe'"),
        ({"device": "abacus"}, "device must .* got 'abacus'"),
        ({"numeric": "log"}, "numeric must be .* got 'log'"),
        ({"decision_layers": -1}, "decision_layers must be .* got -1"),
        ({"depth": 40}, "with 1,099,511,627,776; lower its depth"),
        ({"leaf_layers": 2, "hidden": "x"}, "hidden must be .* got 'x'"),
        ({"leaf_layers": 2, "dropout": "x"}, "dropout must be .* got 'x'"),
        ({"branching": None}, "branching must be a name or a function .* got None"),
        ({"class_weight": {0: 0, 1: 0, 2: 0}}, "class_weight must leave some row with weight"),
    ],
)
def test_bad_parameters_name_the_value(iris, parameters, message):
    with pytest.raises(ValueError, match=message):
        quick(**parameters).fit(*iris)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a"] * 150, "needs at least two classes to tell apart, got one class, 'a'"),
        ([None] + ["a", "b"] * 74 + ["a"], "1 of 150 are missing, the first in row 0; drop those rows"),
        (["a", "b"], r"\[150, 2\]"),
        (np.linspace(0, 1, 150), "continuous"),
    ],
)
def test_bad_labels_say_what_is_wrong(iris, labels, message):
    with pytest.raises(ValueError, match=message):
        quick().fit(iris[0], labels)


def test_a_recipe_of_your_own(iris):
    X, y = iris
    model = TartClassifier(depth=1, recipe=Recipe(epochs=7, loss="mixture"), random_state=0).fit(X, y)
    assert len(model.history_) == 7


def test_constant_and_empty_columns_leave_a_model():
    frame = pd.DataFrame({"a": [1.0] * 20, "b": [None] * 20})
    model = quick(epochs=200).fit(frame, [0, 1] * 10)
    np.testing.assert_allclose(model.predict_proba(frame), 0.5, atol=0.02)


def test_a_million_parameters_are_not_needed():
    X, y = load_breast_cancer(return_X_y=True)
    model = quick(epochs=1).fit(X, y)
    assert model.n_parameters_ == 3 * 31 + 4 * 2 * 31


def test_public_names():
    for name in tartree.__all__:
        assert getattr(tartree, name) is not None
    assert set(tartree.__all__) <= set(dir(tartree))
    with pytest.raises(AttributeError, match="no attribute 'TartForest'"):
        tartree.TartForest
