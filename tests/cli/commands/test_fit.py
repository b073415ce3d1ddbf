"""`tartree fit`: tasks, tables, notes and errors."""

import json
import math
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tartree import TartClassifier, load
from tartree.cli.options import COLUMN_KINDS
from tartree.cli.workflow import comparison
from tartree.model import spec
from tartree.search import fold_scores
from tartree.table.column_kinds import KINDS
from tests.cli.conftest import HEADER, fails, patients, run, succeed, write_csv

QUICK = ("--epochs", 2, "--depth", 1, "--no-compare")


def fit_json(path, target, tmp_path, *options, stdin=None):
    out = tmp_path / "fitted.tart"
    result = succeed("fit", path, "--target", target, "--out", out, "--force", "--json", *options, stdin=stdin)
    return json.loads(result.stdout, parse_constant=pytest.fail)


def test_tables_for_people(patients_csv, tmp_path):
    out = tmp_path / "my model.tart"
    result = succeed("fit", patients_csv, "--target", "diagnosis", "--out", out, "--epochs", 2, "--folds", 3)
    for text in (
        "60 rows, 4 columns (2 numeric, 1 categorical, 1 date)",
        "diagnosis: classification, 2 classes",
        "leaves, ",
        "to read",
        "3-fold cross-validation, 60 rows",
        f"Saved {out}",
        f"tartree predict '{out}' new.csv",
    ):
        assert " ".join(text.split()) in " ".join(result.stdout.split())
    for model in ("tartree", "random forest", "decision tree", "majority guess"):
        assert sum(line.startswith(f"│ {model} ") for line in result.stdout.splitlines()) == 1
    assert result.stderr == ""
    assert load(out).target_name_ == "diagnosis"


def test_json(patients_csv, tmp_path):
    report = fit_json(patients_csv, "diagnosis", tmp_path, "--epochs", 2, "--folds", 3)
    assert report["rows"] == 60
    assert report["columns"] == {"numeric": 2, "categorical": 1, "boolean": 0, "date": 1, "left out": 0}
    assert report["task"] == "classification"
    assert sum(entry["rows"] for entry in report["classes"]) == 60
    assert report["depth"] <= 3
    assert report["leaves"] <= 8
    scores = report["cross_validation"]["scores"]
    assert list(scores) == ["tartree", "random forest", "decision tree", "majority guess"]
    assert all(len(score["folds"]) == 3 for score in scores.values())
    majority = max(entry["rows"] for entry in report["classes"]) / 60
    assert scores["majority guess"]["mean"] == pytest.approx(majority)
    assert scores["decision tree"]["mean"] > majority


def test_the_tree_that_is_compared_is_the_one_that_is_saved(patients_csv, tmp_path, monkeypatch):
    monkeypatch.setattr(spec, "DEEP_ROWS", 60)  # of all rows, not of a fold
    monkeypatch.setattr(spec, "LARGE_READABLE_ROWS", 60)
    fitted = []
    fit = fold_scores.fit_completely
    monkeypatch.setattr(fold_scores, "fit_completely", lambda model, *rest: fitted.append(model) or fit(model, *rest))
    report = fit_json(patients_csv, "diagnosis", tmp_path, "--epochs", 1, "--folds", 2, "--not-readable")
    assert report["depth"] == 6
    assert [model.get_depth() for model in fitted[:2]] == [6, 6]
    assert load(tmp_path / "fitted.tart").depth == "auto"
    fitted.clear()
    fit_json(patients_csv, "diagnosis", tmp_path, "--epochs", 1, "--folds", 2)
    assert [(model.depth, model.max_features, model.readable) for model in fitted[:2]] == [(6, 2, True)] * 2


def test_equal_to_python(patients_csv, model_path):
    rows = patients()
    table = pa.table(
        {
            "age": [int(row[0]) for row in rows],
            "crp": [float(row[1]) if row[1] else None for row in rows],
            "sex": [row[2] for row in rows],
            "visit": pa.array([row[3] for row in rows]).cast(pa.date32()),
        }
    )
    own = TartClassifier(epochs=5, random_state=0).fit(table, [row[4] for row in rows])
    np.testing.assert_array_equal(own.predict_proba(table), load(model_path).predict_proba(table))


