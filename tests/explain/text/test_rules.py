"""Text, importances and leaves of a whole model."""

import numpy as np
import pyarrow as pa
import pytest

from tartree import TartClassifier, explain
from tests.explain.models import KINDS, fit, patients


@pytest.mark.parametrize("kind", KINDS)
def test_text_has_every_leaf_once(kind):
    model, X = fit(kind)
    text = explain.export_text(model, X)
    for leaf in range(model.get_n_leaves()):
        assert text.count(f"leaf {leaf}:") == model.members
    assert "class: " in text
    assert text.endswith("\n")
    assert explain.export_text(model)  # without rows


def test_text_of_a_small_tree():
    X = np.linspace(0, 100, 60)[:, None]
    model = TartClassifier(depth=1, epochs=60, leaf_layers=0, random_state=0).fit(X, np.where(X[:, 0] > 51, "b", "a"))
    lines = explain.export_text(model, X).splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("|--- x0 ")
    assert lines[1].startswith("|   |--- leaf 0: class: ")
    assert "% arrive)" in lines[1]


def test_deep_text_is_cut():
    model, X = fit("default", depth=3)
    text = explain.export_text(model, X, max_depth=1)
    assert text.count("4 leaves") == 2
    with pytest.raises(ValueError, match="max_depth"):
        explain.export_text(model, max_depth=-1)


def test_text_of_arrow_is_explained():
    """Arrow's text comes as different values and codes."""
    frame, labels, _ = patients()
    arrow = pa.Table.from_pandas(frame[["age", "sex"]])
    model = TartClassifier(depth=1, epochs=1, random_state=0).fit(arrow, labels)
    found = model.explain(arrow)
    np.testing.assert_array_equal(found.gaps, frame[["age", "sex"]].isna())
    np.testing.assert_array_equal(found.contributions, model.explain(frame[["age", "sex"]]).contributions)
