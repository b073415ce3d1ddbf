"""Decisions that change nothing, and leaves without rows."""

import numpy as np
import pytest
import torch

from tartree import Structure
from tartree.nn import Branching, Classes, Tree, Values, combine
from tartree.nn.subtree import without_empty_leaves, without_idle_decisions


def with_equal_leaves(structure, groups, leaf_layers, **settings):
    """A tree whose leaves of one group are equal."""
    tree = Tree.build(structure, 4, Classes(3), leaf_layers=leaf_layers, **settings)
    for parameter in tree.leaf.parameters():
        by_leaf = parameter.data if leaf_layers == 0 else parameter.data.unflatten(1, (structure.n_leaves, 3))
        by_leaf.normal_()
        by_leaf.copy_(by_leaf[:, torch.tensor([groups.index(group) for group in groups])].clone())
    return tree.eval()


@pytest.mark.parametrize("leaf_layers", [0, 1])
@pytest.mark.parametrize(
    ("structure", "groups", "left"),
    [
        (Structure(2), "aabb", 2),
        (Structure(2), "aabc", 3),
        (Structure(2), "abab", 4),  # equal, but not below one decision
        (Structure(3), "aaaaaaaa", 1),
        (Structure(3), "aaaabbcd", 4),
        (Structure(2, 3), "aaabbbabc", 5),
        (Structure(0), "a", 1),
    ],
)
def test_equal_leaves_below_a_decision_are_joined(structure, groups, left, leaf_layers):
    tree = with_equal_leaves(structure, list(groups), leaf_layers, members=2)
    smaller = without_idle_decisions(tree)
    assert smaller.structure.n_leaves == left
    x = torch.randn(50, 4)
    with torch.no_grad():
        before, after = ([combine(*model(x)[:2], "multi")] for model in (tree, smaller))
    torch.testing.assert_close(after, before, rtol=1e-5, atol=1e-5)
    assert next(smaller.parameters()).dtype == torch.float32


def test_what_cannot_be_joined_stays():
    graph = with_equal_leaves(Structure(2, 3, 2), ["a"] * 7, 1)
    assert without_idle_decisions(graph) is graph
    different = Tree.build(Structure(2), 4, Values(1))
    assert without_idle_decisions(different) is different
    perceptrons = Tree.build(Structure(1), 4, Values(1), leaf_layers=2)
    assert without_idle_decisions(perceptrons) is perceptrons


@pytest.mark.parametrize("structure", [Structure(3), Structure(2, 3), Structure(2, 3, 2)])
@pytest.mark.parametrize("leaf_layers", [0, 1])
def test_leaves_without_rows_are_removed(structure, leaf_layers):
    tree = Tree.build(structure, 2, Classes(3), leaf_layers=leaf_layers).eval()
    tree.branching = Branching(structure, "hard")
    x = torch.randn(9, 2)
    with torch.no_grad():
        arrives = (tree(x).arrival > 0.5).any(1)[0].numpy()
        smaller = without_empty_leaves(tree, arrives)
        assert not arrives.all()
        assert smaller.structure.n_leaves == arrives.sum()
        before, after = (combine(*model(x)[:2], "multi") for model in (tree, smaller))
    torch.testing.assert_close(after, before, rtol=1e-5, atol=1e-5)
    assert smaller.branching.activation.name == "hard"


def test_a_tree_without_any_rows_stays():
    tree = Tree.build(Structure(2), 4, Values(1))
    assert without_empty_leaves(tree, np.zeros(4, dtype=bool)) is tree
    own = Tree.build(Structure(1), 4, Values(1), decision=lambda structure, n, members: torch.nn.Linear(n, 1))
    assert without_empty_leaves(own, np.array([True, False])) is own
