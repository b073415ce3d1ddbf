"""Pictures of one node."""

import pytest

matplotlib = pytest.importorskip("matplotlib", reason="pictures need the extra plot")
matplotlib.use("Agg")


from tartree.explain import plots  # noqa: E402
from tartree.explain.plots.bars import condition_bars, leaf_bars  # noqa: E402
from tests.explain.plots.figures import check_texts  # noqa: E402


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
