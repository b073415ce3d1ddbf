"""Leaves that see each feature by its rank and in pieces."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris

import tartree
from tartree import Structure, TartClassifier, losses
from tartree.nn import Classes, PieceLeaf, Pieces, Tree, blocks
from tartree.nn.pieces import normal_pieces
from tartree.training import OwnRows, TensorRows
from tartree.training.looking import show_rows

from ..conftest import DEVICE


def build(members=2, **settings):
    return PieceLeaf(Structure(2), 3, 2, layers=2, hidden=4, pieces=4, members=members, **settings).to(DEVICE)


def test_pieces_of_normal_numbers_are_standardised():
    low, high, mean, deviation = normal_pieces(6)
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
    assert inputs.shape == (2, 2, 3 + 3 * 4)
    assert torch.equal(inputs[:, 0], inputs[:, 1])  # beyond the ends nothing changes
    come = inputs[0, 0, 3:].view(3, 4) * leaf.deviation + leaf.mean
    torch.testing.assert_close(come[0], torch.zeros(4, device=DEVICE))
    torch.testing.assert_close(come[1], torch.tensor([1.0, 1.0, 0.0, 0.0], device=DEVICE))
    torch.testing.assert_close(come[2], torch.ones(4, device=DEVICE))


def test_numbers_go_to_the_normal_quantile_of_their_middle_rank():
    x = torch.tensor([[0.0], [0.0], [1.0], [9.0]], device=DEVICE)
    leaf = PieceLeaf(Structure(1), 1, 2, pieces=4).to(DEVICE)
    leaf.look_at([x])
    middle = torch.tensor([0.25, 0.25, 0.625, 0.875], device=DEVICE)
    wanted = torch.special.ndtri(middle).unsqueeze(1)
    torch.testing.assert_close(leaf.to_normal(x.unsqueeze(0))[0], wanted, atol=1e-5, rtol=0)
    between = torch.tensor([[[0.5], [-100.0], [100.0]]], device=DEVICE)
    found = leaf.to_normal(between)[0, :, 0]
    torch.testing.assert_close(found, torch.stack([wanted[1:3].mean(), wanted[0, 0], wanted[3, 0]]), atol=1e-5, rtol=0)


def test_long_tails_become_normal():
    x = torch.randn(5000, 2, generator=torch.Generator().manual_seed(0)).exp().to(DEVICE)
    leaf = PieceLeaf(Structure(1), 2, 2, pieces=4).to(DEVICE)
    # As they are, before rows are known.
    before = leaf.to_normal(x.unsqueeze(0))
    torch.testing.assert_close(before[0], x.clamp(-2.5, 2.5), atol=1e-5, rtol=0)
    leaf.look_at([x])
    found = leaf.to_normal(x.unsqueeze(0))[0]
    common = x.log().abs() < 2.5  # the rank of a rare number is chance
    torch.testing.assert_close(found[common], x.log()[common], atol=0.15, rtol=0)


def test_a_constant_feature_and_one_row():
    leaf = PieceLeaf(Structure(1), 1, 2, pieces=4).to(DEVICE)
    leaf.look_at([torch.full((1, 1), 3.0, device=DEVICE)])
    found = leaf.to_normal(torch.tensor([[[2.0], [3.0], [4.0]]], device=DEVICE))
    torch.testing.assert_close(found, torch.zeros_like(found))


def test_members_know_the_rows_of_their_own_table():
    """Neither rows of another table nor those that fill up a shorter one, whose weight is 0."""
    table = TensorRows(
        torch.arange(10.0, device=DEVICE).unsqueeze(1), torch.zeros(10, dtype=torch.int64, device=DEVICE)
    )
    tree = Tree.build(Structure(1), 1, Classes(2), members=4, leaf=Pieces(hidden=4)).to(DEVICE)
    own = OwnRows.gather(table, [torch.arange(5, 10), torch.arange(2, 5)], share=2)
    show_rows(tree, own)
    assert tree.leaf.places.amin((1, 2)).tolist() == [5, 5, 2, 2]
    assert tree.leaf.places.amax((1, 2)).tolist() == [9, 9, 4, 4]
    show_rows(tree, table)  # it has looked already
    assert tree.leaf.places.amin((1, 2)).tolist() == [5, 5, 2, 2]
    tree.reset_parameters()
    weight = (torch.arange(10) % torch.tensor([[2], [3], [4], [5]]) == 0).float().to(DEVICE)  # of each member
    show_rows(tree, TensorRows(table.x, table.target, weight))
    assert tree.leaf.places.amax((1, 2)).tolist() == [8, 9, 8, 5]


@pytest.mark.parametrize("tables", [None, 2])
def test_every_second_member_sees_features_as_they_are(tables):
    leaf, alone = build(members=4, mixed=True), build(members=4)
    x = torch.randn((5, 3) if tables is None else (tables, 5, 3), device=DEVICE)
    for one in (leaf, alone):
        one.look_at([x.reshape(-1, 3)])
    inputs = leaf.expand(x)
    assert inputs.shape == (4, 5, 15)
    assert not inputs[1::2, :, 3:].any()
    assert torch.equal(inputs[::2], alone.expand(x)[::2])
    plain = x.expand(4, -1, -1) if tables is None else x.repeat_interleave(2, 0)
    assert torch.equal(inputs[1::2, :, :3], plain[1::2])
    assert leaf(x).shape == (4, 5, 4, 2)


def test_gradients_reach_the_features():
    """Explanations follow them."""
    leaf = build()
    leaf.look_at([torch.randn(50, 3, device=DEVICE)])
    x = torch.randn(4, 3, device=DEVICE, requires_grad=True)
    leaf(x).sum().backward()
    assert bool((x.grad != 0).any(1).all())


def test_a_few_leaves_at_a_time_give_the_same_gradient(monkeypatch):
    monkeypatch.setattr(blocks, "FEW", 0)
    monkeypatch.setattr(blocks, "BLOCK", 64)
    torch.manual_seed(0)
    tree = Tree.build(Structure(2), 3, Classes(2), members=2, leaf=Pieces(hidden=4, pieces=4, mixed=True))
    x, y = torch.randn(7, 3), torch.randint(2, (7,))
    assert blocks.suits(tree.leaf, x)
    loss = losses.expected_gradient(tree, x, y, None)
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
    np.testing.assert_array_equal(again.predict_proba(x), pieces.predict_proba(x))


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
        ({"leaf": Pieces(pieces=1)}, "pieces must be at least 2"),
        ({"leaf": Pieces(), "leaf_layers": 2}, "leaf_layers has no effect beside leaf"),
        ({"leaf": Pieces(), "dropout": 0.2}, "dropout has no effect beside leaf"),
    ],
)
def test_wrong_settings(settings, said):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=said):
        TartClassifier(**settings).fit(X, y)
