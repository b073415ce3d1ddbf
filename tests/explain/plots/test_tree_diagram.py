"""Pictures: the numbers they carry are those of the view, and no text lies on another or outside the picture."""

import sys

import numpy as np
import pytest

from tartree import TartClassifier, TartRegressor
from tartree.explain import view

matplotlib = pytest.importorskip("matplotlib", reason="pictures need the extra plot")
matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.colors import to_rgb  # noqa: E402

from tartree.explain import plots  # noqa: E402
from tartree.explain.plots import style  # noqa: E402
from tartree.explain.plots.painters import Cards, Flows, Labels  # noqa: E402
from tartree.explain.plots.scene import make_scene  # noqa: E402
from tests.explain.models import patients  # noqa: E402
from tests.explain.plots.figures import SHAPES, by_gid, check_texts, texts_of  # noqa: E402

# Trees


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("one", [False, True], ids=["all rows", "one row"])
def test_texts_of_a_tree_are_apart_and_streams_as_wide_as_the_arrival(trees, name, one):
    tree, row = trees[name]
    ax = plots.plot_tree(tree, row=row if one else None)
    check_texts(ax.figure)
    streams = {edge: artist.get_linewidth() for (edge,), artist in by_gid(ax, "edge").items()}
    flows = (row if one else tree).members[0].flows
    drawn = [edge.number for edge in tree.edges if tree.nodes[edge.parent].chain != tree.nodes[edge.child].chain]
    assert sorted(streams) == drawn
    if drawn:
        widths = np.array([streams[edge] for edge in drawn])
        np.testing.assert_allclose(widths / widths.max(), flows[drawn] / flows[drawn].max(), atol=1e-9)


@pytest.mark.parametrize(("name", "painter"), [("8 leaves", Cards), ("32 leaves", Labels), ("64 leaves", Flows)])
def test_detail_falls_with_the_number_of_leaves(trees, name, painter):
    from tartree.explain.plots.tree_diagram import _painter
    from tartree.explain.tree_view.layout import outline

    tree, _ = trees[name]
    made, _ = _painter(make_scene(tree, 0, 0, None), outline(SHAPES[name]), "auto", 3)
    assert type(made) is painter


@pytest.mark.parametrize("name", ["8 leaves", "32 leaves", "64 leaves"])
def test_leaves_show_their_class_mix(trees, name):
    tree, _ = trees[name]
    parts = by_gid(plots.plot_tree(tree), "mix")
    for leaf in tree.leaves:
        own = {k: artist for (number, k), artist in parts.items() if number == leaf.number}
        areas = np.array([own[k].get_width() * own[k].get_height() if k in own else 0 for k in range(3)])
        np.testing.assert_allclose(areas / areas.sum(), tree.members[0].nodes[leaf.number].classes, atol=1e-9)


def test_cards_write_the_share_of_each_leaf_and_the_way_of_a_row_is_lit(trees):
    tree, row = trees["8 leaves"]
    written = [text.get_text() for text in texts_of(plots.plot_tree(tree).figure)]
    for leaf in tree.leaves:
        assert f"Leaf {leaf.leaf}" in written
        assert f"{style.percent(tree.members[0].nodes[leaf.number].arrival)} of rows" in written
    ax = plots.plot_tree(tree, row=row)
    nodes = row.members[0].nodes
    for (edge,), artist in by_gid(ax, "edge").items():
        lit = nodes[tree.edges[edge].parent].rows and nodes[tree.edges[edge].child].rows
        assert artist.get_alpha() == (0.85 if lit else 0.3)
    shares = nodes[0].predicted
    title = f"One row: {tree.outputs[shares.argmax()]}, {style.percent(shares.max())}"
    assert title in [text.get_text() for text in texts_of(ax.figure)]


@pytest.mark.parametrize("detail", ["cards", "labels", "flows"])
def test_a_regression_is_drawn_in_every_detail(regression, detail):
    model, X, y = regression
    ax = plots.plot_tree(model, X, y, detail=detail)
    check_texts(ax.figure)
    check_texts(plots.plot_tree(model, X, y, detail=detail, row=5).figure)


