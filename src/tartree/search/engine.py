"""The engine of a search: groups of candidates train from rung to rung, and the worse candidates are dropped.

Nothing is trained twice, unless memory runs out or all promoted candidates fail: a rung resumes where the last one
ended, and candidates that differ by their selection alone share a training.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from joblib import Parallel, delayed

from tartree.search.candidates import Candidate, Key
from tartree.search.group import Cell, CellResult, Group, OutOfTime
from tartree.search.problem import Problem
from tartree.search.trials import Trial

#: Elements of the hidden units or leaves of all members of a group, at most, on a CPU and on other devices.
MAX_ELEMENTS, MAX_DEVICE_ELEMENTS = 2**26, 2**31

Choose = Callable[[int, Sequence[Trial]], Sequence[Trial]]  # (part, trials after a rung) -> promoted trials
TrialsOfPart = dict[int, Trial]  # by number


@dataclass(eq=False)
class Engine:
    """Trains candidates and records their results.

    Parameters
    ----------
    problem : Problem
    fractions : sequence of float
        Shares of a candidate's epochs after which scores are compared; the last is 1.
    choose : callable
        Returns the trials of a part that are promoted after a rung.
    deadline : float
        On the clock of `time.perf_counter`.
    n_jobs : int, optional
        Groups that are trained at the same time, by joblib's current backend; None: all in this process.
    notify : callable
        Called after each change of the trials.
    max_leaves : float, optional
        After the deadline, training continues until some candidate with at most so many leaves is scored.
    trials : list of lists of Trial
        Of each part.
    """

    problem: Problem
    fractions: Sequence[float]
    choose: Choose
    deadline: float = math.inf
    n_jobs: int | None = None
    notify: Callable[[], None] = lambda: None
    max_leaves: float | None = None
    trials: list[list[Trial]] = field(default_factory=list)
    n_groups: int = 0

    def __post_init__(self) -> None:
        if not self.trials:
            self.trials = [[] for _ in self.problem.parts]

    @property
    def is_out_of_time(self) -> bool:
        """Whether the deadline has passed."""
        return time.perf_counter() > self.deadline

    def run(self, candidates: Sequence[Candidate]) -> None:
        """Train candidates through all rungs."""
        current: list[TrialsOfPart] = []
        for recorded in self.trials:
            added = {
                candidate.number: Trial(
                    candidate.number, candidate.params, candidate.recipe.epochs, candidate.kind, candidate.n_leaves
                )
                for candidate in candidates
            }
            recorded.extend(added.values())
            current.append(added)
        groups = self._groups(candidates, [set(trials) for trials in current])
        try:
            for fraction in self.fractions:
                if all(self._until(group, fraction) <= group.epochs for group in groups):
                    continue  # too few epochs for a rung between two others
                groups = self._run_rung(groups, fraction, current)
                self._drop(groups, fraction, current)
                groups = [group for group in groups if group.cells]
                if self.is_out_of_time:
                    break
            self._restore_dropped(candidates, current)
        finally:
            for trials in current:
                for trial in trials.values():
                    if trial.state in ("waiting", "running"):
                        trial.state = "unfinished"
                        trial.reason = trial.reason or "the search ended before"
            self.notify()

    def _restore_dropped(self, candidates: Sequence[Candidate], current: list[TrialsOfPart]) -> None:
        """Train the best dropped candidate from the start if all promoted ones have failed."""
        while not self.is_out_of_time:
            restored: list[set[int]] = []
            for trials in current:
                states = {trial.state for trial in trials.values() if trial.history}
                dropped = [trial for trial in trials.values() if trial.state == "dropped"]
                restored.append(set())
                if "failed" in states and "complete" not in states and dropped:
                    best = max(dropped, key=lambda trial: trial.score)
                    best.state, best.reason = "running", None
                    restored[-1].add(best.number)
            if not any(restored):
                return
            self._drop(self._run_rung(self._groups(candidates, restored), 1.0, current), 1.0, current)

    def _groups(self, candidates: Sequence[Candidate], numbers: Sequence[set[int]]) -> list[Group]:
        """Group candidates of one shape, as many as memory allows; the cheapest groups first.

        Candidates of each part are selected by their `numbers`.
        """
        shapes: dict[Key, dict[Key, list[Candidate]]] = {}
        for candidate in candidates:
            shapes.setdefault(candidate.shape, {}).setdefault(candidate.training, []).append(candidate)
        groups = []
        for trainings in sorted(shapes.values(), key=lambda trainings: self._work(next(iter(trainings.values()))[0])):
            cells = [
                Cell(part, selected)
                for shared in trainings.values()
                for part, of_part in enumerate(numbers)
                if (selected := tuple(candidate for candidate in shared if candidate.number in of_part))
            ]
            if not cells:
                continue
            most = MAX_ELEMENTS if self.problem.device.type == "cpu" else MAX_DEVICE_ELEMENTS
            size = max(1, int(most // self._n_elements(cells[0].candidates[0])))
            n_parts = -(-len(cells) // size)
            for first in range(n_parts):  # sizes differ by one at most
                groups.append(Group(self.n_groups, cells[first::n_parts] if n_parts > 1 else cells))
                self.n_groups += 1
        return groups

    def _n_elements(self, candidate: Candidate) -> float:
        """Return the elements of the largest tensor in a training step of one cell."""
        problem = self.problem
        most_rows = max(len(learnt) for folds in problem.parts for learnt, _ in folds)
        rows = min(most_rows, candidate.recipe.batch_size)
        members = len(problem.parts[0]) * problem.seeds * candidate.copies
        is_deep = candidate.settings["leaf_layers"] > 1 or candidate.settings["decision_layers"] > 1
        width = max(candidate.settings["hidden"] if is_deep else 1, problem.output.n_numbers)
        return float(members * rows * candidate.structure.n_leaves * width)

    def _work(self, candidate: Candidate) -> float:
        """Estimate the time of a training, in arbitrary units."""
        layers: int = 1 + candidate.settings["leaf_layers"] + candidate.settings["decision_layers"]
        return self._n_elements(candidate) * layers * candidate.recipe.epochs

    def _until(self, group: Group, fraction: float) -> int:
        return max(1, math.ceil(fraction * group.first.recipe.epochs - 1e-9))

    def _run_rung(self, groups: list[Group], fraction: float, current: list[TrialsOfPart]) -> list[Group]:
        """Train all groups up to a share of their epochs, and return those that are left."""
        remaining: list[Group] = []
        if self.n_jobs not in (None, 1):
            end = time.time() + self.deadline - time.perf_counter()  # on a clock that processes share
            required = self._required(groups)[:1]
            calls = [
                delayed(attempt_until)(
                    group, self.problem, self._until(group, fraction), math.inf if group in required else end
                )
                for group in groups
            ]
            for attempts in self._parallel()(calls):
                remaining += self._record_all(attempts, current)
            return sorted(remaining, key=lambda group: group.number)
        for group in groups:
            is_required = group in self._required(groups)
            if not is_required and self.is_out_of_time:
                remaining.append(group)
                continue
            seconds = math.inf if is_required else self.deadline - time.perf_counter()
            attempts = attempt(group, self.problem, self._until(group, fraction), seconds)
            remaining += self._record_all(attempts, current)
        return remaining

    def _required(self, groups: list[Group]) -> list[Group]:
        """Return groups that may train after the deadline, since no trial can be chosen yet."""
        if any(trial.is_scored and trial.is_allowed(self.max_leaves) for trials in self.trials for trial in trials):
            return []
        if self.max_leaves is None:
            return groups
        never_above = [group for group in groups if group.cells and group.first.n_leaves <= self.max_leaves]
        return never_above or groups

    def _parallel(self) -> Parallel:
        """Return a pool that yields results as they come, if the backend can do that."""
        try:
            return Parallel(n_jobs=self.n_jobs, return_as="generator_unordered")
        except ValueError:
            return Parallel(n_jobs=self.n_jobs)

    def _record_all(self, attempts: list[Attempt], current: list[TrialsOfPart]) -> list[Group]:
        for result in attempts:
            self._record(result, current)
        self.notify()
        return [result.group for result in attempts]

    def _record(self, attempt: Attempt, current: list[TrialsOfPart]) -> None:
        """Write results into the trials, and drop the cells that failed from their group."""
        group = attempt.group
        good = []
        for i, cell in enumerate(group.cells):
            result = attempt.results[i] if attempt.results else None
            failure = attempt.failure or (result.failure if result else None)
            if not failure:
                good.append(i)
            for candidate in cell.candidates:
                trial = current[cell.part][candidate.number]
                if failure:
                    trial.state, trial.reason = "failed", failure
                elif result:
                    trial.state = "complete" if result.epochs >= trial.all_epochs else "running"
                    trial.epochs = result.epochs
                    trial.scores = result.scores[candidate.selection]
                    trial.size = result.sizes[candidate.selection]
                    trial.most_leaves = result.most_leaves[candidate.selection]
                    trial.history.append((result.epochs, trial.score))
        group.keep(good, self.problem) if good else group.cells.clear()

    def _drop(self, groups: list[Group], fraction: float, current: list[TrialsOfPart]) -> None:
        """Drop the trials that are not promoted after a rung, and their cells."""
        if fraction >= 1:
            for group in groups:
                group.release()
            return
        if self.is_out_of_time:
            return
        cells = [(cell.part, {c.number for c in cell.candidates}) for group in groups for cell in group.cells]
        for part, trials in enumerate(current):
            alive = [trial for trial in trials.values() if trial.state == "running" and trial.is_scored]
            kept = {trial.number for trial in self.choose(part, alive)}
            # Candidates that share a promoted training are scored without cost.
            kept |= {number for p, numbers in cells if p == part and numbers & kept for number in numbers}
            for trial in alive:
                if trial.number not in kept:
                    trial.state = "dropped"
                    trial.reason = f"others were better after {trial.epochs} of {trial.all_epochs} epochs"
        for group in groups:
            remaining: dict[int, Cell] = {}
            for i, cell in enumerate(group.cells):
                trials_of_part = current[cell.part]
                alive_cell = [c for c in cell.candidates if trials_of_part[c.number].state in ("running", "waiting")]
                if alive_cell:
                    remaining[i] = Cell(cell.part, tuple(alive_cell))
            if not remaining:
                group.cells.clear()
                group.release()
                continue
            group.keep(list(remaining), self.problem)
            group.cells = list(remaining.values())
        self.notify()


@dataclass(eq=False)
class Attempt:
    """The outcome of one call of `Group.advance`: a result for each cell, or a failure; neither if time was up."""

    group: Group
    results: list[CellResult] | None = None
    failure: str | None = None


def attempt_until(group: Group, problem: Problem, until: int, end: float) -> list[Attempt]:
    """Call `attempt` with a deadline on the clock of `time.time`, which processes share."""
    return attempt(group, problem, until, end - time.time())


def attempt(group: Group, problem: Problem, until: int, seconds: float) -> list[Attempt]:
    """Train a group up to an epoch; a group that fails is retried in halves, so that candidates fail alone.

    Nothing but Ctrl-C is raised.
    """
    try:
        return [Attempt(group, group.advance(problem, until, seconds))]
    except OutOfTime:
        return [Attempt(group)]
    except Exception as error:
        group.release()
        if len(group.cells) > 1:
            return [result for half in group.split() for result in attempt(half, problem, until, seconds)]
        return [Attempt(group, failure=describe(error))]


def is_memory(error: Exception) -> bool:
    """Whether memory ran out."""
    return isinstance(error, MemoryError) or "out of memory" in str(error) or "can't allocate memory" in str(error)


def describe(error: Exception) -> str:
    """Return an exception as one line."""
    text = " ".join(str(error).split())
    if is_memory(error):
        return f"there is not enough memory for it: {text}"[:500]
    return (text if isinstance(error, ValueError) else f"{type(error).__name__}: {text}")[:500]
