"""`tartree search`: the front, files, and errors."""

import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tartree import StructureSearch, load
from tartree.cli.rendering import search_text
from tartree.cli.workflow.file_search import SearchSettings
from tests.cli.conftest import fails, run, succeed, write_csv


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


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
        "model.tart exists; give --force to replace it, or another --out",
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
    assert f"write the page with: tartree report model.tart '{patients_csv}' -o report.html\n" in result.stderr


#: `tartree` that says when the second epoch of its last fit ends.
SAYS_EPOCHS = """
import sys
from tartree import TartClassifier
from tartree.cli import main
from tartree.training import loop
build, fit = loop.Epoch.__init__, TartClassifier.fit
def told(self, *arguments, **more):
    build(self, *arguments, **more)
    if self.number == 2:
        loop.Epoch.__init__ = build
        print("second epoch", file=sys.stderr, flush=True)
def watched(self, *arguments, **more):
    loop.Epoch.__init__ = told
    return fit(self, *arguments, **more)
TartClassifier.fit = watched
main(prog_name="tartree")
"""


#: A search that is soon out of time: after the first rung, a sixteenth of what the last fit would take.
LATE = ("--epochs", 20_000, "--minutes", 0.001, "--space", "readable", "--seed", 3)


def interrupt_last_fit(*arguments):
    """Run a command, press Ctrl-C in its last fit, and give its code, output and errors."""
    command = [sys.executable, "-c", SAYS_EPOCHS, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            before = []
            while (said := process.stderr.readline()) != "second epoch\n":
                assert said, f"it ended before: {before}"
                before.append(said)
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=60)
        finally:
            process.kill()
    return process.returncode, stdout, "".join(before) + stderr


def test_interrupted_in_the_last_fit(patients_csv):
    options = (*LATE, "--trials", 1)
    code, stdout, stderr = interrupt_last_fit("search", patients_csv, "--target", "diagnosis", *options)
    assert code == 130, stderr
    assert "Fitting the chosen structure to all rows (Ctrl-C to skip)\n" in stderr
    assert "Traceback" not in stderr
    assert "best_estimator_" not in stderr
    text = " ".join(stdout.split())
    assert "parameters ┃ accuracy" in text
    command = re.search(
        r"Chosen \(.*\): readable True, depth.*; not fitted to all rows\. To fit it: (.*) Written", text
    )[1]
    assert f"interrupted: the chosen structure was not fitted, and no model saved; {command}" in stderr
    assert Path("front.png").read_bytes().startswith(b"\x89PNG")
    assert not Path("model.tart").exists()
    assert not Path("report.html").exists()


@pytest.mark.usefixtures("interrupted_refit")
def test_json_of_what_was_not_fitted(patients_csv):
    result = run("search", patients_csv, "--target", "diagnosis", "--epochs", 2, "--trials", 2, "--json", "--quiet")
    assert result.exit_code == 130
    found = json.loads(result.stdout)
    assert found["interrupted"]
    assert found["size"] is None
    assert found["files"] == ["front.png"]
    assert not found["chosen"]["fitted"]
    assert found["front"]
    assert found["chosen"]["fit_with"] in result.stderr  # also where quiet


def test_how_to_fit_what_was_not_fitted(patients_csv):
    words = (SearchSettings(drop=("a b",), epochs=2, seed=3), str(patients_csv), "diagnosis", "classification")
    params = {"depth": 2, "leaf_layers": 1, "selection": "single"}
    command = search_text.fit_command(params, *words)
    assert command == (
        f"tartree fit '{patients_csv}' --target diagnosis --drop 'a b' --epochs 2 --depth 2 --selection single "
        "--seed 3 -o model.tart"
    )
    succeed("fit", *shlex.split(command.replace("--drop 'a b'", "--no-compare"))[2:])
    assert load("model.tart").get_params()["selection"] == "single"
    readable = {"readable": True, "depth": 2, "max_features": 1}
    command = search_text.fit_command(readable, *words)
    assert "--readable --depth 2 --max-features 1 " in command
    succeed("fit", *shlex.split(command.replace("--drop 'a b'", "--no-compare --force"))[2:])
    assert {name: load("model.tart").get_params()[name] for name in readable} == readable
    # `tartree fit` has no option for the layers of leaves.
    line = search_text.fit_command({"depth": 0, "leaf_layers": 2, "dropout": 0.15}, *words)
    assert line == "TartClassifier(epochs=2, depth=0, leaf_layers=2, dropout=0.15, random_state=3).fit(X, y)"


