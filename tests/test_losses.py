import copy

import pytest
import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from tartree import Structure, losses
from tartree.nn import Classes, Gaussian, Tree, Values

from .conftest import IRREGULAR
from .nn.test_tree import build, target_of

OUTPUTS = [Classes(3), Values(2), Gaussian(2)]


def costs_by_hand(output, numbers, target):
    """(members, batch, leaves), each entry by a textbook formula."""
    members, _, leaves, _ = numbers.shape
    batch = target.shape[0]
    result = torch.empty(members, batch, leaves, dtype=torch.float64)
    for m in range(members):
        for b in range(batch):
            for u in range(leaves):
                own = numbers[m, b if numbers.shape[1] > 1 else 0, u]
                if isinstance(output, Classes):
                    result[m, b, u] = F.cross_entropy(own[None], target[b, None])
                elif isinstance(output, Values):
                    result[m, b, u] = ((own - target[b]) ** 2).sum() / 2
                else:
                    mean, spread = output.parameters(own)
                    error = (target[b] - mean).square()
                    result[m, b, u] = (error / 2 + error / (2 * spread.square()) + spread.log()).sum()
    return result


def likelihoods_by_hand(output, numbers, target):
    """(members, batch, leaves): the negative log likelihood, which is the cost of all outputs but Gaussians."""
    if not isinstance(output, Gaussian):
        return costs_by_hand(output, numbers, target)
    mean, spread = output.parameters(numbers)  # (members, batch or 1, leaves, targets)
    return -torch.distributions.Normal(mean, spread).log_prob(target[:, None]).sum(-1)


@pytest.mark.parametrize("output", OUTPUTS, ids=str)
@pytest.mark.parametrize("leaf_layers", [0, 1])
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_by_hand(output, leaf_layers, weighted):
    tree = build(Structure(2, 3, 2), output, leaf_layers=leaf_layers, members=2)
    x = torch.randn(5, 4, dtype=torch.float64)
    y = target_of(output, 5)
    leaves = tree(x)
    weight = torch.rand(5, dtype=torch.float64) if weighted else None
    share = weight / weight.sum() if weighted else torch.full((5,), 0.2, dtype=torch.float64)
    cost = costs_by_hand(output, leaves.numbers, y)
    torch.testing.assert_close(output.cost(leaves.numbers, y), cost)
    p = leaves.arrival
    want = ((p * cost).sum(-1) * share).sum(-1)
    torch.testing.assert_close(losses.expected(leaves, y, output, weight), want)
    cost = likelihoods_by_hand(output, leaves.numbers, y)
    want = (-(p * (-cost).exp()).sum(-1).log() * share).sum(-1)
    torch.testing.assert_close(losses.mixture(leaves, y, output, weight), want)
    want = (torch.take_along_dim(cost, p.argmax(-1, keepdim=True), -1).squeeze(-1) * share).sum(-1)
    torch.testing.assert_close(losses.selected(leaves, y, output, weight), want)
    assert (losses.mixture(leaves, y, output, weight) <= ((p * cost).sum(-1) * share).sum(-1) + 1e-12).all()


def test_a_mean_learns_by_its_squared_error_alone():
    output = Gaussian(1)
    numbers = torch.tensor([[[[0.3, 5.0], [-2.0, -3.0]]]], dtype=torch.float64, requires_grad=True)
    target = torch.tensor([[1.5]], dtype=torch.float64)
    mean, spread = output.parameters(numbers)
    output.cost(numbers, target).sum().backward()
    torch.testing.assert_close(numbers.grad[..., 0], (mean - target[:, None])[..., 0].detach())  # whatever the spread
    likelihood = -torch.distributions.Normal(mean.detach(), spread).log_prob(target[:, None]).sum()
    (own,) = torch.autograd.grad(likelihood, numbers)
    torch.testing.assert_close(numbers.grad[..., 1], own[..., 1])  # the spread learns by likelihood


