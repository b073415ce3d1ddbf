"""Budgets, failures and interrupts: a search always ends with the best so far."""

import signal
import time

import numpy as np
import pytest
import torch
from joblib import parallel_backend
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from tartree import StructureSearch, TartClassifier
from tartree.search import engine
from tartree.search.group import Group
from tartree.search.trials import ranked

QUICK = TartClassifier(epochs=18)
SPACE = {"depth": [0, 1, 2], "leaf_layers": [1]}


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_time_is_up(iris):
    start = time.perf_counter()
    search = StructureSearch(TartClassifier(epochs=4000), {"depth": [1, 3, 5, 7]}, seconds=1.0, refit=False)
    search.fit(*iris)
    assert time.perf_counter() - start < 20
    states = [trial["state"] for trial in search.trials_]
    assert "unfinished" in states
    assert search.best_params_["depth"] in (1, 3, 5, 7)
    assert not search.interrupted_


def test_something_is_found_however_short_the_time(iris):
    search = StructureSearch(QUICK, SPACE, seconds=1e-9, random_state=0).fit(*iris)
    scored = [trial for trial in search.trials_ if trial["score"] is not None]
    assert len(scored) == 1
    assert search.best_params_ == scored[0]["params"]
    assert search.predict(iris[0]).shape == (150,)


def test_short_times_with_several_jobs(iris):
    with parallel_backend("threading"):
        search = StructureSearch(QUICK, SPACE, seconds=1e-9, n_jobs=2, refit=False, random_state=0).fit(*iris)
    assert sum(trial["score"] is not None for trial in search.trials_) == 1


def test_interrupt_keeps_the_best_so_far(iris):
    calls = []

    def interrupt(search):
        calls.append(len(search.front_))
        if len(calls) == 3:
            raise KeyboardInterrupt

    search = StructureSearch(QUICK, SPACE, callbacks=[interrupt], rule="best", random_state=0)
    with pytest.warns(UserWarning, match="interrupted; the best so far"):
        search.fit(*iris)
    assert search.interrupted_
    assert search.best_score_ == max(trial["score"] for trial in search.trials_ if trial["score"] is not None)
    assert {trial["state"] for trial in search.trials_} == {"unfinished"}
    assert all(trial["reason"] for trial in search.trials_)


def test_interrupted_before_anything_is_known(iris, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "attempt", interrupted)
    with pytest.raises(KeyboardInterrupt):
        StructureSearch(QUICK, SPACE).fit(*iris)


def test_divergence_is_recorded_and_harms_no_neighbour(iris):
    rates = [0.02, 1e30]
    search = StructureSearch(QUICK, {"depth": [1], "learning_rate": rates}, random_state=0).fit(*iris)
    good, bad = search.trials_
    assert good["state"] == "complete"
    assert bad["state"] == "failed"
    assert "finite" in bad["reason"]
    assert "1e+30" in bad["reason"]
    assert search.best_params_["learning_rate"] == 0.02
    alone = StructureSearch(QUICK, {"depth": [1], "learning_rate": [0.02]}, random_state=0).fit(*iris)
    assert alone.trials_[0]["score"] == pytest.approx(good["score"], abs=0.1)  # noise is drawn for all at once


def test_where_all_that_went_on_diverge_the_dropped_are_taken_back(iris):
    space = {"depth": [1, 2], "learning_rate": [0.01, 100.0]}
    search = StructureSearch(TartClassifier(epochs=48), space, random_state=0, refit=False).fit(*iris)
    at_first = {trial["params"]["learning_rate"]: trial["history"][0] for trial in search.trials_}
    assert at_first[100.0]["score"] > at_first[0.01]["score"]  # so that the sound ones are dropped
    states = {(one["params"]["depth"], one["params"]["learning_rate"]): one["state"] for one in search.trials_}
    assert states[1, 100.0] == states[2, 100.0] == "failed"
    assert sorted((states[1, 0.01], states[2, 0.01])) == ["complete", "dropped"]
    assert search.best_params_["learning_rate"] == 0.01
    assert search.trials_[search.best_index_]["epochs"] == 48


