"""Which tensors the kernels take."""

import pytest
import torch

from tartree import Structure
from tartree.ops import backend, fused

from ..conftest import DEVICE
from .sized_tensor import Sized

ON_GPU = DEVICE == "cuda"


def test_who_suits(triton):
    """One thing after another that does not suit, each with its nearest neighbour that does."""
    x = Sized(2, 3)
    assert backend.takes_kernels(x, Structure(3), 10)
    assert not backend.takes_kernels(Sized(2, 3, device="cpu"), Structure(3), 10)
    for dtype in (torch.bfloat16, torch.float16):
        assert backend.takes_kernels(Sized(2, 3, dtype=dtype), Structure(3))
    assert not backend.takes_kernels(Sized(2, 3, dtype=torch.float64), Structure(3))
    assert backend.takes_kernels(x, Structure(3), backend.MAX_CLASSES)
    assert not backend.takes_kernels(x, Structure(3), backend.MAX_CLASSES + 1)
    assert backend.takes_kernels(x, Structure(1, backend.MAX_CHILDREN))
    assert not backend.takes_kernels(x, Structure(1, backend.MAX_CHILDREN + 1))
    assert backend.takes_kernels(x, Structure(backend.MAX_LEVELS, 2, 1))
    assert not backend.takes_kernels(x, Structure(backend.MAX_LEVELS + 1, 2, 1))
    assert not backend.takes_kernels(x, Structure(0))
    assert not backend.takes_kernels(x, Structure(3).without([(3, 2)]))
    triton["triton"] = False
    assert not backend.takes_kernels(x, Structure(3), 10)


def test_a_gpu_suits_by_itself():
    assert backend.takes_kernels(torch.zeros(2, 3, device=DEVICE), Structure(3), 10) is ON_GPU


@pytest.mark.parametrize(
    ("structure", "shape", "n_classes", "suits"),
    [
        (Structure(18), (1024, 784), 10, True),
        (Structure(19), (1, 784), 10, False),  # 65,536 programs along an axis of 65,535, on the way up
        (Structure(12), (524_000, 784), 10, True),
        (Structure(12), (525_000, 784), 10, False),  # more than 2**31 logits of a member
        (Structure(18), (8000, 784), 2, True),
        (Structure(18), (8200, 784), 2, False),
        (Structure(12), (7, 524_000, 784), 10, True),  # members count for themselves
        (Structure(2), (65_536, 4, 8), 2, False),
        (Structure(20, 2, 1), (1024, 8), 2, True),
        (Structure(7, 3, 2), (2**21, 8), 2, True),
        (Structure(7, 3, 2), (2**23, 8), 2, False),
        (Structure(2), (2**25, 8), 64, False),
        (Structure(12), (4095,), 1, True),
    ],
    ids=str,
)
def test_sizes_that_cannot_be_launched_or_counted(structure, shape, n_classes, suits, triton):
    assert backend.takes_kernels(Sized(*shape), structure, n_classes) is suits
    if suits:
        batch = shape[-2] if len(shape) > 1 else 1
        for predicts in (False, True):
            plan = fused._Plan(structure, batch, 1, n_classes, predicts, False)
            assert not plan.is_binary or 1 << (structure.depth - plan.tiers[0]) < 2**16
