"""Pictures of losses."""

import numpy as np
import pytest

from tartree import TartClassifier

matplotlib = pytest.importorskip("matplotlib", reason="pictures need the extra plot")
matplotlib.use("Agg")


from tartree.explain import plots  # noqa: E402
from tests.explain.plots.figures import check_texts  # noqa: E402


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