def test_options_reach_the_model(patients_csv, tmp_path):
    options = ("--depth", 3, "--window", 3, "--stride", 2, "--members", 2, "--selection", "single", "--epochs", 1)
    report = fit_json(patients_csv, "diagnosis", tmp_path, *options, "--seed", 7, "--no-compare", "--drop", "visit")
    model = load(report["model"])
    assert model.get_params() | {"depth": 3, "window": 3, "members": 2, "random_state": 7} == model.get_params()
    assert report["structure"] == {"depth": 3, "window": 3, "stride": 2}
    assert report["members"] == 2
    assert report["cross_validation"] is None
    assert model.feature_names_in_.tolist() == ["age", "crp", "sex"]


def test_preset(patients_csv, tmp_path):
    report = fit_json(patients_csv, "diagnosis", tmp_path, "--preset", "tart-b", "--epochs", 1, "--no-compare")
    assert report["structure"]["depth"] == 2
    regression = ("--preset", "tart-c", "--epochs", 1, "--no-compare")
    assert fit_json(patients_csv, "crp", tmp_path, *regression, "--drop-missing-target")["task"] == "regression"


def test_standard_input_and_parquet(patients_csv, tmp_path):
    text = patients_csv.read_text()
    piped = fit_json("-", "diagnosis", tmp_path, *QUICK, stdin=text)
    assert piped["data"] == "standard input"
    rows = patients()
    table = pa.table({name: [row[place] for row in rows] for place, name in enumerate(HEADER)})
    table = table.set_column(4, "diagnosis", table["diagnosis"].dictionary_encode())
    pq.write_table(table, tmp_path / "patients.parquet")
    stored = fit_json(tmp_path / "patients.parquet", "diagnosis", tmp_path, *QUICK)
    assert stored["classes"] == piped["classes"]


def column_file(tmp_path, target, name="y"):
    return write_csv(tmp_path / "table.csv", [[number % 7, value] for number, value in enumerate(target)], ["x", name])


@pytest.mark.parametrize(
    ("target", "task", "classes"),
    [
        (["0", "1"] * 10, "classification", [0, 1]),
        (["1.0", "2.0"] * 10, "classification", [1, 2]),
        ([str(number % 4) for number in range(20)], "classification", [0, 1, 2, 3]),
        ([str(number % 5) for number in range(20)], "regression", []),
        (["0.5", "1"] * 10, "regression", []),
        ([str(number) for number in range(30)], "regression", []),
        (["TRUE", "FALSE"] * 10, "classification", ["FALSE", "TRUE"]),
        (["yes ", "no"] * 10, "classification", ["no", "yes"]),
        (["01", "02"] * 10, "classification", ["01", "02"]),
    ],
)
def test_guess_of_the_task(tmp_path, target, task, classes):
    report = fit_json(column_file(tmp_path, target), "y", tmp_path, *QUICK)
    assert report["task"] == task
    assert sorted(entry["class"] for entry in report["classes"]) == classes
    numeric = not classes or isinstance(classes[0], int)
    assert any("taken as " + task in note for note in report["notes"]) == numeric


def test_task_by_option(tmp_path):
    path = column_file(tmp_path, ["0.5", "1", "2"] * 10)
    assert fit_json(path, "y", tmp_path, "--task", "classification", *QUICK)["classes"][0]["class"] == "0.5"
    path = column_file(tmp_path, ["0", "1"] * 10)
    assert fit_json(path, "y", tmp_path, "--task", "regression", *QUICK)["task"] == "regression"


def test_boolean_target_of_parquet(tmp_path):
    pq.write_table(pa.table({"x": list(range(20)), "y": [True, False] * 10}), tmp_path / "table.parquet")
    report = fit_json(tmp_path / "table.parquet", "y", tmp_path, *QUICK)
    assert [entry["class"] for entry in report["classes"]] == [False, True]


def test_regression_is_compared_by_r2(tmp_path):
    rows = [[str(number), str(number * 1.5)] for number in range(40)]
    path = write_csv(tmp_path / "line.csv", rows, ["x", "y"])
    report = fit_json(path, "y", tmp_path, "--epochs", 2, "--folds", 2)
    assert report["cross_validation"]["metric"] == "R2"
    assert report["cross_validation"]["scores"]["random forest"]["mean"] > 0.9
    assert report["cross_validation"]["scores"]["mean"]["mean"] < 0.1
    assert (
        "R2" in succeed("fit", path, "--target", "y", "--out", tmp_path / "r.tart", "--epochs", 1, "--folds", 2).stdout
    )


