"""The search itself: groups of candidates go from rung to rung, and the worse ones are left behind.

Nothing is trained twice, but where memory runs out or all that went on have failed: a rung goes on from where the last
one ended, and candidates that differ by their selection alone share a training.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from joblib import Parallel, delayed

from tartree.search.candidates import Candidate, Key
from tartree.search.group import Cell, Found, Group, TimeIsUp
from tartree.search.problem import Problem
from tartree.search.trials import Trial

#: Numbers of the hidden units or leaves of all members of a group, at most, on a CPU and on other devices.
MOST_NUMBERS, MOST_DEVICE_NUMBERS = 2**26, 2**31

Choose = Callable[[int, Sequence[Trial]], Sequence[Trial]]  # (part, trials at a rung) -> those that go on


@dataclass(eq=False)
class Engine:
    """Runs candidates, and keeps what is found out about them.

    Parameters
    ----------
    problem : Problem
    fractions : sequence of float
        Shares of a candidate's epochs at which scores are compared; the last is 1.
    choose : callable
        Which trials of a part go on after a rung.
    deadline : float
        On the clock of `time.perf_counter`.
    n_jobs : int, optional
        Groups that are trained at the same time, by joblib's current backend; None: all in this process.
    tell : callable
        Called whenever something is known that was not before.
    max_leaves : float, optional
        When the time is up, work goes on until something with at most so many leaves is known.
    """

    problem: Problem
    fractions: Sequence[float]
    choose: Choose
    deadline: float = math.inf
    n_jobs: int | None = None
    tell: Callable[[], None] = lambda: None
    max_leaves: float | None = None
    trials: list[list[Trial]] = field(default_factory=list)  # of each part
    n_groups: int = 0

    def __post_init__(self) -> None:
        if not self.trials:
            self.trials = [[] for _ in self.problem.parts]

    @property
    def is_up(self) -> bool:
        return time.perf_counter() > self.deadline

    def run(self, candidates: Sequence[Candidate]) -> None:
        """Take candidates through all rungs."""
        mine: list[dict[int, Trial]] = []
        for part in self.trials:
            own = {
                one.number: Trial(one.number, one.params, one.recipe.epochs, one.kind, one.n_leaves)
                for one in candidates
            }
            part.extend(own.values())
            mine.append(own)
        groups = self._groups(candidates, [set(own) for own in mine])
        try:
            for fraction in self.fractions:
                if all(self._until(group, fraction) <= group.epochs for group in groups):
                    continue  # so few epochs that there is nothing between two rungs
                groups = self._rung(groups, fraction, mine)
                self._drop(groups, fraction, mine)
                groups = [group for group in groups if group.cells]
                if self.is_up:
                    break
            self._take_back(candidates, mine)
        finally:
            for own in mine:
                for trial in own.values():
                    if trial.state in ("waiting", "running"):
                        trial.state = "unfinished"
                        trial.reason = trial.reason or "the search ended before"
            self.tell()

    def _take_back(self, candidates: Sequence[Candidate], mine: list[dict[int, Trial]]) -> None:
        """Where all that went on have failed, the best of those that were dropped for them learns from the start."""
        while not self.is_up:
            wanted: list[set[int]] = []
            for own in mine:
                states = {trial.state for trial in own.values() if trial.history}
                dropped = [trial for trial in own.values() if trial.state == "dropped"]
                wanted.append(set())
                if "failed" in states and "complete" not in states and dropped:
                    best = max(dropped, key=lambda one: one.score)
                    best.state, best.reason = "running", None
                    wanted[-1].add(best.number)
            if not any(wanted):
                return
            self._drop(self._rung(self._groups(candidates, wanted), 1.0, mine), 1.0, mine)

    def _groups(self, candidates: Sequence[Candidate], wanted: Sequence[set[int]]) -> list[Group]:
        """Candidates of one shape together, as many as memory allows; the cheapest groups first.

        `wanted` are their numbers in each part.
        """
        shapes: dict[Key, dict[Key, list[Candidate]]] = {}
        for one in candidates:
            shapes.setdefault(one.shape, {}).setdefault(one.training, []).append(one)
        groups = []
        for trainings in sorted(shapes.values(), key=lambda own: self._work(next(iter(own.values()))[0])):
            cells = [
                Cell(part, here)
                for own in trainings.values()
                for part, numbers in enumerate(wanted)
                if (here := tuple(one for one in own if one.number in numbers))
            ]
            if not cells:
                continue
            most = MOST_NUMBERS if self.problem.device.type == "cpu" else MOST_DEVICE_NUMBERS
            size = max(1, int(most // self._numbers(cells[0].candidates[0])))
            pieces = -(-len(cells) // size)
            for piece in range(pieces):  # of equal size, to one
                groups.append(Group(self.n_groups, cells[piece::pieces] if pieces > 1 else cells))
                self.n_groups += 1
        return groups

    def _numbers(self, one: Candidate) -> float:
        """Numbers of the largest tensor in a training step of one cell."""
        problem = self.problem
        learnt = max(len(learnt) for folds in problem.parts for learnt, _ in folds)
        rows = min(learnt, one.recipe.batch_size)
        members = len(problem.parts[0]) * problem.seeds * one.copies
        deep = one.settings["leaf_layers"] > 1 or one.settings["decision_layers"] > 1
        width = max(one.settings["hidden"] if deep else 1, problem.output.n_numbers)
        return float(members * rows * one.structure.n_leaves * width)

    def _work(self, one: Candidate) -> float:
        """A rough measure of the time that a candidate takes."""
        layers: int = 1 + one.settings["leaf_layers"] + one.settings["decision_layers"]
        return self._numbers(one) * layers * one.recipe.epochs

    def _until(self, group: Group, fraction: float) -> int:
        return max(1, math.ceil(fraction * group.first.recipe.epochs - 1e-9))

    def _rung(self, groups: list[Group], fraction: float, mine: list[dict[int, Trial]]) -> list[Group]:
        """All groups up to a share of their epochs; what fails is split, or noted and left out."""
        jobs = [(group, self._until(group, fraction)) for group in groups]
        went_on: list[Group] = []
        if self.n_jobs not in (None, 1):
            end = time.time() + self.deadline - time.perf_counter()  # on a clock that other processes have too
            owed = self._owed(groups)[:1]
            ends = [math.inf if group in owed else end for group in groups]
            for outcome in self._parallel()(
                delayed(attempt_until)(group, self.problem, until, own)
                for (group, until), own in zip(jobs, ends, strict=True)
            ):
                went_on += self._note_all(outcome, mine)
            return sorted(went_on, key=lambda group: group.number)
        for group, until in jobs:
            # However short the time: something has to be found out.
            is_owed = group in self._owed(groups)
            if not is_owed and self.is_up:
                went_on.append(group)
                continue
            left = math.inf if is_owed else self.deadline - time.perf_counter()
            went_on += self._note_all(attempt(group, self.problem, until, left), mine)
        return went_on

    def _owed(self, groups: list[Group]) -> list[Group]:
        """Groups that may be trained when the time is up: none, as soon as something is known that may be chosen."""
        if any(trial.is_scored and trial.is_allowed(self.max_leaves) for part in self.trials for trial in part):
            return []
        if self.max_leaves is None:
            return groups
        never_above = [group for group in groups if group.cells and group.first.n_leaves <= self.max_leaves]
        return never_above or groups

    def _parallel(self) -> Parallel:
        """Results as they come, where the backend can do that; else when all of a rung are there."""
        try:
            return Parallel(n_jobs=self.n_jobs, return_as="generator_unordered")
        except ValueError:
            return Parallel(n_jobs=self.n_jobs)

    def _note_all(self, outcome: list[Attempt], mine: list[dict[int, Trial]]) -> list[Group]:
        groups = []
        for one in outcome:
            self._note(one, mine)
            groups.append(one.group)
        self.tell()
        return groups

    def _note(self, attempt: Attempt, mine: list[dict[int, Trial]]) -> None:
        group = attempt.group
        good = []
        for place, own in enumerate(group.cells):
            found = attempt.found[place] if attempt.found else None
            for one in own.candidates:
                trial = mine[own.part][one.number]
                if attempt.failure or (found and found.failure):
                    trial.state, trial.reason = "failed", attempt.failure or (found.failure if found else None)
                    continue
                if found is None:  # no time
                    continue
                trial.state = "complete" if found.epochs >= trial.all_epochs else "running"
                trial.epochs = found.epochs
                trial.scores = found.scores[one.selection]
                trial.size, trial.most_leaves = found.sizes[one.selection], found.most_leaves[one.selection]
                trial.history.append((found.epochs, trial.score))
            if not attempt.failure and not (found and found.failure):
                good.append(place)
        group.keep(good, self.problem) if good else group.cells.clear()

    def _drop(self, groups: list[Group], fraction: float, mine: list[dict[int, Trial]]) -> None:
        """After a rung, go on with those that are worth it."""
        if fraction >= 1:
            for group in groups:
                group.release()
            return
        if self.is_up:
            return
        cells = [(cell.part, {one.number for one in cell.candidates}) for group in groups for cell in group.cells]
        for part, own in enumerate(mine):
            alive = [trial for trial in own.values() if trial.state == "running" and trial.is_scored]
            kept = {trial.number for trial in self.choose(part, alive)}
            # Whoever shares a training that goes on is scored for nothing.
            kept |= {number for place, numbers in cells if place == part and numbers & kept for number in numbers}
            for trial in alive:
                if trial.number not in kept:
                    trial.state = "dropped"
                    trial.reason = f"others were better after {trial.epochs} of {trial.all_epochs} epochs"
        for group in groups:
            places, left = [], []
            for place, cell in enumerate(group.cells):
                still = [one for one in cell.candidates if mine[cell.part][one.number].state in ("running", "waiting")]
                if still:
                    places.append(place)
                    left.append(Cell(cell.part, tuple(still)))
            if not left:
                group.cells.clear()
                group.release()
                continue
            group.keep(places, self.problem)
            group.cells = left
        self.tell()


@dataclass(eq=False)
class Attempt:
    """What came of one call: scores a cell, or a failure, or neither where the time was up."""

    group: Group
    found: list[Found] | None = None
    failure: str | None = None


def attempt_until(group: Group, problem: Problem, until: int, end: float) -> list[Attempt]:
    """`attempt` with a deadline on the clock of `time.time`, for other processes."""
    return attempt(group, problem, until, end - time.time())


def attempt(group: Group, problem: Problem, until: int, seconds: float) -> list[Attempt]:
    """Take a group to an epoch; what fails is tried again in halves, so that one candidate harms no other.

    Nothing but Ctrl-C is raised.
    """
    try:
        return [Attempt(group, group.advance(problem, until, seconds))]
    except TimeIsUp:
        return [Attempt(group)]
    except Exception as error:
        group.release()
        if len(group.cells) > 1:
            return [one for half in group.split() for one in attempt(half, problem, until, seconds)]
        return [Attempt(group, failure=describe(error))]


def is_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or "out of memory" in str(error) or "can't allocate memory" in str(error)


def describe(error: Exception) -> str:
    """An exception in one line."""
    text = " ".join(str(error).split())
    if is_memory(error):
        return f"there is not enough memory for it: {text}"[:500]
    return (text if isinstance(error, ValueError) else f"{type(error).__name__}: {text}")[:500]
