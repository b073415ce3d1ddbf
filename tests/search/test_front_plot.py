"""Pictures of fronts."""

from itertools import combinations

import pytest

from tartree import StructureSearch, TartClassifier
from tartree.search import plot_front

QUICK = TartClassifier(epochs=18)


@pytest.mark.parametrize("size", ["leaves", "parameters"])
def test_labels_of_the_picture_do_not_overlap(iris, size):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    search = StructureSearch(QUICK, {"depth": [0, 1, 2, 3, 4]}, size=size, halving=None, random_state=0, refit=False)
    ax = plot_front(search.fit(*iris))
    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    ticks = zip([*ax.get_xticks(), *ax.get_xticks(minor=True)], ax.get_xticklabels(which="both"), strict=True)
    boxes = [label.get_window_extent() for place, label in ticks if low <= place <= high and label.get_text()]
    assert len(boxes) >= 1
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert "trained to the end" in ax.get_legend_handles_labels()[1]
    for trial in search._trials:
        trial.state = "unfinished"
    ax.figure.clear()
    assert "trained to the end" not in plot_front(search, ax=ax.figure.subplots()).get_legend_handles_labels()[1]
    pyplot.close(ax.figure)


def test_the_picture_is_that_of_the_front(iris):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    search = StructureSearch(QUICK, {"depth": [0, 2]}, halving=None, random_state=0, refit=False).fit(*iris)
    low = min(trial["score"] - trial["error"] for trial in search.front_)
    high = max(trial["score"] + trial["error"] for trial in search.front_)
    ax = plot_front(search, baselines={"near": [low], "poor": [-1.0, -1.4], "great": [9.0]})
    bottom, top = ax.get_ylim()
    assert bottom < low < high < top
    assert high - low > 0.25 * (top - bottom)  # whatever the other models score
    labels = ax.get_legend_handles_labels()[1]
    assert {f"near, {low:.3f}", "poor, -1.200 (below)", "great, 9.000 (above)"} <= set(labels)
    assert [text.get_text() for text in ax.texts] == ["-1.200", "9.000"]
    pyplot.close(ax.figure)