def test_many_rows_are_compared_on_a_sample(patients_csv, tmp_path, monkeypatch):
    monkeypatch.setattr(comparison, "MOST_ROWS", 30)
    report = fit_json(patients_csv, "diagnosis", tmp_path, "--epochs", 1, "--folds", 2)
    assert report["cross_validation"]["rows"] == 30
    assert "models are compared on 30 of 60 rows, drawn at random" in report["notes"]
    assert report["rows"] == 60


def test_notes(tmp_path):
    rows = [
        [f"id{number}", str(2000 + number), "same", "", "A" if number % 2 else "b", "1" if number else "<1"]
        for number in range(30)
    ]
    rows[0][4], rows[1][4], rows[2][4] = "B", "B", "C"
    path = write_csv(tmp_path / "t.csv", [*rows, [""] * 6, [""] * 6], ["patient", "number", "one", "none", "y", "crp"])
    report = fit_json(path, "y", tmp_path, "--drop", "number", *QUICK)
    assert report["columns"]["left out"] == 3
    assert set(report["notes"]) >= {
        f"left out: 2 empty rows of {path}",
        "left out, for they hold one value or none: 'one', 'none'",
        "left out, for they hold another value in almost every row, like an identifier: 'patient'; "
        "--column NAME:category or NAME:number keeps one",
        "column 'crp' is read as text: 1 of 30 values are no numbers (row 2: '<1'); correct them or leave them empty",
        "class 'C' has one row only, which is too few to learn and to check",
        "classes 'b' and 'B' of 'y' differ in upper case or spaces only",
    }
    result = succeed("fit", path, "--target", "y", "--out", tmp_path / "n.tart", *QUICK)
    assert (
        "Note: another whole number in every row, like an identifier: 'number'; leave out with --drop" in result.stderr
    )
    assert "Note" not in result.stdout
    quiet = succeed("fit", path, "--target", "y", "--out", tmp_path / "q.tart", "--quiet", *QUICK)
    assert quiet.stderr == ""


def test_few_rows_and_rare_classes(tmp_path):
    path = column_file(tmp_path, ["a"] * 3 + ["b"] * 2 + ["c"])
    report = fit_json(path, "y", tmp_path, "--epochs", 1)
    assert report["cross_validation"]["folds"] == 3
    assert "the cross-validation has 3 folds, for there are few rows" in report["notes"]
    path = column_file(tmp_path, ["0.5", "1.5", "3"])
    report = fit_json(path, "y", tmp_path, "--epochs", 1)
    assert report["cross_validation"] is None
    assert "there are too few rows for a cross-validation" in report["notes"]


