"""The pretend device says what a GPU says, and computes what the CPU computes."""

import copy
import pickle

import pytest
import torch

from .pretend_device import DEVICE, PretendTensor, pretend_device


@pytest.fixture(autouse=True)
def _on_device():
    with pretend_device():
        yield


@pytest.fixture
def x():
    return torch.arange(6.0).view(2, 3).to(DEVICE)


@pytest.mark.parametrize(
    "mixed",
    [
        lambda x: x + torch.ones(3),
        lambda x: torch.ones(3) * x,
        lambda x: x @ torch.ones(3, 2),
        lambda x: torch.cat([x, torch.ones(1, 3)]),
        lambda x: x.index_select(0, torch.tensor([1])),
        lambda x: torch.ones(2, 3)[x[0, :2].long()],
        lambda x: torch.zeros(()).add_(x[0, 0]),
        lambda x: torch.where(torch.ones(2, 3, dtype=torch.bool), x, 0.0),
        lambda x: torch.stack([x[0, 0], torch.tensor(1.0)]),
        lambda x: x.uniform_(generator=torch.Generator()),
        lambda x: torch.rand(3, generator=torch.Generator(), device=x.device),
    ],
)
def test_devices_are_not_mixed(x, mixed):
    with pytest.raises(RuntimeError, match=r"device"):
        mixed(x)


@pytest.mark.parametrize(
    "allowed",
    [
        lambda x: x + torch.tensor(1.0),
        lambda x: torch.tensor(2.0) * x,
        lambda x: x[torch.tensor([1, 0])],
        lambda x: x[torch.tensor([True, False])],
        lambda x: x.masked_fill(x > 2, 0.0),
        lambda x: torch.where(x > 2, x, 0.0),
        lambda x: x.new_zeros(3).copy_(torch.ones(3)),
        lambda x: torch.zeros(2, 3).copy_(x),
        lambda x: torch.tensor([1.0, 2.0], device=x.device),
        lambda x: x.sum().item(),
        lambda x: torch.sigmoid(x, out=torch.empty_like(x)),
        lambda x: torch.einsum("ij,kj->ik", x, x),
    ],
)
def test_a_gpu_would_allow_it(x, allowed):
    """And the values are those of the CPU."""
    result, expected = allowed(x), allowed(x.cpu())
    if isinstance(result, torch.Tensor):
        assert result.shape == expected.shape
        result, expected = result.cpu(), expected.cpu()
        assert not isinstance(result, PretendTensor)
        torch.testing.assert_close(result, expected, rtol=0, atol=0)
    else:
        assert result == expected


def test_numpy_is_refused(x):
    with pytest.raises(TypeError, match=r"Use Tensor.cpu\(\) first"):
        x.numpy()


def test_views_share_memory(x):
    x[0].add_(10)
    x.t()[2].zero_()
    assert x.tolist() == [[10, 11, 0], [3, 4, 0]]


def test_a_copy_to_the_device_is_a_copy():
    source = torch.zeros(3)
    copied = source.to(DEVICE)
    copied.add_(1)
    back = copied.cpu()
    copied.add_(1)
    assert (source.tolist(), back.tolist(), copied.tolist()) == ([0, 0, 0], [1, 1, 1], [2, 2, 2])


def test_gradients(x):
    weight = torch.nn.Parameter(torch.ones(3, 1))
    (x.cpu() @ weight).square().sum().backward()
    layer = torch.nn.Linear(3, 1, bias=False)
    torch.nn.init.ones_(layer.weight)
    layer.to(DEVICE)
    layer(x).square().sum().backward()
    assert isinstance(layer.weight, torch.nn.Parameter)
    assert layer.weight.grad.device == DEVICE
    torch.testing.assert_close(layer.weight.grad.cpu(), weight.grad.t())


def test_modules_are_copied_and_loaded():
    layer = torch.nn.Linear(3, 1).to(DEVICE)
    for again in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert again.weight.device == DEVICE
        assert again.weight.data_ptr() != layer.weight.data_ptr()
        torch.testing.assert_close(again.cpu().weight, copy.deepcopy(layer).cpu().weight)
    other = torch.nn.Linear(3, 1)
    layer.load_state_dict(other.state_dict())
    torch.testing.assert_close(layer.cpu().weight, other.weight)
