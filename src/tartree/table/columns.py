"""What one column has learnt in fit: plain frozen records that write values as numbers and read numbers back as values.

There is one record per kind of column. Each has `features(index, name)`, the output features it makes; `encode(raw,
out)`, which fills their columns of the matrix; and `decode(encoded)`, which gives the original values back.
"""

import math
from collections import Counter
from dataclasses import dataclass
from itertools import repeat
from numbers import Real
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tartree.table import units
from tartree.table.places import RowError
from tartree.table.reading import RawColumn
from tartree.table.scaling import Scaling, has_far_codes, standardise, through_quantiles

Level: TypeAlias = str | bool | int | float

OTHER = "(other)"  # what decode gives for a rare or unseen level
MISSING = "(missing)"
IDENTITY = Scaling()


@dataclass(frozen=True)
class Feature:
    """One output feature: the column it comes from, what it says, and how to read its numbers.

    Attributes
    ----------
    column : int
        Index of the source column.
    name : str
        Name of the source column, "x0", "x1", ... where the table had no names.
    kind : "value", "level", "other" or "missing"
        A number in original units; or 1 where the column has the level, a rare or unseen level, or a gap, and 0
        elsewhere.
    level : str, bool, int, float or None
        The level, for the kind "level".
    unit : str
        "number", "date", "datetime", "datetime[UTC]", "duration" or "time"; all but numbers are in seconds.
    whole : bool
        Whether fit saw whole numbers only.
    scaling : Scaling
        The map between original and encoded numbers; the identity for all kinds but "value".
    """

    column: int
    name: str
    kind: Literal["value", "level", "other", "missing"]
    level: Level | None = None
    unit: str = "number"
    whole: bool = False
    scaling: Scaling = IDENTITY

    @property
    def label(self) -> str:
        """The name of the feature: "age", "colour=red", "colour=(other)", "age=(missing)"."""
        if self.kind == "value":
            return self.name
        said = {"level": self.level, "other": OTHER, "missing": MISSING}[self.kind]
        return f"{self.name}={said}"

    def original(self, encoded: float) -> float | str | bool:
        """An encoded value, such as a threshold, in original units.

        A number, ISO text for dates and times, a bool for the indicators 0 and 1.
        """
        if self.kind != "value":
            return bool(encoded > 0.5)
        value = self.scaling.decode(np.asarray([encoded], dtype=np.float64))
        if self.unit in units.WRITTEN_UNITS:
            return units.write(value, self.unit, fine=self.scaling.scale < 1000.0, round_days=False)[0]
        return float(value[0])


@dataclass(frozen=True)
class Numeric:
    """A column of numbers, or of dates, durations or times as seconds. Gaps become `fill`, the median."""

    kind: ClassVar[str] = "numeric"

    unit: str
    scaling: Scaling
    fill: float
    low: float
    high: float
    whole: bool
    gaps: bool

    @property
    def varies(self) -> bool:
        """False where fit saw one value and gaps: only the indicator of gaps says something."""
        return self.low < self.high

    def features(self, index: int, name: str) -> list[Feature]:
        made = []
        if self.varies:
            made.append(Feature(index, name, "value", unit=self.unit, whole=self.whole, scaling=self.scaling))
        if self.gaps:
            made.append(Feature(index, name, "missing"))
        return made

    def encode(self, raw: RawColumn, out: NDArray[np.float32]) -> None:
        values = raw.numbers(self.unit)  # (rows,)
        missing = gaps_of(values, raw.label)
        if self.varies:
            encoded = self.scaling.encode(values)
            if missing is not None:
                encoded[missing] = self.scaling.encode(np.asarray([self.fill]))[0]
            out[:, 0] = encoded
        if self.gaps and missing is not None:
            out[:, -1] = missing

    def decode(self, encoded: NDArray[np.float64]) -> NDArray[Any]:
        values = self.scaling.decode(encoded[:, 0]) if self.varies else np.full(len(encoded), self.low)
        if self.whole:
            values = np.rint(values)
        if self.gaps:
            values[encoded[:, -1] > 0.5] = np.nan
        return written(values, self.unit, fine=self.scaling.scale < 1000.0)


