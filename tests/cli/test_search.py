"""`tartree search`: the front, files, and errors."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from tartree import StructureSearch, load
from tests.cli.conftest import fails, run, succeed, write_csv


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_tables_for_people(patients_csv, tmp_path):
    result = succeed("search", patients_csv, "--target", "diagnosis", "--epochs", 4, "--trials", 5, "--folds", 3)
    text = " ".join(result.stdout.split())
    assert "5 structures tried" in text
    assert "3 folds, 60 rows" in text
    assert "Chosen (the smallest within one standard error of the best): depth" in text
    for name in ("decision tree", "random forest", "boosting"):
        assert f"{name}: accuracy 0." in text
    assert load("model.tart").target_name_ == "diagnosis"
    assert (tmp_path / "front.png").read_bytes().startswith(b"\x89PNG")
    assert "<html" in (tmp_path / "report.html").read_text(encoding="utf-8")
    fails(
        "model.tart exists; give --force to replace it, or another name",
        "search", patients_csv, "--target", "diagnosis",
    )  # fmt: skip


def test_json_for_regression(tmp_path):
    draw = np.random.default_rng(0)
    values = draw.normal(size=(60, 2))
    rows = [[f"{a:.3f}", f"{b:.3f}", f"{2 * a - b:.3f}"] for a, b in values]
    path = write_csv(tmp_path / "numbers.csv", rows, header=["a", "b", "y"])
    options = ("--epochs", 4, "--trials", 4, "--no-report", "--json", "--rule", "best", "--max-leaves", 40)
    found = json.loads(succeed("search", path, "--target", "y", *options).stdout)
    assert found["task"] == "regression"
    assert found["score"] == "r2"
    assert len(found["trials"]) == 4
    assert found["chosen"]["score"] == max(trial["score"] for trial in found["front"])
    assert found["size"]["leaves"] <= 40
    assert found["files"] == ["model.tart"]
    assert not found["interrupted"]


def test_an_interrupted_search_keeps_the_best(patients_csv, monkeypatch):
    from tartree.search import engine

    original, calls = engine.attempt, []

    def attempt(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(engine, "attempt", attempt)
    result = run("search", patients_csv, "--target", "diagnosis", "--epochs", 4)
    assert result.exit_code == 130
    assert "the best so far is taken" in result.stderr
    assert load("model.tart").target_name_ == "diagnosis"
    assert Path("front.png").read_bytes().startswith(b"\x89PNG")
    assert not Path("report.html").exists()
    assert f"tartree report model.tart {patients_csv} -o report.html writes the page" in result.stderr


@pytest.mark.usefixtures("interrupted_refit")
def test_interrupted_in_the_last_fit(patients_csv):
    result = run("search", patients_csv, "--target", "diagnosis", "--epochs", 2, "--trials", 2)
    assert result.exit_code == 130
    assert "nothing was written; the structure chosen is depth" in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--picture", "a.xyz"), "a.xyz cannot be drawn: a picture must end in one of"),
        (("--storage", "foo"), "--storage must be an address such as sqlite:///foo, however: foo"),
        (("--storage", "sqlite:///foo.db"), "--storage needs --study NAME"),
    ],
)
def test_what_could_not_be_kept_is_found_first(patients_csv, monkeypatch, options, message):
    monkeypatch.setattr(StructureSearch, "fit", None)  # nothing is searched
    result = run("search", patients_csv, "--target", "diagnosis", *options)
    assert result.exit_code not in (0, 130)
    assert message in " ".join(result.stderr.split())


def test_errors(patients_csv):
    fails(
        f"{patients_csv} has no column 'diagnosi'; did you mean 'diagnosis'?",
        "search", patients_csv, "--target", "diagnosi",
    )  # fmt: skip
