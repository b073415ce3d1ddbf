import copy
import pickle

import pytest
import torch
from torch import nn

from tartree import Structure
from tartree.nn import ACTIVATIONS, Activation, Branching, Classes, Tree
from tartree.nn.activations import as_activation

from .test_tree import STRUCTURES


@pytest.mark.parametrize("name", [name for name in ACTIVATIONS if name != "hard"])  # which has no gradient of its own
@pytest.mark.parametrize("structure", STRUCTURES[1:], ids=str)
def test_activations(name, structure):
    if name in ("sparsemax", "entmax15"):
        pytest.importorskip("entmax")
    branching = Branching(structure, name)
    logits = torch.randn(1, 4, structure.n_logits, dtype=torch.float64, requires_grad=True)
    arrivals = branching.arrivals(logits)
    for p in arrivals:
        assert (p >= 0).all()
        torch.testing.assert_close(p.sum(-1), torch.ones_like(p.sum(-1)))
    torch.testing.assert_close(branching(logits), arrivals[-1])
    assert torch.autograd.gradcheck(branching, logits)
    for value in (0.0, 1e4, -1e4):
        extreme = torch.full((1, 2, structure.n_logits), value, requires_grad=True)
        p = branching(extreme)
        p.square().sum().backward()
        assert torch.isfinite(p).all()
        assert torch.isfinite(extreme.grad).all()
    even = branching.probabilities(torch.zeros(1, 1, structure.n_logits, dtype=torch.float64))
    for fan in structure.fans:
        torch.testing.assert_close(
            even[0, 0, fan.branches], torch.full_like(even[0, 0, fan.branches], 1 / fan.n_children)
        )


def test_hard_branching_is_hard_and_has_the_gradient_of_softmax():
    logits = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(7, 5, dtype=torch.float64)
    out = ACTIVATIONS["hard"](logits, 1)
    assert torch.equal(out.detach(), torch.nn.functional.one_hot(logits.argmax(1), 5).double())
    (gradient,) = torch.autograd.grad((out * weights).sum(), logits)
    (soft,) = torch.autograd.grad((torch.softmax(logits, 1) * weights).sum(), logits)
    torch.testing.assert_close(gradient, soft)


@pytest.fixture(params=ACTIVATIONS.values(), ids=ACTIVATIONS)
def activation(request):
    if request.param.name in ("sparsemax", "entmax15"):
        pytest.importorskip("entmax")
    return request.param


def first_child(activation, logits):
    """Probability of the first of two children."""
    return activation(torch.stack([logits / 2, -logits / 2], dim=-1), -1)[..., 0]


def test_monotone_activations_rise_with_their_logit(activation):
    logits = torch.zeros(201, 3, dtype=torch.float64)
    logits[:, 0] = torch.linspace(-5, 5, 201)
    share = activation(logits, -1)
    is_monotone = (share[:, 0].diff() >= 0).all() and (share[:, 1:].diff(dim=0) <= 0).all()
    is_continuous = share.diff(dim=0).abs().max() < 0.1
    assert activation.is_monotone == bool(is_monotone and is_continuous)


def test_even_activations_share_alike_where_logits_are_equal(activation):
    for n_children in (2, 3, 5):
        share = activation(torch.full((1, n_children), 0.0, dtype=torch.float64), -1)
        assert activation.is_even == torch.allclose(share, torch.full_like(share, 1 / n_children))


def test_turning_points(activation):
    point = activation.turning_point
    logits = torch.linspace(-9, 9, 1801, dtype=torch.float64)
    share = first_child(activation, logits)
    if point is None:
        assert (share.diff() >= 0).all()
        return
    assert (share[logits.abs() <= point].diff() > 0).all()
    assert (share[logits > point].diff() < 0).all()
    ends = first_child(activation, torch.tensor([-point, point], dtype=torch.float64))
    torch.testing.assert_close(ends, torch.tensor([0.0, 1.0], dtype=torch.float64))


def test_which_activations_can_be_captured():
    """Those that wait for values on the host cannot."""
    uncapturable = {name for name, activation in ACTIVATIONS.items() if not activation.is_capturable}
    assert uncapturable == {"hard", "sparsemax", "entmax15"}


def test_records_have_javascript_and_survive_copies(activation):
    assert activation.javascript.startswith("(logits) =>")
    for again in (copy.deepcopy(activation), pickle.loads(pickle.dumps(activation))):
        assert again == activation
        assert again.function is activation.function
    tree = copy.deepcopy(Tree.build(Structure(2), 3, Classes(2), branching=activation.name))
    assert tree.branching.activation == activation
    assert tree.branching.is_softmax == (activation.name == "softmax")


def test_functions_of_the_user():
    def softmax(logits, axis):
        return torch.softmax(logits, axis)

    activation = as_activation(softmax)
    assert activation == Activation("custom", softmax)
    assert not any([activation.is_monotone, activation.is_capturable, activation.is_even])
    assert as_activation(activation) is activation
    with pytest.raises(ValueError, match="branching must be a name or a function of logits and an axis, got 3"):
        as_activation(3)


def test_a_module_as_activation_is_learned_and_moved():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(()))

        def forward(self, logits, axis):
            return torch.softmax(logits * self.scale, axis)

    tree = copy.deepcopy(Tree.build(Structure(2), 3, Classes(2), branching=Scaled())).double()
    (scale,) = (parameter for name, parameter in tree.named_parameters() if "scale" in name)
    assert scale.dtype == torch.float64
    tree(torch.randn(4, 3, dtype=torch.float64)).arrival.square().sum().backward()
    assert scale.grad != 0
