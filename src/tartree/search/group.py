"""Groups: trainings of one shape as members of one tree, which are resumed together and can be dropped one by one."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tartree.model import Sample, generators
from tartree.model.pipeline import build_tree, sparse_settings
from tartree.nn import Selection, Tree, combine, leaf_blocks
from tartree.search.candidates import Candidate, OptimizerSettings
from tartree.search.member_adam import MemberAdam, Moments
from tartree.search.problem import Problem, RowIndex, pad_rows
from tartree.search.sizes import Size, count_arrivals, features_per_condition, longest_path, used_leaves
from tartree.training import MemberRows, Recipe, Rows, TensorRows
from tartree.training.epochs import CapturedEpochs, EagerEpochs, make_epochs
from tartree.training.loop import training_context

#: Elements of the largest tensor of a prediction, at most, on a CPU and on other devices.
CHUNK, DEVICE_CHUNK = 2**22, 2**27
#: Rows on which used leaves are counted, at most.
COUNTED_ROWS = 2000
#: On a GPU the clock is read once in so many epochs, since reading it waits for the GPU.
EPOCHS_PER_CLOCK = 16


@dataclass(frozen=True)
class Cell:
    """One training in one part; its candidates differ by their selection alone."""

    part: int
    candidates: tuple[Candidate, ...]

    @property
    def optimizer_settings(self) -> OptimizerSettings:
        """Settings of all its members."""
        return self.candidates[0].optimizer_settings

    @property
    def selections(self) -> set[Selection]:
        """Selections of its candidates."""
        return {candidate.selection for candidate in self.candidates}


@dataclass(frozen=True, eq=False)
class CellResult:
    """Scores of the folds and sizes of a cell after some epochs, by selection."""

    epochs: int
    scores: dict[Selection, NDArray[np.float64]] = field(default_factory=dict)  # (folds,)
    sizes: dict[Selection, Size] = field(default_factory=dict)  # means over the folds
    most_leaves: dict[Selection, float] = field(default_factory=dict)  # of a fold
    failure: str | None = None


class OutOfTime(Exception):
    """The deadline passed during training; the weights so far are kept."""


class Group:
    """Cells of one shape. It holds no data and no GPU memory between calls of `advance`, and can be pickled.

    Parameters
    ----------
    number : int
        Of the group in its search; the seed of dropout and noise depends on it.
    cells : sequence of Cell
        Cells with equal optimizer settings should be neighbours.
    """

    def __init__(self, number: int, cells: Sequence[Cell]) -> None:
        self.number = number
        self.cells = list(cells)
        self.epochs = 0  # trained so far
        self.seconds = 0.0
        self.tree: Tree | None = None
        self.moments: Moments = []

    @property
    def first(self) -> Candidate:
        """A candidate, whose shape is that of all."""
        return self.cells[0].candidates[0]

    def members_per_cell(self, problem: Problem) -> int:
        """Count the members that train one cell."""
        return len(problem.parts[0]) * problem.seeds * self.first.copies

    def advance(self, problem: Problem, until: int, seconds: float = float("inf")) -> list[CellResult]:
        """Train up to an epoch and score all cells, or raise `OutOfTime` after a number of seconds."""
        start = time.perf_counter()
        try:
            table = problem.tables[self.first.table]
            learnt, held_out = self._rows_of_members(problem)
            if self.tree is None:
                self.tree = self._new_tree(problem, table)
            self.tree.to(problem.device)
            has_mlp_leaves = problem.device.type == "cpu" and self.first.settings["leaf_layers"] > 1
            with leaf_blocks.one_thread() if has_mlp_leaves else nullcontext():
                losses = self._train(problem, table, learnt, until, start + seconds)
                finite = self._finite_members(losses)
                self.tree.eval()
                scores = self._scores(problem, table, held_out)
                sizes = self._sizes(problem, table, learnt)
        finally:
            self.seconds += time.perf_counter() - start
            if self.tree is not None:
                self.tree.to("cpu")
            if problem.device.type == "cuda":
                _free_memory(problem.device)
        is_finite = finite.view(len(self.cells), -1).all(1)
        return [
            CellResult(
                self.epochs,
                {selection: scores[selection][i] for selection in cell.selections},
                {selection: sizes[selection][i][0] for selection in cell.selections},
                {selection: sizes[selection][i][1] for selection in cell.selections},
                None if bool(is_finite[i]) else self._divergence(cell),
            )
            for i, cell in enumerate(self.cells)
        ]

    def keep(self, indices: Sequence[int], problem: Problem) -> None:
        """Drop all other cells."""
        if len(indices) == len(self.cells):
            return
        each = self.members_per_cell(problem)
        members = torch.cat([torch.arange(i * each, (i + 1) * each) for i in indices])
        before, n_before = self.tree, len(self.cells) * each
        self.cells = [self.cells[i] for i in indices]
        if before is None:
            return
        self.tree = smaller = self._undrawn_tree(problem, problem.tables[self.first.table])
        kept = smaller.state_dict()
        for name, value in before.state_dict().items():
            kept[name].copy_(value[members] if value.shape != kept[name].shape else value)
        self.moments = [
            (mean[members], square[members]) if len(mean) == n_before else (mean, square)
            for mean, square in self.moments
        ]

    def split(self) -> tuple[Group, Group]:
        """Return two untrained groups with half of the cells each."""
        middle = len(self.cells) // 2
        return Group(self.number, self.cells[:middle]), Group(self.number, self.cells[middle:])

    def release(self) -> None:
        """Drop weights that are no longer needed."""
        self.tree, self.moments = None, []

    # Members

    def _members(self, problem: Problem) -> Iterator[tuple[Cell, int, int, int]]:
        """Yield cell, fold, seed and copy of each member."""
        for cell in self.cells:
            for fold in range(len(problem.parts[cell.part])):
                for seed in range(problem.seeds):
                    for copy in range(self.first.copies):
                        yield cell, fold, seed, copy

    def _rows_of_members(self, problem: Problem) -> tuple[list[RowIndex], list[RowIndex]]:
        folds = [problem.parts[cell.part][fold] for cell, fold, _, _ in self._members(problem)]
        return [learnt for learnt, _ in folds], [held_out for _, held_out in folds]

    def _undrawn_tree(self, problem: Problem, table: Sample) -> Tree:
        members = len(self.cells) * self.members_per_cell(problem)
        first = self.first
        settings = sparse_settings({**first.settings, "members": members}, first.limits, table.columns, first.structure)
        return build_tree(first.structure, table.x.shape[1], problem.output, settings, problem.random_state)

    def _new_tree(self, problem: Problem, table: Sample) -> Tree:
        tree = self._undrawn_tree(problem, table)
        members = list(self._members(problem))
        if len(members) > 1 and any(p.shape[:1] != (len(members),) for p in tree.parameters()):
            raise ValueError(
                "folds are trained as members of one tree, got a decision whose members share weights, as those of a "
                "backbone; leave it out of the space"
            )
        # The weights of a member do not depend on the other members.
        seeds = [
            np.random.SeedSequence([problem.random_state, cell.part, fold, seed, copy]).generate_state(1)[0]
            for cell, fold, seed, copy in members
        ]
        tree.reset_parameters(generators(seeds))
        return tree

    # Training

    def _train(self, problem: Problem, table: Sample, learnt: list[RowIndex], until: int, deadline: float) -> Tensor:
        """Return the losses of the epochs, (epochs, members), on the CPU."""
        tree, recipe = self.tree, self.first.recipe
        assert tree is not None
        share = problem.seeds * self.first.copies  # members of each fold
        x, target = table.x.to(problem.device), table.target.to(problem.device)
        weight = None if table.weight is None else table.weight.to(problem.device)
        curves = None if table.curves is None else table.curves.to(problem.device)
        rows = MemberRows.gather(
            TensorRows(x, target, weight, curves=curves), [torch.from_numpy(index) for index in learnt[::share]], share
        )
        if recipe.optimizer == "lbfgs":  # reaches the optimum at once
            return self._solve(tree, rows, recipe)
        losses: list[Tensor] = []
        seed = int(np.random.SeedSequence([problem.random_state, self.number, self.epochs]).generate_state(1)[0])
        tree.train()
        with training_context(tree, min(len(rows), recipe.batch_size)):
            torch.manual_seed(seed)
            epochs = make_epochs(tree, rows, recipe, torch.Generator().manual_seed(seed))
            assert isinstance(epochs, EagerEpochs | CapturedEpochs)
            captured = isinstance(epochs, CapturedEpochs)
            n_batches = epochs.n_batches if isinstance(epochs, CapturedEpochs) else recipe.n_batches(len(rows))
            each = self.members_per_cell(problem)
            settings = [cell.optimizer_settings for cell in self.cells for _ in range(each)]
            optimizer = MemberAdam(tree, settings, recipe.learning_rate, n_batches, captured=captured)
            epochs.step.optimizer = optimizer
            if self.epochs:
                optimizer.set_moments(self.moments, self.epochs * n_batches)
                if isinstance(epochs, CapturedEpochs):
                    epochs.clock.fill_(self.epochs * n_batches)
                    epochs.rate.copy_(epochs.rate_table[self.epochs * n_batches])
            begin, every = self.epochs, EPOCHS_PER_CLOCK if captured else 1
            try:
                while self.epochs < until:
                    if (self.epochs - begin) % every == 0:
                        if captured:
                            torch.cuda.current_stream().synchronize()
                        if time.perf_counter() > deadline:
                            raise OutOfTime
                    losses.append(epochs.run(self.epochs))
                    self.epochs += 1
            finally:
                optimizer.zero_grad()
                self.moments = [(mean.cpu(), square.cpu()) for mean, square in optimizer.moments()]
            stacked = torch.stack(losses).cpu() if losses else torch.zeros(0, len(settings))
        for parameter in tree.parameters():  # fused steps do not count as changes, but copies depend on the count
            torch.autograd.graph.increment_version(parameter)
        return stacked

    def _solve(self, tree: Tree, rows: Rows, recipe: Recipe) -> Tensor:
        from tartree.training.lbfgs import solve

        if self.epochs:
            return torch.zeros(0, len(next(tree.parameters())))
        history = solve(tree, rows, recipe)
        self.epochs = recipe.epochs
        return torch.from_numpy(history["loss"][-1:])

    @torch.no_grad()
    def _finite_members(self, losses: Tensor) -> Tensor:
        """Return which members are finite, (members,), and set the weights of the others to 0."""
        assert self.tree is not None
        finite = torch.isfinite(losses).all(0)
        member_weights = [p for p in self.tree.parameters() if p.shape[:1] == finite.shape]
        for p in member_weights:
            finite &= torch.isfinite(p).flatten(1).all(1).cpu()
        if not bool(finite.all()):
            for p in member_weights:
                p[~finite.to(p.device)] = 0.0
        return finite

    def _divergence(self, cell: Cell) -> str:
        rate = cell.optimizer_settings.learning_rate
        return f"loss and weights must stay finite, got others within {self.epochs} epochs; lower learning_rate={rate}"

    # Scores and sizes

    @torch.no_grad()
    def _scores(
        self, problem: Problem, table: Sample, held_out: list[RowIndex]
    ) -> dict[Selection, list[NDArray[np.float64]]]:
        """Return scores by selection, of each cell and fold, the means over seeds."""
        tree = self.tree
        assert tree is not None
        index, padding = pad_rows(held_out)
        weight = torch.ones(index.shape) if padding is None else padding
        if problem.score_weight is not None:
            weight = weight * problem.score_weight[index]
        chunks: dict[Selection, list[Tensor]] = {selection: [] for selection in self._selections()}
        for columns in self._chunks(problem, index):
            leaves = tree(table.x[index[:, columns]].to(problem.device))
            values = tree.output.mean(leaves.numbers)
            for selection, predicted in chunks.items():
                predicted.append(combine(leaves.arrival, values, selection).cpu())
        target, copies = table.target[index], self.first.copies
        scores: dict[Selection, list[NDArray[np.float64]]] = {}
        for selection, parts in chunks.items():
            predicted = torch.cat(parts, dim=1).unflatten(0, (-1, copies)).mean(1)  # (members / copies, rows, ...)
            of_members = problem.score(predicted, target[::copies], weight[::copies])
            folds = of_members.view(len(self.cells), -1, problem.seeds).mean(-1)  # (cells, folds)
            scores[selection] = list(folds.numpy())
        return scores

    @torch.no_grad()
    def _sizes(
        self, problem: Problem, table: Sample, learnt: list[RowIndex]
    ) -> dict[Selection, list[tuple[Size, float]]]:
        """Return the size of each cell by selection, the mean over its folds, and the most leaves of a fold."""
        tree = self.tree
        assert tree is not None
        index, padding = pad_rows([rows[:: -(-len(rows) // COUNTED_ROWS)] for rows in learnt])
        counts: Tensor | None = None
        for columns in self._chunks(problem, index):
            weight = None if padding is None else padding[:, columns].to(problem.device)
            part = count_arrivals(tree, table.x[index[:, columns]].to(problem.device), weight)
            counts = part if counts is None else counts + part
        assert counts is not None
        features = features_per_condition(tree)
        if len(features) != len(index):  # no weights that differ between members
            features = np.full(len(index), features.mean())
        n_parameters = sum(p.numel() for p in tree.parameters()) // max(1, len(index)) * self.first.copies
        shape = (len(self.cells), -1, self.first.copies)
        mean_features = features.reshape(shape).mean((1, 2))
        sizes: dict[Selection, list[tuple[Size, float]]] = {}
        for selection in self._selections():
            is_used = used_leaves(counts, selection).numpy()
            leaves = is_used.sum(1).reshape(shape).sum(2)  # (cells, folds and seeds)
            paths = np.array([longest_path(tree.structure, leaf) for leaf in is_used]).reshape(shape).mean((1, 2))
            sizes[selection] = [
                (Size(float(of_folds.mean()), float(path), float(n_features), n_parameters), float(of_folds.max()))
                for of_folds, path, n_features in zip(leaves, paths, mean_features, strict=True)
            ]
        return sizes

    def _selections(self) -> set[Selection]:
        return set().union(*(cell.selections for cell in self.cells))

    def _chunks(self, problem: Problem, index: Tensor) -> Sequence[Tensor]:
        """Split the columns of row positions, (members, rows), so that memory stays small."""
        assert self.tree is not None
        most = CHUNK if problem.device.type == "cpu" else DEVICE_CHUNK
        columns: Sequence[Tensor] = torch.arange(index.shape[1]).split(max(1, most // (len(index) * self.tree.width)))
        return columns


def _free_memory(device: torch.device) -> None:
    """Collect garbage if a GPU is filling up: captured graphs are parts of cycles that hold its memory."""
    _, total = torch.cuda.mem_get_info(device)
    if torch.cuda.memory_reserved(device) > total / 8:
        gc.collect()
        torch.cuda.empty_cache()
