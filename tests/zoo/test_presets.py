import pytest
from sklearn.datasets import load_diabetes, load_iris

from tartree import Structure, zoo


def test_the_three_of_the_paper():
    shapes = {
        name: (m.window, m.stride or m.window, m.depth, m.decision_layers, m.leaf_layers, m.selection)
        for name in ("tart-a", "tart-b", "tart-c")
        for m in [zoo.make(name)]
    }
    assert shapes == {
        "tart-a": (2, 2, 6, 1, 1, "multi"),
        "tart-b": (2, 2, 2, 1, 4, "single"),
        "tart-c": (3, 2, 3, 1, 2, "single"),
    }
    assert all(zoo.make(name).recipe == "paper" for name in shapes)


@pytest.mark.parametrize("name", zoo.PRESETS)
def test_every_preset_fits_both_tasks(name, tmp_path):
    X, y = load_iris(return_X_y=True)
    model = zoo.make(name, epochs=2, members=1, random_state=0).fit(X, y)
    assert model.predict_proba(X).shape == (150, 3)
    assert model.structure_ == Structure(model.depth, model.window, model.stride)
    X, y = load_diabetes(return_X_y=True)
    assert zoo.make(name, task="regression", epochs=2, members=1).fit(X, y).predict(X).shape == (442,)


def test_bad_names_list_the_good_ones():
    with pytest.raises(ValueError, match="tart-a, tart-b, tart-c, tart-max, however: 'tart-z'"):
        zoo.make("tart-z")
    with pytest.raises(ValueError, match="task='ranking'"):
        zoo.make("tart-a", task="ranking")
