"""Counterfactuals: the smallest change of one or two columns that changes the prediction, checked by predicting again.

The size of a change is the sum over the columns of how far each moves: a number in standard deviations of the given
rows (of its encoded values), a level by 1. Candidates are all levels and, over the data's range of a number, a grid,
values of the given rows, and both sides of the boundary of each linear decision. Numbers are then moved back towards
the row as far as the prediction allows. If nothing reaches the goal, interval arithmetic may prove that no change of
one column does.
"""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tartree.explain.arguments import missing_mask
from tartree.explain.counterfactuals.goals import Goal, NumberRange, decision_lines, is_out_of_reach
from tartree.explain.counterfactuals.row_edits import with_values
from tartree.explain.simplification.distillation import predict_rows
from tartree.explain.text.number_text import candidates, exact_text, mark_missing
from tartree.model import FittedModel, HasModel, fitted_model
from tartree.table.quantities import QUANTITIES
from tartree.table.raw_table import read_table

FloatArray = NDArray[np.float64]

#: Values of a number that are tried, alone and in a pair; columns that are paired; candidates that are checked.
GRID, PAIR_GRID, PAIRED, CHECKED = 65, 13, 10, 40
#: Decision boundaries that are tried, alone and in a pair; distance from a boundary, as a share of the range.
TURNS, PAIR_TURNS, BESIDE = 64, 4, 1e-6
#: Moves below this size, in standard deviations, are dropped if the goal allows.
HARDLY = 0.01
#: How far a number may be moved, in standard deviations, to have fewer digits.
ROUNDING = 1e-3
#: Margin by which a goal must be reached, so that it still is if sums are added in another order, as in a browser.
SURE = 1e-9


@dataclass(frozen=True)
class Change:
    """A column of the row, before and after."""

    column: str
    before: Any  # as given, or as read by the model if missing; durations in seconds
    after: Any  # with as few digits as the change allows; predicted with exactly this value
    size: float  # in standard deviations of the given rows; 1 for another level
    missing: bool = False  # whether the value was missing before
    unit: str = "number"


@dataclass(frozen=True)
class Counterfactual:
    """The smallest change found, or the reason why there is none; see `counterfactual`.

    Parameters
    ----------
    found : bool
        Whether a change was found; also the truth value of the object.
    changes : tuple of Change
        Changed columns.
    size : float
        Sum of the sizes of the changes; infinite without a change.
    before, after : object
        Predicted class or value.
    prediction_before, prediction_after : ndarray of shape (outputs,)
        Predictions; the second is None without a change.
    row : table
        The changed row, a table of the same kind as the one given.
    reason : str
        What was tried, or that none exists; empty with a change.
    proven : bool
        Whether it is proven that none exists.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier, explain
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TartClassifier(depth=1, epochs=5, random_state=0).fit(X, y)
    >>> found = explain.counterfactual(model, X[:1], X)
    >>> bool(found), len(found.changes) <= 2, found.after != found.before
    (True, True, True)
    """

    found: bool
    changes: tuple[Change, ...]
    size: float
    before: Any
    after: Any
    prediction_before: FloatArray
    prediction_after: FloatArray | None
    row: Any
    reason: str
    proven: bool = False

    def __bool__(self) -> bool:
        return self.found

    def __str__(self) -> str:
        if not self.found:
            return self.reason
        changes = " and ".join(
            f"{c.column} were {_text(c.after, c.unit)} instead of {mark_missing(_text(c.before, c.unit), c.missing)}"
            for c in self.changes
        )
        before, after = _prediction_texts(self.before, self.after)
        return f"{after} instead of {before}, if {changes}"


def _text(value: Any, unit: str) -> str:
    """Return a value as text that is read as exactly this value."""
    if isinstance(value, float | np.floating):
        return exact_text(float(value)) + QUANTITIES[unit].suffix
    return str(value)


def _prediction_texts(before: Any, after: Any) -> tuple[str, str]:
    """Return classes as they are, and predicted numbers with enough digits to tell them apart."""
    if not isinstance(before, float) or not isinstance(after, float):
        return str(before), str(after)
    texts = ((f"{before:.{digits}g}", f"{after:.{digits}g}") for digits in range(4, 18))
    return next((pair for pair in texts if pair[0] != pair[1]), (repr(before), repr(after)))


