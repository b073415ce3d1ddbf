"""Pictures: the numbers they carry are those of the view, and no text lies on another or outside the picture."""

import sys

import numpy as np
import pandas as pd
import pytest

from tartree import Structure, TartClassifier, TartRegressor
from tartree.explain import view
from tartree.explain.attribution.importances import importances
from tartree.explain.attribution.row_explanations import explain_rows

matplotlib = pytest.importorskip("matplotlib", reason="pictures need the extra plot")
matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.colors import to_rgb  # noqa: E402
from matplotlib.text import Text  # noqa: E402

from tartree.explain import plots  # noqa: E402
from tartree.explain.plots import style  # noqa: E402
from tartree.explain.plots.bars import condition_bars, condition_effects, feature_value, leaf_bars, leaf_effects  # noqa: E402
from tartree.explain.plots.matrices import transition_matrix  # noqa: E402
from tartree.explain.plots.painters import Cards, Flows, Labels  # noqa: E402
from tartree.explain.plots.scene import make_scene  # noqa: E402

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


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 90
    X = pd.DataFrame(rng.normal(size=(n, 5)), columns=[LONG.format(k) for k in range(4)] + ["b"])
    X["admitted"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D")
    X["ward"] = rng.choice(["surgery", "internal medicine", "<b>"], n)
    X.loc[::9, "b"] = np.nan
    return X, np.array(["benign", "malignant, a name that goes on and on", "$x$"])[rng.integers(0, 3, n)]


def shaped(structure, X, y, model=TartClassifier, **settings):
    """An estimator of any structure, with weights drawn at random."""
    estimator = model(depth=1, epochs=1, random_state=0, device="cpu", **settings).fit(X, y)
    estimator.structure_ = structure
    estimator._build(estimator._settings, seed=1)
    estimator.tree_.eval()
    return estimator


@pytest.fixture(scope="module")
def trees(table):
    """The view of each shape on all rows, and on row 3 alone."""
    X, y = table
    models = {name: shaped(structure, X, y) for name, structure in SHAPES.items()}
    return {name: (view(model, X, y), view(model, X[3:4])) for name, model in models.items()}


@pytest.fixture(scope="module")
def regression(table):
    X, _ = table
    y = X["b"].fillna(0).to_numpy() * 1e4
    model = TartRegressor(depth=3, epochs=1, random_state=0, device="cpu").fit(X, y)
    return model, X, y


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


# Bars


def test_bars_are_the_weights_times_the_spread(trees):
    tree, row = trees["8 leaves"]
    member, spread = tree.members[0], np.array([feature.spread for feature in tree.features])
    effects = condition_effects(tree, member, 2)
    np.testing.assert_allclose(effects, member.decision.weights[0][[2]] * spread)
    bars = condition_bars(tree, 2, max_terms=4)
    assert [bar.feature for bar in bars.bars] == np.argsort(-np.abs(effects[0]), kind="stable")[:4].tolist()
    for bar in bars.bars:  # a positive logit leads to the first child, on the left
        assert bar.parts[0][0] == pytest.approx(-effects[0, bar.feature])
    own = condition_bars(tree, 2, max_terms=3, row=row)
    encoded = np.array([feature.mean for feature in row.features])
    for bar in own.bars:
        assert bar.parts[0][0] == pytest.approx(-(member.decision.weights[0][2] * encoded)[bar.feature])


def test_bars_of_several_children_and_classes_are_taken_less_their_mean(trees):
    tree, _ = trees["shared"]
    member = tree.members[0]
    for effects in (condition_effects(tree, member, 1), leaf_effects(tree, member, tree.leaves[2].number)):
        assert effects.shape == (3, len(tree.features))
        np.testing.assert_allclose(effects.sum(axis=0), 0, atol=1e-12)
    logits = list(tree.nodes[1].logits)
    weights = member.decision.weights[0][logits]
    np.testing.assert_allclose(
        condition_effects(tree, member, 1),
        (weights - weights.mean(axis=0)) * np.array([feature.spread for feature in tree.features]),
    )
    model = member.leaf_models[2]
    terms = {term.feature: np.copysign(term.strength, term.encoded_weight) for term in model.functions[1].terms}
    effects = leaf_effects(tree, member, tree.leaves[2].number)[1]
    np.testing.assert_allclose([effects[k] for k in terms], list(terms.values()))


def test_values_are_written_in_the_units_of_their_column(table, trees):
    X, _ = table
    tree, row = trees["2 leaves"]
    by_name = {feature.label: k for k, feature in enumerate(tree.features)}
    date = by_name["admitted"]
    assert feature_value(tree, tree.features[date], row.features[date].mean) == str(X["admitted"][3].date())
    level = by_name["ward = surgery"]
    assert feature_value(tree, tree.features[level], 1.0) == "yes"
    number = by_name[LONG.format(0)]
    assert float(feature_value(tree, tree.features[number], row.features[number].mean)) == pytest.approx(
        X.iloc[3, 0], rel=1e-2
    )


def test_regression_bars_are_in_units_of_the_target(regression):
    model, X, y = regression
    tree = view(model, X, y)
    terms = tree.members[0].leaf_models[0].functions[0].terms
    bars = leaf_bars(tree, tree.leaves[0].number, max_terms=2)
    for bar, term in zip(bars.bars, terms, strict=False):
        assert abs(bar.parts[0][0]) == pytest.approx(term.strength)


@pytest.mark.parametrize("node", [0, 2, 9])
@pytest.mark.parametrize("name", ["8 leaves", "shared"])
def test_plot_condition_draws_a_bar_a_term(trees, name, node):
    tree, row = trees[name]
    for one in (None, row):
        ax = plots.plot_condition(tree, node=node, row=one, max_terms=4)
        check_texts(ax.figure)
        bars = (condition_bars if tree.nodes[node].leaf is None else leaf_bars)(tree, node, max_terms=4, row=one)
        lengths = [patch.get_width() for patch in ax.patches]
        assert lengths == pytest.approx([length for bar in bars.bars for length, _ in bar.parts])


def test_plot_condition_refuses_nodes_that_say_nothing(trees):
    tree, _ = trees["irregular"]
    with pytest.raises(ValueError, match="node must be from 0 to"):
        plots.plot_condition(tree, node=len(tree.nodes))
    with pytest.raises(ValueError, match="node must decide or be a leaf, got 1"):
        plots.plot_condition(tree, node=1)


# Contributions, importances, training


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


@pytest.mark.parametrize("early_stopping", [False, True])
def test_history_has_a_line_a_member_and_their_mean(table, early_stopping):
    X, y = table
    model = TartClassifier(
        depth=1, epochs=4, members=3, early_stopping=early_stopping, random_state=0, device="cpu"
    ).fit(X, y)
    ax = plots.plot_history(model)
    check_texts(ax.figure)
    loss = model.history_["loss"]
    for m in range(3):
        np.testing.assert_allclose(ax.lines[m].get_ydata(), loss[:, m])
    np.testing.assert_allclose(ax.lines[3].get_ydata(), loss.mean(axis=1))
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[0] == "training, mean of 3 members"
    assert ("best epoch, kept" in labels) == early_stopping
    if early_stopping:
        np.testing.assert_allclose(ax.lines[7].get_ydata(), model.history_["validation_loss"].mean(axis=1))
        np.testing.assert_array_equal(ax.lines[8].get_xdata(), model.history_.best_epoch)


# Matrices, assignments, leaves


@pytest.mark.parametrize("name", ["2 leaves", "8 leaves", "shared", "past a row", "256 leaves"])
@pytest.mark.parametrize("one", [False, True], ids=["all rows", "one row"])
def test_matrices_make_the_arrivals_of_each_layer(trees, name, one):
    tree, row = trees[name]
    scene = make_scene(tree, 0, 0, row if one else None)
    first = np.cumsum([0, *tree.widths])
    arrival = np.array([scene.arrival(node.number) for node in tree.nodes])
    structure = SHAPES[name]
    for layer in range(tree.depth):
        matrix = transition_matrix(scene, layer)
        parents, children, _ = structure.edges(layer)
        edges = np.zeros(matrix.shape, dtype=bool)
        edges[children, parents] = True
        np.testing.assert_array_equal(np.isfinite(matrix), edges)
        np.testing.assert_allclose(np.nansum(matrix, axis=0), 1)
        above, below = (arrival[first[d] : first[d + 1]] for d in (layer, layer + 1))
        np.testing.assert_allclose(np.nan_to_num(matrix) @ above, below, atol=1e-12)


@pytest.mark.parametrize("name", ["2 leaves", "8 leaves", "shared", "past a row", "256 leaves"])
def test_matrices_assignments_and_leaves_can_be_read(trees, name):
    tree, row = trees[name]
    for one in (None, row) if name == "shared" else (row,) if name == "256 leaves" else (None,):
        figure = plots.plot_transition_matrices(tree, row=one)
        check_texts(figure)
        shown = [ax.images[0].get_array() for ax in figure.axes[:-1]]
        scene = make_scene(tree, 0, 0, one)
        for layer, image in enumerate(shown):
            matrix = transition_matrix(scene, layer)
            np.testing.assert_allclose(np.ma.filled(image, np.nan), matrix)
        ax = plots.plot_assignment(tree, row=one)
        check_texts(ax.figure)
        boxes, framed = ax.collections
        assert len(boxes.get_paths()) == len(tree.nodes)
        colours = [style.MASS(min(scene.arrival(node.number), 1.0)) for node in tree.nodes]
        np.testing.assert_allclose(boxes.get_facecolors(), colours)
        assert len(framed.get_paths()) == (0 if one is None else tree.depth + 1)
        ax = plots.plot_leaves(tree, row=one, sort=True)
        check_texts(ax.figure)
        heat = ax.images[0].get_array()
        arrival = np.array([scene.arrival(leaf.number) for leaf in tree.leaves])
        order = np.argsort(-arrival, kind="stable")
        np.testing.assert_allclose(heat, np.stack([scene.mix(tree.leaves[k].number) for k in order], axis=1))
        heights = np.array([-patch.get_height() for patch in ax.patches])
        np.testing.assert_allclose(heights / heights.max(), arrival[order] / arrival.max())


def test_layers_of_matrices_can_be_chosen(trees):
    tree, _ = trees["8 leaves"]
    assert len(plots.plot_transition_matrices(tree, layers=[2]).axes) == 2
    for layers in ([], [3], [-1]):
        with pytest.raises(ValueError, match="layers must be some of the 3"):
            plots.plot_transition_matrices(tree, layers=layers)


def test_leaves_of_a_regression_show_what_they_predict(regression):
    model, X, y = regression
    ax = plots.plot_leaves(model, X, y)
    check_texts(ax.figure)
    values = np.array([view(model, X, y).members[0].nodes[leaf].predicted[0] for leaf in range(7, 15)])
    np.testing.assert_allclose(ax.images[0].get_array()[0], (values - values.min()) / np.ptp(values))


# What all share


def test_rows_are_required_where_arrivals_are_drawn(table):
    X, y = table
    model = TartClassifier(depth=1, epochs=1, random_state=0, device="cpu").fit(X, y)
    for plot in (plots.plot_tree, plots.plot_leaves, plots.plot_assignment, plots.plot_transition_matrices):
        with pytest.raises(ValueError, match="rows are required"):
            plot(model)
    tree = view(model, X, y)
    with pytest.raises(ValueError, match="X and y must be left out"):
        plots.plot_tree(tree, X)
    with pytest.raises(ValueError, match="row must be a view of one row"):
        plots.plot_tree(tree, row=3)
    with pytest.raises(ValueError, match="row must be a view of one row, got 90 rows"):
        plots.plot_tree(tree, row=tree)
    with pytest.raises(ValueError, match="row must be the number of one of the 90 rows, got 90"):
        plots.plot_tree(model, X, y, row=90)
    with pytest.raises(ValueError, match="detail must be"):
        plots.plot_tree(tree, detail="much")
    other = view(TartClassifier(depth=2, epochs=1, random_state=0, device="cpu").fit(X, y), X[:1])
    with pytest.raises(ValueError, match="row must be a view of the same model"):
        plots.plot_tree(tree, row=other)


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
    assert len(set(style.class_colours(np.ones(7)))) == 7
    shares = np.arange(10) / 45
    colours = style.class_colours(shares)
    assert [colour == style.OTHER for colour in colours] == [True] * 3 + [False] * 7
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


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("tartree.explain.plots")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'tartree\[plot\]'"):
        import tartree.explain.plots  # noqa: F401
