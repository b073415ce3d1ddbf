"""`tartree predict`: the rows as they came, and what the model says about them."""

import csv
import gzip
import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tartree import TartClassifier, TartRegressor, load
from tests.cli.conftest import HEADER, fails, patients, run, succeed, write_csv
from tests.tolerances import ON_CPU, within

NEW = ["prediction", "probability_benign", "probability_malignant"]


def records(text, delimiter=","):
    return list(csv.DictReader(io.StringIO(text), delimiter=delimiter))


def probabilities(found):
    return [[float(row[name]) for name in NEW[1:]] for row in found]


def expected(model_path, rows):
    table = pa.table(
        {
            "age": pa.array([float(row[0]) if row[0] else None for row in rows]),
            "crp": pa.array([float(row[1]) if row[1] else None for row in rows]),
            "sex": [row[2] for row in rows],
            "visit": pa.array([row[3] for row in rows]).cast(pa.date32()),
        }
    )
    model = load(model_path)
    return model.predict(table), model.predict_proba(table)


def test_equal_to_python(model_path, patients_csv):
    found = records(succeed("predict", model_path, patients_csv).stdout)
    labels, probability = expected(model_path, patients())
    assert list(found[0]) == [*HEADER, *NEW]
    assert [list(row.values())[:5] for row in found] == patients()
    assert [row["prediction"] for row in found] == labels.tolist()
    np.testing.assert_allclose(probabilities(found), probability, atol=1e-6)


def test_without_probabilities(model_path, patients_csv):
    found = records(succeed("predict", model_path, patients_csv, "--no-proba").stdout)
    assert list(found[0]) == [*HEADER, "prediction"]


@pytest.mark.parametrize("rows", [1, 7, 60, 1000])
def test_chunks_change_nothing(model_path, patients_csv, rows):
    whole = succeed("predict", model_path, patients_csv).stdout
    chunks = succeed("predict", model_path, patients_csv, "--chunk-rows", rows).stdout
    if ON_CPU:
        assert chunks == whole
    found, wanted = records(chunks), records(whole)
    np.testing.assert_allclose(probabilities(found), probabilities(wanted), rtol=0, atol=within(0.0))
    assert [list(row.values())[:6] for row in found] == [list(row.values())[:6] for row in wanted]


def test_standard_input(model_path, patients_csv):
    piped = succeed("predict", model_path, "-", stdin=patients_csv.read_text())
    assert piped.stdout == succeed("predict", model_path, patients_csv).stdout


def test_columns_by_name(model_path, tmp_path):
    """In another order, with more columns, and without the target."""
    rows = patients()
    other = [[row[3], f"00{place}", row[2], row[1], row[0]] for place, row in enumerate(rows)]
    path = write_csv(tmp_path / "other.csv", other, ["visit", "patient", "sex", "crp", "age"])
    found = records(succeed("predict", model_path, path).stdout)
    assert list(found[0]) == ["visit", "patient", "sex", "crp", "age", *NEW]
    assert found[7]["patient"] == "007"
    assert [row["prediction"] for row in found] == expected(model_path, rows)[0].tolist()


def test_values_come_back_as_they_were(model_path, tmp_path):
    rows = [["050", " NA", "f", "2021-01-01", 'say "no", please'], ["7e1", "1.50", "new\nlevel", "", "ä"]]
    text = succeed("predict", model_path, write_csv(tmp_path / "raw.csv", rows), "--no-proba").stdout
    assert [list(row.values())[:5] for row in records(text)] == rows
    assert '050, NA,f,2021-01-01,"say ""no"", please",' in text


def test_other_dialect(model_path, tmp_path):
    rows = patients()
    path = tmp_path / "excel.csv"
    lines = [";".join([row[0], row[1].replace(".", ","), *row[2:]]) for row in rows]
    path.write_bytes("\r\n".join([";".join(HEADER), *lines]).encode("utf-8-sig"))
    found = records(succeed("predict", model_path, path).stdout)
    np.testing.assert_allclose(probabilities(found), expected(model_path, rows)[1], atol=1e-6)


@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.csv.gz", "out.TSV.gz"])
def test_text_files(model_path, patients_csv, tmp_path, name):
    out = tmp_path / name
    result = succeed("predict", model_path, patients_csv, "--out", out)
    assert result.stdout == ""
    assert result.stderr == f"60 rows written to {out}\n"
    content = out.read_bytes()
    text = (gzip.decompress(content) if name.endswith("gz") else content).decode()
    printed = succeed("predict", model_path, patients_csv).stdout
    assert records(text, "\t" if "tsv" in name.lower() else ",") == records(printed)


