"""One training step: the loss of a batch, its gradient, and Adam."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from tartree.nn import Tree, dispatch
from tartree.nn.families import Family, last_layer
from tartree.training.adam import Adam, Group, KernelAdam, Optimizer
from tartree.training.batches import Batch
from tartree.training.jitter import Jitter
from tartree.training.loss_gradient import write_gradient
from tartree.training.recipe import Recipe
from tartree.training.worker_group import SINGLE_WORKER, WorkerGroup


class Step:
    """Steps of one run, with the state of the optimizer.

    Parameters
    ----------
    tree : Tree
    recipe : Recipe
    jitter : Jitter
    n_rows : float
        Rows of the table, by which penalties are scaled.
    n_batches : int
        Steps of an epoch, among which the weight decay is divided.
    captured : bool
        Whether steps will be captured in a graph on a GPU.
    workers : WorkerGroup
        Workers that learn from other rows of the same batch.
    """

    def __init__(
        self,
        tree: Tree,
        recipe: Recipe,
        jitter: Jitter,
        n_rows: float,
        n_batches: int,
        *,
        captured: bool = False,
        workers: WorkerGroup = SINGLE_WORKER,
    ) -> None:
        self.tree, self.recipe, self.jitter = tree, recipe, jitter
        decision: list[Tensor] = list(tree.decision.parameters())
        leaf: list[Tensor] = list(tree.leaf.parameters())
        in_parts = {id(p) for p in (*decision, *leaf)}
        rest: list[Tensor] = [p for p in tree.parameters() if id(p) not in in_parts]  # temperatures
        groups: list[Group] = [
            (decision, recipe.decision_decay / n_batches),
            (leaf, recipe.leaf_decay / n_batches),
            (rest, 0.0),
        ]
        self.optimizer: Optimizer = KernelAdam(groups) if captured else Adam(groups)
        self.workers = workers
        self.sparsity = recipe.sparsity * tree.output.gradient_spread / math.sqrt(max(n_rows, 1))
        self.families = [part for part in (tree.decision, tree.leaf) if isinstance(part, Family)]

    def __call__(self, batch: Batch, rate: float | Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Learn from a batch, and return the loss of each member before, (members,).

        `rate` is that of `Optimizer.step`. `generator` draws the jitter on its device; by default jitter is drawn on
        the device of the batch.
        """
        return self.learn(self.jitter(batch.x, generator), batch, rate)

    def learn(self, x: Tensor, batch: Batch, rate: float | Tensor) -> Tensor:
        """Learn from a batch with jitter, and return the loss of each member before, (members,)."""
        self.optimizer.zero_grad()
        with precision(self.recipe, x.device):
            loss = write_gradient(self.tree, x, batch, self.recipe) if len(x) else self._no_gradient()
        if self.workers.size > 1:
            self._average(loss, batch)
        if self.sparsity:
            for family in self.families:
                family.penalise(self.sparsity)
        self.optimizer.step(rate)
        for family in self.families:
            family.project()
        return loss

    @torch.no_grad()
    def begin_epoch(self, number: int) -> None:
        """Remove the terms that are due before epoch `number`, from 0, and sharpen the decisions."""
        for family in self.families:
            family.prune(number / self.recipe.epochs)
        if (growth := self.recipe.growth(number)) != 1:
            for parameter in last_layer(self.tree.decision) or ():
                parameter.mul_(growth)

    def _no_gradient(self) -> Tensor:
        """Set zero gradients for a batch without rows, which has no weight in the average, and return zero losses."""
        for parameter in self.tree.parameters():
            parameter.grad = torch.zeros_like(parameter)
        first = next(self.tree.parameters())
        return first.new_zeros(first.shape[0])

    def _average(self, loss: Tensor, batch: Batch) -> None:
        """Replace loss and gradients by their means over the rows of all workers, by weight."""
        weight = float(len(batch.x) if batch.weight is None else batch.weight.sum())
        # Zeros for missing gradients, so that all workers send the same tensors.
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.tree.parameters()]
        self.workers.average([loss, *gradients], weight)


@contextmanager
def enough_threads(tree: Tree, rows: int) -> Iterator[None]:
    """Use one thread while steps are small."""
    before = torch.get_num_threads()
    if dispatch.is_small_step(tree, rows):
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def precision(recipe: Recipe, device: torch.device) -> Iterator[None]:
    """Compute matrix products in the precision of the recipe, and the rest in single precision."""
    if recipe.precision == "bfloat16":
        with torch.autocast(device.type, torch.bfloat16):
            yield
        return
    if device.type != "cuda":
        yield
        return
    matmul = torch.backends.cuda.matmul
    # Since 2.9 torch has a newer name for it, and some of its parts raise if both names disagree. Setting the older one
    # sets both; reading it fails if only the newer one has been set.
    newer = getattr(matmul, "fp32_precision", None)
    try:
        before = matmul.allow_tf32
    except RuntimeError:
        before = False
    _set_tf32(recipe.precision == "tf32")
    try:
        yield
    finally:
        _set_tf32(before)
        if newer is not None:
            matmul.fp32_precision = newer


def _set_tf32(value: bool) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Please use the new API settings", UserWarning)
        torch.backends.cuda.matmul.allow_tf32 = value
