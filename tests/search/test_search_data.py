"""Rows that are not given to `fit` change nothing, and neither do rows of one outer part change another."""

import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import PredefinedSplit, cross_validate

from tartree import StructureSearch, TartClassifier
from tartree.model import Sample
from tartree.nn import Classes
from tartree.search.candidates import make_candidate
from tartree.search.engine import Engine
from tartree.search.folds import split
from tartree.search.problem import Problem
from tartree.search.scores import METRICS
from tartree.search.trials import promoted

SPACE = {"depth": [0, 1, 2], "leaf_layers": [0, 1], "selection": ["multi", "single"]}
QUICK = TartClassifier(epochs=16)


def planted(rng, labels, test, leak):
    """A column of noise that gives the label away in the test rows alone (or is poisoned there), and a weak one."""
    column = rng.normal(size=len(labels))
    if leak == "label":
        column[test] = 10.0 * labels[test]
    elif leak == "poison":
        column[test] = -1e6
    return pd.DataFrame({"leak": column, "weak": labels + rng.normal(size=len(labels)) * 2})


def test_outer_test_rows_change_nothing():
    labels = np.random.default_rng(0).integers(0, 2, 120)
    test = np.arange(120) % 4 == 0
    train_rows, test_rows = np.flatnonzero(~test), np.flatnonzero(test)
    found = {}
    for leak in (None, "label", "poison"):
        frame = planted(np.random.default_rng(1), labels, test, leak)
        search = StructureSearch(QUICK, SPACE, random_state=0)
        run = cross_validate(search, frame, labels, cv=[(train_rows, test_rows)], return_estimator=True)
        found[leak] = run["estimator"][0]
    clean = found.pop(None)
    encoder, arrays = clean.best_estimator_.encoder_.get_state()
    for own in found.values():
        assert own.trials_ == clean.trials_
        assert own.front_ == clean.front_
        assert own.best_params_ == clean.best_params_
        state, own_arrays = own.best_estimator_.encoder_.get_state()
        assert state == encoder
        assert all(np.array_equal(own_arrays[name], arrays[name]) for name in arrays)
        for mine, theirs in zip(
            own.best_estimator_.tree_.parameters(), clean.best_estimator_.tree_.parameters(), strict=True
        ):
            assert torch.equal(mine, theirs)


def test_a_leak_that_is_given_to_fit_is_seen():
    """The test above could not fail, if a leak were never seen."""
    labels = np.random.default_rng(0).integers(0, 2, 120)
    everywhere = np.ones(120, dtype=bool)
    clean, leaking = (
        StructureSearch(TartClassifier(epochs=80), {"depth": [0, 1]}, random_state=0, refit=False).fit(
            planted(np.random.default_rng(1), labels, everywhere, leak), labels
        )
        for leak in (None, "label")
    )
    assert leaking.best_score_ > 0.95 > clean.best_score_


def test_own_folds_keep_their_rows():
    """Where rows are left out, a fold object still says which rows are held out, not which places."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 90)
    x = rng.normal(size=(90, 2))
    blocks = PredefinedSplit(np.repeat([0, 1, 2], 30))
    weight = np.where(np.arange(90) < 20, 0.0, 1.0)
    for given, weights in (({}, weight), ({"max_rows": 50}, None), ({"max_rows": 50}, weight)):
        for folds in (blocks, list(blocks.split())):
            search = StructureSearch(QUICK, {"depth": [0]}, folds=folds, random_state=0, refit=False, **given)
            search.fit(x, y, sample_weight=weights)
            for number, (learnt, held) in enumerate(search.splits_):
                assert set(held // 30) == {number}
                assert set(learnt // 30) == {0, 1, 2} - {number}
                assert weights is None or (weights[np.concatenate([learnt, held])] > 0).all()


def explore(x, y, parts):
    problem = Problem(
        {("standard", "None", "None"): Sample(x, y, None)}, Classes(2), parts, METRICS["accuracy"], None, 1, 0, x.device
    )
    engine = Engine(problem, [0.25, 1.0], lambda part, alive: promoted(alive, 4, "leaves"))
    base = TartClassifier(epochs=16, recipe="paper", learning_rate=0.05)
    engine.run([make_candidate(base, {"depth": depth}, depth, len(y)) for depth in (0, 1, 2, 3)])
    return engine.trials


def test_outer_parts_are_apart():
    """Several outer parts in one training: what stands in the test rows of a part changes nothing there."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 160)
    x = np.stack([y + rng.normal(size=160), rng.normal(size=160)], axis=1).astype(np.float32)
    rows = np.arange(160)
    outer = [rows[rows % 4 != part] for part in range(2)]
    parts = tuple(tuple(split(160, y, 3, 0, own)) for own in outer)
    clean = explore(torch.from_numpy(x), torch.from_numpy(y), parts)
    poisoned_x, poisoned_y = x.copy(), y.copy()
    poisoned_x[rows % 4 == 0] = 1e4  # test rows of part 0, but rows of training in part 1
    poisoned_y[rows % 4 == 0] = 1
    poisoned = explore(torch.from_numpy(poisoned_x), torch.from_numpy(poisoned_y), parts)
    assert [trial.to_dict() for trial in poisoned[0]] == [trial.to_dict() for trial in clean[0]]
    assert [trial.to_dict() for trial in poisoned[1]] != [trial.to_dict() for trial in clean[1]]
