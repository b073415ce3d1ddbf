import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tartree import Structure, losses
from tartree.nn import Branching, Classes, Gaussian, Tree, Values, combine

from ..conftest import IRREGULAR
from ..optional import given, st
from ..test_structure import structures

STRUCTURES = [Structure(0), Structure(3), Structure(2, 3, 2), IRREGULAR["mixed fans"]]


def build(structure=None, output=None, **settings):
    structure, output = structure or Structure(3), output or Classes(3)
    settings = {"hidden": 5, **settings}
    return Tree.build(structure, 4, output, **settings).double()


def target_of(output, *lead):
    if isinstance(output, Classes):
        return torch.randint(output.n_targets, lead)
    return torch.randn(*lead, output.n_targets, dtype=torch.float64)


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
@pytest.mark.parametrize("decision_layers", [0, 1, 2, 3])
@pytest.mark.parametrize("leaf_layers", [0, 1, 3])
@pytest.mark.parametrize("share", ["node", "layer"])
def test_shapes_and_distributions(structure, decision_layers, leaf_layers, share):
    tree = build(structure, decision_layers=decision_layers, leaf_layers=leaf_layers, share=share, members=2)
    x = torch.randn(7, 4, dtype=torch.float64)
    for selection in ("multi", "single"):
        p = tree.predict(x, selection)
        assert p.shape == (2, 7, 3)
        assert (p >= 0).all()
        torch.testing.assert_close(p.sum(-1), torch.ones_like(p.sum(-1)))
    assert [a.shape[-1] for a in tree.arrivals(x)] == list(structure.widths)
    torch.testing.assert_close(tree.arrivals(x)[-1], tree(x).arrival)


@pytest.mark.parametrize("structure", STRUCTURES[1:], ids=str)
@pytest.mark.parametrize("decision_layers", [1, 2, 3])
@pytest.mark.parametrize("share", ["node", "layer"])
def test_decisions_are_what_a_loop_over_nodes_gives(structure, decision_layers, share):
    """Each node's logits come from a perceptron of its own (or of its layer)."""
    tree = build(structure, decision_layers=decision_layers, share=share, members=2)
    x = torch.randn(6, 4, dtype=torch.float64)
    mlp = tree.decision.mlp
    logits = tree.decision(x)
    per_node = [n for d in range(structure.depth) for n in structure.n_children(d) if n > 1]
    sizes = [1 if n == 2 else n for n in per_node] if share == "node" else structure.layer_logits
    for member in range(2):
        first = 0
        for group, size in enumerate(sizes):
            h = x
            for layer, (weight, bias) in enumerate(zip(mlp.weights, mlp.biases, strict=True)):
                w, b = weight[member], bias[member]
                if layer == decision_layers - 1:
                    w, b = w[first : first + size], b[first : first + size]
                elif layer == 0:
                    w, b = w[group * 5 : group * 5 + 5], b[group * 5 : group * 5 + 5]
                else:
                    w, b = w[group], b[group]
                h = F.linear(h if layer == 0 else F.elu(h), w, b)
            torch.testing.assert_close(logits[member, :, first : first + size], h)
            first += size
        assert first == structure.n_logits


@pytest.mark.parametrize("leaf_layers", [0, 1, 2])
@pytest.mark.parametrize("output", [Classes(3), Values(2), Gaussian(2)], ids=str)
@pytest.mark.parametrize("own_input", [False, True])
def test_a_member_of_a_fleet_is_the_tree_alone(leaf_layers, output, own_input):
    settings = {"leaf_layers": leaf_layers, "decision_layers": 2, "temperature": "learned"}
    fleet = build(output=output, members=8, **settings)
    x = torch.randn(*([8] if own_input else []), 9, 4, dtype=torch.float64)
    y = target_of(output, *([8] if own_input else []), 9)
    loss = losses.expected(fleet(x), y, output)
    loss.sum().backward()
    for member in range(8):
        alone = build(output=output, **settings)
        alone.load_state_dict({name: value[member : member + 1] for name, value in fleet.state_dict().items()})
        own_x, own_y = (x[member], y[member]) if own_input else (x, y)
        own_loss = losses.expected(alone(own_x), own_y, output)
        own_loss.sum().backward()
        torch.testing.assert_close(own_loss[0], loss[member], rtol=0, atol=1e-10)
        torch.testing.assert_close(alone.predict(own_x)[0], fleet.predict(x)[member], rtol=0, atol=1e-10)
        for (_, mine), (_, theirs) in zip(alone.named_parameters(), fleet.named_parameters(), strict=True):
            torch.testing.assert_close(mine.grad[0], theirs.grad[member], rtol=0, atol=1e-10)