def test_what_is_too_large_is_recorded(iris):
    search = StructureSearch(QUICK, {"depth": [1, 40]}, random_state=0).fit(*iris)
    assert [trial["state"] for trial in search.trials_] == ["complete", "failed"]
    assert "leaves to fit into memory" in search.trials_[1]["reason"]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"depth": 1100}, "leaves to fit into memory"),
        ({"depth": 10**6}, "leaves to fit into memory"),
        ({"depth": 10**6, "stride": 1}, "leaves to fit into memory"),
        ({"leaf_layers": "2"}, "leaf_layers must be an integer of at least 0"),
        ({"hidden": 0.5, "leaf_layers": 2}, "hidden must be an integer of at least 1"),
        ({"decision_layers": None}, "decision_layers must be an integer"),
        ({"depth": "two"}, "depth"),
        ({"recipe": 3}, "recipe must be one of"),
        ({"learning_rate": {}}, "learning_rate"),
        ({"branching": {}}, "branching"),
        ({"dropout": "half", "leaf_layers": 2}, "dropout"),
        ({"class_weight": 7}, "class_weight"),
    ],
)
def test_what_is_no_candidate_is_recorded(iris, bad, reason):
    search = StructureSearch(QUICK, [{"depth": 0}, {"depth": 1, **bad}], random_state=0, refit=False).fit(*iris)
    assert [trial["state"] for trial in search.trials_] == ["complete", "failed"]
    assert reason in search.trials_[1]["reason"]


def test_a_limit_of_leaves_when_the_time_is_up(iris):
    """The cheapest group uses too many leaves: one that may be chosen is trained all the same, and no other."""
    space = [{"depth": 3, "leaf_layers": 0}, {"depth": 0, "leaf_layers": 2, "hidden": 100}, {"depth": 1, "window": 31}]
    given = {"seconds": 1e-9, "max_leaves": 2, "random_state": 0, "refit": False}
    search = StructureSearch(QUICK, space, **given).fit(*iris)
    assert search.best_params_["depth"] == 0
    assert search.trials_[2]["score"] is None
    with parallel_backend("threading"):
        assert StructureSearch(QUICK, space, n_jobs=2, **given).fit(*iris).best_params_["depth"] == 0


def test_a_limit_of_leaves_that_only_a_dropped_one_keeps():
    """Leaves came into use later: the best that kept the limit, though it was not trained to the end."""
    from tests.search.test_sizes import trial

    early, late = trial(0, [0.7, 0.7], 2, state="dropped"), trial(1, [0.8, 0.8], 9)
    early.epochs = 5
    assert [one.number for one in ranked([early, late], "best", max_leaves=4)] == [0]
    assert [one.number for one in ranked([early, late], "best")] == [1]


def test_a_refit_that_fails_gives_way_to_the_next(iris, monkeypatch):
    search = StructureSearch(QUICK, SPACE, rule="best", halving=None, random_state=0).fit(*iris)
    first = search.best_params_["depth"]
    fit = TartClassifier.fit

    def fail(self, X, y, sample_weight=None):
        if self.depth == first and not self._stop_before_training:
            raise MemoryError("no room")
        return fit(self, X, y, sample_weight)

    monkeypatch.setattr(TartClassifier, "fit", fail)
    search.fit(*iris)
    assert search.best_params_["depth"] == search.best_estimator_.depth != first
    failed = next(trial for trial in search.trials_ if trial["params"]["depth"] == first)
    assert failed["reason"] == "it could not be fitted to all rows: there is not enough memory for it: no room"
    assert search.best_score_ <= failed["score"]
    search.set_params(space={"depth": [first]})
    with pytest.raises(ValueError, match=r"that can be fitted to all rows, however: .*no room"):
        search.fit(*iris)
    assert search.best_params_ == {"depth": first}


def interrupt(epoch):
    if epoch.number == 2:
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("when", ["before the first epoch", "after some"])
def test_interrupted_in_the_refit(iris, when, request):
    if when == "before the first epoch":
        request.getfixturevalue("interrupted_refit")
    base = QUICK if when == "before the first epoch" else TartClassifier(epochs=18, callbacks=interrupt)
    with pytest.warns(UserWarning, match="there is no best_estimator_; best_params_, front_ and trials_ say"):
        search = StructureSearch(base, SPACE, random_state=0).fit(*iris)
    assert search.interrupted_
    assert search.best_params_ == search.trials_[search.best_index_]["params"]
    assert search.front_
    with pytest.raises(NotFittedError):
        search.predict(iris[0])


