"""Defaults on tables that used to break them: correlated columns, outliers, levels, heavy tails, far codes, trends."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline

from tartree import TartClassifier, TartRegressor, explain, load
from tartree.table import TableEncoder


def spectra(rng, rows, channels=124):
    """Smooth curves of a few substances: all channels say nearly the same."""
    wave = np.linspace(0, 1, channels)
    amounts = rng.gamma(2.0, size=(rows, 3))
    bands = np.stack(
        [np.exp(-((wave - center) ** 2) / width) for center, width in ((0.3, 0.05), (0.5, 0.1), (0.6, 0.2))]
    )
    curves = 2 + amounts @ bands + 0.5 * rng.normal(size=(rows, 1)) + 0.002 * rng.normal(size=(rows, channels))
    return curves, amounts[:, 0]


def ridge():
    return make_pipeline(TableEncoder(), RidgeCV(np.logspace(-3, 4, 22)))


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("readable", ["auto", False])
def test_many_correlated_columns(seed, readable):
    X, y = spectra(np.random.default_rng(seed), 240)
    score = TartRegressor(readable=readable, random_state=seed).fit(X[:168], y[:168]).score(X[168:], y[168:])
    assert score > 0.8  # ridge: 0.99; the likelihood of mean and spread together: far below 0


@pytest.mark.parametrize(("readable", "least"), [("auto", 0.94), (False, 0.97)])
def test_levels_get_no_noise(readable, least):
    rng = np.random.default_rng(0)
    kind = rng.choice(list("abcdefghij"), 400)
    effect = dict(zip("abcdefghij", rng.normal(size=10), strict=True))
    table = pd.DataFrame({"kind": kind, "size": rng.normal(size=400)})
    y = np.array([effect[k] for k in kind]) + 0.2 * table["size"].to_numpy() + 0.05 * rng.normal(size=400)
    score = TartRegressor(readable=readable, random_state=0).fit(table[:300], y[:300]).score(table[300:], y[300:])
    assert score > least  # with noise 0.4


@pytest.mark.parametrize("readable", ["auto", False])
def test_heavy_tails_are_learnt(readable):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.lognormal(sigma=1.2, size=1500), rng.uniform(-0.5, 0.8, 1500)])
    y = X[:, 0] * X[:, 1] * rng.lognormal(sigma=0.2, size=1500)
    model = TartRegressor(readable=readable, random_state=0).fit(X[:1000], y[:1000])
    assert model.score(X[1000:], y[1000:]) > ridge().fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) + 0.1


def test_depth_0_is_linear_regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    y = X @ rng.normal(size=6) + rng.standard_t(3, size=300)
    linear = ridge().fit(X[:200], y[:200]).score(X[200:], y[200:])
    assert TartRegressor(depth=0, random_state=0).fit(X[:200], y[:200]).score(X[200:], y[200:]) > linear - 0.02


@pytest.mark.parametrize("readable", ["auto", False])
def test_a_wide_table_with_little_to_learn_is_not_learnt_by_heart(readable):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 60))
    y = rng.uniform(size=3000) < 1 / (1 + np.exp(3 - 0.6 * X[:, :4].sum(1)))
    train, test = slice(0, 2000), slice(2000, None)
    model = TartClassifier(readable=readable, random_state=0).fit(X[train], y[train])
    linear = make_pipeline(TableEncoder(), LogisticRegression()).fit(X[train], y[train])
    ours, theirs = (roc_auc_score(y[test], m.predict_proba(X[test])[:, 1]) for m in (model, linear))
    assert ours > theirs - 0.03
    assert readable or model.get_depth() == 0


@pytest.mark.parametrize("early_stopping", ["auto", "refit", True])
def test_a_tree_stays_a_tree_where_it_predicts_better(early_stopping):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(1500, 3))
    y = np.abs(X[:, 0]) + 0.05 * rng.normal(size=1500)
    model = TartRegressor(readable=False, early_stopping=early_stopping, random_state=0).fit(X[:1000], y[:1000])
    assert model.get_depth() == 6
    assert model.score(X[1000:], y[1000:]) > 0.6


def test_a_linear_model_takes_its_place_with_early_stopping_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 40))
    y = X[:, 0] + 3 * rng.normal(size=1200)
    # On a GPU other random numbers are drawn, and with so much noise either model may predict better.
    model = TartRegressor(readable=False, early_stopping=True, device="cpu", random_state=0).fit(X, y)
    assert model.get_depth() == model.tree_.structure.depth == 0
    assert model.n_parameters_ == sum(p.numel() for p in model.tree_.parameters()) == 2 * 41
    assert len(model.history_.best_epoch) == 1


@pytest.mark.parametrize(
    ("settings", "call"),
    [({}, 1), ({"readable": False}, 1), ({"readable": False}, 2), ({"readable": False, "early_stopping": True}, 2)],
    ids=str,
)
def test_ctrl_c_while_models_are_compared_leaves_a_fitted_model(monkeypatch, settings, call):
    from tartree.model import pipeline

    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3))
    calls = []

    def interrupt(epoch):
        if epoch.number == 3 and len(calls) == call:
            raise KeyboardInterrupt

    def interrupted(*arguments, **options):
        calls.append(options)
        return train(*arguments, **{**options, "callbacks": [interrupt]})

    train = pipeline.train
    monkeypatch.setattr(pipeline, "train", interrupted)
    with pytest.warns(UserWarning, match="interrupted after 3 of"):
        model = TartRegressor(epochs=20, random_state=0, **settings).fit(X, X[:, 0])
    assert len(calls) == call
    assert model.history_.interrupted
    assert np.isfinite(model.predict(X)).all()


# Limits


def trend(rows=200):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 3))
    return X, np.column_stack([10 + 3 * X[:, 0] + X[:, 1], -X[:, 2] + 0.1 * rng.normal(size=rows)])


FAR = np.array([1.0, -1.0, 1e3, -1e3, 1e9, -1e300])[:, None] * np.array([[1.0, 2.0, -1.0]])


@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("selection", ["multi", "single"])
@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("readable", [True, False])
def test_predictions_stay_around_the_targets_seen(share, selection, targets, readable):
    X, y = trend()
    y = y[:, 0] if targets == 1 else y
    settings = {"depth": 2, "epochs": 20, "selection": selection, "readable": readable, "random_state": 0}
    model = TartRegressor(extrapolation=share, **settings).fit(X, y)
    low, high = y.min(0), y.max(0)
    margin = share * (high - low)
    expected = np.stack([np.atleast_1d(low - margin), np.atleast_1d(high + margin)], axis=1)
    np.testing.assert_allclose(model.limits_, expected)
    predicted, std = model.predict(FAR, return_std=True)
    assert (predicted >= np.squeeze(model.limits_[:, 0])).all()
    assert (predicted <= np.squeeze(model.limits_[:, 1])).all()
    assert np.isfinite(std).all()
    assert np.isfinite(model.predict_quantiles(FAR)).all()


def test_limits_matter_and_can_be_switched_off():
    X, y = trend()
    settings = {"depth": 0, "epochs": 300, "random_state": 0}
    far = np.array([[30.0, 0.0, 0.0]])
    free = TartRegressor(extrapolation=None, **settings).fit(X, y[:, 0])
    assert free.limits_ is None
    assert free.predict(far)[0] == pytest.approx(100, rel=0.1)
    limited = TartRegressor(**settings).fit(X, y[:, 0])
    assert limited.predict(far)[0] <= limited.limits_[0, 1] + 1e-9
    # The limit of inputs alone keeps most predictions inside; here the one of predictions is needed too.
    assert limited.limits_[0, 1] < TartRegressor(extrapolation=1.0, **settings).fit(X, y[:, 0]).predict(far)[0]


def test_limits_are_saved_and_explained(tmp_path):
    X, y = trend()
    model = TartRegressor(depth=2, epochs=20, random_state=0).fit(X, y[:, 0])
    model.save(tmp_path / "model.tart")
    again = load(tmp_path / "model.tart")
    np.testing.assert_array_equal(again.limits_, model.limits_)
    np.testing.assert_array_equal(again.predict(FAR), model.predict(FAR))
    before = model.predict(np.concatenate([X, FAR]))
    codec = replace(model.model_.codec, limits=np.array([[9.0, 10.5]]))  # so narrow that it matters for every row
    model.adopt(replace(model.model_, codec=codec))
    model.tree_.output = codec.output
    found = model.explain(np.concatenate([X, FAR]))
    predicted = model.predict(np.concatenate([X, FAR]))
    assert (np.abs(predicted - before) > 0.1).mean() > 0.5
    np.testing.assert_allclose(found.predictions[:, 0], predicted, atol=1e-6)
    np.testing.assert_allclose(found.base[0] + found.contributions[..., 0].sum(1), predicted, atol=1e-6)


def test_warm_starts_widen_the_limits():
    X, y = trend()
    model = TartRegressor(depth=1, epochs=2, warm_start=True, random_state=0).fit(X, y[:, 0])
    before = model.limits_.copy()
    model.fit(X, y[:, 0] + 5)
    assert model.limits_[0, 0] == before[0, 0]
    assert model.limits_[0, 1] == pytest.approx(before[0, 1] + 5)
    assert model.tree_.output.limits == [tuple((model.limits_[0] - model.target_center_) / model.target_scale_)]


def test_rows_without_weight_set_no_limits():
    X, y = trend()
    y = y[:, 0].copy()
    y[0] = 1e6
    weight = np.ones(len(y))
    weight[0] = 0
    model = TartRegressor(depth=1, epochs=2, random_state=0).fit(X, y, sample_weight=weight)
    assert model.limits_[0, 1] < 1e3


def test_a_stream_has_the_same_limits(tmp_path, monkeypatch):
    monkeypatch.setattr("tartree.table.parquet.parquet_table.IN_MEMORY_VALUES", 100)
    X, y = trend(2000)
    table = pd.DataFrame(X, columns=list("abc")).assign(y=y[:, 0])
    table.to_parquet(tmp_path / "rows.parquet")
    in_memory = TartRegressor(depth=1, epochs=1, random_state=0).fit(X, y[:, 0])
    streamed = TartRegressor(depth=1, epochs=1, random_state=0).fit(tmp_path / "rows.parquet", y="y")
    assert streamed.streamed_
    np.testing.assert_allclose(streamed.limits_, in_memory.limits_)


@pytest.mark.parametrize("share", [-0.1, math.nan, "far"])
def test_wrong_shares_are_refused(share):
    X, y = trend(20)
    with pytest.raises(ValueError, match="extrapolation must be a number of at least 0 or None, got"):
        TartRegressor(extrapolation=share).fit(X, y)


@pytest.mark.parametrize("settings", [{"readable": True}, {}, {"extrapolation": None}, {"leaf_layers": 0}])
@pytest.mark.parametrize("value", [37.25, -1e-9, 0.1])
def test_a_constant_target_is_predicted_exactly(settings, value, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=60), "b": rng.choice(["x", "y"], 60)})
    model = TartRegressor(**{"readable": False, **settings}, epochs=5, random_state=0).fit(X, np.full(60, value))
    model.save(tmp_path / "constant.tart")
    for fitted in (model, load(tmp_path / "constant.tart")):
        means, deviations = fitted.predict(X, return_std=True)
        np.testing.assert_array_equal(means, value)
        np.testing.assert_array_equal(deviations, 0)
        np.testing.assert_array_equal(fitted.predict_quantiles(X), value)
    explained = model.explain(X[:3])
    np.testing.assert_array_equal(explained.predictions, value)
    assert not explained.contributions.any()
    if "readable" in settings:
        assert explain.export_text(model).splitlines()[0] == f"all rows: target = {value if value > 0 else 0}"
        assert model.get_n_leaves() == 1
        again = model.set_params(warm_start=True, depth=2).fit(X, X["a"] + value)  # the tree stays as small
        assert again.predict(X).std() > 0


def test_one_of_two_targets_is_constant(tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = np.column_stack([np.full(200, 5.5), X[:, 0] * 3])
    table = pd.DataFrame(X, columns=["a", "b"]).assign(constant=y[:, 0], line=y[:, 1])
    table.to_parquet(tmp_path / "table.parquet")
    settings = {"readable": True, "epochs": 150, "random_state": 0}
    whole = TartRegressor(**settings).fit(X, y)
    read = TartRegressor(**settings).fit(tmp_path / "table.parquet", ["constant", "line"])
    for model, rows in ((whole, X), (read, table[["a", "b"]])):
        np.testing.assert_array_equal(model.predict(rows)[:, 0], 5.5)
        np.testing.assert_array_equal(model.predict_quantiles(rows)[..., 0], 5.5)
        assert r2_score(y[:, 1], model.predict(rows)[:, 1]) > 0.9
        assert explain.export_text(model).splitlines()[0].endswith(" 0 = 5.5")


def test_a_fit_that_diverges_is_noticed():
    X, y = trend()
    with pytest.warns(UserWarning, match="training diverged: the loss rose from"):
        TartRegressor(depth=2, epochs=30, learning_rate=50.0, random_state=0).fit(X, y[:, 0])


def test_intervals_cover():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 4))
    y = X[:, 0] + (0.2 + 0.8 * (X[:, 1] > 0)) * rng.normal(size=900)
    model = TartRegressor(random_state=0).fit(X[:600], y[:600])
    low, high = model.predict_quantiles(X[600:], [0.05, 0.95]).T
    assert 0.82 < np.mean((low <= y[600:]) & (y[600:] <= high)) < 0.97
    narrow = X[600:, 1] < 0
    assert np.median((high - low)[narrow]) < 0.6 * np.median((high - low)[~narrow])
    assert r2_score(y[600:], model.predict(X[600:])) > 0.5


def test_targets_and_columns_that_are_texts(tmp_path):
    rows = range(30)
    typed = pd.DataFrame({"size": [1000.0 + row for row in rows], "code": [str(row % 3) for row in rows]})
    texts = typed.assign(size=[f"${value:,.2f}" for value in typed["size"]])
    target = [447000.5 + 1000 * row for row in rows]
    model = TartRegressor(epochs=2, depth=1, random_state=0, columns={"code": "number"})
    expected = model.fit(typed, target).predict(typed)
    model.fit(texts, [f"${value:,.2f}" for value in target])
    np.testing.assert_array_equal(model.predict(texts), expected)
    assert [column.kind for column in model.encoder_.summary()] == ["number", "number"]
    model.save(tmp_path / "m.tart")
    loaded = load(tmp_path / "m.tart")
    assert loaded.columns == {"code": "number"}
    np.testing.assert_array_equal(loaded.predict(texts), expected)


def test_a_target_of_other_texts_is_an_error():
    with pytest.raises(ValueError, match="could not convert string to float"):
        TartRegressor().fit([[1.0], [2.0]], ["$5", "five"])
