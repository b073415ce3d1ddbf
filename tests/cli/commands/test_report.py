"""`tartree report`: a page from a model and a table."""

import json
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tartree import TartClassifier, TartRegressor, load
from tests.cli.conftest import HEADER, fails, patients, run, succeed, write_csv


def data_of(path):
    page = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_a_page(model_path, patients_csv, tmp_path):
    out = tmp_path / "page.html"
    result = succeed("report", "--no-simplify", model_path, patients_csv, "--out", out)
    assert re.search(r"Report on 60 rows written to .*page\.html \(\d+ kB\); open it in a browser", result.stderr)
    assert result.stdout == ""
    data = data_of(out)
    assert data["title"] == "A tree for diagnosis"
    assert data["nRows"] == 60
    truth = [data["outputs"][label] for label in data["rows"]["truth"]]
    assert truth == [row[4] for row in patients()]
    accuracy = np.mean(np.array(data["rows"]["truth"]) == np.array(data["rows"]["predicted"]))
    assert data["quality"]["accuracy"] == pytest.approx(accuracy)


def test_by_default_next_to_the_caller(patients_csv, tmp_path, monkeypatch):
    """With smaller models beside."""
    monkeypatch.chdir(tmp_path)
    succeed("fit", patients_csv, "--target", "diagnosis", "--depth", 1, "--epochs", 2, "--no-compare")
    succeed("report", "model.tart", patients_csv, "--rows", 7, "--title", "Ward 3 <b>")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<h1>Ward 3 &lt;b&gt;</h1>" in page
    data = data_of(tmp_path / "report.html")
    assert len(data["rows"]["numbers"]) == 7
    assert [model["nLeaves"] for model in data["models"]] == [2, 1]


def test_without_the_target(model_path, tmp_path):
    path = write_csv(tmp_path / "new.csv", [row[:4] for row in patients()], HEADER[:4])
    result = succeed("report", "--no-simplify", model_path, path, "--out", tmp_path / "page.html")
    assert "there is no column 'diagnosis': the report says nothing about errors; give --target" in result.stderr
    assert data_of(tmp_path / "page.html")["quality"] is None


def test_another_name_for_the_target(model_path, tmp_path):
    path = write_csv(tmp_path / "new.csv", patients(), [*HEADER[:4], "verdict"])
    succeed("report", "--no-simplify", model_path, path, "--target", "verdict", "--out", tmp_path / "page.html")
    assert data_of(tmp_path / "page.html")["quality"] is not None
    fails(
        f"{path} has no column 'verdct'; did you mean 'verdict'?",
        *("report", model_path, path, "--target", "verdct", "--out", tmp_path / "other.html"),
    )
    assert not (tmp_path / "other.html").exists()


def test_rows_without_a_label(model_path, tmp_path):
    rows = patients()
    rows[3][4] = ""
    result = succeed(
        "report", "--no-simplify", model_path, write_csv(tmp_path / "new.csv", rows), "--out", tmp_path / "page.html"
    )
    assert "left out: 1 row without a target" in result.stderr
    assert data_of(tmp_path / "page.html")["nRows"] == 59


def test_spelling_of_labels(model_path, tmp_path):
    rows = [[*row[:4], row[4].upper()] for row in patients()]
    succeed(
        "report", "--no-simplify", model_path, write_csv(tmp_path / "new.csv", rows), "--out", tmp_path / "page.html"
    )
    assert data_of(tmp_path / "page.html")["rows"]["truth"] == [int(row[4] == "malignant") for row in patients()]
    rows[5][4] = "unclear"
    fails(
        "column 'diagnosis' must hold the classes of the model, 'benign', 'malignant', got 'unclear' in row 7",
        *("report", model_path, write_csv(tmp_path / "bad.csv", rows), "--out", tmp_path / "page.html"),
    )


