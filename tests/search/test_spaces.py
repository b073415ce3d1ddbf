"""Spaces of a search."""

import numpy as np
import pytest

from tartree import TartClassifier
from tartree.search import PAPER_SERIES, SPACES, expand


def test_spaces():
    paper = expand("paper")
    assert len(paper) == 24
    assert sum(map(len, PAPER_SERIES.values())) == 24
    assert {one["recipe"] for one in paper} == {"paper"}
    for name in SPACES:
        for one in expand(name)[:50]:
            TartClassifier(**one)
    assert len(expand({"depth": [0, 0, 1], "selection": ["multi", "single"]})) == 3
    assert len(expand([{"depth": [1, 2]}, {"depth": 2}, {"depth": 3}])) == 3


@pytest.mark.parametrize(
    ("given", "space", "number"),
    [
        ({"window": 3}, {"depth": [2], "stride": [None, 2, 3]}, 2),
        ({"decision_layers": 2}, {"leaf_layers": [1], "hidden": [4, 50]}, 2),
        ({"decision_layers": 2, "depth": 0}, {"leaf_layers": [1], "hidden": [4, 50]}, 1),
        ({}, {"depth": [2], "hidden": [4, 50]}, 1),
        ({"leaf_layers": 2}, {"depth": [2], "hidden": [4, 50]}, 2),
        ({"class_weight": "balanced"}, [{"depth": 1}, {"depth": 1, "class_weight": None}], 2),
        ({"class_weight": "balanced"}, [{"depth": 1}, {"depth": 1, "class_weight": "balanced"}], 1),
        ({}, [{"depth": np.array([1, 2])}, {"depth": [1, 2]}], 2),
    ],
)
def test_what_makes_candidates_differ_depends_on_the_estimator(given, space, number):
    assert len(expand(space, TartClassifier(**given).get_params())) == number
