"""Column effects: what one column adds to a linear function, as a curve or as a value of each level, in original units.

Text made from them can be followed by hand: points of a curve, its limits beyond the ends, levels and missing values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tartree.explain.text.number_text import exact_text
from tartree.table import Column, Feature, Scaling
from tartree.table.columns.boolean import Boolean
from tartree.table.columns.numeric import Numeric

FloatArray = NDArray[np.float64]
#: Largest distance between a curve and its points, as a share of its range, where numbers are scaled by ranks.
CURVE_ERROR = 0.005
#: Points that are added to a curve at most, where numbers are scaled by ranks.
MOST_ADDED = 32
#: Rounding error of a point, as a share of the distance to the next one.
POINT_ERROR = 0.005
#: Words for levels that are rare or were not seen in training, and for missing values.
ANOTHER, MISSING = "another", "missing"


@dataclass(frozen=True)
class ColumnEffect:
    """What one column adds to a linear function.

    Attributes
    ----------
    column : int
    name : str
        Of the column.
    kind : {"curve", "levels"}
    points : tuple of (float, float)
        Of a curve: original values, rising (times in seconds), and what they add; linear in between.
    point_texts : tuple of str
        The original values as text.
    limits : tuple of (float, float) or None
        What a curve approaches far below and far above its points; None if it goes on straight, with `slope`.
    slope : float
        Of a curve beyond its ends, for each original unit.
    levels : tuple of (str, float)
        What levels add, in the order of their frequency; "another" is a rare or unseen one.
    missing : float or None
        What a missing value adds; None if training has seen none, and it counts as a typical value.
    strength : float
        Standard deviation of the effect, about.
    """

    column: int
    name: str
    kind: Literal["curve", "levels"]
    points: tuple[tuple[float, float], ...] = ()
    point_texts: tuple[str, ...] = ()
    limits: tuple[float, float] | None = None
    slope: float = 0.0
    levels: tuple[tuple[str, float], ...] = ()
    missing: float | None = None
    strength: float = 0.0

    @property
    def size(self) -> float:
        """The largest amount that the column adds or subtracts at its points, levels and missing values."""
        amounts = [part for _, part in (*self.points, *self.levels)]
        return max(map(abs, [*amounts, 0.0 if self.missing is None else self.missing]), default=0.0)

    def text(self, step: float, most_levels: int | None = None) -> str:
        """Return the effect as text, with amounts rounded to multiples of a step, or finer if all are small.

        Of more than `most_levels` levels the strongest are written out, and the others counted.
        """
        size = self.size
        if 0 < size < 10 * step:
            step = 10.0 ** (math.floor(math.log10(size)) - 1)
        parts = []
        if self.kind == "levels":
            levels = [(level, part) for level, part in self.levels if part]
            strongest = sorted(levels, key=lambda pair: -abs(pair[1]))[:most_levels]
            parts = [f"{amount_text(part, step)} {level}" for level, part in levels if (level, part) in strongest]
            if len(parts) < len(levels):
                parts.append(f"and {len(levels) - len(parts)} more levels")
        else:
            points = zip(self.points, self.point_texts, strict=True)
            parts = [f"{amount_text(part, step)} at {x}" for (_, part), x in points]
        text = ", ".join(parts)
        beyond = self._beyond_text(step)
        if beyond:
            text += f" ({beyond})"
        if self.missing is not None and (self.missing or self.points):
            text += f"{'; ' if text else ''}{amount_text(self.missing, step)} {MISSING}"
        return text

    def _beyond_text(self, step: float) -> str:
        if not self.points:
            return ""
        if self.limits is None:
            return f"slope {_digits_text(self.slope)} beyond" if self.slope else ""
        ends = (self.points[0][1], self.points[-1][1])
        texts = [amount_text(limit, step) for limit in self.limits]
        if texts == [amount_text(end, step) for end in ends]:
            return ""
        return f"far below {texts[0]}, far above {texts[1]}"


def sides(effect: ColumnEffect, bias: float) -> tuple[list[str], list[str]]:
    """Return the levels where an effect and a bias are above 0, and the others; "missing" is one of them, if known."""
    amounts = list(effect.levels)
    if ANOTHER not in dict(amounts) and {level for level, _ in amounts} != {"True", "False"}:
        amounts.append((ANOTHER, 0.0))  # unseen levels add nothing
    if effect.missing is not None:
        amounts.append((MISSING, effect.missing))
    above = [level for level, part in amounts if part + bias > 0]
    return above, [level for level, part in amounts if part + bias <= 0]


def set_texts(name: str, above: list[str], others: list[str], most: int) -> tuple[str, str]:
    """Return when a level is among the first and when among the others, by the shorter of the two lists.

    >>> set_texts("colour", ["red", "blue"], ["green", "grey", "another"], 12)
    ('colour in {red, blue}', 'colour not in {red, blue}')
    >>> set_texts("colour", ["red", "green", "another"], ["blue"], 12)
    ('not (colour = blue)', 'colour = blue')
    """
    if not above or not others:
        return ("never", "always") if not above else ("always", "never")
    is_turned = len(others) < len(above)
    listed = others if is_turned else above
    if len(listed) == 1:
        (level,) = listed
        text = f"{name} {'is' if level in (ANOTHER, MISSING) else '='} {level}"
        texts = text, f"not ({text})"
    else:
        rest = len(listed) - most
        text = ", ".join(listed[:most] if rest > 0 else listed) + (f" and {rest} more" if rest > 0 else "")
        texts = f"{name} in {{{text}}}", f"{name} not in {{{text}}}"
    return (texts[1], texts[0]) if is_turned else texts


def amount_text(amount: float, step: float) -> str:
    """Return an amount rounded to a multiple of a power of ten.

    >>> amount_text(0.12345, 0.001), amount_text(-123456.7, 100.0), amount_text(0.0001, 0.001)
    ('0.123', '-123500', '0')
    """
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return exact_text(round(round(amount / step) * step, decimals))


def _digits_text(value: float) -> str:
    return exact_text(float(f"{value:.5g}"))


def effects_sum(effects: Sequence[ColumnEffect]) -> ColumnEffect:
    """Return the sum of effects of one column.

    >>> red = ColumnEffect(0, "colour", "levels", levels=(("red", 0.5),))
    >>> effects_sum([red, red]).levels
    (('red', 1.0),)
    """
    first = effects[0]
    levels: dict[str, float] = {}
    for level, part in (pair for effect in effects for pair in effect.levels):
        levels[level] = levels.get(level, 0.0) + part
    curves = [effect for effect in effects if effect.points]
    texts = {x: text for effect in curves for (x, _), text in zip(effect.points, effect.point_texts, strict=True)}
    values = np.array(sorted(texts))
    parts = np.zeros(len(values))
    for effect in curves:
        parts += np.interp(values, *np.array(effect.points).T)
    limits = [effect.limits for effect in curves if effect.limits is not None]
    missing = [effect.missing for effect in effects if effect.missing is not None]
    return ColumnEffect(
        first.column,
        first.name,
        first.kind,
        points=tuple(zip(values.tolist(), parts.tolist(), strict=True)),
        point_texts=tuple(texts[value] for value in values.tolist()),
        limits=(sum(low for low, _ in limits), sum(high for _, high in limits)) if limits else None,
        slope=sum(effect.slope for effect in effects),
        levels=tuple(levels.items()),
        missing=sum(missing) if missing else None,
        strength=math.sqrt(sum(effect.strength**2 for effect in effects)),
    )


def column_effects(
    columns: Sequence[Column],
    features: Sequence[Feature],
    weights: FloatArray,
    spread: FloatArray,
    *,
    unit_scale: float = 1.0,
    most: int | None = None,
) -> tuple[tuple[ColumnEffect, ...], int]:
    """Return the effects of the columns of a linear function, the strongest first; with its bias they add up to it.

    Parameters
    ----------
    columns : sequence of Column
        Of the table.
    features : sequence of Feature, (features,)
    weights : array of shape (features,)
    spread : array of shape (features,)
        Standard deviations of the encoded features.
    unit_scale : float, default=1.0
        Factor of the function, such as the scale of a target.
    most : int, optional
        Maximum number of effects.

    Returns
    -------
    effects : tuple of ColumnEffect
    n_effects : int
        Number of columns with an effect.
    """
    by_column: dict[int, list[int]] = {}
    for k in np.flatnonzero(weights).tolist():
        by_column.setdefault(features[k].column, []).append(k)
    chosen = sorted(by_column)
    if most is not None and len(chosen) > 2 * most + 8:  # wide tables: the others are far weaker
        sizes = {column: float(np.square(weights[used] * spread[used]).sum()) for column, used in by_column.items()}
        chosen = sorted(sorted(chosen, key=lambda column: -sizes[column])[: 2 * most + 8])
    effects = []
    for column in chosen:
        start = by_column[column][0]
        while start and features[start - 1].column == column:
            start -= 1
        end = start
        while end < len(features) and features[end].column == column:
            end += 1
        own = slice(start, end)
        effects.append(column_effect(columns[column], features[own], weights[own] * unit_scale, spread[own]))
    effects.sort(key=lambda effect: -effect.strength)
    return tuple(effects[:most]), len(by_column)


def column_effect(column: Column, features: Sequence[Feature], weights: FloatArray, spread: FloatArray) -> ColumnEffect:
    """Return the effect of one column from the weights of its features."""
    index, name = features[0].column, features[0].name
    strength = math.sqrt(float(np.square(weights * spread).sum()))
    by_kind = {feature.kind: float(weight) for feature, weight in zip(features, weights, strict=True)}
    missing = by_kind.get("missing")
    if not isinstance(column, Numeric):
        levels = _levels(column, features, weights)
        return ColumnEffect(index, name, "levels", levels=levels, missing=missing, strength=strength)
    values = [(f, float(w)) for f, w in zip(features, weights, strict=True) if f.kind in ("value", "bin")]
    if not values or not any(weight for _, weight in values):
        return ColumnEffect(index, name, "curve", missing=missing, strength=strength)

    def at(encoded: FloatArray) -> FloatArray:
        sums = np.zeros(len(encoded))
        for feature, weight in values:
            sums += weight * (encoded if feature.bin is None else feature.bin.at(encoded))
        return sums

    if missing is not None:
        missing += float(at(np.array([column.encoded_fill]))[0])
    scaling = column.scaling
    originals, encoded = _points(column, at)
    parts = at(encoded)
    slope = values[0][1]
    limits = None
    if scaling.knots:  # constant beyond the first and the last knot
        limits, slope = (float(parts[0]), float(parts[-1])), 0.0
    elif scaling.ends:
        limits = (float(parts[0] - slope * scaling.reach), float(parts[-1] + slope * scaling.reach))
    if column.edges and any(weight for feature, weight in values if feature.bin is not None):
        middles, steps = (parts[1:] + parts[:-1]) / 2, np.diff(parts)
        variance = float(np.mean(np.square(middles) + np.square(steps) / 12) - np.mean(middles) ** 2)
        strength = math.sqrt(max(variance, 0.0) + ((by_kind.get("missing", 0.0) * float(spread[-1])) ** 2))
    return ColumnEffect(
        index,
        name,
        "curve",
        points=tuple(zip(originals.tolist(), parts.tolist(), strict=True)),
        point_texts=_point_texts(column, originals),
        limits=limits,
        slope=slope / scaling.scale,
        missing=missing,
        strength=strength,
    )


def level_text(level: object) -> str:
    """Return a level as text, in quotes where it could be read as something else."""
    text = str(level)
    is_plain = text == text.strip() and text not in (ANOTHER, MISSING, "") and not set(text) & set(',;(){}"')
    return text if is_plain else f'"{text}"'


def _levels(column: Column, features: Sequence[Feature], weights: FloatArray) -> tuple[tuple[str, float], ...]:
    pairs = []
    for feature, weight in zip(features, weights, strict=True):
        if feature.kind == "level":
            pairs.append((level_text(feature.level), float(weight)))
        elif feature.kind == "other":
            pairs.append((ANOTHER, float(weight)))
    if isinstance(column, Boolean):
        pairs.append((str(False), 0.0))
    return tuple(pairs)


def _points(column: Numeric, at: Callable[[FloatArray], FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Return the points between which the effect of a column of numbers is linear: original and encoded values."""
    scaling = column.scaling
    if not scaling.knots:
        if column.edges:
            encoded = np.array(column.edges)
            return _exact(scaling, encoded, column), encoded
        low, high = column.low, column.high
        if high - low <= 1e-9 * max(1.0, abs(low)):
            high = low + 1.0
        originals = np.array([low, high])
        return originals, scaling.encode(originals)
    # By ranks, the encoded value is no straight line of the number: points are added where it matters.
    knots = np.array(scaling.knots)
    edges = scaling.decode(np.array(column.edges)) if column.edges else np.zeros(0)
    candidates = np.unique(np.concatenate([knots, edges]))
    sums = at(scaling.encode(candidates))
    is_point = np.isin(candidates, [candidates[0], candidates[-1]])
    tolerance = CURVE_ERROR * max(float(np.ptp(sums)), 1e-300)
    for _ in range(MOST_ADDED):
        error = np.abs(np.interp(candidates, candidates[is_point], sums[is_point]) - sums)
        if error.max() <= tolerance:
            break
        is_point[int(error.argmax())] = True
    return candidates[is_point], scaling.encode(candidates[is_point])


