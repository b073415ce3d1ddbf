"""Pictures of contributions and importances."""

import numpy as np
import pytest

from tartree import TartClassifier
from tartree.explain.attribution.importances import importances
from tartree.explain.attribution.row_explanations import explain_rows

matplotlib = pytest.importorskip("matplotlib", reason="pictures need the extra plot")
matplotlib.use("Agg")

from matplotlib.colors import to_hex  # noqa: E402

from tartree.explain import plots, view  # noqa: E402
from tartree.explain.plots.scene import make_scene  # noqa: E402
from tartree.explain.plots.style import OTHER, class_colours  # noqa: E402
from tests.explain.plots.figures import LONG, by_gid, check_texts  # noqa: E402


@pytest.mark.parametrize("max_columns", [2, 20])
def test_contributions_go_from_the_reference_to_the_prediction(table, regression, max_columns):
    X, y = table
    classifier = TartClassifier(depth=2, epochs=2, random_state=0, device="cpu").fit(X, y)
    for model, predicted in [
        (classifier, classifier.predict_proba(X)[4].max()),
        (regression[0], regression[0].predict(X)[4]),
    ]:
        ax = plots.plot_contributions(model, X, row=4, max_columns=max_columns)
        check_texts(ax.figure)
        parts = [artist for _, artist in sorted(by_gid(ax, "part").items())]
        starts = [part.get_x() for part in parts]
        ends = [part.get_x() + part.get_width() for part in parts]
        assert starts[1:] == pytest.approx(ends[:-1])
        assert ends[-1] == pytest.approx(predicted, rel=1e-5)
        base = explain_rows(model, X[4:5], background=X)[0].base
        assert np.isclose(base, starts[0]).any()
        labels = [label.get_text() for label in ax.get_yticklabels()]
        assert len(labels) == len(parts) + 2
        assert any("other columns" in label for label in labels) == (max_columns == 2)


@pytest.mark.parametrize("n_classes", [2, 3, 9])
def test_a_class_has_one_colour_in_all_pictures(n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(180, 3))
    y = np.minimum(np.arange(180) % 12, n_classes - 1)  # the last class is the most frequent
    model = TartClassifier(readable=True, depth=1, epochs=2, random_state=0, device="cpu").fit(X, y)
    colours = class_colours(n_classes)
    assert make_scene(view(model, X, y), 0, 0, None).colours == tuple(colours)
    for output in range(n_classes):
        ax = plots.plot_contributions(model, X, output=output)
        drawn = {part.get_width() >= 0: to_hex(part.get_facecolor()) for part in by_gid(ax, "part").values()}
        assert drawn.get(True, colours[output]) == colours[output]
        away = colours[1 - output] if n_classes == 2 else OTHER
        assert drawn.get(False, away) == away
    if n_classes > 2:
        handles = plots.plot_curves(model).legends[0].legend_handles
        assert [to_hex(handle.get_color()) for handle in handles][:n_classes] == colours  # then a note


def test_an_explanation_can_be_drawn_without_its_model(table):
    X, y = table
    model = TartClassifier(depth=1, epochs=1, random_state=0, device="cpu").fit(X, y)
    explained = explain_rows(model, X[:3], background=X)
    for source, how in [(explained[2], {}), (explained, {"row": 2})]:
        ax = plots.plot_contributions(source, output=1, **how)
        widths = sum(artist.get_width() for artist in by_gid(ax, "part").values())
        assert widths == pytest.approx(explained.predictions[2, 1] - explained.base[1])
    with pytest.raises(ValueError, match="X must be given"):
        plots.plot_contributions(model)
    with pytest.raises(ValueError, match="output must be from 0 to 2"):
        plots.plot_contributions(explained[0], output=3)


def test_importances_are_bars_in_order():
    names = [LONG.format(k) for k in range(30)]
    values = np.random.default_rng(0).dirichlet(np.ones(30))
    ax = plots.plot_importances(values, names=names, max_features=5)
    check_texts(ax.figure)
    lengths = [patch.get_width() for patch in ax.patches]
    assert lengths == pytest.approx(np.sort(values)[::-1][:5])
    assert ax.get_xlabel() == f"importance; 25 other features: {1 - sum(lengths):.3f} together"
    same = plots.plot_importances(dict(zip("abc", [0.2, 0.5, 0.3], strict=True)))
    assert [label.get_text() for label in same.get_yticklabels()] == ["b", "c", "a"]
    with pytest.raises(ValueError, match="one number for each feature"):
        plots.plot_importances(values, names=names[:3])


def test_importances_of_an_estimator_are_those_of_the_library(table):
    X, y = table
    model = TartClassifier(depth=1, epochs=1, random_state=0, device="cpu").fit(X, y)
    ax = plots.plot_importances(model, X, y)
    assert [patch.get_width() for patch in ax.patches] == pytest.approx(np.sort(importances(model, X, y))[::-1])
    assert {"ward", "admitted", "b"} <= {label.get_text() for label in ax.get_yticklabels()}
    with pytest.raises(ValueError, match="X must be given"):
        plots.plot_importances(object())
