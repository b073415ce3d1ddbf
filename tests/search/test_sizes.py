import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris

from tartree import Structure, TartClassifier
from tartree.search import PAPER_SERIES, SPACES, expand, size_of
from tartree.search.sizes import Size, features_a_condition, longest_path, used_leaves
from tartree.search.trials import Trial, front_of, ranked, who_goes_on


def test_used_leaves():
    arrived = torch.tensor([[50.0, 49.2, 0.5, 0.3], [25.0, 25.0, 25.0, 25.0]], dtype=torch.float64)
    chosen = torch.tensor([[60.0, 39.0, 1.0, 0.0], [100.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    counted = torch.stack([arrived, chosen])
    assert used_leaves(counted, "multi").tolist() == [[True, True, False, False], [True] * 4]
    assert used_leaves(counted, "single").tolist() == [[True, True, True, False], [True, False, False, False]]
    arrived = torch.tensor([[95.0, 4.5, 0.5]], dtype=torch.float64)
    assert used_leaves(torch.stack([arrived, arrived]), "multi").tolist() == [[True, True, False]]


@pytest.mark.parametrize(
    ("structure", "used", "conditions"),
    [
        (Structure(3), [1, 1, 1, 1, 1, 1, 1, 1], 3),
        (Structure(3), [1, 1, 0, 0, 0, 0, 0, 0], 1),  # two decisions send all the same way
        (Structure(3), [1, 0, 1, 0, 1, 0, 1, 0], 2),
        (Structure(3), [0, 0, 0, 0, 0, 1, 0, 0], 0),
        (Structure(2, 3, 2), [1, 0, 0, 0, 1, 0, 1], 2),
        (Structure(0), [1], 0),
    ],
)
def test_conditions_on_a_path(structure, used, conditions):
    assert longest_path(structure, np.array(used, dtype=bool)) == conditions


def test_features_a_condition():
    X, y = load_iris(return_X_y=True)
    model = TartClassifier(depth=2, epochs=1, random_state=0).fit(X, y)
    with torch.no_grad():
        model.tree_.decision.mlp.weights[0].copy_(
            torch.tensor([[[1.0, 0.0, 0.0, 0.0], [8.0, -1.5, 0.5, 0.0], [1.0, 1.0, 1.0, 1.0]]])  # 80, 95, 100 %
        )
    assert features_a_condition(model.tree_).tolist() == pytest.approx([(1 + 2 + 4) / 3])
    assert size_of(model, X).features == pytest.approx(7 / 3)
    assert size_of(TartClassifier(depth=0, epochs=1).fit(X, y), X).features == 0


def test_an_ensemble_is_as_large_as_its_trees_together():
    X, y = load_iris(return_X_y=True)
    model = TartClassifier(depth=1, members=3, epochs=1, random_state=0).fit(X, y)
    found = size_of(model, X)
    assert found.leaves == 6
    assert found.conditions == 1
    assert found.parameters == model.n_parameters_


def trial(number, scores, leaves, state="complete", kind=(), parameters=None):
    found = Trial(number, {}, 10, kind, state=state, epochs=10, scores=np.array(scores, dtype=float))
    found.size = Size(leaves, 1, 1, 10 * number if parameters is None else parameters)
    found.most_leaves = leaves
    return found


def test_front_and_rules():
    trials = [
        trial(0, [0.5, 0.6], 1),
        trial(1, [0.7, 0.8], 4),
        trial(2, [0.6, 0.8], 2),
        trial(3, [0.7, 0.7], 8),
        trial(4, [0.9, 0.9], 1, state="failed"),
        trial(5, [0.8, 0.8], 16),
    ]
    assert [one.number for one in front_of(trials)] == [0, 2, 1, 5]
    assert [one.number for one in ranked(trials, "best")] == [5, 1, 2, 3, 0]
    assert trials[5].error == 0  # so nothing else is within it
    assert ranked(trials, "1se")[0].number == 5
    trials[5].scores = np.array([0.68, 0.92])  # a standard error of 0.12
    assert ranked(trials, "1se")[0].number == 2
    assert [one.number for one in ranked(trials, "best", max_leaves=4)] == [1, 2, 0]


def test_of_equally_many_leaves_fewer_parameters_are_smaller():
    perceptron, linear = trial(0, [0.70, 0.80], 1, parameters=22_000), trial(1, [0.69, 0.79], 1, parameters=68)
    larger, worse = trial(2, [0.65, 0.85], 4, parameters=50), trial(3, [0.6, 0.6], 1, parameters=90)
    trials = [perceptron, linear, larger, worse]
    assert front_of(trials) == [linear, perceptron]
    assert ranked(trials, "1se")[0] is linear
    assert ranked(trials, "best")[0] is perceptron


def test_who_goes_on():
    small, better, larger = trial(0, [0.5, 0.5], 1), trial(1, [0.7, 0.7], 2), trial(2, [0.7, 0.7], 8)
    assert who_goes_on([small, better, larger], 3, "leaves", least=1) == [better]
    assert who_goes_on([small, better, larger], 3, "leaves", least=2) == [better, small]
    slow = trial(3, [0.1, 0.1], 1, kind=(1,))
    assert who_goes_on([small, better, larger, slow], 3, "leaves", least=1) == [better, slow]


def test_the_rule_best_asks_no_price_for_size():
    small, better = trial(0, [0.70, 0.74], 1), trial(1, [0.71, 0.745], 64)  # better by less than half a standard error
    worse = [trial(number, [0.6, 0.6], 2) for number in (2, 3)]
    assert who_goes_on([small, better, *worse], 4, "leaves", least=1) == [small]
    assert who_goes_on([small, better, *worse], 4, "leaves", "best", least=1) == [better]


def test_the_front_near_the_best_goes_on():
    best = trial(0, [0.7, 0.9], 16)  # a standard error of 0.1
    near = [trial(1, [0.71, 0.71], 2), trial(2, [0.73, 0.73], 4), trial(3, [0.74, 0.74], 8)]
    beaten, far = trial(4, [0.72, 0.72], 8), trial(5, [0.6, 0.6], 1)
    assert who_goes_on([best, *near, beaten, far], 6, "leaves", least=1) == [best, *near]
    best.scores = np.array([0.65, 0.85])  # 0.75, too little for its size
    assert who_goes_on([best, *near, beaten, far], 6, "leaves", least=1) == near[:1]


def test_one_standard_error_is_one():
    best, near, far = trial(0, [0.7, 0.9], 16), trial(1, [0.71, 0.71], 4), trial(2, [0.69, 0.69], 2)
    assert [one.number for one in ranked([best, near, far], "1se")] == [1, 0, 2]


def test_a_limit_holds_in_every_fold():
    mean = trial(0, [0.9, 0.9], 3)
    mean.most_leaves = 5
    assert ranked([mean, trial(1, [0.8, 0.8], 4)], "best", max_leaves=4)[0].number == 1


def test_a_limit_of_leaves_while_it_runs():
    """Those above it leave their places to others, and the largest that can never come above it goes on."""
    large = [trial(number, [0.9, 0.9], 20) for number in range(6)]
    small = [trial(6, [0.8, 0.8], 4), trial(7, [0.7, 0.7], 3), trial(8, [0.6, 0.6], 8)]
    assert who_goes_on([*large, *small], 9, "leaves", least=1) == large[:1]
    assert who_goes_on([*large, *small], 4.5, "leaves", least=1, max_leaves=8) == small[:2]
    assert who_goes_on([*large, *small], 3, "leaves", least=1, max_leaves=8) == small
    assert who_goes_on(large, 6, "leaves", least=1, max_leaves=8) == large[:1]  # better than nothing
    small[2].all_leaves = 8
    assert who_goes_on([*large, *small], 9, "leaves", least=1, max_leaves=8) == [small[0], small[2]]


def test_spaces():
    paper = expand("paper")
    assert len(paper) == 24
    assert sum(map(len, PAPER_SERIES.values())) == 24
    assert {one["recipe"] for one in paper} == {"paper"}
    for name in SPACES:
        for one in expand(name)[:50]:
            TartClassifier(**one)
    assert len(expand({"depth": [0, 0, 1], "selection": ["multi", "single"]})) == 3
    assert len(expand([{"depth": [1, 2]}, {"depth": 2}, {"depth": 3}])) == 3


@pytest.mark.parametrize(
    ("given", "space", "number"),
    [
        ({"window": 3}, {"depth": [2], "stride": [None, 2, 3]}, 2),
        ({"decision_layers": 2}, {"leaf_layers": [1], "hidden": [4, 50]}, 2),
        ({"decision_layers": 2, "depth": 0}, {"leaf_layers": [1], "hidden": [4, 50]}, 1),
        ({}, {"depth": [2], "hidden": [4, 50]}, 1),
        ({"leaf_layers": 2}, {"depth": [2], "hidden": [4, 50]}, 2),
        ({"class_weight": "balanced"}, [{"depth": 1}, {"depth": 1, "class_weight": None}], 2),
        ({"class_weight": "balanced"}, [{"depth": 1}, {"depth": 1, "class_weight": "balanced"}], 1),
        ({}, [{"depth": np.array([1, 2])}, {"depth": [1, 2]}], 2),
    ],
)
def test_what_makes_candidates_differ_depends_on_the_estimator(given, space, number):
    assert len(expand(space, TartClassifier(**given).get_params())) == number
