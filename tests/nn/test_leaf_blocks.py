"""Perceptron leaves a few at a time: the same loss and gradients as all at once."""

import pytest
import torch

from tartree import Structure, losses
from tartree.nn import Classes, Gaussian, Tree, dispatch, leaf_blocks
from tartree.training import Recipe
from tartree.training.batches import Batch
from tartree.training.loss_gradient import write_gradient

from ..conftest import IRREGULAR


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(dispatch, "FEW_UNITS", 0)
    monkeypatch.setattr(leaf_blocks, "BLOCK", 2 * 7 * 40)  # two leaves at a time


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("layers", [2, 4])
@pytest.mark.parametrize("own_rows", [True, False])
@pytest.mark.parametrize(
    ("structure", "output"),
    [
        (Structure(3), Classes(3)),
        (Structure(2, 3, 2), Gaussian(2)),
        (IRREGULAR["mixed fans"], Classes(2)),
        (Structure(0), Gaussian(1)),
    ],
    ids=str,
)
def test_equal_to_autograd(structure, output, own_rows, layers, threads):
    tree = Tree.build(structure, 5, output, leaf_layers=layers, hidden=7, members=3).train()
    lead = (3, 40) if own_rows else (40,)
    x = torch.randn(*lead, 5)
    target = torch.randint(output.n_targets, lead) if isinstance(output, Classes) else torch.randn(*lead, 2)
    target = target if isinstance(output, Classes) else target[..., : output.n_targets].contiguous()
    weight = torch.rand(3, 40)
    assert dispatch.computes_leaves_in_blocks(tree.leaf, x)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        loss = write_gradient(tree, x, Batch(x, target, weight), Recipe())
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    gradients = [p.grad for p in tree.parameters()]
    tree.zero_grad()
    whole = losses.expected(tree(x), target, output, weight)
    whole.sum().backward()
    torch.testing.assert_close(loss, whole.detach())
    for p, gradient in zip(tree.parameters(), gradients, strict=True):
        torch.testing.assert_close(gradient, p.grad, rtol=1e-4, atol=1e-6)


def test_dropout_leaves_out_its_share_and_keeps_the_mean():
    like, generator = torch.zeros(8, 100, 400), torch.Generator().manual_seed(0)
    mask = leaf_blocks._draw_mask(like, 64, generator)
    assert set(mask.unique().tolist()) == {0.0, 1.0}
    assert float(mask.mean()) == pytest.approx(0.75, abs=0.005)
    by_place = mask.view(-1, 8).mean(0)  # bytes of one random number are all as random
    torch.testing.assert_close(by_place, torch.full((8,), 0.75), rtol=0, atol=0.01)


@pytest.mark.parametrize("layers", [2, 3])
def test_gradients_with_dropout_are_those_of_the_loss(layers):
    """With the same seed, units left out are the same: the loss falls along the gradient as it says."""
    tree = Tree.build(Structure(2), 5, Classes(3), leaf_layers=layers, hidden=7, dropout=0.25).train()
    x, target = torch.randn(40, 5), torch.randint(3, (40,))

    def loss_and_gradient():
        torch.manual_seed(1)
        tree.zero_grad()
        loss = write_gradient(tree, x, Batch(x, target, None), Recipe())
        return float(loss), [p.grad.clone() for p in tree.parameters()]

    start, gradients = loss_and_gradient()
    assert start == loss_and_gradient()[0]
    length = sum(float(g.square().sum()) for g in gradients)
    step = 1e-3 / length**0.5
    with torch.no_grad():
        for p, g in zip(tree.parameters(), gradients, strict=True):
            p.sub_(step * g)
    assert loss_and_gradient()[0] - start == pytest.approx(-step * length, rel=0.05)


def test_what_does_not_suit():
    tree = Tree.build(Structure(2), 5, Classes(3), leaf_layers=1)
    assert not dispatch.computes_leaves_in_blocks(tree.leaf, torch.zeros(3, 5))
    deep = Tree.build(Structure(2), 5, Classes(3), leaf_layers=2).double()
    assert not dispatch.computes_leaves_in_blocks(deep.leaf, torch.zeros(3, 5, dtype=torch.float64))