def test_means_stay_within_limits_in_predictions_alone():
    limited, free = Gaussian(2, [(-1.0, 1.0), (0.0, 0.5)]), Gaussian(2)
    numbers = 3 * torch.randn(2, 5, 4, 4, dtype=torch.float64)
    target = torch.randn(5, 2, dtype=torch.float64)
    torch.testing.assert_close(limited.cost(numbers, target), free.cost(numbers, target))
    mean, spread = limited.parameters(numbers)
    own, same = free.parameters(numbers)
    low, high = torch.tensor([-1.0, 0.0], dtype=torch.float64), torch.tensor([1.0, 0.5], dtype=torch.float64)
    torch.testing.assert_close(mean, own.clamp(low, high))
    torch.testing.assert_close(spread, same)
    torch.testing.assert_close(limited.mean(numbers)[..., :2], mean)
    for wrong in ([(0.0, 1.0)], [(0.0, 1.0), (2.0, 1.0)]):
        with pytest.raises(ValueError, match="limits must be 2 pairs of a low and a high number, got"):
            Gaussian(2, wrong)


#: The cost of a Gaussian holds its error fixed where the spread learns, so no difference quotient equals its gradient.
GRADIENTS = [
    (output, loss)
    for output in OUTPUTS
    for loss in (losses.expected, losses.mixture)
    if not (isinstance(output, Gaussian) and loss is losses.expected)
]


@pytest.mark.parametrize(("output", "loss"), GRADIENTS, ids=lambda part: getattr(part, "__name__", str(part)))
@pytest.mark.parametrize("leaf_layers", [0, 1])
def test_gradcheck(output, loss, leaf_layers):
    tree = build(Structure(2), output, leaf_layers=leaf_layers)
    x, y = torch.randn(3, 4, dtype=torch.float64), target_of(output, 3)

    def run(*parameters):
        named = dict(zip(dict(tree.named_parameters()), parameters, strict=True))
        return loss(torch.func.functional_call(tree, named, (x,)), y, output)

    assert torch.autograd.gradcheck(run, tuple(tree.parameters()))


def test_own_targets_and_weights_of_members():
    output = Classes(3)
    for leaf_layers in (0, 1):
        tree = build(output=output, leaf_layers=leaf_layers, members=2)
        x, y = torch.randn(2, 5, 4, dtype=torch.float64), torch.randint(3, (2, 5))
        weight = torch.rand(2, 5, dtype=torch.float64)
        for loss in (losses.expected, losses.mixture, losses.selected):
            together = loss(tree(x), y, output, weight)
            for m in range(2):
                leaves = tree(x[m])
                alone = loss(leaves, y[m], output, weight[m])
                torch.testing.assert_close(alone[m], together[m])


def test_rows_without_weight_do_not_count():
    output = Classes(3)
    tree = build(output=output)
    x, y = torch.randn(6, 4, dtype=torch.float64), torch.randint(3, (6,))
    weight = torch.tensor([1.0, 1, 1, 0, 0, 0], dtype=torch.float64)
    torch.testing.assert_close(losses.expected(tree(x), y, output, weight), losses.expected(tree(x[:3]), y[:3], output))
    nothing = losses.expected(tree(x), y, output, torch.zeros(6, dtype=torch.float64))
    assert nothing.item() == 0


def test_an_empty_batch_costs_nothing():
    for leaf_layers in (0, 1):
        tree = build(leaf_layers=leaf_layers)
        x, y = torch.zeros(0, 4, dtype=torch.float64), torch.zeros(0, dtype=torch.long)
        for loss in (losses.expected, losses.mixture, losses.selected):
            assert loss(tree(x), y, tree.output).tolist() == [0.0]