def test_whole_numbers_as_classes(tmp_path):
    table = pa.table({"a": [float(k % 9) for k in range(40)], "y": [k % 9 // 5 for k in range(40)]})
    model = TartClassifier(depth=1, epochs=2, random_state=0).fit(table.select(["a"]), table["y"].to_numpy())
    model.save(tmp_path / "model.tart")
    pq.write_table(table, tmp_path / "data.parquet")
    write_csv(
        tmp_path / "data.csv",
        [[str(a), f"{y}.0"] for a, y in zip(*table.to_pydict().values(), strict=True)],
        ["a", "y"],
    )
    for name in ("data.parquet", "data.csv"):
        succeed(
            "report",
            "--no-simplify",
            tmp_path / "model.tart",
            tmp_path / name,
            "--target",
            "y",
            "--out",
            tmp_path / "page.html",
        )
        assert data_of(tmp_path / "page.html")["rows"]["truth"] == table["y"].to_pylist()


def test_regression(tmp_path):
    rows = [[str(k), "" if k == 3 else str(3 * k + k % 2)] for k in range(40)]
    path = write_csv(tmp_path / "data.csv", rows, ["a", "y"])
    succeed("fit", path, "--target", "y", "--drop-missing-target", "--task", "regression", "--out", tmp_path / "m.tart",
            "--no-compare", "--epochs", 3, "--depth", 1)  # fmt: skip
    assert isinstance(load(tmp_path / "m.tart"), TartRegressor)
    succeed("report", "--no-simplify", tmp_path / "m.tart", path, "--out", tmp_path / "page.html")
    data = data_of(tmp_path / "page.html")
    assert data["task"] == "regression"
    assert [value for (value,) in data["rows"]["truth"]] == [float(row[1]) for row in rows if row[1]]


@pytest.fixture
def stays(tmp_path):
    """A model fitted to durations and times of day, the frame, and the frame as pandas writes it."""
    draw = np.random.default_rng(0)
    stay = pd.to_timedelta(draw.integers(-50, 900, 40), unit="h")
    woken = (pd.Timestamp("2020-01-01") + pd.to_timedelta(draw.integers(0, 1440, 40), unit="min")).time
    frame = pd.DataFrame({"stay": stay, "woken": woken, "y": np.where(stay > pd.Timedelta("9 days"), "long", "short")})
    frame.loc[3, "stay"] = pd.NaT
    model = TartClassifier(depth=1, epochs=2, random_state=0).fit(frame[["stay", "woken"]], frame["y"])
    model.save(tmp_path / "model.tart")
    frame.to_csv(tmp_path / "data.csv", index=False)
    return model, frame, (tmp_path / "data.csv").read_text()


def report_on(folder, text):
    (folder / "new.csv").write_text(text)
    return (
        *("report", "--no-simplify", folder / "model.tart", folder / "new.csv", "--target", "y"),
        *("--out", folder / "page.html"),
    )


def test_durations_and_times(stays, tmp_path):
    model, frame, text = stays
    assert "-1 days +" in text
    succeed(*report_on(tmp_path, text))
    data = data_of(tmp_path / "page.html")
    seconds = [None if np.isnan(value) else value for value in frame["stay"].dt.total_seconds()]
    assert data["rows"]["columns"][0] == seconds
    assert [data["outputs"][k] for k in data["rows"]["predicted"]] == model.predict(frame[["stay", "woken"]]).tolist()


def test_rows_are_counted_with_the_header(stays, tmp_path):
    """In all messages, whichever column is wrong."""
    *_, text = stays
    lines = text.splitlines()
    for wrong, message in (
        ("5,07:00:00,long", "column 'stay' must hold durations such as 2 days 12:30:00, as it did in fit, got '5' "
         "in row 8; correct it or leave it empty"),
        ("5 days,late,long", "column 'woken' must hold times of day such as 12:30:00, as it did in fit, got 'late' "
         "in row 8; correct it or leave it empty"),
        ("5 days,07:00:00,?", None),
        ("5 days,07:00:00,endless", "column 'y' must hold the classes of the model, 'long', 'short', got 'endless' "
         "in row 8"),
    ):  # fmt: skip
        given = report_on(tmp_path, "\n".join([*lines[:7], wrong, *lines[8:]]))
        if message is None:
            assert "left out: 1 row without a target" in succeed(*given).stderr
        else:
            fails(message, *given)


@pytest.mark.parametrize("command", ["report", "predict", "fit"])
def test_rows_of_parquet_are_counted_likewise(command, tmp_path):
    a = [float(k % 9) for k in range(40)]
    table = pa.table({"a": a, "y": [k % 9 // 5 for k in range(40)]})
    TartClassifier(depth=1, epochs=1).fit(table.select(["a"]), table["y"].to_numpy()).save(tmp_path / "model.tart")
    path = tmp_path / "data.parquet"
    given = {
        "report": ("report", tmp_path / "model.tart", path, "--target", "y", "--out", tmp_path / "page.html"),
        "predict": ("predict", tmp_path / "model.tart", path, "--chunk-rows", 10, "--out", tmp_path / "out.csv"),
        "fit": ("fit", path, "--target", "y", "--out", tmp_path / "new.tart"),
    }[command]
    a[26] = np.inf
    pq.write_table(table.set_column(0, "a", pa.array(a)), path)
    fails("column 'a' must hold finite numbers, got infinity or a number too large in row 28", *given)
    if command == "fit":
        return  # text is a column of levels there
    a[26] = "x"
    pq.write_table(table.set_column(0, "a", pa.array(map(str, a))), path)
    fails(
        "column 'a' must hold numbers, as it did in fit, got 'x' in row 28; correct it or leave it empty",
        *given,
    )


def test_problems(model_path, patients_csv, tmp_path):
    fails(
        f"the name of --out must end in .html, got {tmp_path}/x.csv",
        "report",
        model_path,
        patients_csv,
        "--out",
        tmp_path / "x.csv",
    )
    fails(
        f"{tmp_path}/no.tart: No such file; the model comes first, then the data",
        "report",
        tmp_path / "no.tart",
        patients_csv,
    )
    fails(f"{tmp_path}/no.csv: No such file or directory", "report", model_path, tmp_path / "no.csv")
    empty = write_csv(tmp_path / "empty.csv", [])
    fails(f"{empty} has a header and no rows", "report", model_path, empty, "--out", tmp_path / "page.html")
    assert run("report", model_path, patients_csv, "--rows", -1).exit_code == 2
    page = tmp_path / "model.html"
    page.write_bytes(model_path.read_bytes())
    fails(f"{page} is read by this command; give another --out", "report", page, patients_csv, "--out", page)
