"""`tartree fit` and `predict` of folders and patterns of Parquet files."""

import json
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tartree import TartClassifier, load
from tests.cli.conftest import fails, run, succeed

N_FILES, FILE_ROWS = 3, 400


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows")
    for number in range(N_FILES):
        rng = np.random.default_rng([3, number])
        x = rng.normal(size=FILE_ROWS)
        columns = {
            "x": x,
            "colour": rng.choice(["red", "blue"], FILE_ROWS),
            "same": np.ones(FILE_ROWS),
            "y": pa.array(np.where(x > 0, "up", "down"), mask=np.arange(FILE_ROWS) < 5 * (number == 1)),
            "z": 3 * x + rng.normal(size=FILE_ROWS),
        }
        pq.write_table(pa.table(columns), path / f"rows-{number}.parquet", row_group_size=150)
    return path


@pytest.fixture(scope="module")
def model(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("model") / "model.tart"
    options = ("--drop", "z", "--drop-missing-target", "--epochs", 20, "--json")
    said = json.loads(succeed("fit", f"{folder}/*.parquet", "--target", "y", "--stream", *options, "--out", out).stdout)
    assert said["rows"] == N_FILES * FILE_ROWS - 5
    assert said["columns"] == {"numeric": 1, "categorical": 1, "boolean": 0, "date": 0, "left out": 1}
    assert sum(found["rows"] for found in said["classes"]) == said["rows"]
    assert said["cross_validation"] is None
    assert any("left out: 5 rows without a target" in note for note in said["notes"])
    assert f"{folder}/*.parquet is streamed: without a comparison with other models" in said["notes"]
    return out


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_predict_a_pattern(folder, model, tmp_path, ending):
    out = tmp_path / f"out.{ending}"
    succeed("predict", model, f"{folder}/*.parquet", "-o", out, "--chunk-rows", 70)
    found = pq.read_table(out) if ending == "parquet" else pyarrow.csv.read_csv(out)
    source = pq.read_table(sorted(folder.glob("*.parquet")))
    assert found.column_names == [*source.column_names, "prediction", "probability_down", "probability_up"]
    np.testing.assert_allclose(found["x"].to_numpy(), source["x"].to_numpy())
    assert found["prediction"].to_pylist() == load(model).predict(folder).tolist()
    assert np.mean(found["prediction"].to_numpy() == np.where(source["x"].to_numpy() > 0, "up", "down")) > 0.9
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_a_streamed_regression_and_a_table_in_memory(folder, tmp_path):
    out = tmp_path / "model.tart"
    options = ("--target", "z", "--drop", "y", "--epochs", 5, "--no-compare", "--out", out, "--force")
    result = succeed("fit", folder, "--stream", *options)
    assert "regression, mean" in result.stdout
    result = succeed("fit", folder, *options)
    assert f"{folder}: {N_FILES * FILE_ROWS:,} rows" in " ".join(result.stdout.split())
    assert "streamed" not in result.stderr


def test_what_can_be_wrong(folder, model, tmp_path):
    out = ("--out", tmp_path / "m.tart")
    names = "its columns are x, colour, same, y, z"
    fails(f"{folder} has no column 'target'; {names}", "fit", folder, "--target", "target", "--stream", *out)
    both = "column 'y' cannot be both the target and left out"
    fails(both, "fit", folder, "--target", "y", "--drop", "y", "--stream", *out)
    result = run("fit", folder, "--target", "y", "--drop", "z", "--stream", *out)
    assert result.exit_code == 1
    assert "rows-1.parquet: target 'y' must have a value in every row" in result.stderr
    table = tmp_path / "table.csv"
    table.write_text("x,y\n1,2\n")
    result = run("fit", table, "--target", "y", "--stream", *out)
    assert result.exit_code == 1
    assert f"{table} cannot be streamed: it is not Parquet" in result.stderr
    nowhere = tmp_path / "nowhere-*.parquet"
    none = f"{nowhere} must be or hold Parquet files, .parquet or .pq, got none"
    fails(none, "fit", nowhere, "--target", "y", *out)
    fails(none, "predict", model, nowhere)
    source = folder / "rows-0.parquet"
    fails(f"{source} is read by this command; give another --out", "predict", model, folder, "--out", source)
    assert not (tmp_path / "m.tart").exists()
    assert pq.read_table(source).num_rows == FILE_ROWS


def test_a_file_that_goes_wrong_in_the_middle_leaves_nothing_behind(folder, model, tmp_path):
    place = tmp_path / "rows"
    place.mkdir()
    for file in folder.glob("*.parquet"):
        (place / file.name).write_bytes(file.read_bytes())
    wrong = pq.read_table(place / "rows-2.parquet").to_pydict()
    wrong["x"][17] = float("inf")
    pq.write_table(pa.table(wrong), place / "rows-2.parquet")
    result = run("predict", model, place, "--out", tmp_path / "out.parquet")
    assert result.exit_code == 1
    # The header counts as row 1, so that rows are counted alike in all tables.
    assert (
        "rows-2.parquet: column 'x' must hold finite numbers, got infinity or a number too large in row 19"
        in result.stderr
    )
    result = run("fit", place, "--target", "z", "--drop", "y", "--stream", "--out", tmp_path / "m.tart")
    assert result.exit_code == 1
    assert "rows-2.parquet: column 'x' must hold finite numbers" in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows"]


@pytest.fixture
def unlike(tmp_path):
    """Three files; one has a column that others have not, and two have one in different types."""
    place = tmp_path / "unlike"
    place.mkdir()
    for number in range(3):
        x = np.random.default_rng(number).normal(size=60)
        columns = {"x": x, "y": np.where(x > 0, "up", "down"), "note": [number] * 60 if number else ["none"] * 60}
        pq.write_table(pa.table(columns | ({"extra": x} if number == 1 else {})), place / f"{number}.parquet")
    return place


@pytest.mark.parametrize("way", [["--stream"], ["--no-compare"]])
def test_columns_that_are_left_out_need_not_agree(unlike, tmp_path, way):
    out = tmp_path / "model.tart"
    fit = ("fit", unlike, "--target", "y", *way, "--epochs", 1, "--out", out, "--drop", "extra")
    result = run(*fit)
    assert result.exit_code == 1
    assert "1.parquet: column 'note' must be of the same type as in" in result.stderr
    succeed(*fit, "--drop", "note")
    assert load(out).feature_names_in_.tolist() == ["x"]
    missing = f"{unlike} has no column 'z'; its columns are x, y, note, extra"
    fails(missing, *fit, "--drop", "note", "--drop", "z", "--force")
    result = succeed("predict", out, unlike, "--out", tmp_path / "out.parquet")
    assert "left out: 'note', 'extra', which not all files have, or not in one type" in result.stderr
    assert pq.read_table(tmp_path / "out.parquet").column_names[:3] == ["x", "y", "prediction"]
    pq.write_table(pa.table({"x": ["text"]}), unlike / "3.parquet")
    result = run("predict", out, unlike, "--out", tmp_path / "other.parquet")
    assert result.exit_code == 1
    assert "3.parquet: column 'x' must be of the same type" in result.stderr


def test_a_search_drops_columns_that_do_not_agree(unlike, tmp_path):
    drop = ("--drop", "note", "--drop", "extra")
    options = ("--target", "y", "--trials", 1, "--epochs", 1, "--folds", 2, "--no-report")
    succeed("search", unlike, *options, *drop, "--out", tmp_path / "model.tart")


def test_options_of_a_cluster_need_one(folder, model, tmp_path):
    for arguments, name in (
        (("fit", folder, "--target", "y", "--workers", 2), "workers"),
        (("fit", folder, "--target", "y", "--storage", tmp_path), "storage"),
        (("predict", model, folder, "--workers", 2), "workers"),
    ):
        said = f"--{name} is for a cluster; give --cluster auto or --cluster HOST:PORT too"
        fails(said, *arguments, code=2)


WAYS = pytest.mark.parametrize("way", [["--stream"], ["--no-compare"]])


@pytest.fixture
def indexed(tmp_path):
    """Two files; in the first one the rows have an index, which tells what is to be predicted."""
    place = tmp_path / "indexed"
    place.mkdir()
    for number in range(2):
        rng = np.random.default_rng(number)
        frame = pd.DataFrame({"x": rng.normal(size=100), "z": rng.normal(size=100), "y": ["up"] * 50 + ["down"] * 50})
        frame.sample(frac=1, random_state=0).to_parquet(place / f"{number}.parquet", index=number == 0)
    return place


def predicted(model, source, tmp_path):
    """The rows with predictions; those of one file come back as they were, with their index."""
    succeed("predict", model, source, "--out", tmp_path / "out.parquet")
    found = pq.read_table(tmp_path / "out.parquet")
    assert ("__index_level_0__" in found.column_names) == source.is_file()
    return found


@WAYS
def test_the_index_of_pandas_is_left_out_with_a_note(indexed, tmp_path, way):
    out = tmp_path / "model.tart"
    fit = ("fit", indexed, "--target", "y", *way, "--epochs", 1, "--out", out, "--force")
    note = "left out: '__index_level_0__', the index of the rows in pandas; reset_index() before to_parquet keeps it"
    assert succeed(*fit).stderr.count(f"Note: {note}\n") == 1
    assert load(out).feature_names_in_.tolist() == ["x", "z"]
    assert "reset_index" not in succeed(*fit, "--drop", "__index_level_0__").stderr
    fails(f"{indexed} has no column beside the target 'y' to predict it from", *fit, "--drop", "x", "--drop", "z")
    for source in (indexed / "0.parquet", indexed):
        found = predicted(out, source, tmp_path)
        assert found["prediction"].to_pylist() == load(out).predict(source).tolist()
    result = succeed("fit", indexed / "0.parquet", *fit[2:])
    assert result.stderr.count(note) == 1
    assert load(out).feature_names_in_.tolist() == ["x", "z"]


@WAYS
def test_an_index_may_be_the_target(indexed, tmp_path, way):
    path, out = indexed / "0.parquet", tmp_path / "model.tart"
    pd.read_parquet(path).set_index("y").to_parquet(path)
    result = succeed("fit", path, "--target", "y", *way, "--epochs", 1, "--out", out)
    assert "the index of the rows" not in result.stderr
    assert load(out).feature_names_in_.tolist() == ["x", "z"]


def test_a_search_leaves_out_the_index_of_pandas(indexed, tmp_path):
    options = ("--target", "y", "--trials", 1, "--epochs", 1, "--folds", 2, "--no-report")
    result = succeed("search", indexed, *options, "--out", tmp_path / "model.tart")
    assert "left out: '__index_level_0__', the index of the rows in pandas" in result.stderr
    assert load(tmp_path / "model.tart").feature_names_in_.tolist() == ["x", "z"]


def test_a_model_without_names_does_not_count_the_index(indexed, tmp_path):
    rows = pd.read_parquet(indexed / "0.parquet")
    out = tmp_path / "model.tart"
    model = TartClassifier(depth=1, epochs=1).fit(rows[["x", "z"]].to_numpy(), rows["y"])
    model.target_name_ = "y"
    model.save(out)
    for source in (indexed / "0.parquet", indexed):
        found = predicted(out, source, tmp_path)["prediction"].to_pylist()
        assert found == model.predict(pd.read_parquet(source)[["x", "z"]].to_numpy()).tolist()


@WAYS
def test_a_wrong_row_of_several_files_is_counted_in_its_own(indexed, tmp_path, way):
    path = indexed / "1.parquet"
    wrong = pd.read_parquet(path)
    wrong.loc[57, "x"] = np.inf
    wrong.to_parquet(path, row_group_size=20, index=False)
    result = run("fit", indexed, "--target", "y", *way, "--out", tmp_path / "m.tart")
    assert result.exit_code == 1
    # The header counts as row 1, as in all tables.
    assert re.search(r"1\.parquet: column 'x' must hold finite numbers.* row 59\b", result.stderr)


def test_a_category_that_is_no_number_is_named_with_its_row(model, tmp_path):
    texts = pa.array(["1.5"] * 57 + ["many"] + ["2.5"] * 42).dictionary_encode()
    pq.write_table(pa.table({"x": texts, "colour": ["red"] * 100}), tmp_path / "new.parquet", row_group_size=20)
    for source in (tmp_path / "new.parquet", tmp_path):
        result = run("predict", model, source, "--chunk-rows", 20, "--out", tmp_path / "out.csv")
        assert result.exit_code == 1
        assert "column 'x' must hold a number or a missing value in every row, but row 59 holds 'many'" in result.stderr


def test_a_report_names_the_file_and_the_row(folder, model, tmp_path):
    first, second = pq.read_table(folder / "rows-0.parquet"), pq.read_table(folder / "rows-1.parquet").to_pydict()
    second["x"][17] = float("inf")
    pq.write_table(first, tmp_path / "0.parquet")
    pq.write_table(pa.table(second), tmp_path / "1.parquet")
    result = run("report", model, tmp_path, "--out", tmp_path / "page.html")
    assert result.exit_code == 1
    assert (
        "1.parquet: column 'x' must hold finite numbers, got infinity or a number too large in row 19" in result.stderr
    )