def test_out_of_memory_is_tried_again_in_halves(iris, monkeypatch):
    original = Group.advance

    def advance(self, problem, until, seconds):
        if len(self.cells) > 1 or self.cells[0].pace.learning_rate == 0.03:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return original(self, problem, until, seconds)

    monkeypatch.setattr(Group, "advance", advance)
    space = {"depth": [1], "learning_rate": [0.01, 0.02, 0.03]}
    search = StructureSearch(QUICK, space, random_state=0, halving=None).fit(*iris)
    assert [trial["state"] for trial in search.trials_] == ["complete", "complete", "failed"]
    assert "not enough memory" in search.trials_[2]["reason"]


def test_all_failed(iris):
    with pytest.raises(ValueError, match=r"one candidate that can be trained, however: .*depth=-1"):
        StructureSearch(QUICK, {"depth": [-1]}).fit(*iris)


def test_nothing_is_trained_twice(iris, monkeypatch):
    """Epochs of all rungs add up to those of the candidates, selections share them, and dropped ones end early."""
    ran = []
    original = Group._train

    def train(self, problem, table, learnt, until, deadline):
        before = self.epochs
        losses = original(self, problem, table, learnt, until, deadline)
        ran.extend((self.first.structure, epoch) for epoch in range(before, self.epochs))
        return losses

    monkeypatch.setattr(Group, "_train", train)
    space = {"depth": [0, 1, 2, 3, 4], "selection": ["multi", "single"]}
    search = StructureSearch(QUICK, space, random_state=0, refit=False).fit(*iris)
    assert len(ran) == len(set(ran))
    longest = {}
    for trial in search.trials_:
        depth = trial["params"]["depth"]
        longest[depth] = max(longest.get(depth, 0), trial["epochs"])
    assert len(ran) == sum(longest.values())
    assert len(ran) < 5 * 18


def test_going_on_is_the_same_as_not_having_stopped(iris):
    """Rungs do not change what is learnt, where nothing is random but the weights."""
    model = TartClassifier(depth=2, recipe="paper", learning_rate=0.05, epochs=27)
    whole = StructureSearch(model, {"depth": [1]}, random_state=0, halving=None, scoring="neg_log_loss").fit(*iris)
    parts = StructureSearch(model, {"depth": [1]}, random_state=0, halving=3, scoring="neg_log_loss").fit(*iris)
    assert len(parts.trials_[0]["history"]) == 3
    np.testing.assert_allclose(parts.trials_[0]["scores"], whole.trials_[0]["scores"], rtol=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"space": "tiny"}, "space must be one of readable, small, paper, full"),
        ({"space": {"dept": [1]}}, "the space must name parameters of TartClassifier, however: dept"),
        ({"space": {"depth": [1], "early_stopping": [True]}}, "however: early_stopping has no effect in a search"),
        ({"space": {"depth": [1], "callbacks": 5}}, "however: callbacks has no effect in a search"),
        ({"space": {"random_state": [1, 2]}}, "however: random_state has no effect"),
        ({"space": {"device": ["cpu"]}}, "however: device has no effect"),
        ({"space": 5}, "space must be one of readable, small, paper, full, .* however: 5"),
        ({"space": None}, "space must be one of readable, small, paper, full, .* however: None"),
        ({"space": []}, "with at least one"),
        ({"space": {"depth": []}}, "depth must have at least one choice"),
        ({"rule": "2se"}, "rule must be one of 1se, best"),
        ({"trials": 0}, "trials must be an integer of at least 1"),
        ({"seconds": -1}, "seconds must be None or a number above 0"),
        ({"halving": 1}, "halving must be None or a number above 1"),
        ({"folds": 1}, "folds must be from 2"),
        ({"folds": 51}, "folds must be at most the rows of the largest class, 50"),
        ({"folds": []}, "folds must have rows to learn from"),
        ({"folds": "four"}, "folds must be a number, a splitter"),
        ({"folds": [([0, 1, 60], [])]}, "folds must have rows to learn from"),
        ({"folds": [([0, 1, 60], [150])]}, "folds must name rows from 0 to 149"),
        ({"scoring": "r2"}, "scoring must be one of accuracy"),
        ({"storage": "sqlite://"}, "storage is Optuna's"),
        ({"max_leaves": 1}, "max_leaves must allow for some structure"),
    ],
)
def test_wrong_arguments(iris, given, message):
    with pytest.raises(ValueError, match=message):
        StructureSearch(QUICK, **{"space": {"depth": [2], "leaf_layers": [1]}, **given}).fit(*iris)


def test_a_pipeline_is_not_an_estimator_to_search(iris):
    with pytest.raises(TypeError, match="however: str"):
        StructureSearch("tree").fit(*iris)
