"""The order of removal: the least important leaf first."""

import torch

from tartree import Structure
from tartree.explain.simplification.removal_order import removal_order
from tartree.nn import Classes, Tree


def test_order_of_removal():
    """A leaf that nobody reaches goes first; what is said by its neighbour too goes next."""
    tree = Tree.build(Structure(2), 1, Classes(2), leaf_layers=0).double().requires_grad_(False)
    tree.decision.mlp.weights[0].zero_()
    tree.decision.mlp.biases[0][0] = torch.tensor([0.0, 50.0, 0.0])
    tree.leaf.values[0] = torch.tensor([[5.0, 0], [0, 5], [0, 2.0], [0, 2.1]])
    order = removal_order(tree, torch.zeros(3, 1, dtype=torch.float64))
    assert order[0] == 1
    assert order[1] in (2, 3)
    assert len(order) == 3
