import contextlib
import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest

from tartree import Structure

from .conftest import IRREGULAR
from .optional import given, st


@st.composite
def structures(draw):
    window = draw(st.integers(2, 5))
    structure = Structure(draw(st.integers(0, 4)), window, draw(st.integers(1, window)))
    for _ in range(draw(st.integers(0, 3))):
        layer = draw(st.integers(0, structure.depth))
        node = draw(st.integers(0, structure.widths[layer] - 1))
        with contextlib.suppress(ValueError):  # no path to a leaf would be left
            structure = structure.without([(layer, node)])
    return structure


def test_widths_follow_the_paper():
    assert Structure(10).widths == tuple(2**d for d in range(11))
    assert Structure(6, 3, 2).n_leaves == 2**7 - 1
    assert Structure(0).widths == (1,)
    assert Structure(0, 3).n_decisions == Structure(0).n_logits == 0


def test_children_follow_the_paper():
    assert Structure(3, 3, 2).children(1) == ((0, 1, 2), (2, 3, 4), (4, 5, 6))
    assert Structure(2).children(1) == ((0, 1), (2, 3))


def test_binary_nodes_have_one_logit():
    assert Structure(4).n_logits == Structure(4).n_decisions == 15
    assert Structure(4).n_branches == 30
    assert Structure(2, 3).n_logits == Structure(2, 3).n_branches == 12
    mixed = IRREGULAR["mixed fans"]
    assert (mixed.n_decisions, mixed.n_logits, mixed.n_branches) == (5, 3 + 1 + 1 + 4 + 1, 3 + 2 + 2 + 4 + 2)


@given(structures())
def test_every_node_has_a_parent_and_a_child(structure):
    for d in range(structure.depth):
        parents, children, branches = structure.edges(d)
        assert set(parents) == set(range(structure.widths[d]))
        assert set(children) == set(range(structure.widths[d + 1]))
        assert (branches >= 0).sum() == structure.layer_branches[d]
        assert structure.children(d) == tuple(
            tuple(children[parents == i].tolist()) for i in range(structure.widths[d])
        )
    logits = [position for fan in structure.fans for position in fan.logits.ravel()]
    branches = [position for fan in structure.fans for position in fan.branches.ravel()]
    assert sorted(logits) == list(range(structure.n_logits))
    assert sorted(branches) == list(range(structure.n_branches))


@given(structures())
def test_json_round_trip_equality_and_hash(structure):
    again = Structure.from_dict(json.loads(json.dumps(structure.to_dict())))
    assert again == structure
    assert hash(again) == hash(structure)
    assert repr(again) == repr(structure)
    assert len(repr(structure)) < 60


def test_lists_of_a_regular_structure_give_it_back():
    for structure in (Structure(0), Structure(3), Structure(3, 3, 2), Structure(2, 4, 1), Structure(1, 5)):
        lists = [structure.children(d) for d in range(structure.depth)]
        assert Structure.from_children(lists) == structure


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Structure(2).depth = 3


def test_without_keeps_what_can_be_reached():
    structure = Structure(2)
    assert structure.survivors([(1, 0)]) == ((0,), (1,), (2, 3))
    assert structure.without([(1, 0)]).to_dict() == {"children": [[[0]], [[0, 1]]]}
    assert structure.survivors([(2, 0), (2, 1)]) == ((0,), (1,), (2, 3))  # a node that loses all children goes too
    shared = Structure(2, 3, 2)
    assert shared.survivors([(1, 1)])[2] == (0, 1, 2, 4, 5, 6)
    assert structure.without([]) == structure
    assert Structure(1, 3, 2).without([]) == Structure(1, 3, 2)


def test_from_tree_passes_early_leaves_on():
    structure = Structure.from_tree([[1, 2], [], [3, 4], [], []])
    assert structure.to_dict() == {"children": [[[0, 1]], [[0], [1, 2]]]}
    assert Structure.layers_of_tree([[1, 2], [], [3, 4], [], []]) == ((0,), (1, 2), (1, 3, 4))
    assert Structure.from_tree([[]]) == Structure(0)
    assert Structure.from_tree([[1, 2], [3, 4], [5, 6], [], [], [], []]) == Structure(2)


def test_a_deep_narrow_tree_needs_memory_for_its_own_nodes():
    children: list[list[int]] = [[1, 2]]
    while len(children) < 2 * 1000 - 3:  # a path of 999 decisions, a leaf on each side
        children += [[], [len(children) + 2, len(children) + 3]]
    children += [[], []]
    structure = Structure.from_tree(children)
    assert (structure.depth, structure.n_leaves) == (999, 1000)
    assert structure.routes.n_slots == len(children)
    assert structure.n_logits == 999


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Structure(2, 1), "window must be at least 2, got 1"),
        (lambda: Structure(2, 2, 0), "stride must be from 1 to the window .* got 0"),
        (lambda: Structure(2, 2, 3), "got 3"),
        (lambda: Structure(-1), "depth must be at least 0, got -1"),
        (lambda: Structure(2.5), "depth must be an integer, got 2.5"),
        (lambda: Structure(True), "depth must be an integer, got True"),
        (lambda: Structure(2, "3"), "window must be an integer, got '3'"),
        (lambda: Structure.from_children([[[0, 2]]]), "must name every node, but node 1 of layer 1 has no parent"),
        (lambda: Structure.from_children([[[0, 1]], [[0]]]), "layer 1 must list .* 2 node.* lists 1"),
        (lambda: Structure.from_children([[[0], [1]]]), "first layer holds the root alone"),
        (lambda: Structure.from_children([[[0, 1]], [[0], []]]), "node 1 of layer 1 has none"),
        (lambda: Structure.from_children([[[0, 0]]]), r"different numbers .* \[0, 0\]"),
        (lambda: Structure.from_children([[[0, -1]]]), r"different numbers from 0, .* \[0, -1\]"),
        (lambda: Structure.from_tree([]), "at least its root"),
        (lambda: Structure.from_tree([[1, 2], [2], []]), "node 2 has several"),
        (lambda: Structure.from_tree([[1, 9], []]), "node 0 has child 9"),
        (lambda: Structure.from_tree([[1], [0]]), "node 1 has child 0"),
        (lambda: Structure.from_tree([[1], [], [3], []]), "node 2 is not"),
        (lambda: Structure(2).without([(3, 0)]), "layer 3, node 0"),
        (lambda: Structure(2).without([(1, 0), (1, 1)]), "cut all of them"),
        (lambda: Structure(2).children(2), "layer must be one of the 2 with decisions, .* layer=2"),
        (lambda: Structure(2).edges(2), "layer=2"),
        (lambda: Structure(2).n_children(-1), "layer=-1"),
        (lambda: Structure.from_children([[5]]), "lists of children"),
        (lambda: Structure.from_dict({"children": 5}), "lists of children"),
        (lambda: Structure.from_dict({"depth": 2}), r"keys=\['depth'\]"),
        (lambda: Structure(2).check_last_axis("logits", (4, 7), 3), r"axis of 3 .* shape=\(4, 7\)"),
    ],
)
def test_bad_input_names_the_value_and_the_fix(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_numpy_integers_are_integers():
    assert Structure(np.int64(3), np.int32(2)) == Structure(3)
    assert isinstance(Structure(np.int64(3)).depth, int)


def test_structure_needs_no_torch():
    code = "import sys, tartree; tartree.Structure(3); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
