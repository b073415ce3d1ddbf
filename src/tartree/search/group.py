"""Trainings of one shape as members of one tree: they go on together, and each can be dropped alone."""

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

from tartree.nn import Selection, Tree, combine, leaf_blocks
from tartree.search.candidates import Candidate, OptimizerSettings
from tartree.search.member_adam import MemberAdam, Moments
from tartree.search.problem import Problem, Table, padded
from tartree.search.problem import Rows as RowNumbers
from tartree.search.scores import score
from tartree.search.sizes import Size, count_arrivals, features_a_condition, longest_path, used_leaves
from tartree.training import MemberRows, Recipe, Rows
from tartree.training.epochs import CapturedEpochs, EagerEpochs, make_epochs
from tartree.training.loop import training_context

#: Numbers of the largest tensor of a prediction, at most, on a CPU and on other devices.
CHUNK, DEVICE_CHUNK = 2**22, 2**27
#: Rows on which leaves are counted, at most.
COUNTED_ROWS = 2000
#: How many epochs pass on a GPU before the clock is looked at: a look waits for it.
LOOK_EVERY = 16


@dataclass(frozen=True)
class Cell:
    """One training in one part: the candidates that it serves differ by their selection alone."""

    part: int
    candidates: tuple[Candidate, ...]

    @property
    def pace(self) -> OptimizerSettings:
        return self.candidates[0].pace


@dataclass(frozen=True, eq=False)
class Found:
    """What is known of a cell after some epochs: scores of the folds and the size, by selection."""

    epochs: int
    scores: dict[Selection, NDArray[np.float64]] = field(default_factory=dict)  # (folds,)
    sizes: dict[Selection, Size] = field(default_factory=dict)  # means over the folds
    most_leaves: dict[Selection, float] = field(default_factory=dict)  # of a fold
    failure: str | None = None


class TimeIsUp(Exception):
    """There was no time to go on; what was learnt until then stays."""


