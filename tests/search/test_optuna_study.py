"""Optuna as the sampler: budgets, pruners, and studies that are gone on with."""

import sys

import numpy as np
import pytest
from sklearn.model_selection import KFold

from tartree import StructureSearch, TartClassifier
from tartree.search.exploration import Exploration

optuna = pytest.importorskip("optuna")
QUICK = TartClassifier(epochs=16)
SPACE = [
    {"depth": [0, 1, 2], "leaf_layers": [0, 1], "class_weight": [None, {0: 1, 1: 1, 2: 2}]},
    {"depth": 1, "window": [3, 4], "selection": ["multi", "single"]},
]


def test_the_same_seed_gives_the_same_front(iris):
    found = [
        StructureSearch(QUICK, SPACE, sampler="optuna", trials=14, random_state=0, refit=False).fit(*iris)
        for _ in range(2)
    ]
    assert found[0].trials_ == found[1].trials_
    study = found[0].study_
    assert len(study.trials) == 14
    assert {trial.state.name for trial in study.trials} <= {"COMPLETE", "PRUNED"}
    assert study.best_value == max(trial["score"] for trial in found[0].trials_ if trial["state"] == "complete")
    assert len(found[0].trials_) <= 14  # what was asked for twice is trained once


def test_a_study_is_gone_on_with(iris, tmp_path):
    storage = f"sqlite:///{tmp_path}/search.db"
    given = {"sampler": "optuna", "storage": storage, "study_name": "iris", "trials": 4, "rule": "best"}
    first = StructureSearch(QUICK, SPACE, random_state=0, **given).fit(*iris)
    second = StructureSearch(QUICK, SPACE, random_state=1, **given).fit(*iris)
    assert len(second.study_.trials) == 8
    before = [trial["params"] for trial in first.trials_]
    assert [trial["params"] for trial in second.trials_[: len(before)]] == before
    complete = [trial["score"] for trial in [*first.trials_, *second.trials_] if trial["state"] == "complete"]
    assert second.best_score_ == max(complete)
    for one, other in zip(first.splits_, second.splits_, strict=True):  # scores of other folds mean something else
        assert (one[0] == other[0]).all()
        assert (one[1] == other[1]).all()
    flipped = iris[1].copy()
    flipped[[0, 149]] = flipped[[149, 0]]
    weight = np.linspace(1, 2, 150)
    for word, search, data in (
        ("rows 100, before 150", StructureSearch(QUICK, SPACE, **given), (iris[0][:100], iris[1][:100])),
        ("another data", StructureSearch(QUICK, SPACE, **given), (iris[0], flipped)),
        ("another data", StructureSearch(QUICK, SPACE, **given), (iris[0] ** 2, iris[1])),
        ("another data", StructureSearch(QUICK, SPACE, **given), (*iris, weight)),
        ("another data", StructureSearch(QUICK, SPACE, folds=KFold(4), **given), iris),
        ("estimator {", StructureSearch(TartClassifier(epochs=17), SPACE, **given), iris),
        ("seeds 2, before 1", StructureSearch(QUICK, SPACE, seeds=2, **given), iris),
        ("another space", StructureSearch(QUICK, {"members": [1, 2]}, **given), iris),
        ("another space", StructureSearch(QUICK, [*SPACE, {"depth": 5}], **given), iris),
    ):
        with pytest.raises(ValueError, match=f"with its own table, estimator and space, got {word}"):
            search.fit(*data)


def test_a_pruner_says_promoted(iris):
    class Nobody(optuna.pruners.BasePruner):
        def prune(self, study, trial):
            return True

    search = StructureSearch(QUICK, SPACE, sampler="optuna", trials=3, pruner=Nobody(), random_state=0).fit(*iris)
    assert {trial["state"] for trial in search.trials_} == {"dropped"}
    assert {trial.state.name for trial in search.study_.trials} == {"PRUNED"}
    assert search.best_params_ in [trial["params"] for trial in search.trials_]


def test_failures_are_told(iris):
    search = StructureSearch(QUICK, {"depth": [1, 40]}, sampler="optuna", trials=6, random_state=0).fit(*iris)
    states = {trial.params["depth"]: trial.state.name for trial in search.study_.trials}
    assert states == {1: "COMPLETE", 40: "FAIL"}
    assert [trial["params"]["depth"] for trial in search.trials_ if trial["state"] == "failed"] == [40]


def test_failures_are_not_tried_again(iris, tmp_path, monkeypatch):
    made = []
    original = Exploration.run

    def count(self, params):
        made.extend(one["depth"] for one in params)
        return original(self, params)

    monkeypatch.setattr(Exploration, "run", count)
    given = {"sampler": "optuna", "storage": f"sqlite:///{tmp_path}/search.db", "study_name": "iris", "refit": False}
    for _ in range(2):  # the second one goes on with the study
        search = StructureSearch(QUICK, {"depth": [1, 40]}, trials=30, random_state=0, **given).fit(*iris)
        assert sorted(made) == [1, 40]
    assert sorted(trial["state"] for trial in search.trials_) == ["complete", "failed"]
    assert {trial.state.name for trial in search.study_.trials if trial.params["depth"] == 40} == {"FAIL"}


def test_time_is_up_and_all_fail(iris):
    search = StructureSearch(QUICK, {"depth": [-1], "window": range(2, 200)}, sampler="optuna", seconds=1e-9)
    with pytest.raises(ValueError, match="one candidate that can be trained"):
        search.fit(*iris)


def test_the_full_space(iris):
    search = StructureSearch(TartClassifier(epochs=2), "full", trials=4, random_state=0, refit=False).fit(*iris)
    assert len(search.trials_) == 4
    assert search.study_ is not None


def test_a_study_in_a_storage_has_a_name(iris):
    with pytest.raises(ValueError, match="must have a name"):
        StructureSearch(QUICK, SPACE, sampler="optuna", storage="sqlite://").fit(*iris)
    with pytest.raises(ValueError, match="for a file, 'sqlite:///foo'"):
        StructureSearch(QUICK, SPACE, sampler="optuna", storage="foo", study_name="iris").fit(*iris)


def test_without_optuna(iris, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ImportError, match=r"pip install 'tartree\[search\]'"):
        StructureSearch(QUICK, "full", trials=1).fit(*iris)
    drawn = StructureSearch(TartClassifier(epochs=1), "full", sampler="random", trials=2, random_state=0, refit=False)
    assert len(drawn.fit(*iris).trials_) == 2
