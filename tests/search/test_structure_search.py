import threading
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from joblib import parallel_backend
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_diabetes, make_classification
from sklearn.model_selection import KFold, LeaveOneOut, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tartree import Structure, StructureSearch, TableEncoder, TartClassifier, TartRegressor
from tartree.nn import Classes, Tree
from tartree.search import engine
from tartree.search.group import Group
from tartree.training import TensorRows, train

from ..optional import optional
from ..tolerances import assert_same

polars = optional("polars")


SPACE = {"depth": [0, 1, 2], "leaf_layers": [0, 1], "selection": ["multi", "single"]}
QUICK = TartClassifier(epochs=18)


@pytest.fixture(scope="module")
def found(iris):
    return StructureSearch(QUICK, SPACE, random_state=0).fit(*iris)


def test_depth_by_itself_is_that_of_the_refit():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 2)), rng.integers(0, 2, 1000)
    space = {"leaf_layers": [0]}
    search = StructureSearch(TartClassifier(epochs=1), space, folds=2, random_state=0).fit(X, y)
    assert search.best_estimator_.get_depth() == 6
    assert search.trials_[0]["leaves"] > 16  # also in the folds, of 500 rows


def test_the_outcome_hangs_together(found, iris):
    X, y = iris
    trials = found.trials_
    assert [trial["number"] for trial in trials] == list(range(len(trials)))
    assert len(trials) == 10  # a leaf alone has nothing to select
    assert {trial["state"] for trial in trials} == {"complete", "dropped"}
    assert all(trial["epochs"] == 18 for trial in trials if trial["state"] == "complete")
    best = trials[found.best_index_]
    assert best["params"] == found.best_params_
    assert best["score"] == found.best_score_ == pytest.approx(np.mean(best["scores"]))
    assert best["error"] == pytest.approx(np.std(best["scores"], ddof=1) / 2)
    assert found.best_estimator_.get_params() | found.best_params_ == found.best_estimator_.get_params()
    assert_same(found.predict(X), found.best_estimator_.predict(X))
    assert_same(found.predict_proba(X), found.best_estimator_.predict_proba(X))
    assert found.score(X, y) == found.best_estimator_.score(X, y)
    assert len(found.explain(X[:2])) == 2
    assert found.classes_.tolist() == [0, 1, 2]
    assert found.n_features_in_ == 4


def test_the_refit_is_a_fit_to_all_rows(found, iris):
    X, y = iris
    alone = clone(QUICK).set_params(**found.best_params_, random_state=0).fit(X, y)
    assert_same(found.predict_proba(X), alone.predict_proba(X))


def test_each_seed_is_a_training_of_its_own(iris):
    def scores(seeds):
        given = {"scoring": "neg_log_loss", "refit": False, "random_state": 0, "seeds": seeds}
        return np.array(StructureSearch(QUICK, {"depth": [1]}, **given).fit(*iris).trials_[0]["scores"])

    one, two = scores(1), scores(2)
    assert not np.allclose(one, two, atol=1e-4)


def test_results_are_told_as_they_come(iris, monkeypatch):
    """One group of a rung waits until another one was told of: nobody waits for the slowest."""
    told, attempt = threading.Event(), engine.attempt_until
    in_time = []

    def slow_first(group, *others):
        if group.number == 0 and not group.epochs:
            in_time.append(told.wait(20))
        return attempt(group, *others)

    def tell(search):
        if any(trial["score"] is not None for trial in search.trials_):
            told.set()

    monkeypatch.setattr(engine, "attempt_until", slow_first)
    with parallel_backend("threading"):
        search = StructureSearch(QUICK, SPACE, random_state=0, refit=False, n_jobs=2, callbacks=tell).fit(*iris)
    assert in_time == [True]
    assert {trial["state"] for trial in search.trials_} == {"complete", "dropped"}


def test_the_front_rises_with_size(found):
    front = found.front_
    for small, large in pairwise(front):
        assert (small["leaves"], small["parameters"]) < (large["leaves"], large["parameters"])
        assert small["score"] < large["score"]
    complete = [trial for trial in found.trials_ if trial["state"] == "complete"]
    assert max(trial["score"] for trial in complete) == front[-1]["score"]
    frame = pd.DataFrame(front)
    assert {"score", "error", "leaves", "conditions", "features", "parameters", "params"} <= set(frame.columns)