def balance_by_hand(arrivals, branching, structure):
    total, position = 0.0, 0
    for d in range(structure.depth):
        for i, n_children in enumerate(structure.n_children(d)):
            if n_children == 1:
                continue
            p = arrivals[d][0, :, i]
            for _ in range(n_children):
                alpha = (p * branching[0, :, position]).sum() / p.sum()
                total -= alpha.log() / n_children / structure.widths[d]
                position += 1
    return total


@pytest.mark.parametrize("structure", [Structure(3), Structure(2, 3, 2), IRREGULAR["mixed fans"]], ids=str)
def test_balance_by_hand(structure):
    tree = build(structure)
    x = torch.randn(7, 4, dtype=torch.float64)
    branching = tree.branching.probabilities(tree.decision(x))
    penalty = losses.balance(tree.arrivals(x), branching, structure)
    torch.testing.assert_close(penalty[0], balance_by_hand(tree.arrivals(x), branching, structure))
    penalty.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in tree.decision.parameters())


def test_balance_is_least_for_even_splits():
    structure = Structure(3)
    even = Tree.build(structure, 4, Classes(2), decision_layers=0)
    x = torch.randn(7, 4)
    least = losses.balance(even.arrivals(x), even.branching.probabilities(even.decision(x)), structure)
    assert least.item() == pytest.approx(3 * torch.tensor(2.0).log().item())
    other = Tree.build(structure, 4, Classes(2))
    assert losses.balance(other.arrivals(x), other.branching.probabilities(other.decision(x)), structure) > least


@pytest.mark.parametrize("loss", [losses.expected, losses.mixture])
@pytest.mark.parametrize("leaf_layers", [0, 1])
@pytest.mark.parametrize("output", OUTPUTS, ids=str)
def test_extreme_parameters_stay_finite(loss, leaf_layers, output):
    tree = Tree.build(Structure(6), 4, output, leaf_layers=leaf_layers)
    with torch.no_grad():
        for p in tree.decision.parameters():
            p.mul_(1e4)
        for p in tree.leaf.parameters():
            p.mul_(1e3)
    y = target_of(output, 32).to(torch.float32) if not isinstance(output, Classes) else target_of(output, 32)
    value = loss(tree(torch.randn(32, 4)), y, output)
    value.sum().backward()
    assert torch.isfinite(value).all()
    assert all(torch.isfinite(p.grad).all() for p in tree.parameters())
    branching = tree.branching.probabilities(tree.decision(torch.randn(32, 4)))
    assert torch.isfinite(losses.balance(tree.arrivals(torch.randn(32, 4)), branching, tree.structure)).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("leaf_layers", [0, 1])
def test_half_precision_is_close_to_single_precision(dtype, leaf_layers):
    tree = Tree.build(Structure(14), 4, Classes(3), leaf_layers=leaf_layers)
    half = copy.deepcopy(tree).to(dtype)
    x, y = torch.randn(16, 4), torch.randint(3, (16,))
    for loss in (losses.expected, losses.mixture):
        assert loss(half(x.to(dtype)), y, tree.output).item() == pytest.approx(
            loss(tree(x), y, tree.output).item(), rel=0.1
        )
    penalties = [
        losses.balance(t.arrivals(v), t.branching.probabilities(t.decision(v)), t.structure).item()
        for t, v in ((tree, x), (half, x.to(dtype)))
    ]
    assert penalties[1] == pytest.approx(penalties[0], rel=0.1)


def test_nodes_that_nobody_reaches_cost_nothing():
    tree = Tree.build(Structure(3), 4, Classes(2))
    x = torch.zeros(0, 4)
    penalty = losses.balance(tree.arrivals(x), tree.branching.probabilities(tree.decision(x)), tree.structure)
    assert penalty.tolist() == [0.0]