class Group:
    """Cells of one shape. It holds no data and no GPU memory between calls of `advance`, and can be pickled.

    Parameters
    ----------
    number : int
        Of the group in its search; the seed of dropout and noise depends on it.
    cells : sequence of Cell
        Neighbours of one pace should stand together.
    """

    def __init__(self, number: int, cells: Sequence[Cell]) -> None:
        self.number = number
        self.cells = list(cells)
        self.epochs = 0  # so far
        self.seconds = 0.0
        self.tree: Tree | None = None
        self.moments: Moments = []

    @property
    def first(self) -> Candidate:
        return self.cells[0].candidates[0]

    def members_a_cell(self, problem: Problem) -> int:
        return len(problem.parts[0]) * problem.seeds * self.first.copies

    def advance(self, problem: Problem, until: int, seconds: float = float("inf")) -> list[Found]:
        """Train up to an epoch, and score all cells; one `Found` a cell. Raises `TimeIsUp` after so many seconds."""
        start = time.perf_counter()
        try:
            table = problem.tables[self.first.table]
            learnt, held = self._lists(problem)
            if self.tree is None:
                self.tree = self._build(problem, table)
            self.tree.to(problem.device)
            perceptrons = problem.device.type == "cpu" and self.first.settings["leaf_layers"] > 1
            with leaf_blocks.one_thread() if perceptrons else nullcontext():
                losses = self._train(problem, table, learnt, until, start + seconds)
                finite = self._finite_members(losses)
                self.tree.eval()
                said = self._score(problem, table, held)
                sizes = self._sizes(problem, table, learnt)
        finally:
            self.seconds += time.perf_counter() - start
            if self.tree is not None:
                self.tree.to("cpu")
            if problem.device.type == "cuda":
                _give_back_memory(problem.device)
        found = []
        for place, own in enumerate(self.cells):
            failure = None if bool(finite.view(len(self.cells), -1)[place].all()) else self._divergence(place)
            wanted = {one.selection for one in own.candidates}
            found.append(
                Found(
                    self.epochs,
                    {selection: said[selection][place] for selection in wanted},
                    {selection: sizes[selection][place][0] for selection in wanted},
                    {selection: sizes[selection][place][1] for selection in wanted},
                    failure,
                )
            )
        return found

    def keep(self, places: Sequence[int], problem: Problem) -> None:
        """Go on with some cells only."""
        if len(places) == len(self.cells):
            return
        each = self.members_a_cell(problem)
        members = torch.cat([torch.arange(place * each, (place + 1) * each) for place in places])
        before, n_before = self.tree, len(self.cells) * each
        self.cells = [self.cells[place] for place in places]
        if before is None:
            return
        self.tree = smaller = self._empty(problem, before.output, problem.tables[self.first.table])
        kept = smaller.state_dict()
        for name, value in before.state_dict().items():
            own = value[members] if value.shape != kept[name].shape else value
            kept[name].copy_(own)
        self.moments = [
            (mean[members], square[members]) if len(mean) == n_before else (mean, square)
            for mean, square in self.moments
        ]

    def split(self) -> tuple[Group, Group]:
        """Two groups with half of the cells each, from the start."""
        middle = len(self.cells) // 2
        return Group(self.number, self.cells[:middle]), Group(self.number, self.cells[middle:])

    def release(self) -> None:
        """Forget the weights, which nobody needs any more."""
        self.tree, self.moments = None, []

    # Members

    def _each_member(self, problem: Problem) -> Iterator[tuple[Cell, int, int, int]]:
        """Cell, fold, seed and copy of each member."""
        for own in self.cells:
            for fold in range(len(problem.parts[own.part])):
                for seed in range(problem.seeds):
                    for copy in range(self.first.copies):
                        yield own, fold, seed, copy

    def _lists(self, problem: Problem) -> tuple[list[RowNumbers], list[RowNumbers]]:
        pairs = [problem.parts[own.part][fold] for own, fold, _, _ in self._each_member(problem)]
        return [learnt for learnt, _ in pairs], [held for _, held in pairs]

    def _empty(self, problem: Problem, output: object, table: Table) -> Tree:
        members = len(self.cells) * self.members_a_cell(problem)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(problem.random_state)
            return Tree.build(
                self.first.structure, table.x.shape[1], problem.output, members=members, **self.first.settings
            )

    def _build(self, problem: Problem, table: Table) -> Tree:
        tree = self._empty(problem, problem.output, table)
        members = list(self._each_member(problem))
        if len(members) > 1 and any(p.shape[:1] != (len(members),) for p in tree.parameters()):
            raise ValueError(
                "folds are trained as members of one tree, however: members share weights, as those of a backbone; "
                "leave such a decision out of the space"
            )
        # A member draws the same whatever stands beside it.
        seeds = [
            np.random.SeedSequence([problem.random_state, own.part, fold, seed, copy]).generate_state(1)[0]
            for own, fold, seed, copy in members
        ]
        tree.reset_parameters([torch.Generator().manual_seed(int(seed)) for seed in seeds])
        return tree

    # Training

    def _train(self, problem: Problem, table: Table, learnt: list[RowNumbers], until: int, deadline: float) -> Tensor:
        """Losses of the epochs, (epochs, members), on the CPU."""
        tree, recipe = self.tree, self.first.recipe
        assert tree is not None
        share = problem.seeds * self.first.copies  # of each fold
        rows = MemberRows.gather(table.to(problem.device), [torch.from_numpy(own) for own in learnt[::share]], share)
        if recipe.optimizer == "lbfgs":  # goes to the optimum, or has been there
            return self._solve(tree, rows, recipe)
        losses: list[Tensor] = []
        each = self.members_a_cell(problem)
        seed = int(np.random.SeedSequence([problem.random_state, self.number, self.epochs]).generate_state(1)[0])
        tree.train()
        with training_context(tree, min(len(rows), recipe.batch_size)):
            torch.manual_seed(seed)
            epochs = make_epochs(tree, rows, recipe, torch.Generator().manual_seed(seed))
            assert isinstance(epochs, EagerEpochs | CapturedEpochs)
            captured = isinstance(epochs, CapturedEpochs)
            n_batches = epochs.n_batches if isinstance(epochs, CapturedEpochs) else recipe.n_batches(len(rows))
            paces = [own.pace for own in self.cells for _ in range(each)]
            optimizer = MemberAdam(tree, paces, recipe.learning_rate, n_batches, captured=captured)
            epochs.step.optimizer = optimizer
            if self.epochs:
                optimizer.set_moments(self.moments, self.epochs * n_batches)
                if isinstance(epochs, CapturedEpochs):
                    epochs.clock.fill_(self.epochs * n_batches)
                    epochs.pace.copy_(epochs.paces[self.epochs * n_batches])
            begin, every = self.epochs, LOOK_EVERY if captured else 1
            try:
                while self.epochs < until:
                    if (self.epochs - begin) % every == 0:
                        if captured:
                            torch.cuda.current_stream().synchronize()
                        if time.perf_counter() > deadline:
                            raise TimeIsUp
                    losses.append(epochs.run(self.epochs))
                    self.epochs += 1
            finally:
                optimizer.zero_grad()
                self.moments = [(mean.cpu(), square.cpu()) for mean, square in optimizer.moments()]
            found = torch.stack(losses).cpu() if losses else torch.zeros(0, len(paces))
        for parameter in tree.parameters():  # fused steps do not count as changes, and copies must know of them
            torch.autograd.graph.increment_version(parameter)
        return found

    def _solve(self, tree: Tree, rows: Rows, recipe: Recipe) -> Tensor:
        from tartree.training.lbfgs import solve

        if self.epochs:
            return torch.zeros(0, len(next(tree.parameters())))
        history = solve(tree, rows, recipe)
        self.epochs = recipe.epochs
        return torch.from_numpy(history["loss"][-1:])

    @torch.no_grad()
    def _finite_members(self, losses: Tensor) -> Tensor:
        """Which members have numbers that mean something, (members,); the others are set to 0, to harm nobody."""
        assert self.tree is not None
        finite = torch.isfinite(losses).all(0)
        own = [p for p in self.tree.parameters() if p.shape[:1] == finite.shape]
        for p in own:
            finite &= torch.isfinite(p).flatten(1).all(1).cpu()
        if not bool(finite.all()):
            for p in own:
                p[~finite.to(p.device)] = 0.0
        return finite

    def _divergence(self, place: int) -> str:
        return (
            f"loss and weights must stay finite, however: they are not within {self.epochs} epochs; "
            f"lower learning_rate, now {self.cells[place].pace.learning_rate}"
        )

    # Scores and sizes

    @torch.no_grad()
    def _score(
        self, problem: Problem, table: Table, held: list[RowNumbers]
    ) -> dict[Selection, list[NDArray[np.float64]]]:
        """Scores by selection, of each cell and fold, the mean over seeds."""
        tree = self.tree
        assert tree is not None
        index, fill = padded(held)
        weight = torch.ones(index.shape) if fill is None else fill
        if problem.score_weight is not None:
            weight = weight * problem.score_weight[index]
        selections = {one.selection for own in self.cells for one in own.candidates}
        said: dict[Selection, list[Tensor]] = {selection: [] for selection in selections}
        for columns in torch.arange(index.shape[1]).split(self._chunk(problem, len(index))):
            leaves = tree(table.x[index[:, columns]].to(problem.device))
            values = tree.output.mean(leaves.numbers)
            for selection in selections:
                said[selection].append(combine(leaves.arrival, values, selection).cpu())
        target, copies = table.target[index], self.first.copies
        found: dict[Selection, list[NDArray[np.float64]]] = {}
        for selection, parts in said.items():
            predicted = torch.cat(parts, dim=1).unflatten(0, (-1, copies)).mean(1)  # (members / copies, rows, ...)
            own = score(problem.scoring, predicted, target[::copies], weight[::copies])
            folds = own.view(len(self.cells), -1, problem.seeds).mean(-1)  # (cells, folds)
            found[selection] = list(folds.numpy())
        return found

    @torch.no_grad()
    def _sizes(
        self, problem: Problem, table: Table, learnt: list[RowNumbers]
    ) -> dict[Selection, list[tuple[Size, float]]]:
        """Size by selection of each cell, the mean over its folds, and the most leaves of a fold."""
        tree = self.tree
        assert tree is not None
        some = [rows[:: -(-len(rows) // COUNTED_ROWS)] for rows in learnt]
        index, fill = padded(some)
        counted: Tensor | None = None
        for columns in torch.arange(index.shape[1]).split(self._chunk(problem, len(index))):
            weight = None if fill is None else fill[:, columns].to(problem.device)
            part = count_arrivals(tree, table.x[index[:, columns]].to(problem.device), weight)
            counted = part if counted is None else counted + part
        assert counted is not None
        features = features_a_condition(tree)
        if len(features) != len(index):  # nothing is learnt that would tell members apart
            features = np.full(len(index), features.mean())
        n_parameters = sum(p.numel() for p in tree.parameters()) // max(1, len(index)) * self.first.copies
        shape = (len(self.cells), -1, self.first.copies)
        found: dict[Selection, list[tuple[Size, float]]] = {}
        for selection in {one.selection for own in self.cells for one in own.candidates}:
            used = used_leaves(counted, selection).numpy()
            leaves = used.sum(1).reshape(shape).sum(2)  # (cells, folds and seeds)
            paths = np.array([longest_path(tree.structure, own) for own in used]).reshape(shape).mean((1, 2))
            looked_at = features.reshape(shape).mean((1, 2))
            found[selection] = [
                (Size(float(own.mean()), float(path), float(looked), n_parameters), float(own.max()))
                for own, path, looked in zip(leaves, paths, looked_at, strict=True)
            ]
        return found

    def _chunk(self, problem: Problem, members: int) -> int:
        assert self.tree is not None
        most = CHUNK if problem.device.type == "cpu" else DEVICE_CHUNK
        return max(1, most // (members * self.tree.width))


def _give_back_memory(device: torch.device) -> None:
    """Captured graphs are parts of cycles, and hold the memory of a GPU until these are found."""
    _, total = torch.cuda.mem_get_info(device)
    if torch.cuda.memory_reserved(device) > total / 8:
        gc.collect()
        torch.cuda.empty_cache()
