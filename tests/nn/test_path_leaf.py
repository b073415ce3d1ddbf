"""Leaves that share what is above them."""

import numpy as np
import pytest
import torch

from tartree import Structure
from tartree.nn import Classes, MLPLeaf, Path, Tree
from tartree.nn.families import linear_parameters, plain
from tartree.nn.path_leaf import PathLeaf, path_shares, shared_parts

STRUCTURES = [
    Structure(0),
    Structure(3),
    Structure(2, 3),
    Structure(3, 3, 2),
    Structure.from_tree([[1, 2], [], [3, 4], [], []]),
]


@pytest.mark.parametrize("structure", STRUCTURES)
def test_each_layer_adds_up(structure):
    shares = path_shares(structure)
    assert shares.shape == (sum(structure.widths), structure.n_leaves)
    for layer in np.split(shares, np.cumsum(structure.widths)[:-1]):
        assert np.allclose(layer.sum(axis=0), 1)


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("members", [1, 3])
def test_leaves_are_sums_along_their_path(structure, members):
    leaf = PathLeaf(structure, 4, 2, scale=0.5, members=members)
    x = torch.randn(members, 6, 4)
    nodes = leaf.nodes(x).unflatten(1, (-1, 2))  # (members, nodes, numbers, batch)
    shares = torch.from_numpy(path_shares(structure)).float()
    shares[1:] *= 0.5
    expected = torch.einsum("mtkb,tl->mblk", nodes, shares)
    assert torch.allclose(leaf(x), expected, atol=1e-5)


@pytest.mark.parametrize("members", [1, 2])
def test_plain(members):
    leaf = PathLeaf(Structure(2), 3, 2, members=members)
    simple = plain(leaf)
    assert type(simple) is MLPLeaf
    x = torch.randn(5, 3)
    assert torch.allclose(simple(x), leaf(x), atol=1e-6)
    for ours, theirs in zip(linear_parameters(leaf), linear_parameters(simple), strict=True):
        assert torch.allclose(ours, theirs)
    assert set(simple.state_dict()) == set(MLPLeaf(Structure(2), 3, 2).state_dict())


def test_gradients_reach_all_nodes():
    tree = Tree.build(Structure(2), 3, Classes(2), leaf=Path())
    (tree.leaf(torch.randn(8, 3)).square().sum()).backward()
    assert (tree.leaf.nodes.weights[0].grad.abs().sum(-1) > 0).all()


def test_errors():
    for scale in (0, -1, 1.5):
        with pytest.raises(ValueError, match="scale must be above 0 and at most 1"):
            PathLeaf(Structure(1), 2, 1, scale=scale)


@pytest.mark.parametrize("structure", [Structure(0), Structure(3), Structure(2, 3), STRUCTURES[-1]])
def test_parts_add_up_to_the_leaves(structure):
    rng = np.random.default_rng(0)
    leaves = rng.integers(0, 3, (structure.n_leaves, 2)).astype(float)
    parts = shared_parts(leaves, structure)
    assert np.allclose(path_shares(structure).T @ parts, leaves)
    same = shared_parts(np.ones((structure.n_leaves, 4)), structure)
    assert (same[0] == 1).all()
    assert not same[1:].any()


@pytest.mark.parametrize("most", [0, 1, 5])
def test_terms_of_all_nodes_are_limited(most):
    columns = [0, 0, 1, 2]
    leaf = PathLeaf(Structure(2), 4, 2, columns=columns, most=most, members=3)
    leaf.prune(1.0)
    weights = leaf.nodes.weights[0].detach().unflatten(1, (-1, 2))  # (members, nodes, numbers, features)
    terms = sum(weights[..., [k for k in range(4) if columns[k] == c]].ne(0).any(-1).any(-1).sum(-1) for c in range(3))
    assert (terms == most).all()
    assert leaf.is_settled(0.5)
    assert not leaf.is_settled(0.2)
    leaf.nodes.weights[0].data.add_(1.0)
    leaf.project()
    assert torch.equal(leaf.nodes.weights[0].unflatten(1, (-1, 2)) != 0, weights != 0)
    leaf.reset_parameters()
    assert (leaf.nodes.weights[0] != 0).all()


def test_terms_near_the_root_count_for_more_leaves():
    leaf = PathLeaf(Structure(1), 1, 1, columns=[0], most=1)
    leaf.nodes.weights[0].data.copy_(torch.tensor([[[1.0], [2.0], [2.0]]]))
    leaf.prune(1.0)
    assert leaf.nodes.weights[0].flatten().tolist() == [1.0, 0.0, 0.0]