def test_few_rows_make_fewer_folds_so_that_every_score_is_a_number(tmp_path):
    path = column_file(tmp_path, [str(number / 4) for number in range(5)])
    compared = fit_json(path, "y", tmp_path, "--epochs", 1, "--folds", 5)["cross_validation"]
    assert compared["folds"] == 2  # R2 of a fold with one row would be none
    assert all(math.isfinite(value) for score in compared["scores"].values() for value in score["folds"])


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", (), "{} is empty"),
        ("x,y\n", (), "{} has a header and no rows"),
        ("x,y,x\n1,2,3\n", (), "{} has columns of the same name: 'x' (2 times); rename or remove them"),
        ("x,y\n1,a\n2\n", (), "{}: row 3 must have 2 values, as many as the header (row 1), got 1: 2"),
        ("x,Y\n1,a\n", (), "{} has no column 'y'; did you mean 'Y'?"),
        ("a,b\n1,a\n", (), "{} has no column 'y'; its columns are a, b"),
        ("x,y\n1,a\n", ("--drop", "xx"), "{} has no column 'xx'; did you mean 'x'?"),
        ("x,y\n1,a\n", ("--drop", "y"), "column 'y' cannot be both the target and left out"),
        ("y\na\nb\n", (), "{} has no column beside the target 'y' to predict it from"),
        ("x,y\n1,a\n2,a\n", (), "target 'y' has one class only, 'a': there is nothing to tell apart"),
        ("x,y\n1,1.5\n2,1.5\n", (), "target 'y' has one value only, 1.5: there is nothing to predict"),
        ("x,y\n1,\n2,NA\n", (), "target 'y' has no values at all"),
        (
            "x,y\n1,a\n2,\n3,?\n4,b\n",
            (),
            "target 'y' has missing values in 2 of 4 rows; "
            "fill them, or give --drop-missing-target to leave these rows out",
        ),
        (
            "x,y\n1,a\n2,b\n",
            ("--task", "regression"),
            "target 'y' must hold numbers for regression, got 'a' as the first value",
        ),
        (
            "x,y\n1,1\n2,inf\n",
            ("--task", "regression"),
            "column 'y' must hold finite numbers, got infinity or a number too large in row 3",
        ),
        ("x,y\n1,2021-01-01\n2,2021-01-02\n", (), "target 'y' holds dates or times; "),
        ("x,y\n1,1\n1,1\n1,2\n1,2\n", (), "{} has no column that tells rows apart, beside the target"),
        (
            "x,y\n" + "".join(f"{number % 3},name {number}\n" for number in range(1000)),
            (),
            "target 'y' has 1,000 different values in 1,000 rows: it looks like an identifier or free text; "
            "give another --target",
        ),
        (
            "x,y\n" + "".join(f"{number % 3},{number}\n" for number in range(1000)),
            ("--task", "classification"),
            "target 'y' has 1,000 different values in 1,000 rows: it looks like a number; use --task regression",
        ),
        (
            "x,y\ninf,a\n2,b\n3,b\n",
            (),
            "column 'x' must hold finite numbers, got infinity or a number too large in row 2",
        ),
        ("x,y\n1,a\n2,b\n3,a\n4,b\n", ("--window", 2, "--stride", 3), "stride must be from 1 to the window (2)"),
    ],
)
def test_errors(tmp_path, content, options, message):
    path = tmp_path / "table.csv"
    path.write_text(content)
    result = run("fit", path, "--target", "y", "--out", tmp_path / "model.tart", *options)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.splitlines()[-1].startswith("Error: " + message.format(path))
    assert not (tmp_path / "model.tart").exists()


def test_nearest_names(tmp_path):
    path = write_csv(tmp_path / "t.csv", [["1", "2", "3"]], ["Final Diagnosis", "diagnosis_code", "age"])
    fails(
        f"{path} has no column 'diagnosis'; did you mean 'diagnosis_code' or 'Final Diagnosis'?",
        "fit",
        path,
        "--target",
        "diagnosis",
        "--out",
        tmp_path / "m",
    )
    fails(f"{path} has no column 'Age '; did you mean 'age'?", "fit", path, "--target", "Age ", "--out", tmp_path / "m")


