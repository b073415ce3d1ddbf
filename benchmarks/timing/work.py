"""The work that is timed: shapes, tensors, and the steps and predictions of the library."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from tartree import Structure, losses, ops
from tartree.nn import Classes, Leaves, Predictor, Tree, combine
from tartree.training import History, Recipe, TensorRows, train
from tartree.training.epochs import CapturedEpochs, EagerEpochs, make_epochs
from tartree.training.loss_gradient import write_gradient
from tartree.training.step import precision
from timing.clock import Clock

#: Batches of the table that steps draw from, so that a step gathers its rows.
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
    """Return Adam at a constant rate, Eq. 4, no noise, as the peers train."""
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
    """Return one step of the training loop as a function: forward, backward, Adam; on a GPU with the gather.

    On a GPU it is the graph that the loop replays. Call this and the step within `Clock.surroundings`.
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


def our_prediction(tree: Tree, x: Tensor, *, eager: bool = False) -> Callable[[], Tensor]:
    """Return a batch of predictions by all leaves as a function; on a GPU from a graph, unless eager."""
    tree = copy.deepcopy(tree).eval()

    @torch.no_grad()
    def predict() -> Tensor:
        return tree.predict(x)

    return predict if eager else Predictor(tree, x)


def learn(tree: Tree, rows: TensorRows, recipe: Recipe, callbacks: Sequence[Any] = ()) -> History:
    """Train to the end with the loop of the library."""
    return finished(train(tree, rows, recipe, generator=torch.Generator().manual_seed(0), callbacks=callbacks))


def finished(history: History) -> History:
    """Return the history unless Ctrl-C ended the training early, which is no measurement."""
    if history.interrupted:
        raise KeyboardInterrupt
    return history


#: Shapes that are compared with the reference before timing.
CHECKED = (
    Work(6, features=20, batch=1000),
    Work(4, 3, 2, features=20, batch=64),
    Work(3, 3, 3, 1, features=20, batch=64, members=2),
    Work(4, 2, 2, 1, features=20, batch=64),
    Work(10, features=4, batch=4),  # few rows: the reference builds a dense matrix for each
    Work(12, features=4, batch=4),
)
#: Largest accepted relative errors: the precision of products, with a margin for sums.
TOLERANCES = {"single": 1e-4, "tf32": 1e-2, "bfloat16": 5e-2}


def check_against_reference(clock: Clock) -> dict[str, Any]:
    """Return the largest relative errors against the reference in double precision, and the compared shapes.

    Compared are losses and gradients of a training step, losses of a short training (on a GPU by its captured graph),
    and predictions by both selections (on a GPU also the graph that is timed); in the other precisions of the device,
    the same losses and gradients.
    """
    errors = {}
    for name in ("single", "bfloat16") if clock.device.type == "cpu" else ("single", "tf32", "bfloat16"):
        errors[name] = 0.0
        for work in CHECKED:
            pairs = _prediction_pairs(work, clock) if name == "single" else []
            for ours, right in pairs + _training_pairs(work, clock, name):
                error = _error(ours, right)
                if not error < TOLERANCES[name]:  # also raised for NaN
                    raise AssertionError(
                        f"results must equal the reference, got an error of {error:.1e} in {name} at {work.label}"
                    )
                errors[name] = max(errors[name], error)
    shapes = [work.label + f", {work.members} members" * (work.members > 1) for work in CHECKED]
    return {"error": errors.pop("single"), "errors": errors, "compared": shapes}


def _prediction_pairs(work: Work, clock: Clock) -> list[tuple[Tensor, Tensor]]:
    """Return pairs of our predictions and those of the reference."""
    tree, batch = work.tree(clock.device), work.rows(clock.device, batches=1).take(None)
    exact, x = copy.deepcopy(tree).cpu().double(), batch.x.cpu().double()
    tree.eval()
    clock.wait()
    with clock.surroundings(), torch.no_grad():
        predict, graph = our_prediction(tree, batch.x, eager=True), our_prediction(tree, batch.x)
        arrival = ops.arrival(exact.decision(x), exact.structure, backend="reference")
        leaves = exact.output.mean(exact.leaf(x))
        pairs = [(ours.clone(), combine(arrival, leaves, "multi")) for ours in (predict(), graph())]
        first, second = arrival.topk(2).values.unbind(-1)
        clear = first - second > 1e-4 * first  # where two leaves are nearly equal, either is right
        best = tree.predict(batch.x, "single").cpu()[clear]
        pairs.append((best, combine(arrival, leaves, "single")[clear]))
        clock.wait()
    return pairs


def _training_pairs(work: Work, clock: Clock, name: str) -> list[tuple[Tensor, Tensor]]:
    """Return pairs of loss and gradients of a step, and of losses of a short training, ours and the reference's."""
    tree, table = work.tree(clock.device), work.rows(clock.device, batches=1)
    exact, batch = copy.deepcopy(tree).cpu().double(), table.take(None)
    x, y = batch.x.cpu().double(), batch.target.cpu()
    recipe = replace(recipe_for(work, epochs=5 if work.depth < 10 else 2, precision=name), learning_rate=0.01)
    with precision(recipe, clock.device):
        loss = write_gradient(tree, batch.x, batch, recipe)
    expected = _exact_loss(exact, x, y)
    expected.sum().backward()
    pairs = [(loss, expected)]
    for ours, right in zip(tree.parameters(), exact.parameters(), strict=True):
        assert ours.grad is not None
        assert right.grad is not None
        pairs.append((ours.grad.clone(), right.grad.clone()))

    history = learn(tree, table, recipe)
    adam, right_losses = torch.optim.Adam(exact.parameters(), lr=0.01), []
    for _ in range(recipe.epochs):
        adam.zero_grad()
        expected = _exact_loss(exact, x, y)
        expected.sum().backward()
        adam.step()
        right_losses.append(expected.detach())
    our_losses = torch.stack([torch.as_tensor(epoch.loss) for epoch in history.epochs])
    return [*pairs, (our_losses, torch.stack(right_losses))]


def _exact_loss(tree: Tree, x: Tensor, y: Tensor) -> Tensor:
    arrival = ops.arrival(tree.decision(x), tree.structure, backend="reference")
    return losses.expected(Leaves(arrival, tree.leaf(x)), y, tree.output)


def _error(ours: Tensor, right: Tensor) -> float:
    """Return the largest difference, relative to the largest value."""
    right = right.detach()
    return float((ours.detach().cpu().double() - right).abs().max() / right.abs().max())
