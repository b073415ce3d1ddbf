"""The least that a step or a prediction needs: its matrix products, one copy of the logits, and Adam."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from timing.clock import Clock
from timing.work import Work


def make_floors(work: Work, clock: Clock, *, tf32: bool = False) -> dict[str, Callable[[], Any]]:
    """Functions "products", "step" and "predict"; on a GPU each is one CUDA graph.

    "products" are both products with a copy of the logits, as "step" is, which has Adam too; "predict" is the forward
    product and the copy. Linear leaves have their own products.
    """
    device = clock.device
    units = work.members * work.structure.n_logits
    if work.leaf_layers:
        units += work.members * work.structure.n_leaves * work.classes
    x = torch.randn(work.batch, work.features, device=device)
    weight = nn.Parameter(torch.randn(units, work.features, device=device))
    weight.grad = torch.randn_like(weight)
    logits = torch.empty(units, work.batch, device=device)
    copied = torch.empty_like(logits)
    adam = torch.optim.Adam([weight], fused=True, capturable=device.type == "cuda")
    gradient: Tensor = weight.grad

    @torch.no_grad()
    def products() -> None:
        torch.mm(weight, x.t(), out=logits)
        copied.copy_(logits)
        torch.mm(copied, x, out=gradient)

    def step() -> None:
        products()
        adam.step()

    @torch.no_grad()
    def predict() -> None:
        torch.mm(weight, x.t(), out=logits)
        copied.copy_(logits)

    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = tf32
    try:
        return {name: clock.captured(f) for name, f in (("products", products), ("step", step), ("predict", predict))}
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def make_plain(work: Work, clock: Clock) -> dict[str, Callable[[], Any]]:
    """A soft tree as one would write it in torch: one product for all nodes, a loop over layers, autograd; eager."""
    device = clock.device
    linear = nn.Linear(work.features, work.structure.n_decisions, device=device)
    leaves = nn.Parameter(torch.randn(work.structure.n_leaves, work.classes, device=device))
    x = torch.randn(work.batch, work.features, device=device)
    y = torch.randint(work.classes, (work.batch,), device=device)
    adam = torch.optim.Adam([*linear.parameters(), leaves], fused=True)

    def arrival() -> Tensor:
        right = torch.sigmoid(linear(x))
        reached = right.new_ones(work.batch, 1)
        for d in range(work.depth):
            own = right[:, 2**d - 1 : 2 ** (d + 1) - 1]
            reached = torch.stack([reached * own, reached * (1 - own)], dim=2).flatten(1)
        return reached

    def step() -> None:
        adam.zero_grad()
        (arrival() * -leaves.log_softmax(1)[:, y].t()).sum(1).mean().backward()
        adam.step()

    def predict() -> Tensor:
        with torch.no_grad():
            return arrival() @ leaves.softmax(1)

    return {"step": step, "predict": predict}
