"""Lower bounds of a step and a prediction: the matrix products, one copy of the logits, and Adam."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tartree.training import Recipe
from tartree.training.step import precision
from timing.clock import Clock
from timing.work import Work


def make_floors(work: Work, clock: Clock, *, tf32: bool = False) -> dict[str, Callable[[], Any]]:
    """Return functions "products", "step" and "predict"; on a GPU each is one CUDA graph.

    "products" has both products and a copy of the logits; "step" adds Adam; "predict" is the forward product and the
    copy. Linear leaves add their products.
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

    with precision(Recipe(precision="tf32" if tf32 else "single"), device):
        return {name: clock.captured(f) for name, f in (("products", products), ("step", step), ("predict", predict))}


class PlainTree(nn.Module):
    """A soft tree in plain torch: one product for all nodes, a loop over layers, autograd."""

    def __init__(self, work: Work, device: torch.device) -> None:
        super().__init__()
        self.depth = work.depth
        self.linear = nn.Linear(work.features, work.structure.n_decisions, device=device)
        self.leaves = nn.Parameter(torch.randn(work.structure.n_leaves, work.classes, device=device))

    def arrival(self, x: Tensor) -> Tensor:
        """Return arrivals at the leaves, (batch, leaves)."""
        first = torch.sigmoid(self.linear(x))
        reached = first.new_ones(len(x), 1)
        for d in range(self.depth):
            layer = first[:, 2**d - 1 : 2 ** (d + 1) - 1]
            reached = torch.stack([reached * layer, reached * (1 - layer)], dim=2).flatten(1)
        return reached

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """Return Eq. 4: the cost of each leaf weighted by arrival, with the sum over leaves as a product."""
        return F.nll_loss(self.arrival(x) @ self.leaves.log_softmax(1), y)

    def forward(self, x: Tensor) -> Tensor:
        return self.arrival(x) @ self.leaves.softmax(1)


def make_plain(work: Work, clock: Clock) -> dict[str, Callable[[], Any]]:
    """Return step and prediction of plain torch, eager."""
    tree = PlainTree(work, clock.device)
    return _step_and_prediction(work, clock, tree, tree.loss, tree.forward)


def make_compiled(work: Work, clock: Clock) -> dict[str, Callable[[], Any]]:
    """Return the same, compiled, with the whole step in one CUDA graph: the fastest plain tree in torch."""
    tree = PlainTree(work, clock.device)
    torch.compiler.reset()  # earlier shapes would make it compile for dynamic shapes
    made = _step_and_prediction(work, clock, tree, torch.compile(tree.loss), torch.compile(tree.forward))
    return {kind: clock.captured(function) for kind, function in made.items()}


def _step_and_prediction(
    work: Work, clock: Clock, tree: PlainTree, loss: Callable[..., Tensor], predicted: Callable[..., Tensor]
) -> dict[str, Callable[[], Any]]:
    x = torch.randn(work.batch, work.features, device=clock.device)
    y = torch.randint(work.classes, (work.batch,), device=clock.device)
    adam = torch.optim.Adam(tree.parameters(), fused=True, capturable=clock.device.type == "cuda")

    def step() -> None:
        adam.zero_grad()
        loss(x, y).backward()
        adam.step()

    def predict() -> Tensor:
        with torch.no_grad():
            return predicted(x)

    return {"step": step, "predict": predict}
