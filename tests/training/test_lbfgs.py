import numpy as np
import pytest
import torch

from tartree import Structure
from tartree.nn import Classes, Gaussian, Tree
from tartree.training import Recipe, TensorRows, train

RECIPE = Recipe(optimizer="lbfgs", epochs=200, decision_decay=0.0, leaf_decay=1.0, jitter=0.0)


def rows(n=80, weight=None, total=None):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, 3, generator=generator)
    y = ((x @ torch.tensor([1.0, -2.0, 0.5])) + torch.randn(n, generator=generator) > 0).long()
    return TensorRows(x, y, weight, total)


def fit(data, recipe=RECIPE, members=2, **options):
    tree = Tree.build(Structure(0), 3, Classes(2), members=members)
    return tree, train(tree, data, recipe, generator=torch.Generator(), **options)


def test_all_members_reach_the_optimum():
    tree, history = fit(rows())
    weight = tree.leaf.mlp.weights[0].detach()  # (members, classes, features)
    difference = weight[:, 0] - weight[:, 1]
    torch.testing.assert_close(difference[0], difference[1], rtol=0, atol=1e-4)
    assert weight.dtype == torch.float32
    losses = history["loss"]
    assert losses.shape == (len(history), 2)
    assert losses[-1].sum() < losses[0].sum()
    # The derivative of the penalised loss vanishes.
    data = rows()
    probability = torch.softmax(tree.leaf(data.x)[0, :, 0], -1)[:, 0]
    slope = ((data.target == 0).float() - probability) @ data.x / 80
    np.testing.assert_allclose(slope.detach(), difference[0] / 80, atol=1e-5)


def test_a_weight_counts_like_equal_rows():
    data = rows()
    double = TensorRows(torch.cat([data.x, data.x[:40]]), torch.cat([data.target, data.target[:40]]))
    weight = torch.where(torch.arange(80) < 40, 2.0, 1.0)
    once, _ = fit(TensorRows(data.x, data.target, weight / weight.mean(), total=120.0))
    twice, _ = fit(double)
    torch.testing.assert_close(once.predict(data.x), twice.predict(data.x), rtol=0, atol=1e-4)


def test_values_too():
    data = rows()
    tree = Tree.build(Structure(0), 3, Gaussian(1))
    target = (data.x @ torch.tensor([[1.0], [2.0], [3.0]])).float()
    recipe = Recipe(optimizer="lbfgs", epochs=500, decision_decay=0.0, leaf_decay=0.0, jitter=0.0)
    train(tree, TensorRows(data.x, target), recipe, generator=torch.Generator())
    np.testing.assert_allclose(tree.predict(data.x)[0, :, :1].detach(), target, atol=0.05)


def test_a_callback_ends_it():
    _, history = fit(rows(), callbacks=[lambda epoch: epoch.number == 2])
    assert len(history) == 2


def test_errors():
    with pytest.raises(ValueError, match="cannot stop early"):
        fit(rows(), validation=rows())
    with pytest.raises(ValueError, match="optimizer must be one of adam, lbfgs"):
        Recipe(optimizer="sgd")
