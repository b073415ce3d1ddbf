"""Pictures of the curves of readable models: numbers are those of the view, and texts are apart."""

import numpy as np
import pandas as pd
import pytest

from tartree import TartClassifier, TartRegressor
from tartree.explain import view
from tests.explain.models import patients

matplotlib = pytest.importorskip("matplotlib", reason="pictures need the extra plot")
matplotlib.use("Agg")

from tartree.explain import plots  # noqa: E402
from tests.explain.plots.figures import check_texts  # noqa: E402

FAST = {"readable": True, "epochs": 40, "random_state": 0, "device": "cpu"}


@pytest.fixture(scope="module")
def models():
    frame, labels, values = patients(300)
    return {
        "two classes": (TartClassifier(**FAST).fit(frame, labels == "high"), frame),
        "three classes": (TartClassifier(**FAST).fit(frame, labels), frame),
        "regression": (TartRegressor(**FAST).fit(frame, values), frame),
        "two columns a decision": (TartClassifier(max_features=2, **FAST).fit(frame, labels == "high"), frame),
    }


@pytest.mark.parametrize("name", ["two classes", "three classes", "regression", "two columns a decision"])
def test_panels_are_drawn_with_and_without_rows(models, name):
    model, X = models[name]
    check_texts(plots.plot_curves(model, X))
    check_texts(plots.plot_curves(model))
    if name == "three classes":
        figure = plots.plot_curves(model, output=2)
        check_texts(figure)
        assert figure.texts[0].get_text() == "What each column adds to the logit of middle"


def test_curves_are_those_of_the_view(models):
    model, X = models["two classes"]
    root = view(model, max_terms=100).members[0].corrections[0][0]
    panels = {ax.get_title("left"): ax for ax in plots.plot_curves(model, X).axes}
    assert set(panels) >= {effect.name for effect in root.effects}
    for effect in root.effects:
        ax = panels[effect.name]
        if effect.kind == "levels":
            heights = [patch.get_height() for patch in ax.patches[: len(effect.levels)]]
            np.testing.assert_allclose(heights, [part for _, part in effect.levels])
            continue
        line = max((line for line in ax.lines if len(line.get_xdata()) > 2), key=lambda line: line.get_linewidth())
        x, parts = line.get_data()
        np.testing.assert_allclose(parts, np.interp(x, *np.array(effect.points).T), atol=1e-9)


def test_missing_values_are_a_point_of_their_own(models):
    model, X = models["two classes"]
    panels = {ax.get_title("left"): ax for ax in plots.plot_curves(model, X).axes}
    assert "missing" in [text.get_text() for text in panels["bmi"].texts]
    assert not panels["age"].texts
    assert "missing" in [tick.get_text() for tick in panels["sex"].get_xticklabels()]


def test_the_strongest_columns_are_drawn_and_the_others_counted():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 20)), columns=[f"a column with a long name, number {k}" for k in range(20)])
    y = (X * np.linspace(3, 0.3, 20)).sum(axis=1) + rng.normal(size=400) > 0
    figure = plots.plot_curves(TartClassifier(**FAST).fit(X, y), X)
    check_texts(figure)
    assert len(figure.axes) == 12
    assert "the 12 strongest of " in figure.texts[1].get_text()


def test_many_levels_and_long_names():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"town": rng.choice([f"a town with a long name {k}" for k in range(20)], 600)})
    y = X["town"].str[-1].isin(list("02468")) ^ (rng.random(600) < 0.1)
    figure = plots.plot_curves(TartClassifier(**FAST).fit(X, y), X)
    labels = figure.axes[0].get_xticklabels()
    boxes = [label.get_window_extent(figure.canvas.get_renderer()) for label in labels]
    assert len({label.get_text() for label in labels}) == 8
    assert all(box.x0 >= 0 and box.y0 >= 0 for box in boxes)
    assert any("and 12 more levels" in text.get_text() for text in figure.axes[0].texts)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"readable": False}, "must take one path or leaves must share terms, got branching='softmax', by which"),
        ({"branching": "sparsemax"}, "must take one path or leaves must share terms, got branching='sparsemax'"),
        ({"leaf_layers": 0}, "leaves must be linear, got constants"),
        ({"leaf_layers": 2}, "leaves must be linear, got MLPLeaf, as with leaf_layers above 1"),
        ({"window": 3, "stride": 2}, "each node must have one parent, got children with several"),
        ({"readable": False, "depth": 9}, "at most 256 leaves, got 512"),
    ],
)
def test_a_model_without_shared_terms_is_refused(settings, reason):
    if "branching" in settings:
        pytest.importorskip("entmax")
    frame, labels, _ = patients()
    model = TartClassifier(**{**FAST, "depth": 2, "epochs": 1, **settings}).fit(frame, labels)
    with pytest.raises(ValueError, match=f"{reason}.*; fit with readable=True and other defaults, or use plot_tree"):
        plots.plot_curves(model)


def test_wrong_arguments(models):
    with pytest.raises(ValueError, match="max_columns must be an integer of at least 1"):
        plots.plot_curves(models["two classes"][0], max_columns=0)
