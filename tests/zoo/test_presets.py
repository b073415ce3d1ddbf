from dataclasses import replace

import pytest
from sklearn.datasets import load_diabetes, load_iris

from tartree import Structure, TartClassifier, TartRegressor, zoo
from tartree.nn import Pieces
from tartree.training import Recipe
from tests.explain.models import double_tree, encode


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
    assert numbers["ndf"] == (True, 2, 0)
    assert numbers["dndf"] == (True, 8, 0)
    assert numbers["nrf"] == (True, "2 to 4", 0)
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
    given = {} if name == "lr" else {"epochs": 2}  # which goes to the optimum, or says that it did not
    model = zoo.make(name, members=1, random_state=0, **given).fit(X, y)
    assert model.predict_proba(X).shape == (150, 3)
    assert model.structure_ == Structure(model.depth, model.window, model.stride)
    X, y = load_diabetes(return_X_y=True)
    assert zoo.make(name, task="regression", members=1, **given).fit(X, y).predict(X).shape == (442,)


def test_parameters_of_the_leaves_of_tart_max():
    made = zoo.make("tart-max", hidden=20, pieces=4, leaf_layers=2, dropout=0.3, mixed=False)
    assert made.leaf == Pieces(layers=2, hidden=20, dropout=0.3, pieces=4)
    assert zoo.make("tart-max", leaf=Pieces()).leaf == Pieces()
    with pytest.raises(ValueError, match="hidden would change the leaves of the preset, but leaf=None replaces"):
        zoo.make("tart-max", leaf=None, hidden=20)
    assert zoo.make("tart-max", leaf=None).set_params(leaf_layers=2, hidden=20).leaf is None
    with pytest.raises(ValueError, match="name must be one of"):
        zoo.make(["tart-max"])


def test_parameters_replace_those_of_the_preset():
    assert zoo.make("lr", C=4.0).recipe.leaf_decay == 0.25
    assert zoo.make("lr", C=4.0, epochs=7).epochs == 7
    assert zoo.make("sdt", recipe=Recipe(epochs=3)).recipe.epochs == 3


def test_bad_names_list_the_good_ones():
    with pytest.raises(ValueError, match="tart-a, tart-b, tart-c, tart-max, got 'tart-z'"):
        zoo.make("tart-z")
    with pytest.raises(ValueError, match="got 'ranking'"):
        zoo.make("tart-a", task="ranking")
    with pytest.raises(TypeError, match="TartClassifier or C, got penalty"):
        zoo.make("lr", penalty=3)
    for C in (0, -1.0, "a", None, True, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"C, the inverse of the penalty, must be a positive number, got {C!r}"):
            zoo.make("lr", C=C)


def test_the_soft_tree_has_the_penalty_of_its_paper():
    recipe = zoo.make("sdt").recipe
    assert recipe.balance > 0
    X, y = load_iris(return_X_y=True)
    rows = y < 2  # two of three ways are enough, so that without the penalty nodes leave one empty

    def evenness(balance):
        own = replace(recipe, balance=balance, epochs=60)
        model = zoo.make("sdt", depth=3, recipe=own, random_state=0).fit(X[rows], y[rows])
        leaves = double_tree(model)(encode(model, X[rows])).arrival[0].mean(0)
        return float(-(leaves * leaves.clamp_min(1e-12).log()).sum())

    assert evenness(recipe.balance) > evenness(0.0)
