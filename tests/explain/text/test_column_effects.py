"""What columns add, as curves and levels in original units."""

import numpy as np
import pandas as pd
import pytest

from tartree.explain.text.column_effects import ColumnEffect, column_effects, effects_sum
from tartree.table import TableEncoder


def effects_of(frame, weights, **parameters):
    encoder = TableEncoder(min_count=1, **parameters).fit(frame)
    weights = np.resize(np.asarray(weights, dtype=float), len(encoder.features_))
    effects, n_effects = column_effects(encoder.columns_, encoder.features_, weights, np.ones(len(weights)))
    assert n_effects == len(effects)
    return encoder, weights, effects


@pytest.mark.parametrize("extrapolation", [0.1, None])
@pytest.mark.parametrize("numeric", ["standard", "curve", "quantile"])
def test_points_and_what_is_beyond_them(numeric, extrapolation):
    x = np.concatenate([np.linspace(0, 100, 200), [np.nan]])
    frame = pd.DataFrame({"x": x})
    encoder, weights, (effect,) = effects_of(
        frame, [0.3, -0.5, 0.7, 0.2], numeric=numeric, n_bins=3, extrapolation=extrapolation
    )
    wanted = encoder.transform(frame).astype(float) @ weights
    points, parts = np.array(effect.points).T
    tolerance = 0.03 if numeric == "quantile" else 1e-4
    np.testing.assert_allclose(np.interp(x[:-1], points, parts), wanted[:-1], atol=tolerance)
    assert effect.missing == pytest.approx(wanted[-1], abs=1e-4)
    distance = np.array([5.0, 50.0])
    far = encoder.transform(pd.DataFrame({"x": 100 + distance})).astype(float) @ weights
    if numeric == "quantile":
        found = np.interp(100 + distance, points, parts)
    elif extrapolation is None:
        found = parts[-1] + effect.slope * distance
    else:
        found = parts[-1] + distance / (distance + 10) * (effect.limits[1] - parts[-1])
    np.testing.assert_allclose(found, far, atol=tolerance)


def test_levels_missing_values_and_booleans():
    frame = pd.DataFrame({"colour": ["red"] * 3 + ["blue"] * 2 + [None], "smoker": [True, False] * 3})
    _, _, effects = effects_of(frame, [0.5, -1.0, 2.0, 0.25])
    by_name = {effect.name: effect for effect in effects}
    assert by_name["colour"].levels == (("red", 0.5), ("blue", -1.0))
    assert by_name["colour"].missing == 2.0
    assert by_name["smoker"].levels == (("True", 0.25), ("False", 0.0))
    assert by_name["colour"].text(0.01) == "0.5 red, -1 blue; 2 missing"
    assert by_name["smoker"].text(0.01) == "0.25 True"


def test_text_is_rounded_and_small_effects_keep_two_digits():
    effect = ColumnEffect(0, "age", "curve", ((20.0, -0.00123), (60.0, 0.00456)), ("20", "60"), (-0.002, 0.0046))
    assert effect.text(0.0001) == "-0.0012 at 20, 0.0046 at 60 (far below -0.002, far above 0.0046)"
    assert effect.text(0.1) == effect.text(0.0001)


def test_levels_beyond_the_most_are_counted():
    effect = ColumnEffect(0, "town", "levels", levels=tuple((f"town {k}", 1.0 + k) for k in range(5)))
    assert effect.text(0.1, most_levels=2) == "4 town 3, 5 town 4, and 3 more levels"


def test_levels_that_could_be_read_as_something_else_are_in_quotes():
    frame = pd.DataFrame({"answer": ["missing", "another", "a, b", "yes"] * 2})
    _, _, (effect,) = effects_of(frame, [1.0])
    assert {level for level, _ in effect.levels} == {'"missing"', '"another"', '"a, b"', "yes"}


def test_sums_of_curves_with_different_points():
    line = ColumnEffect(0, "x", "curve", ((0.0, 0.0), (10.0, 1.0)), ("0", "10"), (-0.1, 1.1))
    curve = ColumnEffect(
        0, "x", "curve", ((0.0, 1.0), (5.0, 0.0), (10.0, 1.0)), ("0", "5", "10"), (1.0, 1.0), missing=0.5
    )
    total = effects_sum([line, curve])
    assert total.points == ((0.0, 1.0), (5.0, 0.5), (10.0, 2.0))
    assert total.limits == pytest.approx((0.9, 2.1))
    assert total.missing == 0.5