def test_a_fold_is_a_training_of_its_own(iris):
    """What members of one tree learn from their folds is what trees of their own learn from these rows alone."""
    X, y = iris
    model = TartClassifier(recipe="paper", learning_rate=0.05, epochs=30)
    space = {"depth": [1, 2], "learning_rate": [0.05, 0.02]}
    search = StructureSearch(model, space, random_state=0, scoring="neg_log_loss").fit(X, y)
    complete = [trial for trial in search.trials_ if trial["state"] == "complete"]
    assert len(complete) == 2
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max)
    x = torch.from_numpy(TableEncoder().fit_transform(X))
    for trial in complete:
        own = clone(model).set_params(**trial["params"])
        for fold, (learnt, held) in enumerate(search.splits_):
            tree = Tree.build(Structure(own.depth), 4, Classes(3))
            drawn = np.random.SeedSequence([seed, 0, fold, 0, 0]).generate_state(1)[0]
            tree.reset_parameters([torch.Generator().manual_seed(int(drawn))])
            rows = TensorRows(x[learnt], torch.from_numpy(y[learnt]))
            train(tree, rows, own.spec().recipe, generator=torch.Generator().manual_seed(0))
            with torch.no_grad():
                said = tree.predict(x[held], own.selection)[0].gather(1, torch.from_numpy(y[held])[:, None])
            assert trial["scores"][fold] == pytest.approx(float(said.log().mean()), rel=1e-3)


def test_the_same_seed_gives_the_same_front(found, iris):
    again = clone(found).fit(*iris)
    assert again.front_ == found.front_
    assert again.trials_ == found.trials_
    other = clone(found).set_params(random_state=1).fit(*iris)
    assert other.trials_ != found.trials_


def test_trials_are_drawn_by_the_seed(iris):
    drawn = [StructureSearch(QUICK, SPACE, trials=3, random_state=seed, refit=False).fit(*iris) for seed in (0, 0, 1)]
    params = [[trial["params"] for trial in search.trials_] for search in drawn]
    assert len(params[0]) == 3
    assert params[0] == params[1] != params[2]
    assert drawn[0].front_ == drawn[1].front_


def test_regression(iris):
    X, y = load_diabetes(return_X_y=True)
    search = StructureSearch(TartRegressor(epochs=27), {"depth": [0, 1], "leaf_layers": [0, 1]}, random_state=0)
    assert is_regressor(search)
    assert not is_classifier(search)
    assert not hasattr(search, "predict_proba")
    search.fit(X, y)
    assert 0.3 < search.best_score_ < 0.6
    mean, std = search.predict(X, return_std=True)
    assert mean.shape == std.shape == y.shape
    assert search.score(X, y) > 0.3


def test_r2_needs_rows_to_compare():
    X, y = np.arange(20.0)[:, None], np.repeat([1.0, 2.0], 10)
    search = StructureSearch(TartRegressor(epochs=2), {"depth": [0]}, folds=LeaveOneOut())
    with pytest.raises(ValueError, match="hold out 2 rows at least"):
        search.fit(X, y)
    search.set_params(folds=KFold(4)).fit(X, y)
    assert search.best_score_ == 0  # rows held out are equal: what scikit-learn says then


def test_within_pipelines_and_cross_validation(iris):
    X, y = iris
    search = StructureSearch(TartClassifier(epochs=60), {"depth": [0, 1]}, random_state=0)
    assert is_classifier(search)
    scores = cross_val_score(make_pipeline(StandardScaler(), search), X, y, cv=KFold(3, shuffle=True, random_state=0))
    assert scores.min() > 0.7
    assert clone(search).get_params()["estimator__epochs"] == 60
    assert search.set_params(estimator__epochs=5).estimator.epochs == 5


def test_mixed_tables_and_labels(iris):
    frame = pd.DataFrame({"a": [1.0, None, 3.0, 4.0] * 15, "b": ["x", "y", None, "x"] * 15})
    labels = np.array(["yes", "no", "yes", "no"] * 15)
    own_folds = KFold(3, shuffle=True, random_state=1)
    search = StructureSearch(QUICK, {"depth": [0, 1]}, folds=own_folds, random_state=0).fit(frame, labels)
    assert len(search.splits_) == 3
    assert set(search.predict(frame)) <= {"yes", "no"}
    assert search.feature_names_in_.tolist() == ["a", "b"]


def test_rules(iris):
    X, y = make_classification(300, 6, n_informative=4, n_clusters_per_class=3, random_state=0)
    fits = {}
    for rule, limit in [("best", None), ("1se", None), ("best", 3)]:
        fits[rule, limit] = StructureSearch(
            TartClassifier(epochs=40),
            {"depth": [0, 1, 2, 4], "leaf_layers": 1},
            rule=rule,
            max_leaves=limit,
            random_state=0,
            halving=None,
        ).fit(X, y)
    best, near, limited = fits.values()
    assert best.trials_ == near.trials_
    top = best.trials_[best.best_index_]
    assert top["score"] == max(trial["score"] for trial in best.trials_)
    chosen = near.trials_[near.best_index_]
    assert chosen["score"] >= top["score"] - top["error"]
    within = [trial for trial in best.trials_ if trial["score"] >= top["score"] - top["error"]]
    assert chosen["leaves"] == min(trial["leaves"] for trial in within)
    assert limited.best_size_.leaves <= 3
    assert limited.best_score_ == max(trial["score"] for trial in best.trials_ if trial["params"]["depth"] <= 1)