@dataclass(frozen=True)
class Boolean:
    """A column of booleans: 1 where true. Gaps, where fit saw none, become `fill`, the more frequent value."""

    kind: ClassVar[str] = "boolean"

    fill: bool
    gaps: bool

    def features(self, index: int, name: str) -> list[Feature]:
        made = [Feature(index, name, "level", level=True)]
        return [*made, Feature(index, name, "missing")] if self.gaps else made

    def encode(self, raw: RawColumn, out: NDArray[np.float32]) -> None:
        values = raw.values if raw.kind in ("boolean", "number", "empty") else _truth_of(raw.objects())
        missing = (values != 0) & (values != 1)  # also anything that is neither true nor false
        out[:, 0] = values == 1
        out[missing, -1] = 1.0 if self.gaps else float(self.fill)

    def decode(self, encoded: NDArray[np.float64]) -> NDArray[Any]:
        values = (encoded[:, 0] > 0.5).astype(object)
        if self.gaps:
            values[encoded[:, -1] > 0.5] = None
        return values


@dataclass(frozen=True)
class Category:
    """A column of levels, one feature each; `other` and `gaps` say whether fit saw rare levels and gaps, features too.

    A level that fit did not see, and a gap where fit saw none, count as a rare level; where there was none, all
    features are 0: it is none of the known levels, and nothing that was never trained is switched on.
    """

    kind: ClassVar[str] = "category"

    levels: tuple[Level, ...]
    other: bool
    gaps: bool

    def features(self, index: int, name: str) -> list[Feature]:
        made = [Feature(index, name, "level", level=level) for level in self.levels]
        if self.other and (self.levels or self.gaps):  # otherwise every row would have it, and it would say nothing
            made.append(Feature(index, name, "other"))
        if self.gaps:
            made.append(Feature(index, name, "missing"))
        return made

    def encode(self, raw: RawColumn, out: NDArray[np.float32]) -> None:
        if not out.shape[1]:
            return
        places: dict[Level | None, int] = {level: place for place, level in enumerate(self.levels)}
        unseen = len(self.levels) if self.other else -1
        places[None] = out.shape[1] - 1 if self.gaps else unseen
        numeric = bool(self.levels) and not isinstance(self.levels[0], str)
        # Of a column with codes, each different value is looked up once, and a gap beside them.
        objects = raw.objects() if raw.codes is None else [*raw.values, None]
        keys = as_numbers(objects) if numeric else as_texts(objects)
        found = np.fromiter(map(places.get, keys, repeat(unseen)), dtype=np.intp, count=len(keys))
        found = found if raw.codes is None else found[raw.codes]  # (rows,)
        rows = np.flatnonzero(found >= 0)
        out[rows, found[rows]] = 1.0

    def decode(self, encoded: NDArray[np.float64]) -> NDArray[Any]:
        values = np.full(len(encoded), OTHER, dtype=object)
        if encoded.shape[1]:
            choices = np.full(encoded.shape[1], OTHER, dtype=object)
            choices[: len(self.levels)] = self.levels
            if self.gaps:
                choices[-1] = None
            best = encoded.argmax(axis=1)  # (rows,)
            known = encoded[np.arange(len(encoded)), best] > 0.5
            values[known] = choices[best[known]]
        return values


@dataclass(frozen=True)
class Constant:
    """A column with one value, or with gaps only: no feature, and whatever it holds later is not read."""

    kind: ClassVar[str] = "constant"

    value: Level | None

    def features(self, index: int, name: str) -> list[Feature]:
        return []

    def encode(self, raw: RawColumn, out: NDArray[np.float32]) -> None:
        return

    def decode(self, encoded: NDArray[np.float64]) -> NDArray[Any]:
        number = isinstance(self.value, float)
        return np.full(len(encoded), self.value, dtype=np.float64 if number else object)


Column: TypeAlias = Numeric | Boolean | Category | Constant


