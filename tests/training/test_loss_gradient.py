"""The gradient of the expected cost in one pass equals that of autograd."""

import pytest
import torch

from tartree import Structure, losses
from tartree.nn import Classes, Gaussian, Tree, Values, dispatch
from tartree.training import Recipe
from tartree.training.batches import Batch
from tartree.training.loss_gradient import write_gradient


@pytest.mark.parametrize("decision_layers", [0, 1, 2])
@pytest.mark.parametrize("leaf_layers", [0, 1, 2])
@pytest.mark.parametrize("output", [Classes(3), Values(2), Gaussian(1)], ids=str)
@pytest.mark.parametrize("depth", [1, 2, 5])
def test_the_gradient_in_one_pass_is_that_of_autograd(depth, output, leaf_layers, decision_layers):
    tree = Tree.build(
        Structure(depth), 4, output, leaf_layers=leaf_layers, decision_layers=decision_layers, members=2
    ).double()
    x = torch.randn(9, 4, dtype=torch.float64)
    for own, weight in ((), None), ((), torch.rand(9).double()), ((2,), torch.rand(2, 9).double()):
        target = torch.randn(*own, 9, output.n_targets).double()
        target = target.argmax(-1) if isinstance(output, Classes) else target
        wanted = losses.expected(tree(x), target, output, weight)
        wanted.sum().backward()
        gradients = [p.grad for p in tree.parameters()]
        tree.zero_grad(set_to_none=True)
        assert dispatch.gradient_path(tree, x) == "native"
        loss = write_gradient(tree, x, Batch(x, target, weight), Recipe())
        torch.testing.assert_close(loss, wanted.detach(), rtol=1e-10, atol=1e-12)
        for p, gradient in zip(tree.parameters(), gradients, strict=True):
            torch.testing.assert_close(p.grad, gradient, rtol=1e-9, atol=1e-12)
        tree.zero_grad(set_to_none=True)


def test_the_gradient_in_one_pass_leaves_foreign_decisions_alone():
    """A module whose derivative needs its outcome, as that of tanh does, must find it as it was."""

    class Bounded(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(4, 3, dtype=torch.float64))

        def forward(self, x):
            return torch.tanh(x @ self.weight).t().contiguous().t().unsqueeze(0)

    tree = Tree.build(Structure(2), 4, Classes(3), decision=lambda *_: Bounded()).double()
    x, target = torch.randn(9, 4, dtype=torch.float64), torch.randint(3, (9,))
    losses.expected(tree(x), target, tree.output).sum().backward()
    wanted = tree.decision.weight.grad.clone()
    tree.zero_grad(set_to_none=True)
    write_gradient(tree, x, Batch(x, target, None), Recipe())
    torch.testing.assert_close(tree.decision.weight.grad, wanted)


def test_no_gradient_in_one_pass_where_there_is_none():
    x = torch.randn(5, 2)
    for tree in (
        Tree.build(Structure(2, 3), 2, Classes(3)),
        Tree.build(Structure(2), 2, Classes(3), temperature=2.0),
        Tree.build(Structure(0), 2, Classes(3)),
    ):
        assert dispatch.gradient_path(tree, x) == "autograd"
