"""Leaves that see each feature also in pieces."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris

import tartree
from tartree import Structure, TartClassifier, losses
from tartree.nn import Classes, PieceLeaf, Pieces, Tree, dispatch, leaf_blocks
from tartree.nn.piecewise_leaf import normal_bins
from tartree.training import Recipe
from tartree.training.batches import Batch
from tartree.training.loss_gradient import write_gradient

from ..conftest import DEVICE
from ..tolerances import assert_same


def build(members=2, **settings):
    return PieceLeaf(Structure(2), 3, 2, layers=2, hidden=4, pieces=4, members=members, **settings).to(DEVICE)


def test_pieces_of_normal_numbers_are_standardised():
    low, high, mean, deviation = normal_bins(6)
    assert torch.equal(low[1:], high[:-1])  # each begins where the last one ends
    numbers = torch.randn(200_000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    come = ((numbers[:, None] - low) / (high - low)).clamp(0, 1)
    pieces = (come - mean) / deviation
    torch.testing.assert_close(pieces.mean(0), torch.zeros(6, dtype=torch.float64), atol=0.01, rtol=0)
    torch.testing.assert_close(pieces.std(0), torch.ones(6, dtype=torch.float64), atol=0.01, rtol=0)


def test_pieces_say_where_a_number_is():
    leaf = build()
    x = torch.tensor([[-9.0, 0.0, 9.0], [-9.1, 0.0, 9.1]], device=DEVICE)
    inputs = leaf.expand(x)
    assert inputs.shape == (2, 3 + 3 * 4)
    assert torch.equal(inputs[0, 3:], inputs[1, 3:])  # beyond the ends nothing changes
    come = inputs[0, 3:].view(3, 4) * leaf.deviation + leaf.mean
    torch.testing.assert_close(come[0], torch.zeros(4, device=DEVICE))
    torch.testing.assert_close(come[1], torch.tensor([1.0, 1.0, 0.0, 0.0], device=DEVICE))
    torch.testing.assert_close(come[2], torch.ones(4, device=DEVICE))


@pytest.mark.parametrize("tables", [None, 2])
def test_every_second_member_sees_no_pieces(tables):
    leaf = build(members=4, mixed=True)
    x = torch.randn((5, 3) if tables is None else (tables, 5, 3), device=DEVICE)
    inputs = leaf.expand(x)
    assert inputs.shape == (4, 5, 15)
    assert not inputs[1::2, :, 3:].any()
    alone = build(members=4).expand(x)
    alone = alone.expand(4, -1, -1) if tables is None else alone.repeat_interleave(2, 0)
    assert torch.equal(inputs[::2], alone[::2])
    assert torch.equal(inputs[..., :3], alone[..., :3])
    assert leaf(x).shape == (4, 5, 4, 2)


def test_members_without_pieces_begin_as_perceptrons_of_the_features():
    torch.manual_seed(0)
    leaf = PieceLeaf(Structure(3), 20, 2, layers=2, hidden=50, pieces=8, members=2, mixed=True)
    plain = PieceLeaf(Structure(3), 20, 2, layers=2, hidden=50, pieces=8, members=2)
    x = torch.randn(500, 20)
    spread = [
        (one.expand(x).expand(2, -1, -1) @ one.mlp.weights[0].mT).std(dim=(1, 2)) for one in (leaf, plain)
    ]  # of what units see at the start, by member
    torch.testing.assert_close(spread[0], spread[1][:1].expand(2), rtol=0.1, atol=0)
    leaf.reset_parameters()
    torch.testing.assert_close(leaf.mlp.weights[0][1].std(), 3 * leaf.mlp.weights[0][0].std(), rtol=0.02, atol=0)


def test_a_few_leaves_at_a_time_give_the_same_gradient(monkeypatch):
    monkeypatch.setattr(dispatch, "FEW_UNITS", 0)
    monkeypatch.setattr(leaf_blocks, "BLOCK", 64)
    torch.manual_seed(0)
    tree = Tree.build(Structure(2), 3, Classes(2), members=2, leaf=Pieces(hidden=4, pieces=4, mixed=True))
    x, y = torch.randn(7, 3), torch.randint(2, (7,))
    assert dispatch.computes_leaves_in_blocks(tree.leaf, x)
    loss = write_gradient(tree, x, Batch(x, y, None), Recipe())
    found = [p.grad.clone() for p in tree.parameters()]
    tree.zero_grad()
    wanted = losses.expected(tree(x), y, tree.output)
    wanted.sum().backward()
    torch.testing.assert_close(loss, wanted.detach())
    for own, p in zip(found, tree.parameters(), strict=True):
        torch.testing.assert_close(own, p.grad)


def test_steps_are_learnt(tmp_path):
    """A class that alternates along a feature, which few units could bend to; and a file gives the same answers."""
    x = np.random.default_rng(0).normal(size=(600, 2))
    y = (np.floor(x[:, 0] * 2) % 2).astype(int)
    settings = {"depth": 0, "epochs": 60, "random_state": 0, "device": DEVICE}
    pieces = TartClassifier(leaf=Pieces(hidden=8, pieces=16), **settings).fit(x[:400], y[:400])
    plain = TartClassifier(leaf_layers=2, hidden=8, **settings).fit(x[:400], y[:400])
    assert pieces.score(x[400:], y[400:]) > plain.score(x[400:], y[400:]) + 0.1
    pieces.save(tmp_path / "model.tart")
    again = tartree.load(tmp_path / "model.tart")
    assert again.leaf == Pieces(hidden=8, pieces=16)
    assert_same(again.predict_proba(x), pieces.predict_proba(x))


def test_explanations_work():
    X, y = load_iris(return_X_y=True)
    model = TartClassifier(depth=2, members=2, leaf=Pieces(hidden=8, mixed=True), epochs=20, random_state=0).fit(X, y)
    found = tartree.explain.explain_rows(model, X[:3])
    assert "leaf 3" in tartree.explain.export_text(model)
    assert len(found) == 3
    assert model.feature_importances_.argmax() in (2, 3)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"leaf": Pieces(layers=1)}, "layers must be at least 2"),
        ({"leaf": Pieces(pieces=1)}, "pieces must be an integer of at least 2"),
        ({"leaf": Pieces(pieces=2.5)}, "pieces must be an integer of at least 2"),
        ({"leaf": Pieces(), "leaf_layers": 2}, "leaf_layers has no effect beside leaf"),
        ({"leaf": Pieces(), "dropout": 0.2}, "dropout has no effect beside leaf"),
    ],
)
def test_wrong_settings(settings, said):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=said):
        TartClassifier(**settings).fit(X, y)
