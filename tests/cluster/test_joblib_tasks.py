"""Calls of joblib on a cluster: those of a search, though a node is lost, and those that share a table."""

import time
from threading import Thread

import joblib
import numpy as np
import torch
from sklearn.datasets import load_iris

from tartree import StructureSearch, TartClassifier
from tartree.cluster import joblib_backend
from tests.cluster.calls import sum_of


class SoftmaxButThere:
    """A branching activation; on the doomed node, one that never comes back."""

    def __init__(self, doomed, marks):
        self.doomed, self.marks = doomed, marks

    def __call__(self, logits, axis):
        import ray

        if self.doomed is not None and not self.marks.joinpath("lost").exists():
            if ray.get_runtime_context().get_node_id() == self.doomed:
                self.marks.joinpath("begun").touch()
                time.sleep(600)
            end = time.monotonic() + 60
            while not self.marks.joinpath("begun").exists() and time.monotonic() < end:
                time.sleep(0.05)  # until that node is busy, nobody is done
        return torch.softmax(logits, axis)


def search(doomed, marks, n_jobs):
    base = TartClassifier(epochs=4, branching=SoftmaxButThere(doomed, marks))
    space = {"depth": [1, 2], "leaf_layers": [0, 1]}
    found = StructureSearch(base, space, folds=2, halving=None, n_jobs=n_jobs, refit=False, random_state=0)
    return found.fit(*load_iris(return_X_y=True))


def test_a_node_that_is_lost_costs_a_search_time_alone(cluster, tmp_path):
    node = cluster.add_node(num_cpus=2, object_store_memory=80 * 2**20)

    def lose():
        while not tmp_path.joinpath("begun").exists():
            time.sleep(0.05)
        cluster.remove_node(node, allow_graceful=False)
        tmp_path.joinpath("lost").touch()

    thread = Thread(target=lose, daemon=True)
    thread.start()
    with joblib_backend(cpus=2):
        there = search(node.node_id, tmp_path, n_jobs=-1)
    thread.join(timeout=10)
    assert tmp_path.joinpath("lost").exists()
    here = search(None, tmp_path, n_jobs=None)
    assert len(there.trials_) == len(here.trials_) == 4
    for found, expected in zip(there.trials_, here.trials_, strict=True):
        assert found["params"] == expected["params"]
        assert found["state"] == "complete"
        np.testing.assert_allclose(found["score"], expected["score"], rtol=1e-6)


def test_a_table_that_calls_share_is_put_once(cluster, monkeypatch):
    import ray

    sizes, put = [], ray.put
    monkeypatch.setattr(ray, "put", lambda thing: sizes.append(len(thing)) or put(thing))
    table, small = np.ones((2**17, 2)), np.ones(3)
    with joblib_backend():
        for _ in range(2):
            found = joblib.Parallel(n_jobs=2)(joblib.delayed(sum_of)(table, number) for number in range(4))
            assert found == [2**18 + number for number in range(4)]
        assert len(sizes) == 1
        assert sizes[0] > table.nbytes
        table[0] = 3  # what has changed is sent anew
        assert joblib.Parallel(n_jobs=2)([joblib.delayed(sum_of)(table, 0)]) == [2**18 + 4]
        assert len(sizes) == 2
        assert joblib.Parallel(n_jobs=2)([joblib.delayed(sum_of)(small, 1)]) == [4]
        assert len(sizes) == 2