@dataclass(frozen=True)
class _Trial:
    """Columns with their encoded values, and the size of the change."""

    columns: tuple[int, ...]
    encoded: tuple[Tensor, ...]  # for each column, its features
    size: float


def counterfactual(
    estimator: FittedModel | HasModel,
    row: Any,
    X: Any,
    *,
    target: Any = None,
    max_columns: int = 2,
    fixed: str | Sequence[str] = (),
) -> Counterfactual:
    """Search the smallest change of at most two columns that changes the prediction for a row.

    Parameters
    ----------
    estimator : fitted estimator or FittedModel
        Model that predicts.
    row : table with one row
        Row to change.
    X : table of shape (rows, columns)
        Rows whose ranges and levels the changes stay within.
    target : label or number, optional
        Class to reach, any other by default; for regression the value to reach, which is required.
    max_columns : {1, 2}, default=2
        Maximum number of changed columns.
    fixed : str or sequence of str, default=()
        Columns that may not change.

    Returns
    -------
    Counterfactual
        The smallest change of those tried, checked by predicting again. It is false if no change within range was
        found, and `proven` if none exists.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier, explain
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TartClassifier(depth=2, random_state=0).fit(X, y)
    >>> other = explain.counterfactual(model, X[:1], X)
    >>> bool(other), bool(model.predict(other.row)[0] == other.after != model.predict(X[:1])[0])
    (True, True)
    """
    if max_columns not in (1, 2):
        raise ValueError(f"max_columns must be 1 or 2, got {max_columns!r}")
    row = row.reshape(1, -1) if isinstance(row, np.ndarray) and row.ndim == 1 else row
    target = _plain(target)
    model = fitted_model(estimator)
    start = model.encode(row)
    if len(start) != 1:
        raise ValueError(f"row must be a table with one row, got {len(start)} rows")
    search = _Search(model, start, model.encode(X), _goal(model, start, target), _fixed(model, fixed))
    missing = missing_mask(row)[0]
    before = _plain(model.predict(row)[0])
    plain = search.predict(start)[0].numpy()
    for trial in itertools.islice(search.trials(max_columns), CHECKED):
        for attempt in search.attempts(trial):
            for values in search.shown(attempt):
                changed = with_values(row, values)
                encoded = model.encode(changed)
                predicted = search.predict(encoded)
                if not search.surely_reached(predicted)[0] or not search.inside(encoded[0], trial.columns):
                    continue
                after = _plain(model.predict(changed)[0])
                # In single precision, on a GPU, the model itself may not see so small a change yet.
                if search.goal.classes and after not in model.classes[list(search.goal.classes)].tolist():
                    continue
                changes = tuple(
                    search.change(k, start, value, encoded[0], row, bool(missing[k])) for k, value in values.items()
                )
                total = sum(change.size for change in changes)
                return Counterfactual(True, changes, total, before, after, plain, predicted[0].numpy(), changed, "")
    reason, proven = search.miss("another class" if target is None else repr(target))
    return Counterfactual(False, (), float("inf"), before, before, plain, None, row, reason, proven)


def _plain(value: Any) -> Any:
    """Return a label or number as a Python object."""
    return value.item() if isinstance(value, np.generic) else value


def _fixed(model: FittedModel, fixed: str | Sequence[str]) -> set[int]:
    fixed = [fixed] if isinstance(fixed, str) else fixed
    names = model.column_names
    unknown = [name for name in fixed if name not in names]
    if unknown:
        raise ValueError(f"fixed must name columns of {names[:10]}, got {unknown[0]!r}")
    return {names.index(name) for name in fixed}


