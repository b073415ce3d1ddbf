"""Parameters that make no candidate are recorded as failed trials."""

import pytest

from tartree import StructureSearch, TartClassifier

QUICK = TartClassifier(epochs=18)


def test_what_is_too_large_is_recorded(iris):
    search = StructureSearch(QUICK, {"depth": [1, 40]}, random_state=0).fit(*iris)
    assert [trial["state"] for trial in search.trials_] == ["complete", "failed"]
    assert "leaves to fit into memory" in search.trials_[1]["reason"]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"depth": 1100}, "leaves to fit into memory"),
        ({"depth": 10**6}, "leaves to fit into memory"),
        ({"depth": 10**6, "stride": 1}, "leaves to fit into memory"),
        ({"leaf_layers": "2"}, "leaf_layers must be an integer of at least 0"),
        ({"hidden": 0.5, "leaf_layers": 2}, "hidden must be an integer of at least 1"),
        ({"decision_layers": None}, "decision_layers must be an integer"),
        ({"depth": "two"}, "depth"),
        ({"recipe": 3}, "recipe must be one of"),
        ({"learning_rate": {}}, "learning_rate"),
        ({"branching": {}}, "branching"),
        ({"dropout": "half", "leaf_layers": 2}, "dropout"),
        ({"class_weight": 7}, "class_weight"),
    ],
)
def test_what_is_no_candidate_is_recorded(iris, bad, reason):
    search = StructureSearch(QUICK, [{"depth": 0}, {"depth": 1, **bad}], random_state=0, refit=False).fit(*iris)
    assert [trial["state"] for trial in search.trials_] == ["complete", "failed"]
    assert reason in search.trials_[1]["reason"]
