"""Linear functions of encoded rows as terms in the names and units of the columns, and as text.

A linear function ``w . x + b`` of standardised numbers is ``sum of weight * (value - origin) + bias`` of original ones.
The origin is 0 for numbers and a round day for dates, whose weights are per day; times of day count in hours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tartree.explain.text.column_effects import ColumnEffect, column_effects, set_texts, sides
from tartree.explain.text.curve_terms import Curve, curve_of, term_owners
from tartree.explain.text.number_text import ALL_DIGITS, exact_text, format_number, rounded
from tartree.table import Column, Feature

#: Default number of terms that are written out.
TEXT_TERMS = 3
#: Levels of a condition that are written out, at least.
TEXT_LEVELS = 12
#: Rounding of the effects of a condition, as a share of the largest.
EFFECT_ERROR = 1e-4


@dataclass(frozen=True)
class Term:
    """A term of a linear function, in the units of its column.

    Its part of the sum is ``weight * (value - origin) / per``, where ``value`` is the original number (dates and times
    in seconds); for a level, a rare level or a missing value, ``weight`` if the row has it and 0 otherwise. With
    `ranked`, the value is the column's normal rank (``numeric="quantile"``), not its number. Of a curve, `points` are
    original values and what they add, linear in between; `weight` and `encoded_weight` are the slope of the straight
    line nearest to it.
    """

    feature: int  # number of the encoded feature
    column: int
    name: str  # of the column
    kind: Literal["value", "curve", "bin", "level", "other", "missing"]
    label: str  # "age", "curve of age", "colour = red", "age is missing"
    weight: float  # in original units; of a gradient, its mean
    encoded_weight: float  # of the encoded feature
    strength: float  # |encoded weight| times the feature's standard deviation on the data
    origin: float = 0.0
    per: float = 1.0
    ranked: bool = False
    points: tuple[tuple[float, float], ...] = ()
    points_text: str = ""  # "-0.4 at 20, 0.1 at 35, 0.8 at 60"


@dataclass(frozen=True)
class LinearView:
    """A function of a row as its strongest terms and as text.

    With the method "linear" the function is exactly ``sum of terms + bias``, in original units, if all `n_terms` are
    listed; "gradient" lists the mean gradient on the data of a function that is not linear, which has no bias.
    """

    method: Literal["linear", "gradient", "constant"]
    terms: tuple[Term, ...]
    n_terms: int  # with a weight other than 0
    bias: float | None  # in original units
    encoded_bias: float | None
    text: str  # "3.1 * age - 0.2 * bmi + 4 smaller terms - 12", with at most three terms
    condition: str  # "3.1 * age - 0.2 * bmi + 4 smaller terms > 12"; one term: "age > 51.2"
    opposite: str | None = None  # when the function is not above 0, where this is no inequality turned round
    effects: tuple[ColumnEffect, ...] = ()  # of conditions with curves or levels: by column, the strongest first
    n_effects: int = 0  # with those that are not listed

    @property
    def is_one_column(self) -> bool:
        """Whether the function is linear in the features of at most one column, so that its condition is short."""
        return self.method != "gradient" and (self.n_terms < 2 or self.n_effects == 1)

    def text_of(self, max_terms: int) -> str:
        """Return the sum as text, with at most `max_terms` terms written out and the others counted."""
        shown = self.terms[:max_terms]
        return _sum_text(shown, self.n_terms - len(shown), self.bias)

    def condition_of(self, max_terms: int) -> str:
        """Return when the function is above 0, with at most `max_terms` terms written out and the others counted."""
        if self.n_terms < 2:
            return self.condition
        if self.n_effects == 1 and self.opposite is not None:
            return self.condition if self.effects[0].kind == "curve" else self._set_texts(max_terms)[0]
        if self.effects:
            return _effects_text(self.effects[:max_terms], self.n_effects, self.encoded_bias or 0.0)
        return _condition_text(self.terms[:max_terms], self.n_terms, self.bias)

    def opposite_of(self, max_terms: int) -> str | None:
        """Return when the function is not above 0, None where this is an inequality turned round."""
        if self.n_effects > 1:
            return None
        if self.n_effects == 1 and self.n_terms > 1 and self.effects[0].kind == "levels":
            return self._set_texts(max_terms)[1]
        return self.opposite

    def _set_texts(self, max_terms: int) -> tuple[str, str]:
        effect = self.effects[0]
        return set_texts(effect.name, *sides(effect, self.encoded_bias or 0.0), max(max_terms, TEXT_LEVELS))


def label_of(feature: Feature, column_name: str | None = None) -> str:
    """Return a feature as text: "age", "colour = red", "colour is another", "age is missing"."""
    name = feature.name if column_name is None else column_name
    if feature.kind == "value":
        return name
    if feature.bin is not None:
        return f"{name} from {' to '.join(feature.bin_ends)}"
    if feature.kind == "level":
        return name if feature.level is True else f"{name} = {feature.level}"
    return f"{name} is another" if feature.kind == "other" else f"{name} is missing"


def linear_view(
    features: Sequence[Feature],
    weights: NDArray[np.float64],
    bias: float | None,
    spread: NDArray[np.float64],
    *,
    strength: NDArray[np.float64] | None = None,
    method: Literal["linear", "gradient"] = "linear",
    unit_scale: float = 1.0,
    max_terms: int = 12,
    columns: Sequence[Column] | None = None,
) -> LinearView:
    """Return a linear function, or a mean gradient, in original units.

    Parameters
    ----------
    features : sequence of Feature, (features,)
    weights : array of shape (features,)
        Weights of the encoded features.
    bias : float or None
    spread : array of shape (features,)
        Standard deviations of the encoded features.
    strength : array of shape (features,), optional
        Replaces ``|weights| * spread``.
    unit_scale : float
        Factor of the function, such as the scale of a target.
    max_terms : int
        Maximum number of terms listed.
    columns : sequence of Column, optional
        Of the table. With them, the condition of a function of curves, levels or missing values is written by column:
        as ranges or sets if there is only one, with points of curves if there are several.
    """
    strength = np.abs(weights) * spread if strength is None else strength.copy()
    curves = _curves(features, weights * unit_scale) if method == "linear" else {}
    for k, curve in curves.items():
        strength[k] = curve.strength / abs(unit_scale)
    is_own = np.array([feature.bin is None or method != "linear" for feature in features], dtype=bool)
    order = np.argsort(-strength, kind="stable")
    is_curve = np.isin(order, list(curves))
    alive = order[((weights[order] != 0) | (strength[order] != 0) | is_curve) & is_own[order]]
    terms = tuple(
        curve_term(curves[k], int(k))
        if k in curves
        else term_of(features[k], int(k), float(weights[k]) * unit_scale, float(strength[k]) * abs(unit_scale))
        for k in alive[:max_terms]
    )
    lines = np.where(is_curve[np.argsort(order)], 0.0, weights) if curves else weights  # of curves, origins stay
    total = None if bias is None else bias * unit_scale + _shift(features, lines, unit_scale)
    encoded_bias = None if bias is None else bias * unit_scale
    shown = terms[:TEXT_TERMS]
    opposite = None
    if len(alive) == 1 and bias is not None:
        (only,) = terms
        if only.kind == "curve":
            condition, opposite = _curve_texts(curves[only.feature], bias * unit_scale)
        else:
            condition = _single_term_text(only, features[only.feature], float(weights[only.feature]), bias)
    else:
        condition = _condition_text(shown, len(alive), total)
    effects: tuple[ColumnEffect, ...] = ()
    n_effects = 0
    # Straight lines and levels of several columns are a sum of terms.
    by_column = curves or (len(alive) > 1 and len({features[k].column for k in alive.tolist()}) == 1)
    if columns is not None and encoded_bias is not None and len(alive) and by_column:
        effects, n_effects = column_effects(columns, features, weights, spread, unit_scale=unit_scale, most=max_terms)
        if n_effects > 1:
            condition, opposite = _short_texts(effects, n_effects, encoded_bias)
        elif len(alive) > 1:
            condition, opposite = _column_texts(effects[0], features, curves, weights * unit_scale, encoded_bias)
    text = _sum_text(shown, len(alive) - len(shown), total)
    kept_method = method if len(alive) else "constant"
    return LinearView(
        kept_method, terms, len(alive), total, encoded_bias, text, condition, opposite, effects, n_effects
    )


def _curves(features: Sequence[Feature], weights: NDArray[np.float64]) -> dict[int, Curve]:
    """Return the curves of a linear function, by the feature of their value."""
    bins: dict[int, list[int]] = {}
    for k, owner in enumerate(term_owners(features).tolist()):
        if owner != k:
            bins.setdefault(owner, []).append(k)
    curves = {k: curve_of(features, of_value, weights) for k, of_value in bins.items()}
    return {k: curve for k, curve in curves.items() if curve is not None}


def curve_term(curve: Curve, index: int) -> Term:
    """Return the term of a curve, in original units."""
    feature = curve.feature
    originals = curve.originals
    texts = [format_number(value) for value in originals.tolist()]
    if not feature.quantity.is_bare:
        texts = list(feature.quantity.texts(originals, fine=feature.scaling.is_fine))
    points_text = ", ".join(
        f"{format_number(p)} at {text}" for p, text in zip(curve.parts.tolist(), texts, strict=True)
    )
    slope = curve.direction
    return Term(
        index,
        feature.column,
        feature.name,
        "curve",
        f"curve of {feature.name}",
        slope / feature.scaling.scale,
        slope,
        curve.strength,
        points=tuple(zip(originals.tolist(), curve.parts.tolist(), strict=True)),
        points_text=points_text,
    )


def _curve_texts(curve: Curve, bias: float) -> tuple[str, str]:
    """Return when a curve and a constant are above 0, and when they are not, as ranges of the column."""
    crossings = curve.crossings(bias)
    if not crossings:
        return ("always", "never") if curve.parts[0] + bias > 0 else ("never", "always")
    # A threshold is rounded such that what is claimed of the numbers beside it is true; see `threshold_text`.
    ends = [(threshold_text(curve.feature, value, up=not rises), rises) for value, rises in crossings]
    if curve.feature.whole:
        ends = _without_empty_ranges(ends)
        if not ends:
            return ("always", "never") if crossings[-1][1] else ("never", "always")
    return _ranges(curve.feature.name, ends, above=True), _ranges(curve.feature.name, ends, above=False)


def _column_texts(
    effect: ColumnEffect,
    features: Sequence[Feature],
    curves: dict[int, Curve],
    weights: NDArray[np.float64],
    bias: float,
) -> tuple[str, str]:
    """Return when the effect of a column and a constant are above 0, and when they are not."""
    if effect.kind == "levels":
        return set_texts(effect.name, *sides(effect, bias), TEXT_LEVELS)
    above, below = "always", "never"
    if curves:
        (curve,) = curves.values()
        above, below = _curve_texts(curve, bias)
    else:
        k = next(k for k in np.flatnonzero(weights).tolist() if features[k].kind == "value")
        rises, zero = weights[k] > 0, -bias / float(weights[k])
        above, below = (
            f"{effect.name} {sign} {threshold_text(features[k], zero, up=not rises)}"
            for sign in ((">", "<=") if rises else ("<", ">="))
        )
    if effect.missing is None:
        return above, below
    is_missing = f"{effect.name} is missing"
    if above in ("always", "never"):
        is_same = (effect.missing + bias > 0) == (above == "always")
        if is_same:
            return above, below
        return (f"not ({is_missing})", is_missing) if above == "always" else (is_missing, f"not ({is_missing})")
    if effect.missing + bias > 0:
        return f"{above} or {is_missing}", below
    return above, f"{below} or {is_missing}"


def _short_texts(effects: Sequence[ColumnEffect], n_effects: int, bias: float) -> tuple[str, str]:
    """Return when the effects of several columns and a constant are above 0, and when not, without their numbers."""
    names = [effect.name for effect in effects[:TEXT_TERMS]]
    rest = n_effects - len(names)
    if rest:
        names.append(f"{rest} other column{'s' if rest > 1 else ''}")
    text = f"effects of {', '.join(names[:-1])} and {names[-1]}"
    return f"{text} > {format_number(-bias)}", f"{text} <= {format_number(-bias)}"


def _effects_text(effects: Sequence[ColumnEffect], n_effects: int, bias: float) -> str:
    """Return when the effects of several columns and a constant are above 0."""
    size = max([*(effect.size for effect in effects), abs(bias)])
    step = 10.0 ** np.floor(np.log10(size * EFFECT_ERROR * 10)) if size > 0 else 1.0
    text = " + ".join(f"{effect.name} ({effect.text(float(step))})" for effect in effects)
    rest = n_effects - len(effects)
    if rest:
        text += f" + {rest} smaller term{'s' if rest > 1 else ''}"
    return f"{text} > {format_number(-bias)}"


def _ranges(name: str, ends: list[tuple[str, bool]], *, above: bool) -> str:
    """Return the ranges between crossings where a function is above 0, or not, as text."""
    less, texts = ("<" if above else "<="), []
    start: str | None = None
    inside = ends[0][1] != above  # before the first crossing
    for text, rises in ends:
        if inside:
            texts.append(f"{name} {less} {text}" if start is None else f"{start} {less} {name} {less} {text}")
        inside, start = rises == above, text
    if inside:
        texts.append(f"{name} {'>' if above else '>='} {start}")
    return " or ".join(texts)


def constant_view(value: float) -> LinearView:
    return LinearView("constant", (), 0, value, value, format_number(value), "always" if value > 0 else "never")


def term_of(feature: Feature, index: int, weight: float, strength: float) -> Term:
    """Return a term in original units, from the weight of the encoded feature."""
    label = label_of(feature)
    if feature.kind != "value":
        return Term(index, feature.column, feature.name, feature.kind, label, weight, weight, strength)
    if feature.scaling.knots:
        label = f"rank({label})"
        return Term(index, feature.column, feature.name, "value", label, weight, weight, strength, ranked=True)
    axis = feature.quantity.axis(feature.scaling.center)
    original_weight = weight / feature.scaling.scale * axis.per
    label = axis.label.replace("{}", label)
    return Term(
        index, feature.column, feature.name, "value", label, original_weight, weight, strength, axis.origin, axis.per
    )


def _shift(features: Sequence[Feature], weights: NDArray[np.float64], unit_scale: float) -> float:
    """Return the change of the bias if values are counted from their origins."""
    total = 0.0
    for feature, weight in zip(features, weights.tolist(), strict=True):
        if feature.kind == "value" and not feature.scaling.knots and weight:
            origin = feature.quantity.axis(feature.scaling.center).origin
            total -= weight * unit_scale * (feature.scaling.center - origin) / feature.scaling.scale
    return total


def _products(terms: Sequence[Term], rest: int) -> str:
    text = ""
    for term in terms:
        if term.kind == "curve":
            product, is_negative = f"{term.name} ({term.points_text})", False
        else:
            name = term.label if term.kind == "value" else f"[{term.label}]"
            product, is_negative = f"{format_number(abs(term.weight))} * {name}", term.weight < 0
        text = f"{text} {'-' if is_negative else '+'} {product}" if text else f"-{product}" if is_negative else product
    if rest:
        text += f" + {rest} smaller term{'s' if rest > 1 else ''}"
    return text


def _sum_text(terms: Sequence[Term], rest: int, bias: float | None) -> str:
    text = _products(terms, rest)
    if bias is None:
        return text
    if not text:
        return format_number(bias)
    return text if bias == 0 else f"{text} {'-' if bias < 0 else '+'} {format_number(abs(bias))}"


def _condition_text(terms: Sequence[Term], n_terms: int, bias: float | None) -> str:
    """Return when a function of no or several terms is above 0."""
    if bias is None:
        return f"a function, mostly of {', '.join(term.name for term in terms)}" if terms else "a function"
    if not terms:
        return "always" if bias > 0 else "never" if bias < 0 else "even"
    return f"{_products(terms, n_terms - len(terms))} > {format_number(-bias)}"


def _single_term_text(term: Term, feature: Feature, weight: float, bias: float) -> str:
    if term.kind == "value":
        return f"{feature.name} {'>' if weight > 0 else '<'} {threshold_text(feature, -bias / weight, up=weight < 0)}"
    with_it, without = weight + bias > 0, bias > 0
    if with_it and without:
        return "always"
    if not with_it and not without:
        return "never"
    return label_of(feature) if with_it else f"not ({label_of(feature)})"


def threshold_text(feature: Feature, encoded: float, *, up: bool) -> str:
    """Return a threshold in original units, rounded so that every number with no more decimals is on the claimed side.

    With `up`, the claim is that numbers are below the threshold or not; without, that they are above it or not. So
    51.2345 is shown as 51.23 where "> 51.23" is claimed: 51.23 itself is not above 51.2345, and 51.24 is.

    A threshold of a column of whole numbers is whole, and right for these only: 0.9259 is shown as 0, or as 1 with
    `up`.
    """
    value = float(feature.scaling.decode(np.array([encoded]))[0])
    quantity = feature.quantity
    if quantity.step is not None:
        step = quantity.step
        ticks = value / step
        whole = np.rint(ticks)
        if abs(ticks - whole) * step > 1e-4:  # more than what single precision of the weights may lose
            whole = np.ceil(ticks) if up else np.floor(ticks)
        return quantity.texts(np.array([whole * step]), fine=False)[0]
    if not np.isfinite(value):
        return str(value)
    digits = max(4, int(np.floor(np.log10(abs(value)))) + 1 if value else 4)  # all of those before the decimal point

    def is_true(shown: float) -> bool:
        encoded_value = float(np.float32(feature.scaling.encode(np.array([shown]))[0]))  # as the model reads it
        return encoded_value >= encoded if up else encoded_value <= encoded

    if feature.whole and (whole := _whole_threshold(value, is_true, up=up)) is not None:
        return exact_text(whole) + quantity.suffix
    shown = next(
        (
            candidate
            for more in range(digits, ALL_DIGITS + 1)
            for candidate in (float(f"{value:.{more}g}"), rounded(value, more, up=up))
            if is_true(candidate)
        ),
        value,
    )
    return exact_text(shown) + quantity.suffix


def _whole_threshold(value: float, is_true: Callable[[float], bool], *, up: bool) -> float | None:
    """Return the last whole number for which a claim about a threshold is not true; None if single precision hides it.

    `is_true` returns whether a number is not beyond the threshold: not below it with `up`, not above it without.
    """
    last, step = (math.ceil(value), -1) if up else (math.floor(value), 1)
    near = (float(last + k) for k in (-step, 0, step))
    return next((number for number in near if is_true(number) and not is_true(number + step)), None)


def _without_empty_ranges(ends: list[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Return ends of ranges of a column of whole numbers, without pairs between which there is no whole number."""
    kept: list[tuple[str, bool]] = []
    for text, rises in ends:
        # Between "> 2" and "< 3", and from 3 to 2, there is none.
        if kept and float(text) - float(kept[-1][0]) < (0 if rises else 2):
            kept.pop()
        else:
            kept.append((text, rises))
    return kept
