"""The training loop: one for all trees, all members at once."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tartree.nn import Selection, Tree
from tartree.nn.families import Family
from tartree.ops import scratch
from tartree.training.batches import Rows
from tartree.training.checkpoint import BestWeights, CheckpointStore, RunState
from tartree.training.epochs import CapturedEpochs, make_epochs
from tartree.training.held_out import HeldOutEvaluation
from tartree.training.history import Callback, Epoch, History
from tartree.training.progress import progress_bar
from tartree.training.recipe import Recipe
from tartree.training.step import enough_threads
from tartree.training.stream import StreamRows
from tartree.training.worker_group import SINGLE_WORKER, WorkerGroup

#: Captured epochs after which losses are read, without callbacks.
LOOK_EVERY = 32


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
    workers: WorkerGroup = SINGLE_WORKER,
    checkpoints: CheckpointStore | None = None,
) -> History:
    """Train all members of a tree in place.

    Parameters
    ----------
    tree : Tree
    rows : Rows
        Rows to learn from. Weights may differ by member, so folds are members with zero weights.
    recipe : Recipe
    generator : torch.Generator
        On the CPU: order of rows and jitter.
    validation : Rows, optional
        Stop each member early by its loss here, and keep the weights of its best epoch.
    keep_epoch : array of int of shape (members,), optional
        Instead of validation: the epoch whose weights each member keeps; training ends with the last of them. Ctrl-C
        raises KeyboardInterrupt then.
    selection : {"multi", "single"}
        Whether the validation loss is that of the mixture of leaves, or of the leaf with the largest arrival.
    callbacks : sequence of callable
        Called with each `Epoch`; training ends when one returns True.
    verbose : int
        1 shows a progress bar on a terminal.
    workers : WorkerGroup
        Workers that train the same tree on other shards of the same stream.
    checkpoints : CheckpointStore, optional
        Stores the state after each epoch, for resuming.

    Returns
    -------
    History

    Examples
    --------
    >>> from tartree import Structure
    >>> from tartree.nn import Classes
    >>> from tartree.training import TensorRows
    >>> tree = Tree.build(Structure(1), 2, Classes(2))
    >>> rows = TensorRows(torch.randn(10, 2), torch.arange(10) % 2)
    >>> history = train(tree, rows, Recipe(epochs=3), generator=torch.Generator().manual_seed(0))
    >>> history["loss"].shape
    (3, 1)
    """
    if recipe.optimizer == "lbfgs":
        from tartree.training.lbfgs import solve

        if isinstance(rows, StreamRows):
            raise ValueError("L-BFGS needs the whole table in memory, got a stream; use Adam")
        if validation is not None or keep_epoch is not None:
            raise ValueError(
                "L-BFGS cannot stop early, got validation rows or epochs to keep; use early_stopping=False"
            )
        return solve(tree, rows, recipe, callbacks)
    history = History()
    best = None if validation is None and keep_epoch is None else BestWeights(tree, recipe.patience)
    alone = best is None and not callbacks and not verbose and checkpoints is None
    unread: list[Tensor] = []  # losses of epochs that are not in the history yet
    start = time.perf_counter()

    def note(validation_loss: Tensor | None = None, validation_score: Tensor | None = None) -> Iterator[Epoch]:
        """Move unread losses to the history, one epoch after the other."""
        for loss in torch.stack(unread).cpu() if unread else ():
            epoch = Epoch(
                len(history) + 1,
                recipe.epochs,
                epochs.step.recipe.rate(len(history) / recipe.epochs),
                _array(loss),
                None if validation_loss is None else _array(validation_loss),
                None if validation_score is None else _array(validation_score),
                time.perf_counter() - start,
            )
            history.epochs.append(epoch)
            del unread[0]
            _check_losses(epoch, recipe)
            yield epoch

    families = [part for part in (tree.decision, tree.leaf) if isinstance(part, Family)]
    was_training = tree.training
    tree.train()
    try:
        with training_context(tree, min(len(rows), recipe.batch_size)), progress_bar(recipe.epochs, verbose) as show:
            torch.manual_seed(generator.initial_seed())
            epochs = make_epochs(tree, rows, recipe, generator, workers, resumable=checkpoints is not None)
            # Reading a loss waits for the GPU, so without callbacks losses are read in groups.
            look_every = LOOK_EVERY if alone and isinstance(epochs, CapturedEpochs) else 1
            evaluate: HeldOutEvaluation | None = None
            run = RunState(tree, epochs.step, history, best, generator)
            state = None if checkpoints is None else checkpoints.load()
            if state is not None:
                run.restore(state)
            for number in range(len(history) + 1, recipe.epochs + 1):
                if best is not None and best.stopped:  # before the run was cut off
                    break
                unread.append(epochs.run(number - 1))
                validation_loss, validation_score = None, None
                is_settled = all(family.is_settled((number - 1) / recipe.epochs) for family in families)
                if best is not None and validation is not None:
                    if evaluate is None:  # the first epoch of a stream fills its held-out rows
                        evaluate = HeldOutEvaluation(tree, validation, selection, recipe.batch_size, workers)
                    validation_loss, validation_score = evaluate()
                    if is_settled:  # weights of earlier epochs have more terms than allowed
                        best.update(validation_loss, number)
                elif best is not None and keep_epoch is not None:
                    best.keep(torch.from_numpy(keep_epoch == number), number)
                    best.done = torch.from_numpy(keep_epoch <= number)
                if len(unread) < look_every and number < recipe.epochs:
                    continue
                for epoch in note(validation_loss, validation_score):
                    show(epoch)
                if checkpoints is not None:
                    checkpoints.save(number, run.state)
                # Every callback is called, also if the first returns True.
                stops = [callback(history.epochs[-1]) is True for callback in callbacks]
                if any(stops) or (best is not None and best.stopped):
                    break
    except KeyboardInterrupt:
        if validation is None:  # the weights are those after all epochs, else those of the best
            list(note())
        if not history.epochs or keep_epoch is not None:  # the weights of no epoch are asked for
            raise
        history.interrupted = True
        kept = "the last" if validation is None else "the best"
        warnings.warn(
            f"fit was interrupted after {len(history)} of {recipe.epochs} epochs; {kept} weights so far are kept",
            UserWarning,
            stacklevel=2,
        )
    if best is None and not history.interrupted:
        _warn_if_diverged(history, recipe)
    if best is not None:
        best.restore(tree)
        history.best_epoch = best.epoch.cpu().numpy()
    for family in families:  # a training that was interrupted has not removed all
        family.prune(1.0)
        if recipe.sparsity:
            family.drop_faint_terms()
    for parameter in tree.parameters():  # fused steps do not count as changes, so that copies would stay outdated
        torch.autograd.graph.increment_version(parameter)
    tree.train(was_training)
    return history


def _check_losses(epoch: Epoch, recipe: Recipe) -> None:
    for name, loss in (("loss", epoch.loss), ("validation loss", epoch.validation_loss)):
        if loss is not None and not np.isfinite(loss).all():
            raise FloatingPointError(
                f"the {name} must stay finite, got {loss} in epoch {epoch.number}; "
                f"lower learning_rate, now {recipe.learning_rate}"
            )


def _warn_if_diverged(history: History, recipe: Recipe) -> None:
    """Warn if the loss of a member ended above that of its first epoch."""
    first, last = history.epochs[0].loss, history.epochs[-1].loss  # (members,) each
    rose = last > first + 0.1 * np.abs(first)
    if rose.any():
        member = int(rose.argmax())
        warnings.warn(
            f"training diverged: the loss rose from {first[member]:.3g} in the first epoch to {last[member]:.3g} in "
            f"the last; lower learning_rate, now {recipe.learning_rate}",
            UserWarning,
            stacklevel=3,
        )


@contextmanager
def training_context(tree: Tree, rows: int) -> Iterator[None]:
    """Set threads, random numbers, the stream of a GPU and memory for training, and restore them."""
    device = next(tree.parameters()).device
    stream = torch.cuda.Stream(device) if device.type == "cuda" else None
    if stream is not None:
        stream.wait_stream(torch.cuda.current_stream(device))
    # Dropout draws from torch's own generator: from a seeded copy, so that its state stays as it was.
    copied = torch.random.fork_rng(devices=[] if stream is None else [device])
    try:
        with enough_threads(tree, rows), copied, torch.cuda.stream(stream):
            yield
    finally:
        scratch.release()
        if stream is not None:
            torch.cuda.current_stream(device).wait_stream(stream)


def _array(x: Tensor) -> NDArray[np.float64]:
    return x.detach().cpu().double().numpy()
