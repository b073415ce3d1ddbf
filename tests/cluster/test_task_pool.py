"""Calls on a cluster: each has one result, though nodes are lost."""

import time
from functools import partial
from threading import Thread

import pytest

from tartree.cluster import spread
from tests.cluster.calls import fail_at, square, square_but_there


@pytest.fixture
def doomed(cluster):
    """A third node, which a test will lose."""
    node = cluster.add_node(num_cpus=2, object_store_memory=80 * 2**20)
    yield node
    if node in cluster.worker_nodes:
        cluster.remove_node(node, allow_graceful=False)


@pytest.fixture
def lose_when_busy(cluster, doomed, tmp_path):
    """Takes the third node away as soon as calls have begun on both its cores."""

    def lose():
        while len(list(tmp_path.glob("begun-*"))) < 2:
            time.sleep(0.05)
        cluster.remove_node(doomed, allow_graceful=False)

    thread = Thread(target=lose, daemon=True)
    thread.start()
    yield doomed.node_id
    thread.join(timeout=10)


def test_results_come_as_they_are_done(cluster):
    found = list(spread(square, iter(range(40))))  # more than there is room for at once
    assert sorted(found) == [(number, number * number) for number in range(40)]


def test_an_error_of_the_function_is_raised_here(cluster):
    with pytest.raises(ArithmeticError, match=r"^there is no answer to 3$"):
        list(spread(partial(fail_at, bad=3), range(12)))


def test_a_lost_node_costs_time_alone(lose_when_busy, tmp_path):
    call = partial(square_but_there, doomed=lose_when_busy, marks=tmp_path)
    found = list(spread(call, range(12)))
    assert sorted(found) == [(number, number * number) for number in range(12)]
    assert len(list(tmp_path.glob("begun-*"))) >= 2