class Values(Protocol):
    """How the numbers of a column are spread: all of them at hand, or what statistics kept of them."""

    def middle(self) -> float:
        """The lower median, each number counted once."""

    def standardise(self) -> tuple[float, Scaling]:
        """The lower median by weight, and the scaling by mean and standard deviation."""

    def through_quantiles(self, n_quantiles: int, standard: Scaling) -> Scaling:
        """The map to a standard normal."""

    def has_far_codes(self) -> bool:
        """Whether a few of them lie so far out that they look like codes."""


@dataclass(frozen=True)
class Present:
    """All numbers of a column, without gaps, and their weights."""

    values: NDArray[np.float64]  # (rows,)
    weights: NDArray[np.float64] | None  # (rows,)

    def middle(self) -> float:
        return float(np.sort(self.values)[(len(self.values) - 1) // 2])

    def standardise(self) -> tuple[float, Scaling]:
        return standardise(self.values, self.weights)

    def through_quantiles(self, n_quantiles: int, standard: Scaling) -> Scaling:
        return through_quantiles(self.values, n_quantiles, standard, self.weights)

    def has_far_codes(self) -> bool:
        return has_far_codes(self.values, self.weights)


@dataclass(frozen=True)
class Fitting:
    """What an encoder says about all columns."""

    numeric: str
    n_quantiles: int
    max_levels: int
    min_count: int
    extrapolation: float | None

    def limit_of(self, unit: str) -> float | None:
        """`extrapolation` for a column of this unit; numbers that are taken as they are have no limit."""
        return None if self.numeric == "plain" and unit == "number" else self.extrapolation


def fit_column(raw: RawColumn, fitting: Fitting, weights: NDArray[np.float64] | None = None) -> Column:
    """Learn how to encode a column. Weights of rows are positive."""
    if raw.kind == "empty":
        return Constant(None)
    if raw.kind == "category":
        counts = count_levels(raw)
        gaps = counts.pop(None, 0) > 0
        return category_of(counts, gaps, fitting)
    if raw.kind == "boolean":
        values = raw.values
        return boolean_of(int((values == 1).sum()), int((values == 0).sum()), bool(np.isnan(values).any()))
    return _fit_numeric(raw, fitting, weights)


def _fit_numeric(raw: RawColumn, fitting: Fitting, weights: NDArray[np.float64] | None) -> Numeric | Constant:
    values = raw.values  # (rows,)
    missing = gaps_of(values, raw.label)
    present = values if missing is None else values[~missing]
    own = weights if missing is None or weights is None else weights[~missing]
    if not len(present):
        return Constant(None)
    unit = "date" if raw.kind == "datetime" and are_days(present) else raw.kind
    low, high = float(present.min()), float(present.max())
    whole = unit == "number" and are_whole(present)
    return numeric_of(unit, low, high, whole, missing is not None, Present(present, own), fitting)


def are_whole(present: NDArray[np.float64]) -> bool:
    return bool(np.all(np.rint(present) == present))


def are_days(present: NDArray[np.float64]) -> bool:
    """Whether seconds are whole days."""
    return not np.any(present % units.DAY)


def numeric_of(
    unit: str, low: float, high: float, whole: bool, gaps: bool, values: Values, fitting: Fitting
) -> Numeric | Constant:
    """A column of numbers with at least one value."""
    if fitting.numeric == "plain" and unit == "number":
        above = max(high, float(np.nextafter(low, np.inf)))  # a range, so that a column of one value has its feature
        return Numeric(unit, IDENTITY, values.middle(), low, above, whole, gaps)
    if low == high:
        if not gaps:
            return Constant(written(np.asarray([low]), unit, fine=True).tolist()[0])
        return Numeric(unit, IDENTITY, low, low, low, whole, gaps=True)
    median, scaling = values.standardise()
    if fitting.numeric == "quantile" or (unit == "number" and values.has_far_codes()):
        scaling = values.through_quantiles(fitting.n_quantiles, scaling)
    return Numeric(unit, scaling.limited(low, high, fitting.limit_of(unit)), median, low, high, whole, gaps)


def boolean_of(trues: int, falses: int, gaps: bool) -> Boolean | Constant:
    """A column of booleans by how many there are."""
    if not gaps and (trues == 0 or falses == 0):
        return Constant(trues > 0)
    return Boolean(fill=trues >= falses, gaps=gaps)


def count_levels(raw: RawColumn) -> Counter[Any]:
    """How often each level of a category comes: numbers if all are, otherwise text; None for gaps."""
    objects = raw.objects() if raw.codes is None else raw.values
    present = set(map(type, objects)) - {type(None)}
    numeric = all(issubclass(kind, Real) for kind in present)
    keys = as_numbers(objects) if numeric else as_texts(objects)
    if numeric and any(isinstance(key, float) and math.isinf(key) for key in keys):
        keys = as_texts(objects)  # infinity as a level, which plain data cannot hold as a number
    if raw.codes is None:
        return Counter(keys)
    often = np.bincount(raw.codes + 1, minlength=len(keys) + 1).tolist()
    counts: Counter[Any] = Counter()
    for key, count in zip([None, *keys], often, strict=True):
        if count:
            counts[key] += count
    return counts


def category_of(counts: Counter[Any], gaps: bool, fitting: Fitting, *, more: bool = False) -> Category | Constant:
    """A category by how often each level comes; `more` says that there are rare levels which are not among them."""
    if len(counts) == 1 and not gaps and not more:
        return Constant(next(iter(counts)))
    frequent = sorted(
        (level for level, count in counts.items() if count >= fitting.min_count),
        key=lambda level: (-counts[level], level),
    )
    levels = tuple(frequent[: fitting.max_levels])
    return Category(levels, other=more or len(levels) < len(counts), gaps=gaps)


def gaps_of(values: NDArray[np.float64], label: str) -> NDArray[np.bool_] | None:
    """Where the gaps are, None if there are none; an infinity is an error.  # (rows,)"""
    finite = np.isfinite(values)
    if finite.all():
        return None
    missing = np.isnan(values)
    infinite = ~(finite | missing)
    if infinite.any():
        raise RowError(
            f"{label} must hold finite numbers or gaps, however: ",
            int(infinite.argmax()),
            " contains infinity or a value too large for float64; replace it with a number or leave it out",
        )
    return missing


def written(values: NDArray[np.float64], unit: str, *, fine: bool) -> NDArray[Any]:
    """Numbers as they are; dates and times as ISO text in an object array, with None for NaN.  # (rows,)"""
    if unit not in units.WRITTEN_UNITS:
        return values
    texts = np.full(len(values), None, dtype=object)
    present = ~np.isnan(values)
    texts[present] = units.write(values[present], unit, fine=fine)
    return texts


def as_texts(objects: list[Any]) -> list[Any]:
    """Levels as text, None for gaps."""
    if set(map(type, objects)) <= {str, type(None)}:
        return objects
    return [None if value is None else _as_text(value) for value in objects]


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="backslashreplace")
    if isinstance(value, float | np.floating):
        number = float(value)
        # A column of whole numbers with gaps comes as floats; its levels are the same.
        return str(int(number)) if abs(number) < 1e15 and number.is_integer() else str(number)
    isoformat = getattr(value, "isoformat", None)
    return str(isoformat()) if callable(isoformat) else str(value)


def as_numbers(objects: list[Any]) -> list[Any]:
    """Levels as numbers, whole ones as int; None for gaps and NaN for what is no number."""
    return [None if value is None else _as_number(value) for value in objects]


def _as_number(value: Any) -> int | float:
    if isinstance(value, int | np.integer):
        return int(value)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return int(number) if number.is_integer() else number


def _truth_of(objects: list[Any]) -> NDArray[np.float64]:
    """1 for true, 0 for false, NaN for gaps and everything else.  # (rows,)"""
    words = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}
    return np.array([words.get(str(value).strip().lower(), math.nan) for value in as_texts(objects)])