def test_generators_make_members_independent_of_their_neighbours():
    def draw(*seeds):
        tree = build(members=len(seeds), leaf_layers=2)
        tree.reset_parameters([torch.Generator().manual_seed(seed) for seed in seeds])
        return dict(tree.named_parameters())

    fleet, alone = draw(1, 2, 3), draw(2)
    for name, value in alone.items():
        torch.testing.assert_close(value[0], fleet[name][1], rtol=0, atol=0)
        assert not torch.equal(value[0], fleet[name][0])


@given(structures(), st.integers(0, 2**32 - 1), st.sampled_from([0, 1]))
def test_multi_leaf_predictions_are_distributions(structure, seed, leaf_layers):
    torch.manual_seed(seed)
    tree = build(structure, leaf_layers=leaf_layers)
    p = tree.predict(10 * torch.randn(5, 4, dtype=torch.float64))
    assert (p >= 0).all()
    torch.testing.assert_close(p.sum(-1), torch.ones_like(p.sum(-1)))


@given(st.integers(1, 4), st.integers(2, 4), st.integers(0, 2))
def test_without_decisions_it_is_the_mean_of_the_leaves(depth, window, leaf_layers):
    tree = build(Structure(depth, window), decision_layers=0, leaf_layers=leaf_layers)
    x = torch.randn(5, 4, dtype=torch.float64)
    means = tree.output.mean(tree.leaf(x)).mean(2).expand(1, 5, 3)
    torch.testing.assert_close(tree.predict(x), means)


@given(st.integers(0, 3), st.integers(1, 5), st.integers(0, 4))
def test_depth_0_is_the_leaf(leaf_layers, classes, batch):
    tree = build(Structure(0), Classes(classes), leaf_layers=leaf_layers)
    x = torch.randn(batch, 4, dtype=torch.float64)
    own = tree.output.mean(tree.leaf(x))[:, :, 0].expand(1, batch, classes)
    for selection in ("multi", "single"):
        torch.testing.assert_close(tree.predict(x, selection), own)


def test_depth_0_is_the_leaf_alone():
    tree = build(Structure(0), leaf_layers=1)
    x = torch.randn(5, 4, dtype=torch.float64)
    weight, bias = tree.leaf.mlp.weights[0][0], tree.leaf.mlp.biases[0][0]
    want = F.softmax(F.linear(x, weight, bias), dim=-1)
    for selection in ("multi", "single"):
        torch.testing.assert_close(tree.predict(x, selection)[0], want)


def test_single_selection_takes_the_leaf_of_the_largest_arrival():
    for leaf_layers in (0, 1):
        tree = build(leaf_layers=leaf_layers, members=2)
        x = torch.randn(6, 4, dtype=torch.float64)
        arrival, numbers = tree(x)
        values = tree.output.mean(numbers).expand(2, 6, 8, 3)
        p = tree.predict(x, "single")
        for m in range(2):
            for b in range(6):
                torch.testing.assert_close(p[m, b], values[m, b, arrival[m, b].argmax()])
    with pytest.raises(ValueError, match=r"selection must be .* got 'both'"):
        combine(arrival, values, "both")


def test_temperature():
    structure = Structure(2, 3, 2)
    logits = torch.randn(2, 4, structure.n_logits)
    torch.testing.assert_close(Branching(structure, temperature=2)(logits), Branching(structure)(logits / 2))
    learned = Branching(structure, temperature="learned", members=2)
    torch.testing.assert_close(learned(logits), Branching(structure)(logits))
    assert learned.log_scale.shape == (2, structure.n_decisions)
    nn.init.normal_(learned.log_scale)
    factors = learned.log_scale.exp().repeat_interleave(3, dim=1)  # three logits a node
    torch.testing.assert_close(learned(logits), Branching(structure)(logits * factors[:, None]))


def test_reset_parameters_resets_temperatures():
    tree = build(temperature="learned")
    nn.init.constant_(tree.branching.log_scale, 2.0)
    tree.reset_parameters()
    assert (tree.branching.log_scale == 0).all()


def test_a_decision_and_a_leaf_of_your_own():
    class Axis(nn.Module):
        def __init__(self, structure, n_features, members):
            super().__init__()
            self.threshold = nn.Parameter(torch.zeros(members, 1, structure.n_logits))

        def forward(self, x):
            return x[..., :1] - self.threshold

    class Half(nn.Module):
        def __init__(self, structure, n_features, n_numbers, members):
            super().__init__()
            self.table = nn.Parameter(torch.randn(members, 1, structure.n_leaves, n_numbers))

        def forward(self, x):
            return self.table * x[..., :1, None]

    tree = Tree.build(Structure(2), 4, Classes(3), decision=Axis, leaf=Half, members=2)
    assert tree.predict(torch.randn(5, 4)).shape == (2, 5, 3)
    assert "Classes(3)" in repr(tree)


