"""Heat maps of leaves."""

import numpy as np
import pytest

from tartree.explain import view

matplotlib = pytest.importorskip("matplotlib", reason="pictures need the extra plot")
matplotlib.use("Agg")


from tartree.explain import plots  # noqa: E402
from tests.explain.plots.figures import check_texts  # noqa: E402


def test_leaves_of_a_regression_show_what_they_predict(regression):
    model, X, y = regression
    ax = plots.plot_leaves(model, X, y)
    check_texts(ax.figure)
    values = np.array([view(model, X, y).members[0].nodes[leaf].predicted[0] for leaf in range(7, 15)])
    np.testing.assert_allclose(ax.images[0].get_array()[0], (values - values.min()) / np.ptp(values))