def test_gaps_in_the_target_can_be_left_out(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("x,y\n" + "1,a\n2,b\n3,\n4,NA\n" * 5)
    report = fit_json(path, "y", tmp_path, "--drop-missing-target", *QUICK)
    assert report["rows"] == 10
    assert "left out: 10 rows without a target" in report["notes"]


def test_files_that_are_in_the_way(patients_csv, tmp_path):
    start = ("fit", patients_csv, "--target", "diagnosis")
    taken = tmp_path / "taken.tart"
    taken.write_text("mine")
    fails(f"{taken} exists; give --force to replace it, or another --out", *start, "--out", taken)
    assert taken.read_text() == "mine"
    succeed(*start, "--out", taken, "--force", *QUICK)
    load(taken)
    fails(f"{tmp_path} is a directory; give the name of a file to --out", *start, "--out", tmp_path)
    away = tmp_path / "away" / "model.tart"
    message = f"{away} cannot be written: {away.parent} is not a directory that can be written to"
    fails(message, *start, "--out", away)
    none = tmp_path / "none.csv"
    fails(f"{none}: No such file or directory", "fit", none, "--target", "y", "--out", tmp_path / "m.tart")
    nothing = f"{tmp_path} must be or hold Parquet files, .parquet or .pq, got none"
    fails(nothing, "fit", tmp_path, "--target", "y", "--out", tmp_path / "m.tart")


#: `tartree` that says once when its second epoch ends (a refit on all rows has another).
SAYS_EPOCHS = """
import sys
from tartree.cli import main
from tartree.training import loop
build = loop.Epoch.__init__
def told(self, *arguments, **more):
    build(self, *arguments, **more)
    if self.number == 2:
        loop.Epoch.__init__ = build
        print("second epoch", file=sys.stderr, flush=True)
loop.Epoch.__init__ = told
main(prog_name="tartree")
"""


def test_interrupted_fit_is_saved(patients_csv, tmp_path):
    out = tmp_path / "model.tart"
    out.write_text("mine")
    options = ("--epochs", "1000000", "--no-compare", "--json", "--quiet", "--force")
    command = [sys.executable, "-c", SAYS_EPOCHS, "fit", patients_csv, "--target", "diagnosis", "--out", out, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr.readline() == "second epoch\n"
            assert out.read_text() == "mine"
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert stderr == f"Note: interrupted: {out} holds what was learnt until then, not a finished model\n"
    report = json.loads(stdout)
    assert report["interrupted"] is True
    assert any(note.startswith("fit was interrupted after ") for note in report["notes"])
    load(out)


@pytest.mark.parametrize("compare", [("--no-compare",), ()])
def test_interrupted_before_anything_is_learnt(patients_csv, tmp_path, monkeypatch, compare):
    from tartree.training import epochs

    def interrupted(*arguments):
        raise KeyboardInterrupt

    for kind in (epochs.EagerEpochs, epochs.CapturedEpochs):
        monkeypatch.setattr(kind, "run", interrupted)
    out = tmp_path / "model.tart"
    out.write_text("mine")
    result = run("fit", patients_csv, "--target", "diagnosis", "--out", out, "--force", "--epochs", 2, *compare)
    assert result.exit_code == 130
    assert result.stderr == "Interrupted.\n"
    assert out.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [out]


def test_interrupted_comparison_ends_the_command(patients_csv, tmp_path, monkeypatch):
    from tartree.training import loop

    monkeypatch.setattr(loop, "_check_losses", lambda *arguments: signal.raise_signal(signal.SIGINT))
    out = tmp_path / "model.tart"
    result = run("fit", patients_csv, "--target", "diagnosis", "--out", out, "--epochs", 2)
    assert result.exit_code == 130
    assert result.stderr == "Interrupted.\n"
    assert not out.exists()


def test_a_class_of_one_row_is_compared(tmp_path):
    path = column_file(tmp_path, ["common"] * 79 + ["rare"])
    report = fit_json(path, "y", tmp_path, "--epochs", 1, "--depth", 1)
    assert report["cross_validation"]["folds"] == 5
    assert report["cross_validation"]["scores"]["majority guess"]["mean"] == 1
    assert "class 'rare' has one row only, which is too few to learn and to check" in report["notes"]
    assert report["interrupted"] is False


def test_a_sample_of_one_class_is_not_compared(tmp_path, monkeypatch):
    monkeypatch.setattr(comparison, "MOST_ROWS", 5)
    report = fit_json(column_file(tmp_path, ["common"] * 79 + ["rare"]), "y", tmp_path, "--epochs", 1, "--depth", 1)
    assert report["cross_validation"] is None
    assert "models are not compared: the rows drawn for it have one value of the target only" in report["notes"]


def test_spellings_of_truth_values_are_one_class(tmp_path):
    report = fit_json(column_file(tmp_path, ["True", "false", "TRUE", "false", "True"] * 4), "y", tmp_path, *QUICK)
    assert report["classes"] == [{"class": "True", "rows": 12}, {"class": "false", "rows": 8}]
    assert report["notes"] == ["'TRUE' and 'True' of 'y' are taken as one class, 'True'"]


def test_levels_that_are_grouped_are_noted(tmp_path):
    few, many = [f"a{number % 32}" for number in range(80)], [f"b{number % 40}" for number in range(80)]
    few[0] = "rare"
    rows = [[*pair, "yes" if number % 3 else "no"] for number, pair in enumerate(zip(few, many, strict=True))]
    report = fit_json(write_csv(tmp_path / "t.csv", rows, ["few", "many", "y"]), "y", tmp_path, *QUICK)
    assert report["notes"] == [
        "column 'many' has 40 different texts: the 32 most frequent are kept, the other 8 are grouped as (other)"
    ]


def test_numbers_as_people_write_them(tmp_path):
    rows = [[str(number), f"{number},5", f"< {number}", "ab"[number % 2]] for number in range(40)]
    rows[7][0], rows[0][0] = "07", "100"
    path = write_csv(tmp_path / "t.csv", rows, ["age", "crp", "titre", "y"])
    report = fit_json(path, "y", tmp_path, *QUICK)
    assert report["columns"]["numeric"] == 2
    assert report["notes"][0] == (
        "column 'titre' is read as text: 40 of 40 values are no numbers (row 2: '< 0'); "
        "if it is to be numbers, write them like 1234.5"
    )


def messy_csv(path, n_rows=40):
    rows = [
        [
            f"${1000 + 37 * row:,}.50",
            f"{row / 7:.1f}%".replace(".", ","),
            f"{row % 12 + 1:02d}/{row % 28 + 1:02d}/2020",
            str(row % 3),
            f"{row // 4 * 4} apples" if row < 3 else str(row // 4),
            f"${447_000 + 1000 * row:,}",
        ]
        for row in range(n_rows)
    ]
    return write_csv(path, rows, ["price", "share", "when", "code", "stock", "value"])


def test_tables_as_people_have_them(tmp_path):
    path = messy_csv(tmp_path / "messy.csv")
    out = tmp_path / "m.tart"
    result = succeed("fit", path, "--target", "value", "--out", out, "--column", "code:category", *QUICK)
    text = " ".join(result.stdout.split())
    assert "value: regression, 447000 to 486000" in text
    assert "read as price: number, in $; share: number, in %, decimal comma; when: date, month first" in text
    assert "column 'stock' is read as text: 3 of 40 values are no numbers (row 2: '0 apples')" in result.stderr
    report = fit_json(path, "value", tmp_path, "--column", "code:category", *QUICK)
    kinds = {column["name"]: column["kind"] for column in report["column_summary"]}
    assert kinds == {"price": "number", "share": "number", "when": "date", "code": "category", "stock": "category"}
    predicted = succeed("predict", out, path).stdout.splitlines()
    again = load(out).predict(pd.read_csv(path, dtype=str).drop(columns="value"))
    np.testing.assert_allclose([float(line.split(",")[-2]) for line in predicted[1:]], again, rtol=1e-12)


def test_comparison_keeps_text_that_one_fold_could_read_as_numbers(tmp_path):
    report = fit_json(messy_csv(tmp_path / "messy.csv"), "value", tmp_path, "--epochs", 2, "--depth", 1, "--folds", 3)
    assert report["cross_validation"]["folds"] == 3


def test_kinds_of_columns_that_do_not_fit(tmp_path):
    path = messy_csv(tmp_path / "messy.csv")
    fit = ("fit", path, "--target", "value", "--out", tmp_path / "m.tart")
    fails(
        "column 'stock' must hold numbers such as 1234.5 for --column stock:number, got '0 apples' in row 2; "
        "correct it or leave it empty",
        *(*fit, "--column", "stock:number"),
    )
    fails(
        "column 'value' of --column must be a feature, but is the target or left out", *fit, "--column", "value:number"
    )
    result = run(*fit, "--column", "stock:word")
    assert result.exit_code == 2
    assert "must be COLUMN:KIND with one of the kinds number, " in result.stderr


def test_the_kinds_of_the_command_line_are_those_of_the_encoder():
    assert {*COLUMN_KINDS, "ignore"} == set(KINDS)


def test_text_of_parquet_files_is_read_as_that_of_csv(tmp_path):
    path = messy_csv(tmp_path / "messy.csv")
    table = pd.read_csv(path, dtype=str).assign(value=np.arange(40.0))
    table.to_parquet(tmp_path / "messy.parquet")
    for streamed in ("--stream", "--no-stream"):
        options = ("--column", "code:number", "--column", "when:date-day-first", streamed, *QUICK)
        wrong = run("fit", tmp_path / "messy.parquet", "--target", "value", "--out", tmp_path / "m.tart", *options)
        assert "column 'when' must hold a datetime" in wrong.stderr
        options = ("--column", "code:number", streamed, *QUICK)
        report = fit_json(tmp_path / "messy.parquet", "value", tmp_path, *options)
        kinds = {column["name"]: column["kind"] for column in report["column_summary"]}
        assert kinds == {"price": "number", "share": "number", "when": "date", "code": "number", "stock": "category"}
