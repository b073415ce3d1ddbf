"""Every backend equals the reference, values and gradients; the laws of the paper hold."""

import math

import pytest
import torch
from torch.nn import functional as F

from tartree import Structure, ops
from tartree.ops import native

from ..conftest import IRREGULAR
from ..optional import given, st
from ..test_structure import structures

SHAPES = [(window, stride) for window in range(2, 6) for stride in range(1, window + 1)]


def with_gradient(function, logits, weights):
    """Arrivals at all layers, and the gradient of a random weighting of them."""
    logits = logits.detach().requires_grad_()
    arrivals = function(logits)
    outcome = sum((a * w).sum() for a, w in zip(arrivals, weights, strict=True))
    gradient = torch.autograd.grad(outcome, logits)[0] if logits.numel() else torch.zeros_like(logits)
    return arrivals, gradient


def assert_equal_to_reference(structure, lead):
    logits = 2 * torch.randn(*lead, structure.n_logits, dtype=torch.float64)
    weights = [torch.randn(*lead, width, dtype=torch.float64) for width in structure.widths]
    arrivals, gradient = with_gradient(lambda z: ops.arrival(z, structure, layers=True), logits, weights)
    only_leaves, leaf_gradient = with_gradient(lambda z: [ops.arrival(z, structure)], logits, weights[-1:])
    through_branching, branching_gradient = with_gradient(
        lambda z: ops.spread(ops.branch(z, structure), structure, layers=True), logits, weights
    )
    # The reference holds dense matrices: row by row, so that the widest structures fit.
    rows = logits.reshape(math.prod(lead), structure.n_logits)
    for i, row in enumerate(rows):
        own = [w.reshape(math.prod(lead), -1)[i] for w in weights]
        expected, expected_gradient = with_gradient(
            lambda z: ops.arrival(z, structure, layers=True, backend="reference"), row, own
        )
        for d, want in enumerate(expected):
            for got in (arrivals, through_branching):
                torch.testing.assert_close(got[d].reshape(math.prod(lead), -1)[i], want, rtol=0, atol=1e-10)
        for got in (gradient, branching_gradient):
            torch.testing.assert_close(got.reshape(math.prod(lead), -1)[i], expected_gradient, rtol=0, atol=1e-10)
        _, expected_gradient = with_gradient(lambda z: [ops.arrival(z, structure, backend="reference")], row, own[-1:])
        torch.testing.assert_close(only_leaves[0].reshape(math.prod(lead), -1)[i], expected[-1], rtol=0, atol=1e-10)
        torch.testing.assert_close(leaf_gradient.reshape(math.prod(lead), -1)[i], expected_gradient, rtol=0, atol=1e-10)
    for d, a in enumerate(arrivals):
        assert a.shape == (*lead, structure.widths[d])


@pytest.mark.parametrize("depth", range(7))
@pytest.mark.parametrize(("window", "stride"), SHAPES)
def test_native_equals_reference(window, stride, depth):
    structure = Structure(depth, window, stride)
    large = structure.n_leaves > 2000  # the reference needs a quarter of a second a row there
    for lead in [(1, 0), (1, 1), (2, 3)] if large else [(0,), (1,), (3,), (1, 3), (2, 5), (3, 1), (2, 0)]:
        assert_equal_to_reference(structure, lead)


@pytest.mark.parametrize("name", IRREGULAR)
def test_irregular_equals_reference(name):
    for lead in [(), (0,), (3,), (2, 5)]:
        assert_equal_to_reference(IRREGULAR[name], lead)


@given(structures(), st.integers(0, 3))
def test_any_structure_equals_reference(structure, batch):
    assert_equal_to_reference(structure, (batch,))


@pytest.mark.parametrize(("window", "stride"), SHAPES)
def test_gradcheck(window, stride):
    structure = Structure(3 if window < 4 else 2, window, stride)
    logits = torch.randn(2, 2, structure.n_logits, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda z: tuple(ops.arrival(z, structure, layers=True)), logits)
    branching = torch.rand(2, structure.n_branches, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda b: tuple(ops.spread(b, structure, layers=True)), branching)


@pytest.mark.parametrize("name", IRREGULAR)
def test_gradcheck_irregular(name):
    structure = IRREGULAR[name]
    logits = torch.randn(2, structure.n_logits, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda z: tuple(ops.arrival(z, structure, layers=True)), logits)


@pytest.mark.parametrize(("window", "stride"), SHAPES)
def test_tconv_is_a_transposed_convolution(window, stride):
    nodes = 7
    arrival = torch.rand(2, 3, nodes, dtype=torch.float64)
    branching = torch.rand(2, 3, nodes, window, dtype=torch.float64)
    # Channel j of the input is what goes to child j; the kernel of that channel is one-hot at j.
    channels = (arrival.unsqueeze(-1) * branching).flatten(0, 1).transpose(-1, -2)
    kernel = torch.eye(window, dtype=torch.float64).unsqueeze(1)
    want = F.conv_transpose1d(channels, kernel, stride=stride).reshape(2, 3, -1)
    torch.testing.assert_close(ops.tconv(arrival, branching, stride), want, rtol=0, atol=1e-12)


