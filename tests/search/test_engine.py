"""Budgets, failures and interrupts: a search always ends with the best so far."""

import time

import numpy as np
import pytest
import torch
from joblib import parallel_backend

from tartree import StructureSearch, TartClassifier
from tartree.search import engine
from tartree.search.group import Group

QUICK = TartClassifier(epochs=18)
SPACE = {"depth": [0, 1, 2], "leaf_layers": [1]}


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


def test_a_limit_of_leaves_when_the_time_is_up(iris):
    """The cheapest group uses too many leaves: one that may be chosen is trained all the same, and no other."""
    space = [{"depth": 3, "leaf_layers": 0}, {"depth": 0, "leaf_layers": 2, "hidden": 100}, {"depth": 1, "window": 31}]
    given = {"seconds": 1e-9, "max_leaves": 2, "random_state": 0, "refit": False}
    search = StructureSearch(QUICK, space, **given).fit(*iris)
    assert search.best_params_["depth"] == 0
    assert search.trials_[2]["score"] is None
    with parallel_backend("threading"):
        assert StructureSearch(QUICK, space, n_jobs=2, **given).fit(*iris).best_params_["depth"] == 0


def test_out_of_memory_is_tried_again_in_halves(iris, monkeypatch):
    original = Group.advance

    def advance(self, problem, until, seconds):
        if len(self.cells) > 1 or self.cells[0].optimizer_settings.learning_rate == 0.03:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return original(self, problem, until, seconds)

    monkeypatch.setattr(Group, "advance", advance)
    space = {"depth": [1], "learning_rate": [0.01, 0.02, 0.03]}
    search = StructureSearch(QUICK, space, random_state=0, halving=None).fit(*iris)
    assert [trial["state"] for trial in search.trials_] == ["complete", "complete", "failed"]
    assert "not enough memory" in search.trials_[2]["reason"]


def test_all_failed(iris):
    with pytest.raises(ValueError, match=r"one candidate that can be trained, got depth must be .* got -1"):
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
