"""Places of nodes: no overlap, parents over children, chains left out, few crossings."""

import numpy as np
import pytest

from tartree import Structure
from tartree.explain.tree_view.layout import arrange, crossings, outline
from tests.optional import given, settings, st

GAP = 0.25


def widths_of(drawn, leaf=1.0, decision=2.5):
    return np.array([leaf if spot.kind == "leaf" else decision for spot in drawn.spots])


def rows_of(drawn):
    rows = [[] for _ in range(drawn.n_rows)]
    for i, spot in enumerate(drawn.spots):
        rows[spot.row].append(i)
    return rows


@st.composite
def pruned(draw):
    """A tree or graph with some nodes cut off."""
    window = draw(st.integers(2, 4))
    structure = Structure(draw(st.integers(1, 4)), window, draw(st.integers(1, window)))
    nodes = [(layer, node) for layer in range(1, structure.depth + 1) for node in range(structure.widths[layer])]
    try:
        return structure.without(draw(st.lists(st.sampled_from(nodes), max_size=6)))
    except ValueError:  # the cuts left no way to a leaf
        return structure


@settings(max_examples=60, deadline=None)
@given(pruned(), st.floats(0.1, 5), st.floats(0.1, 5))
def test_boxes_of_a_row_never_overlap(structure, leaf, decision):
    drawn = outline(structure)
    widths = widths_of(drawn, leaf, decision)
    layout = arrange(drawn, widths, GAP)
    assert (layout.x - widths / 2).min() == pytest.approx(0)
    for row in rows_of(drawn):
        order = np.array(row)[np.argsort(layout.x[row])]
        room = np.diff(layout.x[order]) - (widths[order][:-1] + widths[order][1:]) / 2
        assert (room >= GAP - 1e-9).all()


@settings(max_examples=60, deadline=None)
@given(pruned())
def test_an_outline_holds_every_decision_leaf_and_branch_once(structure):
    drawn = outline(structure)
    assert sum(spot.kind == "leaf" for spot in drawn.spots) == structure.n_leaves
    assert sum(spot.kind == "decision" for spot in drawn.spots) == structure.n_decisions
    first = np.cumsum([0, *structure.widths])
    edges = [
        (first[layer] + parent, branch)
        for layer in range(structure.depth)
        for parent, _, branch in zip(*structure.edges(layer), strict=True)
    ]
    branches = [edges[link.edge][1] for link in drawn.links]
    assert sorted(branch for branch in branches if branch >= 0) == list(range(structure.n_branches))
    for link in drawn.links:
        assert drawn.spots[link.parent].number == edges[link.edge][0]
        assert drawn.spots[link.parent].row < drawn.spots[link.child].row


@pytest.mark.parametrize("depth", [0, 1, 3, 8])
@pytest.mark.parametrize("window", [2, 3])
def test_parents_of_a_regular_tree_stand_in_the_middle_of_their_children(depth, window):
    drawn = outline(Structure(min(depth, 5) if window == 3 else depth, window))
    layout = arrange(drawn, np.ones(len(drawn.spots)), GAP)
    for i, spot in enumerate(drawn.spots):
        if spot.kind == "decision":
            children = layout.x[[link.child for link in drawn.links_below(i)]]
            assert layout.x[i] == pytest.approx((children.min() + children.max()) / 2)
    leaves = layout.x[[spot.kind == "leaf" for spot in drawn.spots]]
    np.testing.assert_allclose(np.diff(leaves), 1 + GAP)


@pytest.mark.parametrize("structure", [Structure(4), Structure(3, 3, 2), Structure(5, 3, 1), Structure(2, 5)])
def test_a_symmetric_structure_gets_symmetric_places(structure):
    drawn = outline(structure)
    widths = widths_of(drawn)
    layout = arrange(drawn, widths, GAP)
    middle = layout.x[0]
    for row in rows_of(drawn):
        np.testing.assert_allclose(layout.x[row] + layout.x[row][::-1], 2 * middle, atol=0.05)


def test_wide_decisions_push_their_leaves_apart():
    drawn = outline(Structure(2))
    layout = arrange(drawn, widths_of(drawn, leaf=1, decision=6), GAP)
    np.testing.assert_allclose(layout.x, [6.125, 3, 9.25, 2.375, 3.625, 8.625, 9.875])


def test_a_leaf_above_the_last_layer_stands_below_its_last_decision():
    drawn = outline(Structure.from_tree([[1, 2], [], [3, 4], [], [5, 6], [], []]))
    assert [spot.row for spot in drawn.spots if spot.kind == "leaf"] == [1, 2, 3, 3]
    assert [spot.number for spot in drawn.spots if spot.kind == "leaf"] == [6, 7, 8, 9]


def test_a_link_past_a_row_keeps_room_in_it():
    # the first node passes on to a leaf that the second node reaches only after another decision
    structure = Structure.from_children([[[0, 1]], [[0], [1, 2]], [[0], [0, 1], [2]]])
    drawn = outline(structure)
    layout = arrange(drawn, np.ones(len(drawn.spots)), GAP)
    bends = [own for own in layout.bends if own]
    assert len(bends) == 1
    for x in bends[0]:
        row = next(link for link, own in zip(drawn.links, layout.bends, strict=True) if own)
        beside = [layout.x[i] for i, spot in enumerate(drawn.spots) if spot.row == drawn.spots[row.parent].row + 1]
        assert min(abs(x - other) for other in beside) >= 0.5 + GAP - 1e-9


def test_crossings_are_counted_and_taken_out():
    assert crossings([[0, 1], [2, 3]], [(0, 3), (1, 2)]) == 1
    assert crossings([[0, 1], [2, 3]], [(0, 2), (1, 3)]) == 0
    assert crossings([[0, 1], [2, 3]], [(0, 2), (0, 3), (1, 2), (1, 3)]) == 1
    crossed = Structure.from_children([[[0, 1]], [[2, 3], [0, 1]]])
    layout = arrange(outline(crossed), np.ones(7))
    first, second = layout.x[1:3]
    assert (first < second) == (layout.x[5] < layout.x[3])


def test_wrong_widths_are_refused():
    drawn = outline(Structure(1))
    for widths, gap in [([1.0], 0.0), ([1, 1, -1], 0.0), ([1, 1, 1], -1.0)]:
        with pytest.raises(ValueError, match="widths must be 3 numbers"):
            arrange(drawn, widths, gap)
