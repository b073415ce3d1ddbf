"""Small curves."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="pictures need the extra plot").use("Agg")

from tartree.explain.plots.canvas import Box, Canvas  # noqa: E402
from tartree.explain.plots.sparklines import draw_sparkline, usual_size  # noqa: E402
from tartree.explain.text.column_effects import ColumnEffect  # noqa: E402

CURVE = ColumnEffect(0, "age", "curve", points=((20.0, -1.0), (30.0, 0.5), (90.0, 4.0)), missing=-0.25)
LEVELS = ColumnEffect(1, "sex", "levels", levels=(("f", 0.5), ("m", -0.5)), missing=0.1)


def test_points_stand_side_by_side_and_the_ends_are_cut():
    canvas = Canvas(None, 100, 50)
    draw_sparkline(canvas, Box(10, 10, 69, 20), [CURVE], [("red", "blue")], usual_size(CURVE))
    curve, missing = canvas.ax.lines
    np.testing.assert_allclose(curve.get_data(), [[10, 40, 70], [30, 10, 10]])
    np.testing.assert_allclose(missing.get_data(), [[75], [25]])


def test_levels_are_bars():
    canvas = Canvas(None, 100, 50)
    draw_sparkline(canvas, Box(0, 0, 60, 20), [LEVELS], [("red", "blue")], 1.0)
    heights = [patch.get_height() for patch in canvas.ax.patches[2:]]
    np.testing.assert_allclose(heights, [-5, 5, -1])
