"""Groups: members that learn from rows of their own, and members that are dropped."""

import numpy as np
import pytest
import torch

from tartree import TartClassifier
from tartree.model import Sample
from tartree.nn import Classes
from tartree.search.candidates import make_candidate
from tartree.search.folds import split
from tartree.search.group import Cell, Group, OutOfTime
from tartree.search.problem import Problem
from tartree.search.scores import METRICS

from ..conftest import DEVICE

RTOL = 1e-3 if DEVICE == "cuda" else 1e-4  # kernels add up in another order when there are fewer members
BASE = TartClassifier(recipe="paper", epochs=12, learning_rate=0.05)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 90)
    x = (np.eye(3)[y] + rng.normal(size=(90, 3)) / 2).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy(y)


def problem_of(data, *, parts=2, seeds=1):
    x, y = data
    rows = np.arange(len(y))
    folds = tuple(tuple(split(len(y), y.numpy(), 3, part, rows[rows % 4 != part])) for part in range(parts))
    tables = {("standard", "None", "None"): Sample(x, y, None)}
    return Problem(tables, Classes(3), folds, METRICS["neg_log_loss"], None, seeds, 0, torch.device(DEVICE))


def cells(parts=2, **params):
    made = [make_candidate(BASE, {**params, "learning_rate": rate}, i, 100) for i, rate in enumerate((0.05, 0.02))]
    return [Cell(part, (one,)) for one in made for part in range(parts)]


def scores(found):
    return np.array([own.scores["multi"] for own in found])


@pytest.mark.parametrize("params", [{"depth": 2}, {"depth": 1, "leaf_layers": 2, "hidden": 4}])
def test_a_cell_learns_what_it_learns_alone(data, params):
    problem = problem_of(data, seeds=2)
    together = Group(0, cells(**params)).advance(problem, 12)
    alone = [Group(0, [one]).advance(problem, 12)[0] for one in cells(**params)]
    np.testing.assert_allclose(scores(together), scores(alone), rtol=1e-3)


@pytest.mark.parametrize("params", [{"depth": 2}, {"depth": 1, "leaf_layers": 2, "hidden": 4}, {"depth": 0}])
def test_dropped_members_do_not_change_the_others(data, params):
    problem = problem_of(data, seeds=2)
    whole, part = Group(0, cells(**params)), Group(0, cells(**params))
    whole.advance(problem, 5)
    part.advance(problem, 5)
    part.keep([1, 2], problem)
    assert len(part.tree.state_dict()) == len(whole.tree.state_dict())
    np.testing.assert_allclose(scores(part.advance(problem, 12)), scores(whole.advance(problem, 12))[[1, 2]], rtol=RTOL)


def by_hand(x, folds, target, *, seeds=1, **params):
    """A group of one cell, not trained, whose weights are all 0; and its problem."""
    tables = {("standard", "None", "None"): Sample(x, target, None)}
    problem = Problem(tables, Classes(2), (folds,), METRICS["accuracy"], None, seeds, 0, torch.device("cpu"))
    group = Group(0, [Cell(0, (make_candidate(BASE, params, 0, 100),))])
    group.tree = group._new_tree(problem, tables["standard", "None", "None"])
    with torch.no_grad():
        for p in group.tree.parameters():
            p.zero_()
    return group, problem


def test_leaves_are_counted_on_the_rows_learnt_from():
    x = torch.tensor([[1.0], [2.0], [3.0], [-1.0], [-2.0]])
    folds = (
        (np.array([0, 1]), np.array([2, 3])),
        (np.array([0, 1, 2]), np.array([4])),
        (np.array([0, 3]), np.array([1, 4])),
    )
    group, problem = by_hand(x, folds, torch.zeros(5, dtype=torch.int64), depth=1, selection="single")
    with torch.no_grad():
        group.tree.decision.mlp.weights[0].fill_(9.0)  # the sign says the leaf
    (found,) = group.advance(problem, 0)
    assert found.sizes["single"].leaves == pytest.approx((1 + 1 + 2) / 3)
    assert found.most_leaves["single"] == 2
    assert found.sizes["single"].conditions == pytest.approx(1 / 3)


def test_an_ensemble_has_the_leaves_of_all_its_trees():
    folds = ((np.array([0, 1]), np.array([2])), (np.array([1, 2]), np.array([0])))
    group, problem = by_hand(torch.zeros(3, 1), folds, torch.zeros(3, dtype=torch.int64), depth=1, members=3)
    (found,) = group.advance(problem, 0)
    assert found.sizes["multi"].leaves == found.most_leaves["multi"] == 6


def test_scores_are_means_over_seeds():
    """Members of the first fold are right, and those of the second wrong, whatever their seed."""
    folds = ((np.array([0, 1]), np.array([2])), (np.array([1, 2]), np.array([0])))
    group, problem = by_hand(torch.zeros(3, 1), folds, torch.zeros(3, dtype=torch.int64), depth=0, seeds=2)
    with torch.no_grad():
        group.tree.leaf.mlp.biases[0].copy_(torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]))
    (found,) = group.advance(problem, 0)
    assert found.scores["multi"].tolist() == [1.0, 0.0]


def test_time(data):
    problem, group = problem_of(data), Group(0, cells(depth=1))
    group.advance(problem, 3)
    with pytest.raises(OutOfTime):
        group.advance(problem, 12, seconds=-1.0)
    assert group.epochs == 3
    assert len(group.advance(problem, 12)) == 4  # and it can go on


def test_lbfgs_goes_to_the_optimum_at_once(data):
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss

    from tartree import zoo

    one = make_candidate(zoo.make("lr"), {}, 0, 100)
    problem = problem_of(data, parts=1)
    found = Group(0, [Cell(0, (one,))]).advance(problem, 5)
    x, y = data
    for fold, (learnt, held) in enumerate(problem.parts[0]):
        peer = LogisticRegression().fit(x[learnt], y[learnt])
        expected = -log_loss(y[held], peer.predict_proba(x[held]))
        assert found[0].scores["multi"][fold] == pytest.approx(expected, abs=2e-3)