def test_parquet_in_and_out(model_path, tmp_path):
    rows = patients()
    table = pa.table({name: [row[place] or None for row in rows] for place, name in enumerate(HEADER)})
    table = table.set_column(0, "age", table["age"].cast(pa.int32())).append_column("list", [[[1]] * 60])
    table = table.set_column(2, "sex", table["sex"].dictionary_encode())
    pq.write_table(table, tmp_path / "in.parquet")
    succeed("predict", model_path, tmp_path / "in.parquet", "--out", tmp_path / "out.parquet", "--chunk-rows", 7)
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.column_names == [*table.column_names, *NEW]
    assert found.select(table.column_names).equals(table)
    np.testing.assert_allclose(found["probability_benign"], expected(model_path, rows)[1][:, 0], atol=1e-6)
    fails(
        "column 'list' of type list<element: int64> cannot be written as text; give --out a name that ends in .parquet",
        *("predict", model_path, tmp_path / "in.parquet"),
    )
    pq.write_table(table.drop_columns(["list"]), tmp_path / "flat.parquet")
    text = succeed("predict", model_path, tmp_path / "flat.parquet").stdout
    assert [list(row.values())[:5] for row in records(text)] == rows


def test_names_that_are_taken(model_path, tmp_path):
    rows = [[*row, "old", "older"] for row in patients()]
    path = write_csv(tmp_path / "taken.csv", rows, [*HEADER, "prediction", "prediction_1"])
    found = records(succeed("predict", model_path, path, "--no-proba").stdout)
    assert list(found[0]) == [*HEADER, "prediction", "prediction_1", "prediction_2"]
    assert found[0]["prediction"] == "old"


def test_columns_that_the_model_does_not_read_may_be_missing(tmp_path):
    rows = [[f"id{place}", "same", *row] for place, row in enumerate(patients())]
    path = write_csv(tmp_path / "full.csv", rows, ["patient", "centre", *HEADER])
    model = tmp_path / "model.tart"
    succeed("fit", path, "--target", "diagnosis", "--out", model, "--epochs", 2, "--no-compare")
    whole = records(succeed("predict", model, path).stdout)
    part = records(succeed("predict", model, write_csv(tmp_path / "part.csv", patients())).stdout)
    assert probabilities(whole) == probabilities(part)


def test_regression(tmp_path):
    rows = [[str(number), str(number * 0.5)] for number in range(40)]
    path = write_csv(tmp_path / "line.csv", rows, ["x", "y"])
    model = tmp_path / "line.tart"
    succeed("fit", path, "--target", "y", "--out", model, "--epochs", 5, "--no-compare")
    found = records(succeed("predict", model, path).stdout)
    assert list(found[0]) == ["x", "y", "prediction", "std"]
    mean, std = load(model).predict(pa.table({"x": range(40)}), return_std=True)
    np.testing.assert_allclose([float(row["prediction"]) for row in found], mean)
    np.testing.assert_allclose([float(row["std"]) for row in found], std)


def test_models_made_in_python(tmp_path):
    """Without names of columns, with several targets, with boolean and numeric classes."""
    X = np.random.default_rng(0).normal(size=(20, 2)).round(3)
    path = write_csv(tmp_path / "x.csv", X.tolist(), ["a", "b"])
    for y in (X[:, 0] > 0, np.where(X[:, 0] > 0, 3, 4)):
        model = TartClassifier(epochs=2, depth=1, random_state=0).fit(X, y)
        model.save(tmp_path / "c.tart")
        found = records(succeed("predict", tmp_path / "c.tart", path).stdout)
        assert [row["prediction"] for row in found] == [str(label).lower() for label in model.predict(X).tolist()]
    model = TartRegressor(epochs=2, depth=1, random_state=0).fit(X, X)
    model.save(tmp_path / "r.tart")
    found = records(succeed("predict", tmp_path / "r.tart", path).stdout)
    assert list(found[0]) == ["a", "b", "prediction_1", "std_1", "prediction_2", "std_2"]
    wide = write_csv(tmp_path / "wide.csv", [[1, 2, 3]], ["a", "b", "c"])
    fails(
        f"{wide} must have 2 columns, as many as the model was fitted to without names, got 3: a, b, c",
        *("predict", tmp_path / "r.tart", wide),
    )


def test_no_rows(model_path, tmp_path):
    path = write_csv(tmp_path / "none.csv", [])
    result = succeed("predict", model_path, path)
    assert result.stdout == ",".join([*HEADER, *NEW]) + "\n"
    assert result.stderr == f"Note: {path} has a header and no rows\n"
    succeed("predict", model_path, path, "--out", tmp_path / "none.parquet")
    assert pq.read_table(tmp_path / "none.parquet").num_rows == 0


