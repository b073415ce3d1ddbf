"""Estimators on real tables: chosen models and tables are run, and the page states what is missing."""

import numpy as np
import pandas as pd
import pytest
import tables


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for name, rows in (("line", 40), ("plane", 60)):
        table = pd.DataFrame(rng.normal(size=(rows, 2)), columns=["a", "b"])
        table.assign(target=table["a"] - table["b"]).to_csv(tmp_path / f"{name}.tsv.gz", sep="\t", index=False)
    return tmp_path


def test_chosen_models_run_on_tables_up_to_a_size(folder):
    out = folder / "tables.jsonl"
    tables.run("regression", folder, out, names=["linear"])
    tables.run("regression", folder, out, names=["linear", "tartree"], most_rows=50, seconds=3600)
    lines = tables.read(out)
    counts = {(line["table"], line["model"]) for line in lines}
    assert counts == {("line", "linear"), ("plane", "linear"), ("line", "tartree")}
    assert len(lines) == 3 * tables.FOLDS * tables.SEEDS
    assert all(("numbers" in line) == (line["model"] == "tartree") for line in lines)
    tables.forget("regression", out, ["tartree"])
    assert {line["model"] for line in tables.read(out)} == {"linear"}
    tables.forget("mixed", out, ["linear"])
    assert len(tables.read(out)) == 2 * tables.FOLDS * tables.SEEDS


def lines_of(table, model, scores, **more):
    facts = {"kind": "regression", "table": table, "rows": 40, "columns": 2, "metric": "R2", "model": model}
    return [{**facts, "seed": 0, "fold": k, "score": score, **more} for k, score in enumerate(scores)]


def test_the_page_has_means_of_all_tables_and_of_those_with_all_models():
    lines = [
        *lines_of("line", "tartree", [0.5, 0.7], numbers=20),
        *lines_of("line", "not readable", [0.8, 0.8]),
        *lines_of("line", "linear", [0.4, 0.4]),
        *lines_of("plane", "tartree", [0.2, 0.2]),
        *lines_of("plane", "linear", [0.6, 0.6]),
    ]
    page = tables.page(lines)
    assert "| line | 40 x 2 | R2 | 0.600 | **0.800** | 0.400 |" in page
    assert "| plane | 40 x 2 | R2 | 0.200 | - | **0.600** |" in page
    assert "| mean of 2 tables |  |  | 0.400 | - | 0.500 |" in page
    assert "| mean rank of 2 tables |  |  | 1.50 | - | 1.50 |" in page
    assert "| mean of 1 tables |  |  | 0.600 | 0.800 | 0.400 |" in page
    assert "| mean rank of 1 tables |  |  | 2.00 | 1.00 | 3.00 |" in page
    assert "20 to 20 by table, 20 in the mean of 1 tables" in page
    assert "not readable was measured on fewer than 10 folds: line (2)." in page
    assert tables.page([line for line in lines if line["model"] != "not readable"]).count("| mean of") == 1