def test_interrupted_in_the_comparison(patients_csv, monkeypatch):
    from tartree.search import baselines

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(baselines, "make_baseline", interrupted)
    result = run("search", patients_csv, "--target", "diagnosis", "--epochs", 2, "--trials", 2)
    assert result.exit_code == 130
    assert "there is no comparison with other models; the model is saved in model.tart" in result.stderr
    assert f"write the page with: tartree report model.tart '{patients_csv}' -o report.html\n" in result.stderr
    assert "2 structures tried" in result.stdout
    assert load("model.tart").target_name_ == "diagnosis"
    assert Path("front.png").exists()


def test_what_cannot_be_written_is_a_note(patients_csv, monkeypatch):
    """As on a disk that is full."""
    from tartree.explain.page import report_data

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report_data, "make_page", full)
    result = run("search", patients_csv, "--target", "diagnosis", "--epochs", 2, "--trials", 2, "--quiet")
    assert result.exit_code == 1
    said = "Note: report.html (a page about the model, for a browser) was not written: No space left on device"
    assert result.stderr.strip() == said
    assert "Written model.tart" in result.stdout
    assert "Written front.png" in result.stdout
    assert "Written report.html" not in result.stdout


def test_structures_that_are_not_trained_to_the_end(patients_csv):
    options = (*LATE, "--trials", 3, "--no-report", "--json")
    # What was not trained to the end is counted before a last fit that nobody waits for.
    code, stdout, stderr = interrupt_last_fit("search", patients_csv, "--target", "diagnosis", *options)
    assert code == 130
    found = json.loads(stdout)
    n_all = len(found["trials"])
    n_unfinished = sum(trial["state"] == "unfinished" for trial in found["trials"])
    assert n_unfinished == n_all
    said = f"{n_all} of {n_all} structures were not trained to the end before the search ended, and none was"
    assert said in stderr
    assert any(note.startswith(said) for note in found["notes"])


def test_the_page_says_first_what_held_out_rows_say(patients_csv):
    succeed("search", patients_csv, "--target", "diagnosis", "--epochs", 2, "--trials", 3, "--rule", "best", "--quiet")
    page = Path("report.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])
    said = data["validation"]
    assert said["score"] == "accuracy"
    assert said["nFolds"] == 4
    assert said["words"] == "3 structures tried. Chosen: the best."
    chosen = dict(zip(said["columns"], said["rows"][said["chosen"]], strict=True))
    assert chosen["accuracy"] == f"{said['mean']:.3f} ± {said['error']:.3f}"
    assert said["chosen"] == len(said["rows"]) - 1  # from small to large, each better than all smaller ones


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--picture", "a.xyz"), "a.xyz cannot be drawn: a picture must end in one of"),
        (("--storage", "foo"), "--storage must be an address such as sqlite:///foo, got foo"),
        (("--storage", "sqlite:///foo.db"), "--storage needs --study NAME"),
        (("--storage", "foo://me:secret@bar", "--study", "a"), "--storage foo://bar cannot be opened: "),
        (
            ("--storage", "sqlite:////no/such/a.db", "--study", "a"),
            "--storage sqlite:////no/such/a.db cannot be opened: ",
        ),
        (("-o", ".", "--force"), ". is a directory; give the name of a file to --out"),
        (("--picture", "."), ". is a directory; give the name of a file to --picture"),
        (("--report", ".", "--force"), ". is a directory; give the name of a file to --report"),
        (("--report", "./model.tart"), "--out and --report must be different files, got ./model.tart for both"),
        (("--minutes", "nan"), "'--minutes': must be a number above 0, such as 0.5 or 10, got nan"),
        (("--minutes", "0"), "'--minutes': must be a number above 0, such as 0.5 or 10, got 0"),
        (("--minutes", "-1"), "'--minutes': must be a number above 0, such as 0.5 or 10, got -1"),
        (("--jobs", "0"), "'--jobs': must be at least 1, or -1 for one a core, got 0"),
    ],
)
def test_what_could_not_be_kept_is_found_first(patients_csv, monkeypatch, options, message):
    if "cannot be opened" in message:
        pytest.importorskip("optuna")
    monkeypatch.setattr(StructureSearch, "fit", None)  # nothing is searched
    result = run("search", patients_csv, "--target", "diagnosis", *options)
    assert result.exit_code not in (0, 130)
    assert message in " ".join(result.stderr.split())
    assert "not expected" not in result.stderr
    assert "secret" not in result.stderr