@pytest.mark.parametrize(
    ("output", "target", "message"),
    [
        (
            Classes(3),
            torch.zeros(5, 1, dtype=torch.long),
            r"\(5,\) or \(1, 5\), got torch.int64 of shape \(5, 1\)",
        ),
        (Classes(3), torch.zeros(4, dtype=torch.long), r"shape \(4,\)"),
        (Classes(3), torch.zeros(5), "class numbers"),
        (Classes(3), torch.full((5,), 3), "from 0 to 2, got 3 to 3"),
        (Classes(3), torch.tensor([0, 1, 2, -1, 0]), "from 0 to 2, got -1 to 2"),
        (Values(1), torch.zeros(5), r"\(5, 1\) or \(1, 5, 1\), got torch.float32 of shape \(5,\)"),
        (Values(1), torch.zeros(5, 2), r"shape \(5, 2\)"),
        (Gaussian(2), torch.zeros(1, 2), r"shape \(1, 2\)"),
        (Gaussian(2), torch.zeros(5, 2, dtype=torch.long), "real numbers"),
    ],
)
@pytest.mark.parametrize("loss", [losses.expected, losses.mixture, losses.selected])
@pytest.mark.parametrize("leaf_layers", [0, 1])
def test_wrong_targets_name_the_shape(output, target, message, loss, leaf_layers):
    tree = build(output=output, leaf_layers=leaf_layers)
    with pytest.raises(ValueError, match=message):
        loss(tree(torch.zeros(5, 4, dtype=torch.float64)), target, output)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.int64])
def test_weights_of_any_type(dtype):
    for leaf_layers in (0, 1):
        tree = Tree.build(Structure(2), 4, Classes(2), leaf_layers=leaf_layers)
        x, y = torch.randn(3, 4), torch.tensor([0, 1, 1])
        weighted = losses.expected(tree(x), y, tree.output, torch.tensor([1, 2, 0]).to(dtype))
        repeated = losses.expected(tree(x[[0, 1, 1]]), y[[0, 1, 1]], tree.output)
        torch.testing.assert_close(weighted, repeated)


def test_half_precision_stays_finite():
    tree = Tree.build(Structure(6), 4, Classes(3), leaf_layers=1).to(torch.bfloat16)
    value = losses.expected(tree(torch.randn(32, 4).to(torch.bfloat16)), torch.randint(3, (32,)), tree.output)
    value.sum().backward()
    assert torch.isfinite(value).all()
    assert all(torch.isfinite(p.grad).all() for p in tree.parameters())


class LargestTensor(TorchDispatchMode):
    """Remembers the most elements that any result of an operation had."""

    def __init__(self):
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in torch.utils._pytree.tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self.elements = max(self.elements, tensor.numel())
        return result


@pytest.mark.parametrize("loss", [losses.expected, losses.mixture, losses.selected])
def test_constant_leaves_are_not_expanded(loss):
    batch, classes = 64, 50
    tree = Tree.build(Structure(6), 4, Classes(classes), leaf_layers=0)
    x, y = torch.randn(batch, 4), torch.randint(classes, (batch,))
    with LargestTensor() as largest:
        value = loss(tree(x), y, tree.output).sum()
        if loss is not losses.selected:
            value.backward()
        tree.predict(x)
        tree.predict(x, "single")
    assert largest.elements <= batch * max(2 * 64, classes)


def test_many_targets_of_constant_leaves_are_not_expanded():
    batch, targets = 64, 50
    for output in (Values(targets), Gaussian(targets)):
        tree = Tree.build(Structure(6), 4, output, leaf_layers=0)
        with LargestTensor() as largest:
            losses.expected(tree(torch.randn(batch, 4)), torch.randn(batch, targets), output).sum().backward()
        assert largest.elements <= batch * 2 * 64


def test_wrong_weight_shape():
    tree = build()
    with pytest.raises(ValueError, match=r"weight must be \(5,\) or \(1, 5\), got \(4,\)"):
        losses.expected(
            tree(torch.zeros(5, 4, dtype=torch.float64)), torch.zeros(5, dtype=torch.long), tree.output, torch.ones(4)
        )
