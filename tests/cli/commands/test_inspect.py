"""`tartree inspect`: what a model file says about itself."""

import json

from tartree import TartRegressor, __version__, load
from tests.cli.conftest import run, succeed, write_csv


def test_json(model_path):
    found = json.loads(succeed("inspect", model_path, "--json").stdout)
    assert found["estimator"] == "TartClassifier"
    assert found["task"] == "classification"
    assert found["target"] == "diagnosis"
    assert found["classes"] == ["benign", "malignant"]
    assert found["version"] == __version__
    assert found["depth"] <= 3
    assert found["decisions"] + 1 == found["leaves"] <= 8
    assert found["members"] == 1
    assert found["parameters"] == load(model_path).n_parameters_
    assert found["bytes"] == model_path.stat().st_size
    age, crp, sex, visit = found["columns"]
    assert age["name"] == "age"
    assert age["unit"] == "number"
    assert 20 <= age["low"] < age["median"] < age["high"] <= 90
    assert (age["whole"], age["gaps"]) == (True, False)
    assert (crp["features"][0], crp["features"][-1]) == ("crp", "crp=(missing)")
    assert sorted(sex["levels"]) == ["f", "m"]
    assert sex["kind"] == "category"
    assert visit["unit"] == "date"
    assert visit["low"] == "2021-01-01"


def test_tables(model_path):
    text = succeed("inspect", model_path).stdout
    for line in ("target   diagnosis: classification", "classes  benign, malignant", "4 columns"):
        assert line in text
    assert "2021-01-01 to" in text


def test_other_models(tmp_path):
    """Identifiers, booleans, levels that look like markup, many columns, no name of the target."""
    header = ["id", "flag", "[bold]", *(f"x{place}" for place in range(50)), "y"]
    rows = [
        [
            f"n{row}",
            str(row % 2 == 0),
            "[red]\na" if row % 3 else "[/]",
            *([str(row * place) for place in range(50)]),
            str(row / 2),
        ]
        for row in range(20)
    ]
    path = write_csv(tmp_path / "t.csv", rows, header)
    model = tmp_path / "m.tart"
    succeed("fit", path, "--target", "y", "--out", model, "--epochs", 1, "--no-compare", "--members", 2, "--depth", 1)
    text = succeed("inspect", model).stdout
    for piece in (
        "left out",
        "true or false",
        "[red] a",
        "[/]",
        "[bold]",
        "and 13 more",
        "2 trees of depth 1",
        "regression",
    ):
        assert piece in text
    found = json.loads(succeed("inspect", model, "--json").stdout)
    assert len(found["columns"]) == 53
    assert found["classes"] is None
    nameless = TartRegressor(epochs=1, depth=0).fit([[1.0], [2.0]], [1.0, 2.0])
    nameless.save(tmp_path / "n.tart")
    assert "(no name): regression" in succeed("inspect", tmp_path / "n.tart").stdout
    assert json.loads(succeed("inspect", tmp_path / "n.tart", "--json").stdout)["columns"][0]["name"] == "x0"


def test_what_is_no_model(tmp_path, model_path):
    for content in (
        b"",
        b"a,b\n1,2\n",
        model_path.read_bytes()[:-5],
        model_path.read_bytes().replace(b"benign", b"malign"),
    ):
        path = tmp_path / "wrong.tart"
        path.write_bytes(content)
        result = run("inspect", path)
        assert result.exit_code == 1
        assert result.stdout == ""
        assert len(result.stderr.splitlines()) == 1
        assert str(path) in result.stderr