def test_missing_columns(model_path, tmp_path):
    rows = [row[:4] for row in patients(3)]
    path = write_csv(tmp_path / "new.csv", rows, ["Age", "crp", "sex", "visit"])
    fails(f"{path} has no column 'age'; did you mean 'Age'?", "predict", model_path, path)
    path = write_csv(tmp_path / "new.csv", rows, ["years", "crp", "sex", "visit"])
    fails(f"{path} has no column 'age'; the model was fitted with it", "predict", model_path, path)
    path = write_csv(tmp_path / "new.csv", rows, ["years", "CRP", "sex", "day"])
    fails(f"{path} has no columns 'age', 'crp', 'visit'; 'crp' may be 'CRP'", "predict", model_path, path)


def test_a_wrong_value_is_named_and_nothing_is_left(model_path, tmp_path):
    rows = patients(50)
    rows[41][0] = "old"
    path = write_csv(tmp_path / "new.csv", rows)
    out = tmp_path / "out.csv"
    out.write_text("before")
    fails(
        "column 'age' must hold numbers, as it did in fit, got 'old' in row 43; correct it or leave it empty",
        *("predict", model_path, path, "--out", out, "--chunk-rows", 10),
    )
    assert out.read_text() == "before"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["new.csv", "out.csv"]


def test_files(model_path, patients_csv, tmp_path):
    none = tmp_path / "none"
    fails(f"{none}: No such file; the model comes first, then the data", "predict", none, patients_csv)
    fails(f"{none}: No such file or directory", "predict", model_path, none)
    fails(
        f"the name of --out must end in .csv, .tsv or .parquet, got {tmp_path / 'out.xlsx'}",
        *("predict", model_path, patients_csv, "--out", tmp_path / "out.xlsx"),
    )
    fails(
        f"{none / 'out.csv'}: No such file or directory", "predict", model_path, patients_csv, "--out", none / "out.csv"
    )
    before = patients_csv.read_bytes()
    message = f"{patients_csv} is read by this command; give another --out"
    fails(message, "predict", model_path, patients_csv, "--out", patients_csv)
    assert patients_csv.read_bytes() == before
    result = run("predict", patients_csv, model_path)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: '{patients_csv}' is not a tartree model")


def test_a_device_is_written_as_it_is(model_path, patients_csv, tmp_path):
    link = tmp_path / "link.csv"
    link.symlink_to("/dev/null")
    succeed("predict", model_path, patients_csv, "--out", link)
    assert link.is_symlink()


def test_numbers_are_read_as_in_fit(tmp_path):
    """Decimal commas and leading zeros give the predictions of plain numbers, in whatever chunk they come."""
    plain = [[str(number), f"{number}.125", "ab"[number > 20]] for number in range(40)]
    people = [
        [f"{number:02d}" if number == 7 else str(number), f"{number},125", label]
        for number, (_, _, label) in enumerate(plain)
    ]
    header = ["age", "crp", "y"]
    model = tmp_path / "m.tart"
    fitted = write_csv(tmp_path / "people.csv", people, header)
    succeed("fit", fitted, "--target", "y", "--out", model, "--epochs", 2, "--no-compare")
    expected = records(succeed("predict", model, write_csv(tmp_path / "plain.csv", plain, header)).stdout)
    for chunk in (1000, 3):
        result = succeed("predict", model, fitted, "--chunk-rows", chunk)
        found = records(result.stdout)
        assert [row["probability_a"] for row in found] == [row["probability_a"] for row in expected]
    assert not result.stderr


def test_thousands_are_read_as_the_page_reads_them(tmp_path):
    """A sum of 4,500 in a table of sums in the thousands is not one of 4.5."""
    rows = [[str(250 + 137 * number), "ab"[number > 30]] for number in range(60)]
    model = tmp_path / "m.tart"
    succeed("fit", write_csv(tmp_path / "t.csv", rows, ["sum", "y"]), "--target", "y", "-o", model, "--no-compare")
    plain = records(succeed("predict", model, write_csv(tmp_path / "p.csv", [["6500"], ["900"]], ["sum"])).stdout)
    result = succeed("predict", model, write_csv(tmp_path / "c.csv", [["6,500"], ["900"]], ["sum"]))
    assert [row["prediction"] for row in plain] == ["b", "a"]
    for name in ("prediction", "probability_a", "probability_b"):
        assert [row[name] for row in records(result.stdout)] == [row[name] for row in plain]
    assert result.stderr == "Note: column 'sum': '6,500' in row 2 is read as 6500; leave out thousands commas\n"