def test_the_data_is_not_replaced(patients_csv):
    before = patients_csv.read_bytes()
    fails(
        f"{patients_csv} is read by this command; give another name to --out",
        "search", patients_csv, "--target", "diagnosis", "-o", patients_csv, "--force",
    )  # fmt: skip
    assert patients_csv.read_bytes() == before


@pytest.mark.parametrize("options", [("--space", "full"), ("--study", "a")])
def test_optuna_is_asked_for_before_the_data(monkeypatch, options):
    monkeypatch.setitem(sys.modules, "optuna", None)
    fails(
        f"{' '.join(options) if options[0] == '--space' else '--study'} needs Optuna, which is not installed; "
        "pip install 'tartree[search]'",
        "search", "no such file.csv", "--target", "diagnosis", *options,
    )  # fmt: skip


def test_groups_are_held_out_together(tmp_path):
    """Visits say who a patient is, and nothing of what they have: new patients cannot be told apart."""
    draw = np.random.default_rng(0)
    patients = np.repeat(np.arange(40), 4)
    values = draw.normal(size=(40, 40))[patients] + 0.01 * draw.normal(size=(160, 40))
    ill = draw.permutation(np.repeat(["yes", "no"], 20))[patients]
    rows = [[f"p{who}", *map("{:.3f}".format, own), has] for who, own, has in zip(patients, values, ill, strict=True)]
    header = ["patient", *(f"m{i}" for i in range(40)), "ill"]
    path = write_csv(tmp_path / "visits.csv", rows, header=header)
    command = ("search", path, "--target", "ill", "--space", "readable", "--epochs", 20, "--no-report", "--json")
    known = json.loads(succeed(*command, "--drop", "patient").stdout)
    new = json.loads(succeed(*command, "--groups", "patient", "-o", "new.tart").stdout)
    assert known["chosen"]["score"] > 0.9
    assert new["chosen"]["score"] < 0.75
    assert "patient" not in load("new.tart").feature_names_in_
    fails(f"{path} has no column 'patients'; did you mean 'patient'?", *command, "--groups", "patients", "--force")
    fails("column 'ill' of --groups cannot be the target too", *command, "--groups", "ill", "--force")
    options = ("--groups", "patient", "--drop", "patient", "--force")
    fails("column 'patient' of --groups cannot be left out too", *command, *options)
    rows[3][0] = ""
    path = write_csv(tmp_path / "visits.csv", rows, header=header)
    message = "column 'patient' of --groups has missing values in 1 of 160 rows; give these rows a group of their own"
    fails(message, *command, "--groups", "patient", "--force")
    settings = SearchSettings(groups="patient", drop=("m1",), out="m.tart")
    said = search_text.fit_command({"depth": 2}, settings, "visits.csv", "ill", "classification")
    assert "--drop m1 --drop patient" in said


def test_errors(patients_csv):
    fails(
        f"{patients_csv} has no column 'diagnosi'; did you mean 'diagnosis'?",
        "search", patients_csv, "--target", "diagnosi",
    )  # fmt: skip
