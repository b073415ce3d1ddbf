"""Wrong parameters of a search."""

import pytest

from tartree import StructureSearch, TartClassifier

QUICK = TartClassifier(epochs=18)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"space": "tiny"}, "space must be one of readable, small, paper, full"),
        ({"space": {"dept": [1]}}, "the space must name parameters of TartClassifier, got dept"),
        ({"space": {"depth": [1], "early_stopping": [True]}}, "got early_stopping, without effect in a search"),
        ({"space": {"depth": [1], "callbacks": 5}}, "got callbacks, without effect in a search"),
        ({"space": {"random_state": [1, 2]}}, "got random_state, without effect"),
        ({"space": {"device": ["cpu"]}}, "got device, without effect"),
        ({"space": 5}, "space must be one of readable, small, paper, full, .* got 5"),
        ({"space": None}, "space must be one of readable, small, paper, full, .* got None"),
        ({"space": []}, "with at least one"),
        ({"space": {"depth": []}}, "depth must have at least one choice"),
        ({"rule": "2se"}, "rule must be one of 1se, best"),
        ({"trials": 0}, "trials must be an integer of at least 1"),
        ({"seconds": -1}, "seconds must be None or a number above 0"),
        ({"halving": 1}, "halving must be None or a number above 1"),
        ({"folds": 1}, "folds must be from 2"),
        ({"folds": 51}, "folds must be at most the rows of the largest class, 50"),
        ({"folds": []}, "folds must have rows to learn from"),
        ({"folds": "four"}, "folds must be a number, a splitter"),
        ({"folds": [([0, 1, 60], [])]}, "folds must have rows to learn from"),
        ({"folds": [([0, 1, 60], [150])]}, "folds must name rows from 0 to 149"),
        ({"scoring": "r2"}, "scoring must be one of accuracy"),
        ({"storage": "sqlite://"}, "storage needs sampler='optuna'"),
        ({"max_leaves": 1}, "max_leaves must allow for some structure"),
    ],
)
def test_wrong_arguments(iris, given, message):
    with pytest.raises(ValueError, match=message):
        StructureSearch(QUICK, **{"space": {"depth": [2], "leaf_layers": [1]}, **given}).fit(*iris)


def test_a_pipeline_is_not_an_estimator_to_search(iris):
    with pytest.raises(TypeError, match="got str"):
        StructureSearch("tree").fit(*iris)
