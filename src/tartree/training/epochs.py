"""Passes over the rows: step by step, or on a GPU as replays of a captured step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from tartree.nn import Tree, dispatch
from tartree.nn.graph_capture import Captured
from tartree.training.adam import rate_table
from tartree.training.batches import Batch, MemberRows, Rows, TensorRows
from tartree.training.jitter import Jitter
from tartree.training.recipe import Recipe
from tartree.training.redundancy import participation, step_factor, tables_of
from tartree.training.step import Step
from tartree.training.stream import StreamRows
from tartree.training.worker_group import SINGLE_WORKER, WorkerGroup

#: Noise below this is not drawn in a stream: drawing takes as long as reading the rows, and has no effect.
FAINT = 1e-3


class Epochs(Protocol):
    """Runs the epochs of a training."""

    step: Step

    def run(self, number: int) -> Tensor:
        """Run epoch `number`, from 0, and return the mean loss of each member, (members,), perhaps not computed yet."""


def make_epochs(
    tree: Tree,
    rows: Rows,
    recipe: Recipe,
    generator: torch.Generator,
    workers: WorkerGroup = SINGLE_WORKER,
    *,
    resumable: bool = False,
) -> Epochs:
    """Return the fastest runner for a training; `resumable` if it may be stopped and resumed."""
    if isinstance(rows, StreamRows):
        return StreamEpochs(tree, rows, recipe, workers)
    if workers.size > 1:
        raise ValueError(
            f"a worker group must learn from a stream, got {type(rows).__name__} for {workers.size} workers"
        )
    recipe = recipe_for(recipe, rows)
    if isinstance(rows, TensorRows | MemberRows) and dispatch.captures_training(tree, rows.x, resumable=resumable):
        return CapturedEpochs(tree, rows, recipe)
    return EagerEpochs(tree, rows, recipe, generator)


def recipe_for(recipe: Recipe, rows: Rows) -> Recipe:
    """Return a recipe with shorter steps where many features of curves rise and fall together."""
    if rows.curves is None:
        return recipe
    factor = min(step_factor(x) for x in tables_of(rows))
    return recipe if factor == 1 else replace(recipe, learning_rate=factor * recipe.learning_rate)


def jitter_of(recipe: Recipe, rows: Rows) -> Jitter:
    """Return the noise of a recipe for a table; of tables side by side, each has that of its own rows."""
    curves = rows.curves
    if not recipe.jitter:
        return Jitter(0.0)
    tables = [x if curves is None else curves.values_of(x) for x in tables_of(rows)]
    if isinstance(rows, MemberRows):
        levels = [_table_noise(recipe, x, len(x)) * _is_number(x) for x in tables]
        return Jitter(torch.stack(levels).unsqueeze(1), curves)
    (x,) = tables
    level, numbers = _table_noise(recipe, x, len(rows)), _is_number(x)
    return Jitter(level if bool(numbers.all()) else level * numbers, curves)


def _table_noise(recipe: Recipe, x: Tensor, n_rows: int) -> float:
    return recipe.noise(x.shape[1], n_rows, participation(x))


def _is_number(x: Tensor) -> Tensor:
    """Return 1 for features that get noise and 0 for indicators, (features,)."""
    return (~((x == 0) | (x == 1)).all(0)).to(x.dtype)


def _n_rows(rows: Rows) -> float:
    """Count rows for penalties: equal ones that were joined count as before."""
    total = rows.total if isinstance(rows, TensorRows) else None
    return len(rows) if total is None else total


class EagerEpochs:
    """Epochs step by step, from any rows, on any device."""

    def __init__(self, tree: Tree, rows: Rows, recipe: Recipe, generator: torch.Generator) -> None:
        self.rows, self.recipe, self.generator = rows, recipe, generator
        self.step = Step(tree, recipe, jitter_of(recipe, rows), _n_rows(rows), recipe.n_batches(len(rows)))

    def run(self, number: int) -> Tensor:
        self.step.begin_epoch(number)
        total: Tensor | None = None
        n_rows, recipe = len(self.rows), self.recipe
        n_batches = recipe.n_batches(n_rows)
        for i, batch in enumerate(self._batches(n_batches)):
            loss = self.step(batch, recipe.rate((number + i / n_batches) / recipe.epochs), self.generator)
            part = loss * (batch.x.shape[-2] / n_rows)
            total = part if total is None else total + part
        assert total is not None
        return total

    def _batches(self, n_batches: int) -> Iterator[Batch]:
        if n_batches == 1:
            yield self.rows.take(None)
            return
        # Batches of equal size (to one), so that the last is not a whole step for a handful of rows.
        for index in torch.randperm(len(self.rows), generator=self.generator).tensor_split(n_batches):
            yield self.rows.take(index)


class StreamEpochs:
    """Epochs step by step, from a stream; workers share the rows of each step."""

    def __init__(self, tree: Tree, rows: StreamRows, recipe: Recipe, workers: WorkerGroup) -> None:
        self.rows, self.recipe = rows, recipe
        self.n_batches = recipe.n_batches(len(rows))
        # All features count as independent: with so many rows, noise is small anyway.
        noise = recipe.noise(rows.n_values, len(rows))
        self.noise = noise if noise >= FAINT else 0.0
        # The stream draws the noise.
        self.step = Step(tree, recipe, Jitter(0.0), len(rows), self.n_batches, workers=workers)

    def run(self, number: int) -> Tensor:
        self.step.begin_epoch(number)
        total: Tensor | None = None
        recipe, n_batches = self.recipe, self.n_batches
        batches = self.rows.epoch(number, n_batches, self.noise)
        with closing(batches):  # also on an interrupt, which then ends the reading thread
            for i, batch in enumerate(batches):
                loss = self.step.learn(batch.x, batch, recipe.rate((number + i / n_batches) / recipe.epochs))
                part = loss * (self.rows.step_rows(i, n_batches) / len(self.rows))
                total = part if total is None else total + part
        assert total is not None
        return total


class CapturedEpochs:
    """Epochs on a GPU, which shuffles and gathers rows; a step is one graph, with random numbers of torch."""

    def __init__(self, tree: Tree, rows: TensorRows | MemberRows, recipe: Recipe) -> None:
        self.rows = rows
        n_rows, device = len(rows), rows.x.device
        # Equal sizes but for the last, in multiples of 8: the rows of a batch are the last axis of every tensor.
        share = -(-n_rows // recipe.n_batches(n_rows))
        self.size = min(n_rows, -(-share // 8) * 8)
        self.n_batches = -(-n_rows // self.size)
        self.last = n_rows - (self.n_batches - 1) * self.size
        self.step = Step(tree, recipe, jitter_of(recipe, rows), _n_rows(rows), self.n_batches, captured=True)
        n_steps = recipe.epochs * self.n_batches
        self.order = torch.arange(n_rows, device=device)
        self._keys = torch.empty(n_rows, device=device)
        self.clock = torch.zeros(1, dtype=torch.int64, device=device)  # steps so far
        self.rate_table = rate_table([*(recipe.rate(i / n_steps) for i in range(n_steps)), 0.0]).to(device)
        self.rate = self.rate_table[0].clone()
        self.n_epochs = recipe.epochs
        self.losses = torch.empty(0)  # (epochs, members), allocated in the first step
        self.shuffle = Captured(self._shuffle)
        self.steps = {size: Captured(partial(self._take, size)) for size in (self.size, self.last)}

    def run(self, number: int) -> Tensor:
        self.step.begin_epoch(number)
        if self.n_batches > 1:
            self.shuffle()
            full = self.steps[self.size]
            for _ in range(self.n_batches - 1):
                full()
        self.steps[self.last]()
        return self.losses[number]

    def _shuffle(self) -> None:
        torch.sort(torch.rand(len(self.order), device=self.order.device), out=(self._keys, self.order))

    def _take(self, size: int) -> None:
        from tartree.training import step_kernels

        batch = self.rows.take(None) if self.n_batches == 1 else self._gather(size)
        loss = self.step(batch, self.rate)
        members = len(loss)
        if not len(self.losses):
            self.losses = torch.zeros(self.n_epochs, members, device=loss.device)
        step_kernels.advance[(1,)](
            self.clock, self.rate_table, self.rate, loss, self.losses, self.n_batches, size / len(self.rows), members,
            MEMBERS=1 << (members - 1).bit_length(),
        )  # fmt: skip

    def _gather(self, size: int) -> Batch:
        """Return the next rows in the order of this epoch."""
        from tartree.training import step_kernels

        rows, n_features = self.rows, self.rows.x[0].numel()
        index = torch.empty(size, dtype=torch.int64, device=rows.x.device)
        x = rows.x.new_empty(size, *rows.x.shape[1:])
        classes = rows.target if rows.target.dim() == 1 else self.order  # other targets are gathered by index
        target = classes.new_empty(size)
        step_kernels.gather[(size,)](
            rows.x, classes, self.order, self.clock, x, target, index, self.n_batches, self.size, n_features,
            FEATURES=min(1024, 1 << (n_features - 1).bit_length()),
        )  # fmt: skip
        if isinstance(rows, MemberRows):
            return rows.batch(x, index)
        if rows.target.dim() > 1:
            target = rows.target.index_select(0, index)
        weight = None if rows.weight is None else rows.weight.index_select(-1, index)
        return Batch(x, target, weight)
