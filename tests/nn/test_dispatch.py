"""Which trees take which fast path."""

import pytest
import torch
from torch import nn

from tartree import Structure
from tartree.nn import Classes, Gaussian, MLPDecision, MLPLeaf, Tree, Values, dispatch
from tartree.ops import backend

from ..ops.sized_tensor import Sized


@pytest.mark.parametrize(
    ("settings", "fuses"),
    [
        ({}, True),
        ({"output": Classes(backend.MAX_CLASSES)}, True),
        ({"output": Classes(backend.MAX_CLASSES + 1)}, False),
        ({"output": Values(3)}, False),
        ({"structure": Structure(3).without([(3, 2)])}, False),
        ({"temperature": 2.0}, False),
        ({"temperature": "learned"}, False),
        ({"branching": "sigsoftmax"}, False),
        ({"members": backend.MAX_PROGRAMS}, True),  # their rows are shared, and say nothing of how many they are
        ({"members": backend.MAX_PROGRAMS + 1}, False),
    ],
    ids=lambda value: " ".join(map(str, value.items())) if isinstance(value, dict) else str(value),
)
@pytest.mark.parametrize("decision_layers", [0, 1])
def test_which_trees_fuse(settings, fuses, decision_layers, triton):
    structure, output = Structure(2), Classes(3)
    settings = {"structure": structure, "output": output, "n_features": 1, "leaf_layers": 0, **settings}
    tree = Tree.build(decision_layers=decision_layers, **settings)
    assert dispatch.fuses(tree, Sized(4, 1)) is fuses
    assert not dispatch.fuses(tree, Sized(4, 1, device="cpu"))


@pytest.mark.parametrize("part", ["", "decision", "decision.mlp", "branching", "leaf"])
def test_a_tree_with_forward_hooks_does_not_fuse(part, triton):
    tree = Tree.build(Structure(2), 1, Classes(3))
    handle = tree.get_submodule(part).register_forward_hook(lambda *_: None)
    assert not dispatch.fuses(tree, Sized(4, 1))
    handle.remove()
    assert dispatch.fuses(tree, Sized(4, 1))


def test_a_tree_whose_parameters_say_nothing_of_members_fuses(triton):
    leaf = nn.Identity()
    tree = Tree(Structure(2), nn.Identity(), leaf, Classes(3))
    assert dispatch.fuses(tree, Sized(4, 1))
    leaf.number = nn.Parameter(torch.tensor(1.0))
    assert dispatch.fuses(tree, Sized(4, 1))


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({}, "native"),
        ({"structure": Structure(2, 3)}, "autograd"),
        ({"branching": "sigsoftmax"}, "autograd"),
        ({"leaf_layers": 2, "hidden": 100}, "blocks"),
        ({"leaf_layers": 2, "hidden": 1}, "native"),
        ({"output": Gaussian(1)}, "native"),
    ],
    ids=str,
)
def test_gradient_paths_on_a_cpu(settings, path):
    settings = {"structure": Structure(4), "output": Classes(3), **settings}
    tree, x = Tree.build(n_features=2, **settings), torch.zeros(1000, 2)
    assert dispatch.gradient_path(tree, x) == path
    assert dispatch.gradient_path(tree, x, loss="mixture") == "autograd"
    assert dispatch.gradient_path(tree, x, balance=0.1) == "autograd"
    handle = tree.leaf.register_forward_hook(lambda *_: None)
    assert dispatch.gradient_path(tree, x) == "autograd"
    handle.remove()
    assert dispatch.gradient_path(tree, x) == path


def test_gradient_path_on_a_gpu(triton):
    tree = Tree.build(Structure(2), 1, Classes(3))
    assert dispatch.gradient_path(tree, Sized(4, 1)) == "fused"
    triton["triton"] = False
    assert dispatch.gradient_path(tree, Sized(4, 1)) == "autograd"


def test_what_is_captured(triton):
    tree = Tree.build(Structure(2), 1, Classes(3))
    assert dispatch.captures_training(tree, Sized(4, 1))
    assert dispatch.captures_prediction(tree, Sized(4, 1))
    assert not dispatch.captures_training(tree, Sized(4, 1), resumable=True)
    assert not dispatch.captures_training(tree, torch.zeros(4, 1))
    triton["triton"] = False
    assert not dispatch.captures_training(tree, Sized(4, 1))
    assert dispatch.captures_prediction(tree, Sized(4, 1))
    assert not dispatch.captures_prediction(Tree.build(Structure(2), 1, Classes(3), branching="hard"), Sized(4, 1))


def test_subclasses_with_another_forward_are_not_taken_apart():
    class Shifted(MLPDecision):
        def forward(self, x):
            return super().forward(x) + 1

    class Renamed(MLPLeaf):
        pass

    assert dispatch.adds_bias_later(MLPDecision(Structure(2), 3))
    assert not dispatch.adds_bias_later(Shifted(Structure(2), 3))
    assert dispatch.adds_bias_later(Renamed(Structure(2), 3, 1))


def test_products_are_joined_for_predictions_of_linear_trees():
    tree, x = Tree.build(Structure(2), 3, Classes(2)), torch.zeros(5, 3)
    assert not dispatch.joins_products(tree, x)
    with torch.no_grad():
        assert dispatch.joins_products(tree, x)
        assert not dispatch.joins_products(tree, x.unsqueeze(0))
        for settings in ({"leaf_layers": 0}, {"leaf_layers": 2}, {"decision_layers": 0}, {"members": 2}):
            assert not dispatch.joins_products(Tree.build(Structure(2), 3, Classes(2), **settings), x)


def test_small_steps():
    tree = Tree.build(Structure(2), 3, Classes(2))
    assert dispatch.is_small_step(tree, 32)
    assert not dispatch.is_small_step(tree, 10**8)
