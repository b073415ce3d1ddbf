"""The front, the rules of choice, and promotion."""

import numpy as np

from tartree.search.sizes import Size
from tartree.search.trials import Trial, front_of, promoted, ranked


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


def test_promoted():
    small, better, larger = trial(0, [0.5, 0.5], 1), trial(1, [0.7, 0.7], 2), trial(2, [0.7, 0.7], 8)
    assert promoted([small, better, larger], 3, "leaves", least=1) == [better]
    assert promoted([small, better, larger], 3, "leaves", least=2) == [better, small]
    slow = trial(3, [0.1, 0.1], 1, kind=(1,))
    assert promoted([small, better, larger, slow], 3, "leaves", least=1) == [better, slow]


def test_the_rule_best_asks_no_price_for_size():
    small, better = trial(0, [0.70, 0.74], 1), trial(1, [0.71, 0.745], 64)  # better by less than half a standard error
    worse = [trial(number, [0.6, 0.6], 2) for number in (2, 3)]
    assert promoted([small, better, *worse], 4, "leaves", least=1) == [small]
    assert promoted([small, better, *worse], 4, "leaves", "best", least=1) == [better]


def test_the_front_near_the_best_goes_on():
    best = trial(0, [0.7, 0.9], 16)  # a standard error of 0.1
    near = [trial(1, [0.71, 0.71], 2), trial(2, [0.73, 0.73], 4), trial(3, [0.74, 0.74], 8)]
    beaten, far = trial(4, [0.72, 0.72], 8), trial(5, [0.6, 0.6], 1)
    assert promoted([best, *near, beaten, far], 6, "leaves", least=1) == [best, *near]
    best.scores = np.array([0.65, 0.85])  # 0.75, too little for its size
    assert promoted([best, *near, beaten, far], 6, "leaves", least=1) == near[:1]


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
    assert promoted([*large, *small], 9, "leaves", least=1) == large[:1]
    assert promoted([*large, *small], 4.5, "leaves", least=1, max_leaves=8) == small[:2]
    assert promoted([*large, *small], 3, "leaves", least=1, max_leaves=8) == small
    assert promoted(large, 6, "leaves", least=1, max_leaves=8) == large[:1]  # better than nothing
    small[2].all_leaves = 8
    assert promoted([*large, *small], 9, "leaves", least=1, max_leaves=8) == [small[0], small[2]]


def test_a_limit_of_leaves_that_only_a_dropped_one_keeps():
    """Leaves came into use later: the best that kept the limit, though it was not trained to the end."""
    early, late = trial(0, [0.7, 0.7], 2, state="dropped"), trial(1, [0.8, 0.8], 9)
    early.epochs = 5
    assert [one.number for one in ranked([early, late], "best", max_leaves=4)] == [0]
    assert [one.number for one in ranked([early, late], "best")] == [1]
