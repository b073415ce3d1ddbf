"""Helpers for tests of pictures: trees of many shapes, and checks of texts."""

import numpy as np
import pytest

from tartree import Structure, TartClassifier
from tartree.model.pipeline import build_tree

matplotlib = pytest.importorskip("matplotlib", reason="pictures need the extra plot")
matplotlib.use("Agg")

from matplotlib.text import Text  # noqa: E402

LONG = "the very long name of a column as the hospital's information system exports it, for $no$ good reason, {}"
SHAPES = {
    "one leaf": Structure(0),
    "2 leaves": Structure(1),
    "8 leaves": Structure(3),
    "16 leaves": Structure(4),
    "32 leaves": Structure(5),
    "64 leaves": Structure(6),
    "256 leaves": Structure(8),
    "shared": Structure(3, 3, 2),
    "shared, few": Structure(2, 3, 1),
    "eight ways": Structure(1, 8),
    "irregular": Structure.from_tree([[1, 2], [], [3, 4], [], [5, 6], [], []]),
    "past a row": Structure.from_children([[[0, 1]], [[0], [1, 2]], [[0], [0, 1], [2]]]),
    "pruned graph": Structure(4, 3, 2).without([(3, 3), (2, 2), (4, 4), (4, 5)]),
}


def shaped(structure, X, y, model=TartClassifier, **settings):
    """An estimator of any structure, with weights drawn at random."""
    estimator = model(depth=1, epochs=1, random_state=0, device="cpu", **settings).fit(X, y)
    fitted = estimator.model_
    tree = build_tree(structure, len(fitted.encoder.features_), fitted.codec.output, fitted.provenance.settings, 1)
    return estimator.with_model(fitted.with_tree(tree))


def texts_of(figure):
    """Every text that is drawn: labels of ticks beyond the ends of an axis are not."""
    figure.canvas.draw()
    hidden = set()
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in axis.get_major_ticks():
                if not ax.axison or not low - 1e-9 <= tick.get_loc() <= high + 1e-9:
                    hidden |= {tick.label1, tick.label2}
    texts = [text for text in figure.findobj(Text) if text not in hidden]
    return [text for text in texts if text.get_visible() and text.get_text().strip()]


def check_texts(figure):
    """No text lies on another, and none leaves the figure."""
    renderer = figure.canvas.get_renderer()
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts_of(figure)]
    assert boxes
    edges = np.array([box.extents for _, box in boxes])  # (texts, 4): left, bottom, right, top
    inside = figure.bbox.extents + np.array([-1, -1, 1, 1])
    outside = (edges[:, :2] < inside[:2]).any(axis=1) | (edges[:, 2:] > inside[2:]).any(axis=1)
    assert not outside.any(), f"{boxes[outside.argmax()][0]!r} leaves the picture"
    shared = np.minimum(edges[:, None, 2:], edges[:, 2:]) - np.maximum(edges[:, None, :2], edges[:, :2])
    over = np.triu((shared >= 1).all(axis=2), k=1)  # (texts, texts)
    assert not over.any(), "{!r} lies on {!r}".format(*(boxes[i][0] for i in np.argwhere(over)[0]))


def by_gid(ax, word):
    """Artists of a kind, by the numbers in their gid."""
    found = {}
    for artist in ax.get_children():
        gid = artist.get_gid()
        if gid and gid.split()[0] == word:
            found[tuple(map(int, gid.split()[1:]))] = artist
    return found
