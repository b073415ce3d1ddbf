import pytest
from sklearn.datasets import load_diabetes, load_iris

from tartree import Structure, TartClassifier, TartRegressor, zoo
from tartree.training import Recipe


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


def test_numbers_of_the_other_models_are_those_of_the_papers_tables():
    rows = {row["name"]: row for row in zoo.table()}
    numbers = {name: (row["D"] > 0, row["H"], row["L"]) for name, row in rows.items()}
    assert numbers["dt"] == numbers["sdt"] == numbers["tree-1"] == (True, 1, 0)
    assert numbers["lr"] == (False, None, 1)
    assert numbers["mlp"][0] is False
    assert numbers["mlp"][2] > 1
    assert numbers["experts"][:2] == (True, 0)
    assert numbers["tree-2"][1] > 1
    assert numbers["tree-2"][2] == 1
    assert numbers["tree-3"][1] == 1
    assert numbers["tree-3"][2] > 1
    assert rows["ndf"]["members"] > 1
    assert rows["dndf"]["members"] > 1


def test_every_preset_says_what_it_is():
    for row in zoo.table():
        assert set(row) == {"name", "f", "g", "W", "S", "D", "H", "L", "members", "selection", "purpose", "source"}
        assert all(row[key] for key in ("f", "g", "purpose", "source"))


def test_every_task():
    assert isinstance(zoo.make("nrf"), TartRegressor)
    assert isinstance(zoo.make("nrf", task="classification"), TartClassifier)
    assert isinstance(zoo.make("lr", task="regression"), TartRegressor)


@pytest.mark.parametrize("name", ["tart-c", "dt", "ndf", "lr"])
def test_presets_fit_both_tasks(name):
    X, y = load_iris(return_X_y=True)
    model = zoo.make(name, epochs=2, members=1, random_state=0).fit(X, y)
    assert model.predict_proba(X).shape == (150, 3)
    assert model.structure_ == Structure(model.depth, model.window, model.stride)
    X, y = load_diabetes(return_X_y=True)
    assert zoo.make(name, task="regression", epochs=2, members=1).fit(X, y).predict(X).shape == (442,)


def test_parameters_replace_those_of_the_preset():
    assert zoo.make("lr", C=4.0).recipe.leaf_decay == 0.25
    assert zoo.make("lr", C=4.0, epochs=7).epochs == 7
    assert zoo.make("sdt", recipe=Recipe(epochs=3)).recipe.epochs == 3


def test_bad_names_list_the_good_ones():
    with pytest.raises(ValueError, match="tart-a, tart-b, tart-c, tart-max, however: 'tart-z'"):
        zoo.make("tart-z")
    with pytest.raises(ValueError, match="task='ranking'"):
        zoo.make("tart-a", task="ranking")
    with pytest.raises(TypeError, match="TartClassifier or C, however: penalty"):
        zoo.make("lr", penalty=3)
    with pytest.raises(ValueError, match="C, the inverse of the penalty, must be a positive number, however: C=0"):
        zoo.make("lr", C=0)
