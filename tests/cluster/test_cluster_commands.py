"""What the commands hand over to a cluster, and what they say where there is none."""

import builtins
from contextlib import contextmanager

import joblib
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tartree import load
from tests.cli.conftest import run

pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning:ray.data.context")


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "rows").mkdir()
    for number in range(2):
        a = rng.normal(size=300)
        rows = pa.table({"a": a, "b": rng.normal(size=300), "y": np.where(a > 0, "up", "down")})
        pq.write_table(rows, tmp_path / "rows" / f"{number}.parquet")
    return tmp_path


def test_fit_and_predict_on_two_nodes(cluster, files):
    (files / "shared").mkdir()
    fit = ["fit", files / "rows", "--target", "y", "--epochs", 3, "--out"]
    assert run(*fit, files / "here.tart", "--stream").exit_code == 0
    done = run(*fit, files / "there.tart", "--cluster", "auto", "--workers", 2, "--storage", files / "shared")
    assert done.exit_code == 0, done.output
    assert "is learnt from on a cluster: without a comparison with other models" in done.stderr
    assert not any((files / "shared").iterdir())
    rows = pq.read_table(files / "rows", columns=["a", "b"])
    expected, found = (load(files / f"{name}.tart").predict_proba(rows) for name in ("here", "there"))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)

    predict = ["predict", files / "here.tart", files / "rows", "--out"]
    assert run(*predict, files / "here.parquet").exit_code == 0
    done = run(*predict, files / "there.parquet", "--cluster", "auto", "--workers", 2)
    assert done.exit_code == 0, done.output
    assert pq.read_table(files / "there.parquet").equals(pq.read_table(files / "here.parquet"))

    wrong = pq.read_table(files / "rows" / "1.parquet").to_pydict()
    wrong["b"][200] = float("inf")
    pq.write_table(pa.table(wrong), files / "rows" / "1.parquet", row_group_size=90)
    here = run(*predict, files / "wrong.parquet")
    there = run(*predict, files / "wrong.parquet", "--cluster", "auto", "--workers", 2)
    message = "1.parquet: column 'b' must hold finite numbers, got infinity or a number too large in row 202"
    assert message in here.stderr
    assert there.stderr == here.stderr
    assert not (files / "wrong.parquet").exists()


def test_search_runs_where_joblib_is_told(cluster, files, monkeypatch):
    asked = []

    @contextmanager
    def joblib_backend(address):
        asked.append(address)
        with joblib.parallel_config("threading"):
            yield

    monkeypatch.setattr("tartree.cluster.joblib_backend", joblib_backend)
    options = [
        "--target",
        "y",
        "--trials",
        2,
        "--epochs",
        1,
        "--folds",
        2,
        "--no-report",
        "--out",
        files / "found.tart",
    ]
    done = run("search", files / "rows" / "0.parquet", *options, "--cluster", "auto")
    assert done.exit_code == 0, done.output
    assert asked == ["auto"]


def test_a_table_that_is_not_parquet(cluster, files):
    (files / "rows.csv").write_text("a,y\n1,up\n2,down\n")
    done = run("fit", files / "rows.csv", "--target", "y", "--cluster", "auto")
    assert done.exit_code == 1
    assert "it is not Parquet; convert it, or leave out --stream or --cluster" in done.stderr


def test_without_ray_one_line_names_the_extra(files, monkeypatch):
    real = builtins.__import__

    def without(name, *others):
        if name == "ray":
            raise ImportError("No module named 'ray'")
        return real(name, *others)

    monkeypatch.setattr(builtins, "__import__", without)
    done = run("fit", files / "rows", "--target", "y", "--cluster", "auto")
    assert done.exit_code == 1
    assert done.stderr == "Error: a cluster needs Ray: pip install 'tartree[ray]'\n"