@given(structures(), st.integers(0, 2**32 - 1))
def test_laws(structure, seed):
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(4, structure.n_logits, dtype=torch.float64, generator=generator)
    for p in ops.arrival(logits, structure, layers=True):
        assert (p >= 0).all()
        torch.testing.assert_close(p.sum(-1), torch.ones(4, dtype=torch.float64))
    product = torch.eye(1, dtype=torch.float64)
    for matrix in ops.transition_matrices(ops.branch(logits, structure), structure):
        product = matrix @ product
        for transition in (matrix, product):
            assert (transition >= 0).all()
            torch.testing.assert_close(transition.sum(-2), torch.ones_like(transition.sum(-2)))
    torch.testing.assert_close(product.squeeze(-1).expand(4, -1), ops.arrival(logits, structure))


def test_a_chain_of_tconv_is_arrival():
    structure = Structure(3, 3, 2)
    logits = torch.randn(5, structure.n_logits)
    branching = ops.branch(logits, structure).split(structure.layer_branches, dim=-1)
    p = torch.ones(5, 1)
    for b in branching:
        p = ops.tconv(p, b.unflatten(-1, (-1, 3)), stride=2)
    torch.testing.assert_close(p, ops.arrival(logits, structure))


@pytest.mark.parametrize(("window", "stride"), [(2, 2), (3, 2), (4, 4), (2, 1)])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_extreme_logits_stay_finite(window, stride, dtype):
    structure = Structure(5, window, stride)
    logits = (torch.randint(-1, 2, (64, structure.n_logits)) * 1e4).to(dtype).requires_grad_()
    p = ops.arrival(logits, structure)
    p.float().square().sum().backward()
    assert p.dtype == logits.grad.dtype == dtype
    assert torch.isfinite(p).all()
    assert torch.isfinite(logits.grad).all()
    torch.testing.assert_close(p.float().sum(-1), torch.ones(64), rtol=0, atol=2e-2 if dtype != torch.float32 else 1e-5)


def test_half_precision_is_computed_in_single_precision():
    structure = Structure(12)
    logits = torch.randn(4, structure.n_logits).to(torch.bfloat16)
    torch.testing.assert_close(
        ops.arrival(logits, structure), ops.arrival(logits.float(), structure).to(torch.bfloat16), rtol=0, atol=0
    )


@pytest.mark.parametrize("structure", [Structure(2), Structure(2, 3, 2), IRREGULAR["mixed fans"]], ids=str)
def test_second_derivatives_are_refused_and_the_reference_has_them(structure):
    logits = torch.randn(2, structure.n_logits, dtype=torch.float64, requires_grad=True)
    value = ops.arrival(logits, structure).square().sum()
    with pytest.raises(NotImplementedError, match="backend='reference'"):
        torch.autograd.grad(value, logits, create_graph=True)
    assert torch.autograd.gradgradcheck(lambda z: ops.arrival(z, structure, backend="reference"), logits)


def test_depth_20_stays_finite():
    structure = Structure(20)
    logits = (torch.randn(2, structure.n_logits) * 1e4).requires_grad_()
    p = ops.arrival(logits, structure)
    p.square().sum().backward()
    assert torch.isfinite(p).all()
    assert torch.isfinite(logits.grad).all()
    torch.testing.assert_close(p.sum(-1), torch.ones(2))


def test_small_probabilities_are_not_rounded_away():
    p = ops.arrival(torch.tensor([30.0]), Structure(1))
    assert p[1].item() == pytest.approx(9.357623e-14, rel=1e-5, abs=0)


def test_nothing_is_copied_when_memory_is_already_right():
    structure = Structure(4)
    logits = torch.randn(structure.n_logits, 8)  # nodes-first memory
    assert native._nodes_first(logits.t()).data_ptr() == logits.data_ptr()
    assert native._nodes_first(torch.randn(8, structure.n_logits)).shape == logits.shape


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ops.arrival(torch.zeros(4, 6), Structure(3)), r"logits must end in an axis of 7 .* shape=\(4, 6\)"),
        (lambda: ops.arrival(torch.tensor([0.0, torch.nan, 1.0]), Structure(2)), "1 of 3 are NaN"),
        (lambda: ops.arrival(torch.tensor([torch.inf, -torch.inf, 1.0]), Structure(2)), "2 of 3 are NaN or infinite"),
        (lambda: ops.branch(torch.full((3,), torch.nan), Structure(2)), "3 of 3"),
        (lambda: ops.spread(torch.zeros(5), Structure(2)), r"branching must end in an axis of 6"),
        (lambda: ops.spread(torch.full((6,), torch.nan), Structure(2)), "branching must be finite, got 6 of 6"),
        (lambda: ops.arrival(torch.zeros(3), Structure(2), backend="fast"), "got 'fast'"),
        (lambda: ops.tconv(torch.ones(2), torch.ones(3, 2), 2), r"shapes \(2,\) and \(3, 2\)"),
        (lambda: ops.tconv(torch.ones(2), torch.ones(2, 2), 3), "stride=3"),
        (lambda: ops.tconv(torch.ones(2), torch.ones(2, 2), 0), "stride=0"),
    ],
)
def test_bad_input_names_the_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_an_overflowing_sum_of_finite_logits_is_no_error():
    assert torch.isfinite(ops.arrival(torch.full((4, 3), 3e38), Structure(2))).all()