def test_halving_finds_the_best_within_a_limit():
    """Structures above the limit are better at every rung, and take no places from those below it."""
    X, y = make_classification(300, 6, n_informative=4, n_clusters_per_class=3, random_state=0)
    space = {"depth": [0, 1, 2, 3, 4, 5, 6], "leaf_layers": [1], "selection": ["multi", "single"]}
    given = {"rule": "best", "max_leaves": 8, "random_state": 0, "refit": False}
    search = StructureSearch(TartClassifier(epochs=64), space, **given).fit(X, y)
    assert all(trial["epochs"] == 4 for trial in search.trials_ if trial["leaves"] > 8)
    assert search.best_params_["depth"] == 3
    assert search.best_score_ > 0.75


def test_selections_of_one_training_go_on_together(found):
    for leaf_layers in (0, 1):
        for depth in (1, 2):
            own = [
                (trial["state"], trial["epochs"], len(trial["history"]))
                for trial in found.trials_
                if (trial["params"]["depth"], trial["params"]["leaf_layers"]) == (depth, leaf_layers)
            ]
            assert len(own) == 2
            assert len(set(own)) == 1


def test_members_learning_rates_and_encodings(iris):
    """One tree for all learning rates; ensembles are averaged; other encodings have tables of their own."""
    built = []
    space = {"learning_rate": [0.02, 0.05], "members": [1, 2], "numeric": ["standard", "quantile"], "depth": [1]}
    original = Group.__init__

    def count(self, number, cells):
        built.append(len(cells))
        original(self, number, cells)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Group, "__init__", count)
        search = StructureSearch(QUICK, space, random_state=0, seeds=2).fit(*iris)
    assert sorted(built) == [2, 2, 2, 2]
    sizes = {trial["params"]["members"]: trial["parameters"] for trial in search.trials_}
    assert sizes[2] == 2 * sizes[1]
    scores = {trial["params"]["learning_rate"]: trial["history"][0]["score"] for trial in search.trials_}
    assert len(set(scores.values())) == 2  # they learn differently


def test_sample_weights(iris):
    X, y = iris
    weight = np.where(y == 2, 0.0, 1.0)
    search = StructureSearch(QUICK, {"depth": [0, 1]}, random_state=0).fit(X, y, sample_weight=weight)
    assert search.best_score_ > 0.95
    assert set(search.predict(X)) <= {0, 1}
    seen = np.concatenate([rows for fold in search.splits_ for rows in fold])
    assert (y[seen] != 2).all()


def test_weights_count_in_training_and_in_scores():
    """Nothing but the shares of two classes can be learnt: the one with fewer rows weighs more."""
    y = np.repeat([0, 1], [40, 60])
    x = np.random.default_rng(0).normal(size=(100, 1)) / 100
    search = StructureSearch(TartClassifier(epochs=100, numeric="plain"), {"depth": [0]}, random_state=0, refit=False)
    search.fit(x, y, sample_weight=np.where(y == 0, 9.0, 1.0))
    assert search.trials_[0]["scores"] == pytest.approx([360 / 420] * 4)  # 0.4 or 0.14 where weights are forgotten
    assert search.fit(x, y).trials_[0]["scores"] == pytest.approx([0.6] * 4)


def test_only_some_rows_of_a_large_table_are_searched(iris):
    search = StructureSearch(QUICK, {"depth": [0, 1]}, max_rows=60, random_state=0).fit(*iris)
    seen = np.unique(np.concatenate([held for _, held in search.splits_]))
    assert len(seen) == 60
    assert np.bincount(iris[1][seen]).tolist() == [20, 20, 20]
    for table in (
        pd.DataFrame(iris[0]),
        pa.table({f"c{i}": iris[0][:, i] for i in range(4)}),
        polars.DataFrame(iris[0]),
    ):
        again = clone(search).fit(table, iris[1])
        assert [trial["scores"] for trial in again.trials_] == [trial["scores"] for trial in search.trials_]


def test_joblib_gives_the_same(iris):
    from joblib import parallel_backend

    alone = StructureSearch(QUICK, SPACE, random_state=0, refit=False).fit(*iris)
    with parallel_backend("threading"):
        together = StructureSearch(QUICK, SPACE, random_state=0, refit=False, n_jobs=2).fit(*iris)
    assert together.trials_ == alone.trials_


def test_groups_can_be_pickled_between_rungs(iris, monkeypatch):
    import pickle

    original = engine.attempt

    def attempt(group, problem, until, seconds):
        return pickle.loads(pickle.dumps(original(*pickle.loads(pickle.dumps((group, problem))), until, seconds)))

    alone = StructureSearch(QUICK, SPACE, random_state=0, refit=False).fit(*iris)
    monkeypatch.setattr(engine, "attempt", attempt)
    assert StructureSearch(QUICK, SPACE, random_state=0, refit=False).fit(*iris).trials_ == alone.trials_