def _goal(model: FittedModel, start: Tensor, target: Any) -> Goal:
    tree = model.double_tree()
    center, scale = model.target_scaling
    now = center + scale * predict_rows(tree, start, model.selection).numpy()[0]
    if model.is_classifier:
        labels = model.classes.tolist()
        current = int(now.argmax())
        if target is None:
            return Goal(tuple(k for k in range(len(labels)) if k != current))
        if target not in labels:
            raise ValueError(f"target must be one of the classes {labels[:10]}, got {target!r}")
        if labels.index(target) == current:
            raise ValueError(f"target must be another class than the predicted one, got {target!r}")
        return Goal((labels.index(target),))
    if not isinstance(target, numbers.Real) or isinstance(target, bool) or len(now) > 1:
        raise ValueError(
            "target must be the value to reach, of a model with one target column, got "
            f"{target!r}, {len(now)} column(s)"
        )
    wanted = float(target)
    return Goal(value=wanted, up=wanted > float(now[0]))


class _Search:
    def __init__(self, model: FittedModel, start: Tensor, x: Tensor, goal: Goal, fixed: set[int]) -> None:
        self.model = model
        self.tree = model.double_tree()
        self.start = start[0]
        self.goal = goal
        encoder = model.encoder
        self.slices: list[list[int]] = [[] for _ in range(encoder.n_features_in_)]
        for k, feature in enumerate(encoder.features_):
            self.slices[feature.column].append(k)
        if not len(x):
            raise ValueError("X must have at least one row to take ranges from, got none")
        self.x = x
        self.lines = decision_lines(self.tree, len(self.start))
        self.n_tried = [0, 0]  # changes of one column and of two
        self.low, self.high = x.amin(0), x.amax(0)
        self.spread = x.std(0, correction=0)
        self.center, self.scale = (torch.from_numpy(part) for part in model.target_scaling)
        self.free = [k for k, features in enumerate(self.slices) if features and k not in fixed]

    def predict(self, rows: Tensor) -> Tensor:
        return self.center + self.scale * predict_rows(self.tree, rows, self.model.selection)

    def margin(self, rows: Tensor) -> Tensor:
        return self.goal.margin(self.predict(rows))

    def reached(self, predicted: Tensor) -> Tensor:
        return self.goal.margin(predicted) > 0

    def surely_reached(self, predicted: Tensor) -> Tensor:
        """Return whether the goal is reached by more than rounding errors; an exactly equal value counts."""
        return self.goal.margin(predicted) > (SURE if self.goal.classes else 0)

    def shown(self, attempt: dict[int, Tensor]) -> Iterator[dict[int, Any]]:
        """Yield values for the columns of an attempt as a table may hold them, those with the fewest digits first."""
        choices = {column: list(self._shown(column, encoded)) for column, encoded in attempt.items()}
        for index in range(max(map(len, choices.values()))):
            yield {column: values[min(index, len(values) - 1)] for column, values in choices.items()}

    def _shown(self, column: int, encoded: Tensor) -> Iterator[Any]:
        """Yield values near an encoded one, the shortest first, all of them further from the row."""
        k = self.value_feature(column)
        fitted: Any = self.model.encoder.columns_[column]
        if k is None or fitted.whole:
            yield fitted.cell(encoded.numpy())
            return
        wanted = float(encoded[self.slices[column].index(k)])
        up = wanted > float(self.start[k])
        value = float(fitted.scaling.decode(np.array([wanted]))[0])
        quantity = fitted.quantity
        if quantity.step is not None:
            yield from quantity.texts_near(value, up=up)
            return
        for rounded in candidates(value, up=up):
            moved = abs(float(fitted.scaling.encode(np.array([rounded]))[0]) - wanted)
            if moved <= ROUNDING * float(self.spread[k]) or rounded == value:
                yield quantity.cell(rounded, fine=True)

    def change(self, column: int, start: Tensor, value: Any, encoded: Tensor, row: Any, missing: bool) -> Change:
        """Return the change of a column in its units."""
        encoder = self.model.encoder
        name = self.model.column_names[column]
        fitted: Any = encoder.columns_[column]
        before = encoder.inverse_transform(start.numpy())[name][0]
        quantity = fitted.quantity
        if self.value_feature(column) is not None and not quantity.is_text:
            before = (
                fitted.fill if missing else float(read_table(row).read(column).numbers(quantity.name, fitted.form)[0])
            )
            value = value if isinstance(value, int | float) else quantity.parse(value)
            if fitted.whole and float(before).is_integer():
                before = int(before)
        return Change(name, before, value, self.size(column, encoded[self.slices[column]]), missing, quantity.name)

    def inside(self, encoded: Tensor, columns: Sequence[int]) -> bool:
        """Return whether the changed columns are within the data's ranges."""
        features = [k for column in columns for k in self.slices[column]]
        reach = 1e-6 * (1 + self.high[features] - self.low[features])
        return bool(
            (
                (encoded[features] >= self.low[features] - reach) & (encoded[features] <= self.high[features] + reach)
            ).all()
        )

    def value_feature(self, column: int) -> int | None:
        """Return the feature of a number; None for booleans and categories."""
        features = self.model.encoder.features_
        return next((k for k in self.slices[column] if features[k].kind == "value"), None)

    def size(self, column: int, encoded: Tensor) -> float:
        features = self.slices[column]
        k = self.value_feature(column)
        if k is None:
            return float(not torch.equal(encoded, self.start[features]))
        kinds = self.model.encoder.features_
        filled = [f for f in features if kinds[f].kind == "missing" and self.start[f] > 0.5]
        moved = (encoded[features.index(k)] - self.start[k]).abs() / self.spread[k].clamp_min(1e-12)
        return float(moved) + len(filled)  # a missing value that is filled counts too

    def options(self, column: int, count: int, base: Tensor | None = None) -> list[Tensor]:
        """Return encoded values of a column to try; boundaries of decisions are those of the row `base`."""
        positions = self.slices[column]
        k = self.value_feature(column)
        features = self.model.encoder.features_
        if k is None:
            fitted = self.model.encoder.columns_[column]
            rows = map(torch.from_numpy, fitted.alternatives(self.high[positions].numpy()))
            return [row for row in rows if not torch.equal(row, self.start[positions])]
        low, high = float(self.low[k]), float(self.high[k])
        values = np.linspace(low, high, count)
        if count == GRID:
            held = np.unique(self.x[:, k].numpy())
            values = np.concatenate([values, held[np.linspace(0, len(held) - 1, min(len(held), count)).astype(int)]])
        if count == GRID or base is not None:
            values = np.concatenate([values, self._turns(column, k, self.start if base is None else base, count)])
        if features[k].whole:
            decoded = features[k].scaling.decode(values)
            values = features[k].scaling.encode(np.concatenate([np.floor(decoded + 1e-6), np.ceil(decoded - 1e-6)]))
            values = values[(values >= low - 1e-6) & (values <= high + 1e-6)]
        return list(self.features_at(column, torch.from_numpy(np.unique(values))))

    def features_at(self, column: int, values: Tensor) -> Tensor:
        """Return the features of a number that is not missing, (values, features of the column).

        Bins of a curve follow the value; no feature falls as it rises.
        """
        encoded = torch.zeros(len(values), len(self.slices[column]), dtype=torch.float64)
        for position, k in enumerate(self.slices[column]):
            feature = self.model.encoder.features_[k]
            if feature.kind == "value":
                encoded[:, position] = values
            elif feature.bin is not None:
                encoded[:, position] = torch.from_numpy(feature.bin.at(values.numpy()))
        return encoded

    def _turns(self, column: int, k: int, base: Tensor, count: int) -> FloatArray:
        """Return encoded values on both sides of the boundary of each linear decision, and between two boundaries."""
        if self.lines is None:
            return np.zeros(0)
        low, high = float(self.low[k]), float(self.high[k])
        bins = [b for f in self.slices[column] if (b := self.model.encoder.features_[f].bin) is not None]
        edges = np.array([edge for b in bins for edge in (b.start, b.end)])
        knots = np.unique(np.concatenate([[low, high], edges[(edges > low) & (edges < high)]]))
        rows = base.repeat(len(knots), 1)
        rows[:, self.slices[column]] = self.features_at(column, torch.from_numpy(knots))
        weight, bias = self.lines
        sides = (rows @ weight.T + bias).numpy()  # (knots, lines), linear in between
        first, second = sides[:-1], sides[1:]
        piece, line = np.nonzero((first > 0) != (second > 0))
        share = first[piece, line] / (first[piece, line] - second[piece, line])
        at = np.unique(knots[piece] + share * (knots[piece + 1] - knots[piece]))
        at = at[(at > low) & (at < high)]
        most = TURNS if count == GRID else PAIR_TURNS
        at = np.sort(at[np.argsort(np.abs(at - float(self.start[k])), kind="stable")[:most]])
        beside = np.concatenate([at - BESIDE * (high - low), at + BESIDE * (high - low)])
        between = (np.append(low, at) + np.append(at, high)) / 2 if count == GRID and len(at) else at[:0]
        turns: FloatArray = np.clip(np.concatenate([beside, between]), low, high)
        return turns

    def miss(self, wanted: str) -> tuple[str, bool]:
        """Return why there is no counterfactual, and whether that is proven."""
        if not self.free:
            return f"none exists: no column may change, so that nothing leads to {wanted}", True
        ranges = [
            NumberRange(self.slices[column], float(self.low[k]), float(self.high[k]), partial(self.features_at, column))
            for column in self.free
            if (k := self.value_feature(column)) is not None
        ]
        units = (self.center, self.scale)
        # Levels were all tried.
        proven = is_out_of_reach(self.tree, self.model.selection, self.goal, self.start, ranges, units)
        n_single, n_pairs = self.n_tried
        if proven and not n_pairs:
            return f"none exists: no change of one column within range leads to {wanted}", True
        if proven:
            return (
                f"none was found: no change of one column within range leads to {wanted}, nor does any of {n_pairs} "
                "changes of two columns that were tried"
            ), False
        tried = f"{n_single} changes of one column" + (f" and {n_pairs} of two columns" if n_pairs else "")
        return f"none was found: of {tried} within range that were tried, none leads to {wanted}", False

    def rows(self, trials: Sequence[_Trial]) -> Tensor:
        rows = self.start.repeat(len(trials), 1)
        if trials:
            cells = [(i, k) for i, trial in enumerate(trials) for column in trial.columns for k in self.slices[column]]
            row_index, feature_index = torch.tensor(cells).T
            rows[row_index, feature_index] = torch.cat([encoded for trial in trials for encoded in trial.encoded])
        return rows

    def trials(self, max_columns: int) -> list[_Trial]:
        """Return changes that reach the goal, smallest first."""
        single = [
            _Trial((column,), (option,), self.size(column, option))
            for column in self.free
            for option in self.options(column, GRID)
        ]
        self.n_tried[0] = len(single)
        if not single:
            return []
        margins = self.margin(self.rows(single))
        reaching = [trial for trial, margin in zip(single, margins.tolist(), strict=True) if margin > 0]
        if max_columns == 2:
            reaching += self._pairs(single, margins)
        best: dict[tuple[Any, ...], _Trial] = {}
        for trial in sorted(reaching, key=lambda trial: trial.size):
            sides = tuple(
                (column, bool(option.sum() > self.start[self.slices[column]].sum()))
                for column, option in zip(trial.columns, trial.encoded, strict=True)
            )
            levels = tuple(
                int(option.argmax())
                for column, option in zip(trial.columns, trial.encoded, strict=True)
                if self.value_feature(column) is None
            )
            best.setdefault((sides, levels), trial)
        smallest = sorted(best.values(), key=lambda trial: trial.size)[: 2 * CHECKED]
        return sorted(self._needed(self._closer(smallest)), key=lambda trial: trial.size)

    def _pairs(self, single: Sequence[_Trial], margins: Tensor) -> list[_Trial]:
        """Return changes of two columns, of those that alone come closest to the goal."""
        reach: dict[int, float] = {}
        for trial, margin in zip(single, margins.tolist(), strict=True):
            reach[trial.columns[0]] = max(reach.get(trial.columns[0], -np.inf), margin)
        columns = sorted(reach, key=lambda column: -reach[column])[:PAIRED]
        few_options = {column: self.options(column, PAIR_GRID)[: 2 * PAIR_GRID] for column in columns}
        pairs = [
            _Trial(
                (first, second),
                (first_value, second_value),
                self.size(first, first_value) + self.size(second, second_value),
            )
            for first, second in itertools.combinations(columns, 2)
            for second_value in few_options[second]
            for first_value in self._beside(first, second, second_value, few_options[first])
        ]
        self.n_tried[1] = len(pairs)
        if not pairs:
            return []
        reached = self.margin(self.rows(pairs)) > 0
        return [trial for trial, yes in zip(pairs, reached.tolist(), strict=True) if yes]

    def _beside(self, first: int, second: int, value: Tensor, few: list[Tensor]) -> list[Tensor]:
        """Return values of the first column of a pair: its grid, and the boundaries that the second's value moves."""
        if self.lines is None or self.value_feature(first) is None:
            return few
        base = self.start.clone()
        base[self.slices[second]] = value
        return self.options(first, PAIR_GRID, base)

    def _closer(self, trials: list[_Trial]) -> list[_Trial]:
        """Move numbers back towards the row, one column after the other, as far as the goal stays reached."""
        trials = list(trials)
        for index in (0, 1, 0):
            movable = [
                i
                for i, trial in enumerate(trials)
                if index < len(trial.columns) and self.value_feature(trial.columns[index]) is not None
            ]
            near, far = np.zeros(len(movable)), np.ones(len(movable))
            for _ in range(20 if movable else 0):
                middle = (near + far) / 2
                tried = [self._moved(trials[i], index, share) for i, share in zip(movable, middle, strict=True)]
                yes = (self.margin(self.rows(tried)) > 0).numpy()
                near, far = np.where(yes, near, middle), np.where(yes, middle, far)
            for i, share in zip(movable, far, strict=True):
                trials[i] = self._moved(trials[i], index, share)
        return trials

    def _needed(self, trials: list[_Trial]) -> list[_Trial]:
        """Drop a column that hardly moves from a pair if the other one is enough."""
        less = []
        for i, trial in enumerate(trials):
            sizes = [self.size(c, e) for c, e in zip(trial.columns, trial.encoded, strict=True)]
            if len(sizes) == 2 and min(sizes) < HARDLY:
                keep = int(np.argmax(sizes))
                less.append((i, _Trial((trial.columns[keep],), (trial.encoded[keep],), sizes[keep])))
        if less:
            reached = self.margin(self.rows([trial for _, trial in less])) > 0
            for (i, trial), yes in zip(less, reached.tolist(), strict=True):
                trials[i] = trial if yes else trials[i]
        return trials

    def _moved(self, trial: _Trial, index: int, share: float) -> _Trial:
        """Return a trial with one of its numbers a share of the way from the row's value; whole numbers stay whole."""
        column = trial.columns[index]
        k = self.value_feature(column)
        assert k is not None
        feature, position = self.model.encoder.features_[k], self.slices[column].index(k)
        value = float(self.start[k] + share * (trial.encoded[index][position] - self.start[k]))
        if feature.whole and share < 1:
            away = np.ceil if trial.encoded[index][position] > self.start[k] else np.floor
            decoded = feature.scaling.decode(np.array([value]))
            value = float(feature.scaling.encode(away(np.round(decoded, 6)))[0])
        encoded = list(trial.encoded)
        encoded[index] = self.features_at(column, torch.tensor([value], dtype=torch.float64))[0]
        moved = replace(trial, encoded=tuple(encoded))
        return replace(moved, size=sum(self.size(c, e) for c, e in zip(moved.columns, moved.encoded, strict=True)))

    def attempts(self, trial: _Trial) -> list[dict[int, Tensor]]:
        """Return the trial, and the same a little further, in case rounding misses the goal."""
        attempts = []
        for further in (0.0, 1e-6, 1e-4, 1e-2):
            values = {}
            for column, encoded in zip(trial.columns, trial.encoded, strict=True):
                k = self.value_feature(column)
                moved = encoded.clone()
                if k is not None:
                    position = self.slices[column].index(k)
                    step = encoded[position] - self.start[k]
                    value = encoded[position] + step.sign() * further * self.spread[k]
                    moved = self.features_at(column, value.clamp(self.low[k], self.high[k]).view(1))[0]
                values[column] = moved
            attempts.append(values)
        return attempts
