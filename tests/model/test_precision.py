import copy
import gc
import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone

from tartree import Structure, TartClassifier
from tartree.model import precision
from tartree.nn import Classes, Tree

from ..tolerances import assert_same, within


@pytest.fixture
def tree():
    return Tree.build(Structure(3), 4, Classes(3)).eval()


def test_the_copy_is_kept_until_the_tree_changes(tree):
    def same():
        x = torch.randn(5, 4, dtype=torch.float64)
        made = precision.in_double(tree)
        torch.testing.assert_close(made.predict(x), copy.deepcopy(tree).double().predict(x), rtol=0, atol=0)
        assert precision.in_double(tree) is made
        return made

    seen = [same()]
    with torch.no_grad():
        tree.decision.mlp.weights[0].mul_(2)
    seen.append(same())
    tree.load_state_dict(Tree.build(Structure(3), 4, Classes(3)).state_dict())
    seen.append(same())
    tree.leaf.mlp.biases[0] = torch.nn.Parameter(torch.randn_like(tree.leaf.mlp.biases[0]))
    seen.append(same())
    tree.branching.temperature = 0.3
    seen.append(same())
    tree.train()
    seen.append(same())
    assert len({id(made) for made in seen}) == len(seen)
    assert all(p.dtype == torch.float32 for p in tree.parameters())


def test_the_copy_goes_with_the_tree():
    tree = Tree.build(Structure(3), 4, Classes(3)).eval()
    precision.in_double(tree)
    before = len(precision._copies)
    del tree
    gc.collect()
    assert len(precision._copies) < before


@pytest.mark.parametrize("selection", ["multi", "single"])
def test_predictions_follow_the_estimator(selection):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = (X[:, 0] > 0).astype(int)
    model = TartClassifier(depth=3, epochs=30, selection=selection, random_state=0).fit(X, y)
    size = len(pickle.dumps(model))
    first = model.predict_proba(X)
    assert len(pickle.dumps(model)) == size
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert_same(again.predict_proba(X), first)
    assert not hasattr(clone(model), "tree_")
    model.set_params(random_state=1).fit(X, 1 - y)
    assert (model.predict(X) == 1 - y).mean() > 0.8
    fresh = clone(model).fit(X, 1 - y)
    assert_same(model.predict_proba(X), fresh.predict_proba(X))
    rows = np.concatenate([model.predict_proba(X[i : i + 1]) for i in range(60)])
    np.testing.assert_allclose(rows, model.predict_proba(X), rtol=0, atol=within(1e-12))
