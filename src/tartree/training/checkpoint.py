"""Checkpoints of a run, for resuming, and the best weights of each member."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Protocol

import torch
from torch import Tensor

from tartree.nn import Tree
from tartree.training.adam import Adam
from tartree.training.history import Epoch, History
from tartree.training.step import Step


class CheckpointStore(Protocol):
    """Storage for the checkpoints of a run, from which it can be resumed.

    Examples
    --------
    >>> class MemoryStore:
    ...     last = None
    ...
    ...     def load(self):
    ...         return self.last
    ...
    ...     def save(self, epoch, state):
    ...         self.last = state()
    >>> store: CheckpointStore = MemoryStore()
    """

    def load(self) -> dict[str, Any] | None:
        """Return the last state that was saved, or None to start from the beginning.

        Returns
        -------
        dict or None
        """

    def save(self, epoch: int, state: Callable[[], dict[str, Any]]) -> None:
        """Save the state after an epoch, or skip it.

        Parameters
        ----------
        epoch : int
            From 1.
        state : callable
            Makes a dict of tensors and plain data, which takes a while.
        """


class RunState:
    """Convert a run to a state that can be saved, and back."""

    def __init__(
        self, tree: Tree, step: Step, history: History, best: BestWeights | None, generator: torch.Generator
    ) -> None:
        self.tree, self.step, self.history, self.best, self.generator = tree, step, history, best, generator

    def state(self) -> dict[str, Any]:
        """Return tensors and plain data, copied to the CPU."""
        best = self.best
        return {
            "tensors": [tensor.detach().cpu().clone() for tensor in self._tensors()],
            "random": [self.generator.get_state(), torch.get_rng_state(), *self._device_random()],
            "best": None if best is None else [best.loss.clone(), best.epoch.clone(), best.done.clone()],
            "history": [asdict(epoch) for epoch in self.history.epochs],
        }

    @torch.no_grad()
    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state of the same tree and recipe."""
        tensors = self._tensors()
        if [tensor.shape for tensor in tensors] != [tensor.shape for tensor in state["tensors"]]:
            raise ValueError("a checkpoint must come from the same tree and recipe, got other shapes")
        for tensor, saved in zip(tensors, state["tensors"], strict=True):
            tensor.copy_(saved)
        self.generator.set_state(state["random"][0])
        torch.set_rng_state(state["random"][1])
        if self._device_random() and len(state["random"]) > 2:  # a run may be resumed on another kind of device
            torch.cuda.set_rng_state(state["random"][2], self._device())
        if self.best is not None:
            self.best.loss, self.best.epoch, self.best.done = (tensor.clone() for tensor in state["best"])
        self.history.epochs[:] = [Epoch(**epoch) for epoch in state["history"]]

    def _device(self) -> torch.device:
        return next(parameter.device for parameter in self.tree.parameters())

    def _device_random(self) -> list[Tensor]:
        """Return the state of the random numbers of a GPU, from which dropout draws there."""
        device = self._device()
        return [torch.cuda.get_rng_state(device)] if device.type == "cuda" else []

    def _tensors(self) -> list[Tensor]:
        best_weights = [] if self.best is None else self.best.weights
        optimizer = self.step.optimizer
        assert isinstance(optimizer, Adam)  # a run with checkpoints is not captured
        return [*self.tree.state_dict().values(), *optimizer.tensors_of_state(), *best_weights]


class BestWeights:
    """The best weights of each member so far, and which members have stopped."""

    def __init__(self, tree: Tree, patience: int) -> None:
        members = next(tree.parameters()).shape[0]
        if members > 1 and any(p.shape[:1] != (members,) for p in tree.parameters()):
            raise ValueError(
                "early stopping keeps the best weights of each member, but members share weights, as in a backbone; "
                "use early_stopping=False"
            )
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
        """Keep the present weights of some members, (members,) of bool."""
        self.epoch[members] = epoch
        for kept, now in zip(self.weights, self.tree.parameters(), strict=True):
            mask = members.to(now.device).view(-1, *[1] * (now.dim() - 1))
            torch.where(mask, now.detach(), kept, out=kept)

    @property
    def stopped(self) -> bool:
        return bool(self.done.all())

    @torch.no_grad()
    def restore(self, tree: Tree) -> None:
        for kept, now in zip(self.weights, tree.parameters(), strict=True):
            now.copy_(kept)