class Wrong(nn.Module):
    """Gives whatever shape it is told."""

    def __init__(self, *shape):
        super().__init__()
        self.shape = shape

    def forward(self, x):
        return torch.zeros(self.shape)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"decision": Wrong(5, 7)}, r"the decision must give \(members, batch, 7\), got \(5, 7\) from Wrong"),
        ({"decision": Wrong(1, 5, 8)}, r"logits must end in an axis of 7 .* shape \(1, 5, 8\)"),
        ({"leaf": Wrong(1, 5, 1, 3)}, r"the leaf must give \(1, 5 or 1, 8, 3\), got \(1, 5, 1, 3\) from Wrong"),
        ({"leaf": Wrong(1, 5, 8, 4)}, r"got \(1, 5, 8, 4\)"),
        ({"leaf": Wrong(5, 8, 3)}, r"got \(5, 8, 3\)"),
    ],
)
def test_modules_of_the_wrong_shape_are_told(parts, message):
    tree = Tree.build(Structure(3), 4, Classes(3))
    for name, module in parts.items():
        setattr(tree, name, module)
    with pytest.raises(ValueError, match=message):
        tree(torch.randn(5, 4))


def test_dropout_acts_in_training_only():
    tree = build(decision_layers=2, leaf_layers=2, dropout=0.5)
    x = torch.randn(5, 4, dtype=torch.float64)
    assert not torch.equal(tree.predict(x), tree.predict(x))
    tree.eval()
    assert torch.equal(tree.predict(x), tree.predict(x))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: build(decision_layers=-1), "decision_layers must be an integer of at least 0, got -1"),
        (lambda: build(decision_layers=1.5), "decision_layers must be .* got 1.5"),
        (lambda: Tree.build(3, 4, Classes(3)), "structure must be a Structure, got 3"),
        (lambda: Classes(2.5), "n_targets must be .* got 2.5"),
        (lambda: build(leaf_layers=0, decision_layers=0)(torch.zeros(4)), r"shape \(4,\)"),
        (lambda: build()(torch.zeros(5, 4, dtype=torch.long)), "int64"),
        (lambda: build(Structure(0))(torch.full((5, 4), torch.nan)), "input must be finite"),
        (lambda: build(leaf_layers=-1), "leaf_layers must be .* got -1"),
        (lambda: build(members=0), "members must be .* got 0"),
        (lambda: build(dropout=1.0), "dropout must be .* got 1.0"),
        (lambda: build(leaf_layers=2, hidden=0), "hidden must be .* got 0"),
        (lambda: build(share="tree", decision_layers=2), "share must be .* got 'tree'"),
        (lambda: build(temperature=0), "temperature must be .* got 0"),
        (lambda: build(temperature="warm"), "temperature must be .* got 'warm'"),
        (lambda: build(branching="hardmax"), "branching must be one of softmax, sigsoftmax, .* got 'hardmax'"),
        (lambda: Classes(0), "n_targets must be .* got 0"),
        (lambda: build()(torch.zeros(5, 3)), r"input must be \(batch, 4\).* shape \(5, 3\)"),
        (lambda: build(members=2)(torch.zeros(3, 5, 4)), r"\(2, batch, 4\).* shape \(3, 5, 4\)"),
    ],
)
def test_bad_input_names_the_value(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "settings", [{}, {"members": 2}, {"leaf_layers": 0}, {"leaf_layers": 2}, {"decision_layers": 2}], ids=str
)
def test_parts_add_up_with_and_without_gradients(settings):
    tree = Tree.build(Structure(3, 3, 2), 4, Classes(3), **settings).double()
    x = torch.randn(5, 4, dtype=torch.float64)
    for with_gradient in (True, False):
        with torch.set_grad_enabled(with_gradient):
            logits, bias, said, said_bias = tree.parts(x)
        torch.testing.assert_close(logits if bias is None else logits + bias.unsqueeze(1), tree.decision(x))
        torch.testing.assert_close(said if said_bias is None else said + said_bias.unsqueeze(1), tree.leaf(x))


@pytest.mark.parametrize("decision_layers", [1, 2])  # with one product for both functions, and without
@pytest.mark.parametrize("n_rows", [1, 2])
def test_the_parts_of_a_tree_say_what_its_functions_say(n_rows, decision_layers):
    """A single row has the shape of constant leaves, to which no bias is added later."""
    tree = Tree.build(Structure(2), 3, Classes(2), decision_layers=decision_layers, leaf_layers=1).eval()
    x = torch.randn(n_rows, 3)
    with torch.no_grad():
        logits, bias, leaf_logits, leaf_bias = tree.parts(x)
        torch.testing.assert_close(logits if bias is None else logits + bias.unsqueeze(1), tree.decision(x))
        complete = leaf_logits if leaf_bias is None else leaf_logits + leaf_bias.unsqueeze(1)
        torch.testing.assert_close(complete, tree.leaf(x))
    assert n_rows > 1 or leaf_bias is None
