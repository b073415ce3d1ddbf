import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tartree import Structure
from tartree.nn import (
    Axis,
    Backbone,
    BackboneDecision,
    Conv,
    ConvBackbone,
    Layered,
    LayeredDecision,
    Soft,
    SoftDecision,
    Subspace,
    SubspaceDecision,
)
from tartree.nn.factories import FACTORIES, as_factory, from_plain, to_plain

STRUCTURE = Structure(3)
X = torch.randn(6, 16)


def generators(*seeds):
    return [torch.Generator().manual_seed(seed) for seed in seeds]


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_node_sees_its_own_part_of_the_features(layers):
    decision = SubspaceDecision(STRUCTURE, 16, share=0.25, layers=layers, hidden=5, members=2)
    x = X.clone().requires_grad_()
    logits = decision(x)
    assert logits.shape == (2, 6, 7)
    parts = set()
    for member in range(2):
        for node in range(7):
            (gradient,) = torch.autograd.grad(logits[member, :, node].sum(), x, retain_graph=True)
            seen = gradient.abs().sum(0) > 0
            assert seen.sum() == 4
            parts.add(tuple(seen.tolist()))
    assert len(parts) > 7


def test_all_features_make_an_ordinary_decision():
    from tartree.nn import MLPDecision

    decision = SubspaceDecision(STRUCTURE, 16, share=1.0, layers=2, hidden=5)
    plain = MLPDecision(STRUCTURE, 16, layers=2, hidden=5)
    plain.mlp.load_state_dict(decision.mlp.state_dict())
    torch.testing.assert_close(decision(X), plain(X))


@pytest.mark.parametrize(
    "factory", [Subspace(share=0.5), Soft(), Axis(), Layered(), Conv(shape=(1, 4, 4), channels=2, width=4)]
)
def test_a_member_draws_the_same_whatever_stands_beside_it(factory):
    two, one = factory(STRUCTURE, 16, 2), factory(STRUCTURE, 16, 1)
    if isinstance(two, BackboneDecision):
        one.backbone = two.backbone  # belongs to all members
    two.reset_parameters(generators(1, 2))
    one.reset_parameters(generators(2))
    torch.testing.assert_close(two.eval()(X)[1:], one.eval()(X))


def test_soft_decisions_are_linear_times_beta():
    decision = SoftDecision(STRUCTURE, 16, sharpness=3.0, members=2)
    nn.init.normal_(decision.log_beta)
    expected = decision.linear(X) * 3 * decision.log_beta.exp()[:, None]
    torch.testing.assert_close(decision(X), expected)


def test_a_backbone_is_shared_by_nodes_and_members():
    calls = []

    class Network(nn.Linear):
        def forward(self, x):
            calls.append(len(x))
            return super().forward(x)

    decision = Backbone(lambda n_features: Network(n_features, 5), width=5, share=0.6)(STRUCTURE, 16, 3)
    calls.clear()  # of finding the width
    logits = decision(X)
    assert logits.shape == (3, 6, 7)
    assert calls == [6]
    features = decision.backbone(X)
    assert decision.seen.sum(-1).flatten().tolist() == [3, 3, 3]
    expected = torch.einsum("bf,mlf->mbl", features, decision.weight * decision.seen) + decision.bias[:, None]
    torch.testing.assert_close(logits, expected)
    with pytest.raises(ValueError, match="needs shared input"):
        decision(torch.zeros(3, 6, 16))


def test_deeper_nodes_see_more_convolutions():
    decision = LayeredDecision(STRUCTURE, 16, channels=2)
    x = torch.zeros(1, 16, requires_grad=True)
    reach = []
    for node in (0, 1, 3):  # one of each layer
        weight = decision.weights[[0, 1, 3].index(node)]
        with torch.no_grad():  # the node looks at one place only
            kept = weight[:, :, 8].clone()
            weight.zero_()
            weight[:, :, 8] = kept
        (gradient,) = torch.autograd.grad(decision(x)[0, :, node].sum(), x)
        reach.append(int((gradient != 0).sum()))
    assert reach == [3, 5, 7]


def test_layered_members_do_not_mix():
    decision = LayeredDecision(STRUCTURE, 16, shape=(1, 4, 4), channels=3, members=2)
    first = decision(X)
    with torch.no_grad():
        for parameter in decision.parameters():
            parameter[1] += 1
    second = decision(X)
    torch.testing.assert_close(first[0], second[0])
    assert not torch.allclose(first[1], second[1])
    own = torch.stack([X, 2 * X])
    torch.testing.assert_close(decision(own)[1], decision(2 * X)[1])


