"""Pictures of transition matrices and assignment vectors."""

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib", reason="pictures need the extra plot")
matplotlib.use("Agg")


from tartree.explain import plots  # noqa: E402
from tartree.explain.plots import style  # noqa: E402
from tartree.explain.plots.matrices import transition_matrix  # noqa: E402
from tartree.explain.plots.scene import make_scene  # noqa: E402
from tests.explain.plots.figures import SHAPES, check_texts  # noqa: E402


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
