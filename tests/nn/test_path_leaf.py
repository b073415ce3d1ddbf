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


@pytest.mark.parametrize("structure", [Structure(3), Structure(2, 3), STRUCTURES[-1]])
def test_parts_are_never_more_than_the_leaves(structure):
    for seed in range(50):
        rng = np.random.default_rng(seed)
        leaves = rng.choice([0.0, 1.0, 2.0, 5.0], (structure.n_leaves, 2), p=rng.dirichlet(np.ones(4)))
        parts = shared_parts(leaves, structure)
        assert np.array_equal(path_shares(structure).T @ parts, leaves)
        assert np.count_nonzero(parts) <= np.count_nonzero(leaves)
        whole = shared_parts(leaves, structure, lambda parts: 3 * parts.any(axis=1))
        assert whole.any(axis=1).sum() <= min(leaves.any(axis=1).sum(), parts.any(axis=1).sum())


def test_no_leaf_takes_back_what_a_node_adds():
    leaves = np.array([0, 0, 0, 0, 7.0, 0, 0, 0])
    assert shared_parts(leaves, Structure(3)).tolist() == [*[0.0] * 11, 7.0, *[0.0] * 3]


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


@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_penalty_has_the_gradient_of_a_sum_of_norms(structure):
    columns, strength = [0, 0, 3, 5, 5], 0.7
    leaf = PathLeaf(structure, 5, 2, columns=columns, members=2).double()
    weight, bias = leaf.nodes.weights[0], leaf.nodes.biases[0]
    weight.data.normal_()
    bias.data.normal_()
    shares = (
        torch.from_numpy(path_shares(structure)).max(1).values
        * torch.tensor([1.0, *[0.125] * len(leaf.paths)])[: len(leaf.paths)]
    )
    by_node = weight.unflatten(1, (-1, 2))  # (members, nodes, numbers, features)
    norms = [
        by_node[..., [k for k, c in enumerate(columns) if c == column]].square().sum((2, 3)) for column in (0, 3, 5)
    ]
    total = sum((((norm + 1e-6).sqrt()) * shares).sum() for norm in norms)
    constants = bias.unflatten(1, (-1, 2))[:, 1:].square().sum(2)
    total = total + ((constants + 1e-6).sqrt() * shares[1:]).sum()
    (strength * np.sqrt(np.log(5)) * total).backward()
    expected = weight.grad.clone(), bias.grad.clone()
    weight.grad.zero_()
    bias.grad.zero_()
    leaf.penalise(strength)
    torch.testing.assert_close((weight.grad, bias.grad), expected, rtol=1e-6, atol=1e-8)


def test_faint_terms_are_dropped():
    leaf = PathLeaf(Structure(1), 3, 1, columns=[0, 0, 1], scale=0.5)
    weight, bias = leaf.nodes.weights[0], leaf.nodes.biases[0]
    weight.data.copy_(torch.tensor([[[0.008, 0.008, 0.008], [0.018, 0.0, 0.022], [1.0, 1.0, 0.0]]]))
    bias.data.copy_(torch.tensor([[0.001, 0.018, 0.022]]))
    leaf.drop_faint_terms()
    # A term counts by its norm in a leaf; the constant of the root stays.
    assert (weight[0] != 0).tolist() == [[True, True, False], [False, False, True], [True, True, False]]
    assert (bias[0] != 0).tolist() == [True, False, True]
