"""The training loop: one for all trees, all members at once."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tartree import losses
from tartree.nn import Selection, Tree, combine
from tartree.training.adam import Adam
from tartree.training.progress import progress_bar
from tartree.training.recipe import Recipe
from tartree.training.rows import Batch, Rows

#: Multiplications and additions of a forward, below which a second thread costs more than it brings.
SMALL_STEP = 10_000_000


@dataclass(frozen=True)
class Epoch:
    """What one pass over the rows gave; arrays have one entry a member."""

    number: int  # from 1
    epochs: int
    learning_rate: float  # in its first step
    loss: NDArray[np.float64]
    validation_loss: NDArray[np.float64] | None
    validation_score: NDArray[np.float64] | None  # accuracy, or R2 of a standardised target
    seconds: float  # since the start


Callback = Callable[[Epoch], Any]


@dataclass
class History:
    """What happened in training: a list entry an epoch, and how it ended."""

    epochs: list[Epoch] = field(default_factory=list)
    interrupted: bool = False
    best_epoch: NDArray[np.int64] | None = None  # of each member, with early stopping

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        """One quantity over the epochs: losses and scores are (epochs, members), the others (epochs,)."""
        return np.array([getattr(epoch, name) for epoch in self.epochs], dtype=np.float64)

    def __len__(self) -> int:
        return len(self.epochs)


def train(
    tree: Tree,
    rows: Rows,
    recipe: Recipe,
    *,
    generator: torch.Generator,
    validation: Rows | None = None,
    keep_epoch: NDArray[np.int64] | None = None,
    selection: Selection = "multi",
    callbacks: Sequence[Callback] = (),
    verbose: int = 0,
) -> History:
    """Train all members of a tree in place.

    Parameters
    ----------
    tree : Tree
    rows : Rows
        What to learn from. Weights may differ by member, so folds are members with their own zero weights.
    recipe : Recipe
    generator : torch.Generator
        On the CPU: order of rows and jitter.
    validation : Rows, optional
        Stop each member early by its loss here, and keep the weights of its best epoch.
    keep_epoch : array of int of shape (members,), optional
        Instead of validation: the epoch whose weights each member keeps; training ends with the last of them.
    selection : {"multi", "single"}
        What the validation loss looks at: the mixture of leaves, or the leaf of the largest arrival.
    callbacks : sequence of callable
        Called with each `Epoch`; training ends when one returns True.
    verbose : int
        1 shows a progress bar on a terminal.

    Returns
    -------
    History
    """
    optimizers = _optimizers(tree, recipe, n_batches=-(-len(rows) // recipe.batch_size))
    history = History()
    best = None if validation is None and keep_epoch is None else _Best(tree, recipe.patience)
    start = time.perf_counter()
    was_training = tree.training
    tree.train()
    devices = {p.device for p in tree.parameters() if p.device.type == "cuda"}
    try:
        # Dropout draws from torch's own generator: a copy of it with our seed, so that nobody else notices.
        with (
            torch.random.fork_rng(devices=devices),
            _enough_threads(tree, min(len(rows), recipe.batch_size)),
            progress_bar(recipe.epochs, verbose) as show,
        ):
            torch.manual_seed(generator.initial_seed())
            for number in range(1, recipe.epochs + 1):
                loss = _run_epoch(tree, rows, recipe, optimizers, generator, number - 1)
                validation_loss, validation_score = None, None
                if best is not None and validation is not None:
                    validation_loss, validation_score = _evaluate(tree, validation, selection, recipe.batch_size)
                    best.update(validation_loss, number)
                elif best is not None and keep_epoch is not None:
                    best.keep(torch.from_numpy(keep_epoch == number), number)
                    best.done = torch.from_numpy(keep_epoch <= number)
                epoch = Epoch(
                    number,
                    recipe.epochs,
                    recipe.rate((number - 1) / recipe.epochs),
                    _array(loss),
                    None if validation_loss is None else _array(validation_loss),
                    None if validation_score is None else _array(validation_score),
                    time.perf_counter() - start,
                )
                history.epochs.append(epoch)
                show(epoch)
                _check_losses(epoch, recipe)
                # Every callback is told, whatever the first says.
                asked = [callback(epoch) is True for callback in callbacks]
                if any(asked) or (best is not None and best.stopped):
                    break
    except KeyboardInterrupt:
        if not history.epochs:  # nothing has been learnt that could be kept
            raise
        history.interrupted = True
        if best is not None and keep_epoch is not None:
            best.keep(~best.done, len(history))
        kept = "the last" if validation is None else "the best"
        warnings.warn(
            f"fit was interrupted after {len(history)} of {recipe.epochs} epochs; {kept} weights so far are kept",
            UserWarning,
            stacklevel=2,
        )
    if best is not None:
        best.restore(tree)
        history.best_epoch = best.epoch.cpu().numpy()
    tree.train(was_training)
    return history


def _check_losses(epoch: Epoch, recipe: Recipe) -> None:
    for name, loss in (("loss", epoch.loss), ("validation loss", epoch.validation_loss)):
        if loss is not None and not np.isfinite(loss).all():
            raise FloatingPointError(
                f"the {name} must stay finite, however: it is {loss} in epoch {epoch.number}; "
                f"lower learning_rate, now {recipe.learning_rate}"
            )


@contextmanager
def _enough_threads(tree: Tree, rows: int) -> Iterator[None]:
    """One thread while a step is small: more would only wait for each other, the longer the busier the machine is."""
    work = 2 * rows * sum(p.numel() for p in tree.parameters())  # multiplications and additions of a forward
    before = torch.get_num_threads()
    if work < SMALL_STEP:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _optimizers(tree: Tree, recipe: Recipe, n_batches: int) -> list[Adam]:
    decision, leaf = list(tree.decision.parameters()), list(tree.leaf.parameters())
    own = {id(p) for p in (*decision, *leaf)}
    rest = [p for p in tree.parameters() if id(p) not in own]  # temperatures
    groups = ((decision, recipe.decision_decay), (leaf, recipe.leaf_decay), (rest, 0.0))
    return [Adam(parameters, decay / n_batches) for parameters, decay in groups if parameters]


def _run_epoch(
    tree: Tree,
    rows: Rows,
    recipe: Recipe,
    optimizers: list[Adam],
    generator: torch.Generator,
    number: int,
) -> Tensor:
    """One pass over the rows; the mean loss of each member."""
    total: Tensor | None = None
    n_batches = -(-len(rows) // recipe.batch_size)
    for i, batch in enumerate(_batches(rows, recipe.batch_size, generator)):
        x = batch.x
        if noise := recipe.noise(x.shape[-1], len(rows)):
            x = x + noise * torch.randn(x.shape, generator=generator).to(x)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss = _loss(tree, x, batch, recipe)  # (members,)
        loss.sum().backward()
        for optimizer in optimizers:
            optimizer.step(recipe.rate((number + i / n_batches) / recipe.epochs))
        part = loss.detach() * (len(x) / len(rows))
        total = part if total is None else total + part
    assert total is not None
    return total


def _batches(rows: Rows, size: int, generator: torch.Generator) -> Iterator[Batch]:
    if len(rows) <= size:
        yield rows.take(None)
        return
    # Batches of equal size (to one), so that the last is not a handful of rows with a whole step to say.
    n_batches = -(-len(rows) // size)
    for index in torch.randperm(len(rows), generator=generator).tensor_split(n_batches):
        yield rows.take(index)


def _loss(tree: Tree, x: Tensor, batch: Batch, recipe: Recipe) -> Tensor:
    logits = tree.decision(x)
    leaves = tree.checked(logits, tree.leaf(x))
    function = losses.expected if recipe.loss == "expected" else losses.mixture
    loss = function(leaves, batch.target, tree.output, batch.weight)
    if recipe.balance:
        arrivals, branching = tree.branching.arrivals(logits), tree.branching.probabilities(logits)
        loss = loss + recipe.balance * losses.balance(arrivals, branching, tree.structure, batch.weight)
    return loss


@torch.no_grad()
def _evaluate(tree: Tree, rows: Rows, selection: Selection, size: int) -> tuple[Tensor, Tensor]:
    """Loss and score of each member on other rows, as predictions are made."""
    tree.eval()
    function = losses.mixture if selection == "multi" else losses.selected
    loss, score, weight_sum = torch.zeros(()), torch.zeros(()), torch.zeros(())
    for index in torch.arange(len(rows)).split(max(size, 4096)):
        batch = rows.take(index)
        weight = torch.ones(len(index)) if batch.weight is None else batch.weight.cpu()
        leaves = tree(batch.x)
        predicted = combine(leaves.arrival, tree.output.mean(leaves.numbers), selection)
        rows_score = tree.output.score(predicted, batch.target).cpu().double()  # (members, batch)
        part = weight.double().sum(-1)
        loss = loss + function(leaves, batch.target, tree.output, batch.weight).cpu().double() * part
        score = score + (rows_score * weight).sum(-1)
        weight_sum = weight_sum + part
    tree.train()
    return loss / weight_sum, score / weight_sum


class _Best:
    """The best weights of each member so far, and which members have stopped."""

    def __init__(self, tree: Tree, patience: int) -> None:
        members = next(tree.parameters()).shape[0]
        self.patience = patience
        self.loss = torch.full((members,), torch.inf, dtype=torch.float64)
        self.epoch = torch.zeros(members, dtype=torch.long)
        self.done = torch.zeros(members, dtype=torch.bool)
        self.tree = tree
        self.weights = [p.detach().clone() for p in tree.parameters()]

    def update(self, loss: Tensor, epoch: int) -> None:
        better = (loss < self.loss) & ~self.done
        self.loss[better] = loss[better]
        self.keep(better, epoch)
        self.done |= epoch - self.epoch >= self.patience

    def keep(self, members: Tensor, epoch: int) -> None:
        """Remember the weights of some members, (members,) of bool."""
        self.epoch[members] = epoch
        for kept, now in zip(self.weights, self.tree.parameters(), strict=True):
            there = members.to(now.device)
            kept[there] = now.detach()[there]

    @property
    def stopped(self) -> bool:
        return bool(self.done.all())

    @torch.no_grad()
    def restore(self, tree: Tree) -> None:
        for kept, now in zip(self.weights, tree.parameters(), strict=True):
            now.copy_(kept)


def _array(x: Tensor) -> NDArray[np.float64]:
    return x.detach().cpu().double().numpy()
