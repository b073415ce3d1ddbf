"""What outputs tell of themselves agrees with what they compute."""

import numpy as np
import pytest
import torch

from tartree.nn import Classes, Gaussian, Values
from tartree.nn.outputs import OUTPUTS

EXAMPLES = [
    Classes(2),
    Classes(3),
    Values(1),
    Values(2),
    Gaussian(1),
    Gaussian(2),
    Gaussian(2, [(-1.0, 1.0), (0.0, 0.5)]),
]


def test_every_output_has_an_example():
    assert {output.kind for output in EXAMPLES} == set(OUTPUTS)


@pytest.mark.parametrize("output", EXAMPLES, ids=str)
def test_the_facts_hold(output):
    raw = 3 * torch.randn(2, 5, 4, output.n_numbers, dtype=torch.float64)
    mean, point = output.mean(raw), output.point(raw)
    assert point.shape == (2, 5, 4, output.n_targets)
    torch.testing.assert_close(point, mean[..., : output.n_targets])
    assert mean.shape[-1] == output.n_targets * (2 if output.has_spread else 1)
    assert output.is_classes == bool(torch.allclose(point.sum(-1), torch.ones(2, 5, 4, dtype=torch.float64)))
    if output.has_linear_mean and output.limits is None:
        torch.testing.assert_close(point, raw[..., : output.n_targets])
    if output.has_spread:
        spread = mean[..., output.n_targets :] - point.square()
        assert (spread >= output.floor**2 * (1 - 1e-6)).all()
    assert (point - point.flip(1)).abs().max() <= output.max_change


@pytest.mark.parametrize("output", EXAMPLES, ids=str)
def test_functions_have_names(output):
    functions = output.functions()
    assert functions.shape[1] == output.n_numbers
    assert len(output.function_names([f"y{k}" for k in range(output.n_targets)])) == len(functions)
    if output.is_classes:  # the same for logits that differ by a constant
        np.testing.assert_allclose(functions.sum(axis=1), 0, atol=1e-12)


@pytest.mark.parametrize("output", EXAMPLES, ids=str)
def test_quantiles_need_a_spread(output):
    raw, arrival = torch.randn(1, 1, 2, output.n_numbers), torch.full((1, 3, 2), 0.5)
    levels = torch.tensor([0.1, 0.9])
    if output.has_spread:
        low, high = output.quantiles(arrival, raw, levels).unbind(1)
        assert (low < high).all()
    else:
        with pytest.raises(TypeError, match="the leaves must hold a spread"):
            output.quantiles(arrival, raw, levels)


@pytest.mark.parametrize("output", EXAMPLES, ids=str)
def test_the_gradient_of_the_cost_is_exact_if_it_says_so(output):
    raw = torch.randn(1, 2, 3, output.n_numbers, dtype=torch.float64, requires_grad=True)
    target = torch.tensor([0, 1]) if output.is_classes else torch.randn(2, output.n_targets, dtype=torch.float64)
    check = torch.autograd.gradcheck(lambda z: output.cost(z, target), raw, raise_exception=False)
    assert check is output.has_exact_gradient
