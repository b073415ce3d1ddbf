"""Predictions that are replayed batch after batch."""

import pytest
import torch

from tartree import Structure
from tartree.nn import Classes, Gaussian, Predictor, Tree, Values

from ..conftest import DEVICE

TOLERANCE = 1e-5


def build(structure=None, output=None, **settings):
    return Tree.build(structure or Structure(4), 6, output or Classes(3), members=2, **settings).to(DEVICE)


@pytest.mark.parametrize("selection", ["multi", "single"])
@pytest.mark.parametrize("leaf_layers", [0, 1, 2])
@pytest.mark.parametrize("output", [Classes(3), Values(2), Gaussian(1)], ids=str)
@pytest.mark.parametrize("structure", [Structure(4), Structure(3, 3, 2), Structure(0)], ids=str)
@torch.no_grad()
def test_it_is_what_the_tree_predicts(structure, output, leaf_layers, selection):
    torch.manual_seed(0)
    tree = build(structure, output, leaf_layers=leaf_layers, hidden=4, dropout=0.5)
    predict = Predictor(tree, torch.zeros(20, 6, device=DEVICE), selection)
    for _ in range(4):
        x = torch.randn(20, 6, device=DEVICE)
        torch.testing.assert_close(predict(x), tree.predict(x, selection), rtol=TOLERANCE, atol=TOLERANCE)
    predict.x.fill_(0.5)
    torch.testing.assert_close(predict(), tree.predict(predict.x, selection), rtol=TOLERANCE, atol=TOLERANCE)


@torch.no_grad()
def test_changed_weights_are_seen():
    tree = build()
    predict = Predictor(tree, torch.randn(20, 6, device=DEVICE))
    before = predict().clone()
    for parameter in tree.parameters():
        parameter.mul_(-2)
    assert (predict() - before).abs().max() > 0.01
    torch.testing.assert_close(predict(), tree.predict(predict.x), rtol=TOLERANCE, atol=TOLERANCE)


def test_other_shapes_are_refused():
    predict = Predictor(build(), torch.zeros(20, 6, device=DEVICE))
    with pytest.raises(ValueError, match=r"the shape \(20, 6\) that the predictor was made for, got \(1, 6\)"):
        predict(torch.zeros(1, 6, device=DEVICE))


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE != "cuda", reason="needs a GPU")
def test_it_is_replayed():
    predict = Predictor(build(), torch.zeros(20, 6, device=DEVICE))
    assert predict.run.graph is not None
    assert predict().data_ptr() == predict().data_ptr()