def test_layered_is_a_convolution():
    decision = LayeredDecision(Structure(1), 16, shape=(1, 4, 4), channels=3)
    maps = F.elu(F.conv2d(X.view(6, 1, 4, 4), decision.kernels[0][0], decision.shifts[0][0], padding=1))
    expected = maps.flatten(1) @ decision.weights[0][0].T + decision.biases[0][0]
    torch.testing.assert_close(decision(X)[0], expected)


def test_images_are_moved_and_mirrored_in_training_only():
    network = ConvBackbone((2, 3, 4), channels=2, width=3, shift=1, flip=True)
    images = torch.arange(24.0).expand(200, -1).reshape(200, 2, 3, 4)
    moved = network._moved(images)
    assert moved.shape == images.shape
    still = {}
    for image in moved:
        place = [tuple(v) for v in image.reshape(2, 12).T.tolist()]
        for a, b in place:  # channels move together, and what comes in is empty
            assert b in (a + 12, 0)
        still[tuple(image[0].flatten().tolist())] = True
    assert len(still) == 18  # three places down, three across, mirrored or not
    x = torch.rand(5, 24)
    assert torch.equal(network.eval()(x), network(x))


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 28, 28), (3, 9, 5)])
def test_networks_of_any_shape(shape):
    features = shape[0] * shape[1] * shape[2]
    assert ConvBackbone(shape, channels=2, width=3)(torch.rand(4, features)).shape == (4, 3)


def test_factories_are_plain_data():
    for cls in FACTORIES.values():
        assert from_plain(to_plain(cls())) == cls()
    conv = Conv(shape=(1, 4, 4), shift=2)
    data = to_plain(conv)
    assert from_plain({**data, "shape": [1, 4, 4]}) == conv
    assert to_plain(lambda structure, n_features, members: None) is None
    assert to_plain(None) is None
    with pytest.raises(ValueError, match="must be one of Axis, Soft"):
        from_plain({"name": "os.system"})
    with pytest.raises(TypeError):
        from_plain({"name": "Axis", "other": 1})


def test_errors():
    with pytest.raises(ValueError, match=r"with 15 elements, as the rows have, got \(1, 4, 4\)"):
        Conv(shape=(1, 4, 4))(STRUCTURE, 15, 1)
    with pytest.raises(ValueError, match="share must be above 0"):
        SubspaceDecision(STRUCTURE, 4, share=0)
    with pytest.raises(ValueError, match="share must be above 0"):
        BackboneDecision(STRUCTURE, nn.Identity(), 4, share=2)
    with pytest.raises(ValueError, match="layers must be at least 1"):
        SubspaceDecision(STRUCTURE, 4, layers=0)
    with pytest.raises(ValueError, match="sharpness must be a positive number"):
        SoftDecision(STRUCTURE, 4, sharpness=-1)
    with pytest.raises(ValueError, match="channels must be at least 1"):
        LayeredDecision(STRUCTURE, 4, channels=0)


def network():
    return nn.Sequential(nn.Linear(16, 6), nn.BatchNorm1d(6), nn.Tanh())


def test_a_module_is_copied_and_its_width_found():
    own = network()
    for factory in (Backbone(own), Backbone(own, 6), Backbone(own, width=6, share=0.5), as_factory(own)):
        decision = factory(STRUCTURE, 16, 2)
        assert decision.weight.shape == (2, 7, 6)
        assert decision.backbone is not own
        assert decision(X).shape == (2, 6, 7)
    assert own.training
    assert own[1].num_batches_tracked == 0  # the trial taught it nothing


def test_a_backbone_that_does_not_fit_says_so():
    with pytest.raises(ValueError, match="width must be that of the network's output, 6, got 5"):
        Backbone(network(), 5)(STRUCTURE, 16, 1)
    with pytest.raises(ValueError, match=r"must take \(batch, 9\) rows, but raised"):
        Backbone(network())(STRUCTURE, 9, 1)
    with pytest.raises(ValueError, match=r"must return \(batch, width\), got \(2, 4, 4\) for 2 rows"):
        Backbone(nn.Unflatten(1, (4, 4)))(STRUCTURE, 16, 1)
    with pytest.raises(TypeError, match=r"a backbone must be an nn\.Module, got int"):
        Backbone(lambda n_features: n_features)(STRUCTURE, 16, 1)


def test_layers_of_no_nodes():
    assert Layered()(Structure(0), 16, 2)(X).shape == (2, 6, 0)
