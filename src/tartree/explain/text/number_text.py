"""Numbers as text with few digits, rounded so that claims about them stay true."""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterator

import numpy as np

#: Number of digits that identify every float.
ALL_DIGITS = 17
#: Rounding error of a bound computed by sums of floats.
NOISE = 1e-9


def format_number(value: float) -> str:
    """Return a number with four digits, without an exponent if possible."""
    if value == 0 or not np.isfinite(value):
        return "0" if value == 0 else str(value)
    if 1e-4 <= abs(value) < 1e7:
        text = np.format_float_positional(value, precision=4, unique=False, fractional=False, trim="-")
        return str(text)
    return f"{value:.3g}"


def format_rounded(value: float, digits: int = 3) -> str:
    """Return a number rounded to so many digits, as `format_number` writes it."""
    return format_number(float(f"{value:.{digits}g}"))


def mark_missing(text: str, missing: bool) -> str:
    """Return a value as text or, if it is missing, that it is and what is read in its place."""
    if not missing:
        return text
    return "missing" if text in ("nan", "None") else f"missing, read as {text}"


def rounded(value: float, digits: int, *, up: bool) -> float:
    """Round a number up or down to so many significant digits.

    Examples
    --------
    >>> rounded(51.2345, 4, up=False), rounded(51.2345, 4, up=True), rounded(-0.12349, 3, up=True)
    (51.23, 51.24, -0.123)
    """
    if value == 0 or not math.isfinite(value):
        return value
    exact = decimal.Decimal(repr(float(value)))
    last = decimal.Decimal(1).scaleb(exact.adjusted() - digits + 1)
    side = decimal.ROUND_CEILING if up else decimal.ROUND_FLOOR
    with decimal.localcontext() as context:
        context.prec = 400  # of the smallest and largest floats
        return float(exact.quantize(last, rounding=side))


def candidates(value: float, *, up: bool, least: int = 1) -> Iterator[float]:
    """Yield a number rounded to one side with increasing numbers of digits; the last is the number itself."""
    last = None
    for digits in range(least, ALL_DIGITS):
        value_rounded = rounded(value, digits, up=up)
        if value_rounded != last:
            yield value_rounded
        if value_rounded == value:
            return
        last = value_rounded
    yield value


def exact_text(value: float) -> str:
    """Return the shortest text that is read as exactly this number, without an exponent if possible."""
    if value == 0:
        return "0"
    if not math.isfinite(value) or not 1e-4 <= abs(value) < 1e16:
        return repr(float(value))
    return str(np.format_float_positional(value, trim="-"))


def at_most(value: float, decimals: int) -> str:
    """Return a bound with so many decimals, rounded up.

    Examples
    --------
    >>> at_most(0.00943, 4), at_most(0.25, 4), at_most(0.0, 3)
    ('0.0095', '0.2500', '0.000')
    """
    if not math.isfinite(value):
        return str(value)
    step = decimal.Decimal(1).scaleb(-decimals)
    # Rounding errors of sums are no part of the value: a bound of 1 + 1e-12 is one of 1.
    exact = decimal.Decimal(repr(max(0.0, float(value) - NOISE)))
    return str(exact.quantize(step, rounding=decimal.ROUND_CEILING))


def percent(share: float, decimals: int = 0) -> str:
    """Return a share as text: "0%" is exactly none and "100%" all, other shares near them are "<1%" and ">99%".

    Examples
    --------
    >>> percent(0.4567), percent(0.0004, 1), percent(0.99996, 1), percent(1.0), percent(0.0, 1)
    ('46%', '<0.1%', '>99.9%', '100%', '0.0%')
    """
    least = 10.0**-decimals
    if share > 0 and float(f"{100 * share:.{decimals}f}") == 0:
        return f"<{least:.{decimals}f}%"
    if share < 1 - 1e-9 and float(f"{100 * share:.{decimals}f}") == 100:
        return f">{100 - least:.{decimals}f}%"
    return f"{share:.{decimals}%}"


def probability_text(probability: float) -> str:
    """Return a probability with two decimals: "0.00" and "1.00" are exact, others near them are "<0.01" and ">0.99"."""
    if 0 < probability < 0.005:
        return "<0.01"
    return ">0.99" if 0.995 <= probability < 1 - 1e-9 else f"{probability:.2f}"