def test_members_are_trees_of_their_own(table):
    X, y = table
    model = TartClassifier(depth=2, epochs=1, members=3, random_state=0, device="cpu").fit(X, y)
    tree = view(model, X, y)
    widths = [
        [artist.get_linewidth() for artist in by_gid(plots.plot_tree(tree, member=m), "edge").values()] for m in (0, 2)
    ]
    assert widths[0] != widths[1]
    with pytest.raises(ValueError, match="member must be from 0 to 2, got 3"):
        plots.plot_tree(tree, member=3)


@pytest.mark.parametrize("settings", [{"leaf_layers": 0}, {"decision_layers": 0}, {"decision_layers": 2, "hidden": 4}])
def test_other_functions_can_be_drawn(table, settings):
    X, y = table
    model = TartClassifier(depth=2, epochs=1, random_state=0, device="cpu", **settings).fit(X, y)
    check_texts(plots.plot_tree(model, X, y).figure)
    check_texts(plots.plot_condition(model, X, node=0).figure)
    check_texts(plots.plot_condition(model, X, node=4).figure)


def test_a_class_that_dominates_and_many_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    rare = np.where(np.arange(300) < 2, "sick", "well")
    ax = plots.plot_tree(TartClassifier(depth=2, epochs=1, random_state=0, device="cpu").fit(X, rare), X, rare)
    check_texts(ax.figure)
    assert "100%" not in [text.get_text() for text in texts_of(ax.figure) if text.get_weight() == "bold"]
    many = rng.integers(0, 12, 300)
    model = TartClassifier(depth=3, epochs=1, random_state=0, device="cpu").fit(X, many)
    ax = plots.plot_tree(model, X, many)
    check_texts(ax.figure)
    assert "5 other classes" in [text.get_text() for text in texts_of(ax.figure)]
    check_texts(plots.plot_leaves(model, X, many).figure)


def test_axes_given_are_drawn_in_and_get_a_light_background(trees):
    with plt.style.context("dark_background"):
        figure, axes = plt.subplots(1, 2, figsize=(12, 5))
        assert plots.plot_tree(trees["8 leaves"][0], ax=axes[0]) is axes[0]
        assert plots.plot_leaves(trees["8 leaves"][0], ax=axes[1]) is axes[1]
        check_texts(figure)
    assert to_rgb(figure.get_facecolor()) == (1, 1, 1)
    for text in texts_of(figure):
        assert max(to_rgb(text.get_color())) < 0.9 or text.get_window_extent().height < 12  # white only inside bars


def test_words_of_the_user_and_subfigures(trees):
    figure = plt.figure(figsize=(14, 10)).subfigures(1, 2)[1]
    words = {"title": "Is it $malignant$?", "subtitle": "of 90 patients", "note": "a note"}
    ax = plots.plot_tree(trees["2 leaves"][0], ax=figure.subplots(), **words)
    written = [text.get_text() for text in ax.texts]
    assert set(words.values()) <= set(written)
    check_texts(ax.figure.figure)


# Readable models


@pytest.mark.parametrize("task", ["two classes", "three classes", "regression", "two columns a decision"])
def test_readable_models_have_written_conditions_and_sparklines_of_changes(task):
    frame, labels, values = patients(300)
    settings = {"readable": True, "epochs": 40, "random_state": 0, "device": "cpu"}
    y = {"two classes": labels == "high", "three classes": labels, "regression": values}.get(task, labels == "high")
    if task == "two columns a decision":
        settings["max_features"] = 2
    model = (TartRegressor if task == "regression" else TartClassifier)(**settings).fit(frame, y)
    tree = view(model, frame, y)
    for row in (None, view(model, frame[3:4])):
        ax = plots.plot_tree(tree, row=row)
        check_texts(ax.figure)
        written = {text.get_text() for text in texts_of(ax.figure)}
        conditions = [c for c in tree.members[0].conditions if c is not None and c.functions]
        if task == "two columns a decision":
            assert any(text.startswith("where the sum is above ") for text in written)
        else:
            assert all(c.texts[0] in written for c in conditions if len(c.texts[0]) < 40)
        assert written & {"changes, compared with all rows", "as for all rows"}
    check_texts(plots.plot_condition(model, frame, node=0).figure)
    check_texts(plots.plot_condition(model, frame, node=len(tree.nodes) - 1, row=3).figure)


# Bars


# Contributions, importances, training


# Matrices, assignments, leaves


# What all share


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("tartree.explain.plots")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'tartree\[plot\]'"):
        import tartree.explain.plots  # noqa: F401
