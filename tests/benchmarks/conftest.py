"""A small archive of UCI sets for tests of the study."""

import numpy as np
import pytest
import torch
from uci import models, sets

from tartree.datasets import fetch_uci
from tests.datasets.conftest import describe, lines, make_tar, table, two_files


def blobs(name, n_rows, seed):
    """Return a file of two linearly separable classes, and four overlapping splits."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3)).round(6)
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    orders = [rng.permutation(n_rows) for _ in range(4)]
    parts = [part for order in orders for part in (order[: n_rows * 3 // 4], order[n_rows * 3 // 4 :])]
    return {
        f"{name}/{name}.txt": describe(name, [f"{name}_R.dat"], [n_rows], 3, 2),
        f"{name}/{name}_R.dat": table(X.tolist(), y.tolist()),
        f"{name}/conxuntos_kfold.dat": lines(*parts),
        f"{name}/conxuntos.dat": lines(range(4), range(4, 8)),
    }


def clear_caches():
    sets.load_set.cache_clear()
    sets.summaries.cache_clear()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    files = {**blobs("iris", 40, 0), **blobs("wine", 60, 1), **two_files("monks-1")}
    monkeypatch.setenv("TARTREE_DATA", str(tmp_path / "cache"))
    fetch_uci(make_tar(tmp_path / "data.tar.gz", files))
    clear_caches()
    threads = torch.get_num_threads()
    yield tmp_path
    torch.set_num_threads(threads)
    clear_caches()


@pytest.fixture
def small():
    return models.TreeModel("small", "small", 2, 1, dropout=0.0)
