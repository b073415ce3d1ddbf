"""Hidden units in one kernel: in Triton's interpreter on a CPU, and compiled where there is a GPU."""

import pytest
import torch
from torch.nn import functional as F

from tartree.nn.hidden_units import FusedUnits, activate

from ..conftest import DEVICE

pytest.importorskip("triton", reason="Triton is not installed")


def draw(members=2, groups=3, hidden=5, batch=37):
    """Units whose rows are no multiple of eight, and their biases."""
    torch.manual_seed(0)
    units = torch.randn(members, groups, hidden, batch, device=DEVICE).requires_grad_()
    return units, torch.randn(members, groups, hidden, device=DEVICE).requires_grad_()


def test_values_and_gradients_are_those_of_torch():
    units, bias = draw()
    given = torch.randn_like(units)
    found = FusedUnits.apply(units, bias, 0.0)
    wanted = F.elu(units + bias.unsqueeze(-1))
    torch.testing.assert_close(found, wanted)
    for own, reference in zip(
        torch.autograd.grad(found, (units, bias), given), torch.autograd.grad(wanted, (units, bias), given), strict=True
    ):
        torch.testing.assert_close(own, reference, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dropout", [0.15, 0.5])
def test_dropout_drops_its_share_and_the_gradient_of_what_it_drops(dropout):
    units, bias = draw(hidden=16, batch=700)
    found = FusedUnits.apply(units, bias, dropout)
    kept = found != 0
    assert abs(1 - kept.double().mean().item() - dropout) < 0.01
    torch.testing.assert_close(
        found[kept], (F.elu(units + bias.unsqueeze(-1)) / (1 - dropout))[kept], rtol=1e-4, atol=1e-5
    )
    wanted = F.elu(units + bias.unsqueeze(-1)) * kept / (1 - dropout)
    given = torch.randn_like(units)
    for own, reference in zip(
        torch.autograd.grad(found, (units, bias), given), torch.autograd.grad(wanted, (units, bias), given), strict=True
    ):
        torch.testing.assert_close(own, reference, atol=1e-3, rtol=1e-4)


def test_units_are_dropped_one_by_one_and_anew_each_time():
    units, bias = torch.ones(1, 1, 16, 1024, device=DEVICE), torch.zeros(1, 16, device=DEVICE)
    first, second = (FusedUnits.apply(units, bias, 0.5) != 0 for _ in range(2))
    for one, other in [(first, second), (first[:, :, 1:], first[:, :, :-1]), (first[..., 1:], first[..., :-1])]:
        assert abs((one == other).double().mean().item() - 0.5) < 0.03  # neither equal nor opposite
    torch.manual_seed(3)
    once = FusedUnits.apply(units, bias, 0.5)
    torch.manual_seed(3)
    assert torch.equal(once, FusedUnits.apply(units, bias, 0.5))


def test_the_plain_way_is_the_same():
    units, bias = draw()
    wanted = F.elu(units + bias.unsqueeze(-1)).detach()
    torch.testing.assert_close(activate(units.detach().clone(), bias.detach(), 0.0), wanted)
