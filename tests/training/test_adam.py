import subprocess
import sys

import pytest
import torch

from tartree.training.adam import Adam


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_it_is_the_adam_of_torch(decay):
    start = [torch.randn(3, 4), torch.randn(5)]
    ours = [p.clone().requires_grad_() for p in start]
    theirs = [p.clone().requires_grad_() for p in start]
    adam, reference = Adam([(ours, decay)]), torch.optim.AdamW(theirs, lr=0.1, weight_decay=decay, fused=True)
    for step in range(5):
        for parameters in (ours, theirs):
            torch.manual_seed(step)
            sum((p * torch.randn(p.shape)).square().sum() for p in parameters).backward()
        reference.param_groups[0]["lr"] = 0.1 / (step + 1)
        adam.step(0.1 / (step + 1))
        reference.step()
        adam.zero_grad()
        reference.zero_grad()
        for mine, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(mine, other, rtol=0, atol=0)


def test_a_fit_does_not_load_the_compiler():
    code = """
import sys
from sklearn.datasets import load_iris
from tartree import TartClassifier
TartClassifier(depth=1, epochs=1, device="cpu").fit(*load_iris(return_X_y=True))
assert "torch._dynamo" not in sys.modules and "sympy" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
