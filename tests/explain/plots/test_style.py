"""Texts and colours of pictures."""

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib", reason="pictures need the extra plot")
matplotlib.use("Agg")

from matplotlib.colors import to_rgb  # noqa: E402

from tartree.explain.plots import style  # noqa: E402
from tests.explain.plots.figures import LONG  # noqa: E402


def test_text_is_cut_to_its_room_and_keeps_its_number():
    assert style.fit("age", 100, 10) == "age"
    cut = style.fit(LONG, 120, 10, keep=" > 19.4")
    assert cut.startswith("the")
    assert cut.endswith(" > 19.4")
    assert "…" in cut
    assert style.text_width(cut, 10) <= 120
    assert style.fit("a\n b\tc\x07", 100, 10) == "a b c"
    assert style.wrapped("worst fractal dimension", 60, 8).count("\n") == 1
    assert all(style.text_width(line, 8) <= 40 for line in style.wrapped(LONG, 40, 8).split("\n"))


def test_shares_are_honest_at_their_ends():
    assert [style.percent(share) for share in (0, 0.001, 0.5, 0.999, 1)] == ["0%", "<1%", "50%", ">99%", "100%"]


def test_colours_of_classes_are_told_apart():
    assert len(set(style.class_colours(7))) == 7
    assert style.class_colours(10) == [*style.CLASSES, *[style.OTHER] * 3]
    assert style.class_colours(2) == style.class_colours(10)[:2]
    for colour in (*style.CLASSES, *style.BRANCHES, style.OTHER, style.LESS, style.MORE):
        assert contrast(colour, style.ink_on(colour)) >= 3
    for colour in style.BRANCHES:  # these are written with, too
        assert contrast(colour, style.CARD) >= 4.0


def contrast(one, other):
    """The contrast of two colours as web pages count it."""
    light = []
    for colour in (one, other):
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
        light.append(np.dot([0.2126, 0.7152, 0.0722], parts) + 0.05)
    return max(light) / min(light)
