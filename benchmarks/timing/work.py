"""What is computed: shapes, tensors, and the library's own way to train and predict on them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tartree import Structure, losses, ops
from tartree.nn import Classes, Leaves, Tree
from tartree.training import Recipe, TensorRows
from tartree.training.epochs import CapturedEpochs, EagerEpochs, make_epochs
from tartree.training.step import leave_gradient

#: Batches of the table that steps are taken from, so that a step gathers its rows.
BATCHES = 16


@dataclass(frozen=True)
class Work:
    """One shape of tree and batch; the defaults are those of the paper's comparison."""

    depth: int = 8
    window: int = 2
    stride: int | None = None
    leaf_layers: int = 0
    features: int = 784
    classes: int = 10
    batch: int = 1024
    members: int = 1

    @property
    def structure(self) -> Structure:
        return Structure(self.depth, self.window, self.stride)

    @property
    def label(self) -> str:
        return f"D {self.depth}, W {self.window}, S {self.structure.stride}, L {self.leaf_layers}"

    def tree(self, device: torch.device) -> Tree:
        torch.manual_seed(0)
        return Tree.build(
            self.structure, self.features, Classes(self.classes), leaf_layers=self.leaf_layers, members=self.members
        ).to(device)

    def rows(self, device: torch.device, batches: int = BATCHES) -> TensorRows:
        torch.manual_seed(1)
        x = torch.randn(batches * self.batch, self.features, device=device)
        return TensorRows(x, torch.randint(self.classes, (len(x),), device=device))


def recipe_for(work: Work, epochs: int = 4000, precision: str = "single") -> Recipe:
    """Adam at a constant rate, Eq. 4, no noise: what the peers do, and no more."""
    return Recipe(
        epochs=epochs,
        batch_size=work.batch,
        learning_rate=0.001,
        schedule="constant",
        decision_decay=0.0,
        leaf_decay=0.0,
        jitter=0.0,
        precision=precision,  # type: ignore[arg-type]
    )


def our_step(tree: Tree, rows: TensorRows, recipe: Recipe) -> Callable[[], Any]:
    """One step of the library's training loop as a function: forward, backward, Adam; on a GPU with the gather.

    On a GPU it is the graph that the loop replays. To be made and called within `Clock.surroundings`.
    """
    tree.train()
    generator = torch.Generator().manual_seed(0)
    epochs = make_epochs(tree, rows, recipe, generator)
    if isinstance(epochs, CapturedEpochs):
        epochs.run(0)  # shuffles
        return epochs.steps[epochs.size]
    assert isinstance(epochs, EagerEpochs)
    step, batch = epochs.step, rows.take(torch.arange(min(recipe.batch_size, len(rows))))

    def take() -> None:
        step(batch, recipe.learning_rate, generator)

    return take


def our_prediction(tree: Tree, x: Tensor) -> Callable[[], Any]:
    """One batch of predictions, all leaves weighed by arrival."""
    tree = copy.deepcopy(tree).eval()

    def predict() -> Tensor:
        with torch.no_grad():
            return tree.predict(x)

    return predict


def check_against_reference(device: torch.device) -> float:
    """The largest relative error of losses and gradients of the training step, against the reference in double."""
    worst = 0.0
    for work in (
        Work(6, features=20, batch=1000),
        Work(4, 3, 2, features=20, batch=64),
        Work(3, 3, 3, 1, features=20, batch=64, members=2),
        Work(4, 2, 2, 1, features=20, batch=64),
    ):
        tree = work.tree(device)
        batch = work.rows(device, batches=1).take(None)
        loss = leave_gradient(tree, batch.x, batch, recipe_for(work))
        gradients = [p.grad for p in tree.parameters()]
        exact = copy.deepcopy(tree).cpu().double()
        exact.zero_grad()
        x, y = batch.x.cpu().double(), batch.target.cpu()
        arrival = ops.arrival(exact.decision(x), work.structure, backend="reference")
        wanted = losses.expected(Leaves(arrival, exact.leaf(x)), y, exact.output)
        wanted.sum().backward()
        pairs = [(loss, wanted), *((g, p.grad) for g, p in zip(gradients, exact.parameters(), strict=True))]
        for ours, right in pairs:
            assert ours is not None
            assert right is not None
            error = (ours.detach().cpu().double() - right.detach()).abs().max() / right.detach().abs().max()
            worst = max(worst, float(error))
        with torch.no_grad():
            predicted = (arrival.unsqueeze(-1) * exact.output.mean(exact.leaf(x))).sum(2)
            worst = max(worst, float((tree.eval().predict(batch.x).cpu().double() - predicted).abs().max()))
    if not worst < 1e-4:
        raise AssertionError(f"a step must equal the reference, however: the largest relative error is {worst:.1e}")
    return worst