def _exact(scaling: Scaling, encoded: FloatArray, column: Numeric) -> FloatArray:
    """Return decoded edges; those of whole numbers are whole."""
    originals = scaling.decode(encoded)
    if column.whole:
        near = np.rint(originals)
        originals = np.where(np.abs(near - originals) < 1e-6 * np.maximum(1.0, np.abs(near)), near, originals)
    return originals


def _point_texts(column: Numeric, originals: FloatArray) -> tuple[str, ...]:
    quantity = column.quantity
    if quantity.is_text:
        return tuple(quantity.texts(originals, fine=column.is_fine))
    gaps = np.diff(originals)
    nearest = np.minimum(np.append(gaps, np.inf), np.append(np.inf, gaps))
    return tuple(
        _near_text(value, POINT_ERROR * gap) + quantity.suffix
        for value, gap in zip(originals.tolist(), nearest.tolist(), strict=True)
    )


def _near_text(value: float, tolerance: float) -> str:
    """Return a number with at least four digits, and within a tolerance."""
    if value == 0 or not math.isfinite(value):
        return exact_text(value)
    for digits in range(max(4, math.floor(math.log10(abs(value))) + 1), 18):
        near = float(f"{value:.{digits}g}")
        if abs(near - value) <= tolerance:
            return exact_text(near)
    return exact_text(value)
