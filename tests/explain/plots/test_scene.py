"""Data of a picture."""

import pytest

from tartree import TartClassifier
from tartree.explain import view

matplotlib = pytest.importorskip("matplotlib", reason="pictures need the extra plot")
matplotlib.use("Agg")


from tartree.explain import plots  # noqa: E402


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
