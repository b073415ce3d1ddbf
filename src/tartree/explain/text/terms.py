"""Linear functions of encoded rows as terms in the names and units of the columns, and as text.

A linear function ``w . x + b`` of standardised numbers is ``sum of weight * (value - origin) + bias`` of original ones.
The origin is 0 for numbers and a round day for dates, whose weights are per day; times of day count in hours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tartree.explain.text.number_text import ALL_DIGITS, exact_text, format_number, rounded
from tartree.table import Feature

#: Default number of terms that are written out.
TEXT_TERMS = 3


@dataclass(frozen=True)
class Term:
    """A term of a linear function, in the units of its column.

    Its part of the sum is ``weight * (value - origin) / per``, where ``value`` is the original number (dates and times
    in seconds); for a level, a rare level or a missing value, ``weight`` if the row has it and 0 otherwise. With
    `ranked`, the value is the column's normal rank (``numeric="quantile"``), not its number.
    """

    feature: int  # number of the encoded feature
    column: int
    name: str  # of the column
    kind: Literal["value", "level", "other", "missing"]
    label: str  # "age", "colour = red", "age is missing"
    weight: float  # in original units; of a gradient, its mean
    encoded_weight: float  # of the encoded feature
    strength: float  # |encoded weight| times the feature's standard deviation on the data
    origin: float = 0.0
    per: float = 1.0
    ranked: bool = False


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

    def text_of(self, max_terms: int) -> str:
        """Return the sum as text, with at most `max_terms` terms written out and the others counted."""
        shown = self.terms[:max_terms]
        return _sum_text(shown, self.n_terms - len(shown), self.bias)

    def condition_of(self, max_terms: int) -> str:
        """Return when the function is above 0, with at most `max_terms` terms written out and the others counted."""
        if self.n_terms < 2:
            return self.condition
        return _condition_text(self.terms[:max_terms], self.n_terms, self.bias)


def label_of(feature: Feature, column_name: str | None = None) -> str:
    """Return a feature as text: "age", "colour = red", "colour is another", "age is missing"."""
    name = feature.name if column_name is None else column_name
    if feature.kind == "value":
        return name
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
    """
    strength = np.abs(weights) * spread if strength is None else strength
    order = np.argsort(-strength, kind="stable")
    alive = order[(weights[order] != 0) | (strength[order] != 0)]
    terms = tuple(
        term_of(features[k], int(k), float(weights[k]) * unit_scale, float(strength[k]) * abs(unit_scale))
        for k in alive[:max_terms]
    )
    total = None if bias is None else bias * unit_scale + _shift(features, weights, unit_scale)
    encoded_bias = None if bias is None else bias * unit_scale
    shown = terms[:TEXT_TERMS]
    if len(alive) == 1 and bias is not None:
        (only,) = terms
        condition = _single_term_text(only, features[only.feature], float(weights[only.feature]), bias)
    else:
        condition = _condition_text(shown, len(alive), total)
    text = _sum_text(shown, len(alive) - len(shown), total)
    return LinearView(method if len(alive) else "constant", terms, len(alive), total, encoded_bias, text, condition)


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
        name = f"[{term.label}]" if term.kind != "value" else term.label
        sign = "-" if term.weight < 0 else "+"
        product = f"{format_number(abs(term.weight))} * {name}"
        text = f"{text} {sign} {product}" if text else f"-{product}" if term.weight < 0 else product
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
