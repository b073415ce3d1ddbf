"""What the commands hand over to a cluster, and what they say where there is none."""

import builtins
from contextlib import contextmanager

import joblib
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from tartree import TartClassifier, load
from tartree.cli import main
from tartree.cluster.predicting import Predictor
from tartree.cluster.tables import everywhere
from tartree.estimators.streaming import fit_stream
from tartree.table import ParquetTable


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "rows").mkdir()
    for number in range(2):
        a = rng.normal(size=300)
        rows = pa.table({"a": a, "b": rng.normal(size=300), "y": np.where(a > 0, "up", "down")})
        pq.write_table(rows, tmp_path / "rows" / f"{number}.parquet")
    return tmp_path


def call(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_fit_hands_its_options_over(cluster, files, monkeypatch):
    given = []

    def fit_table(estimator, arguments, **options):
        given.append(options)
        return fit_stream(estimator, **arguments)

    monkeypatch.setattr("tartree.cluster.fitting.fit_table", fit_table)
    fit = ["fit", files / "rows", "--target", "y", "--no-compare", "--epochs", 3, "--out"]
    assert call(*fit, files / "here.tart", "--stream").exit_code == 0
    done = call(*fit, files / "there.tart", "--cluster", "auto", "--workers", 2, "--storage", "shared")
    assert done.exit_code == 0, done.output
    assert given == [{"address": "auto", "workers": 2, "storage": "shared"}]
    rows = pq.read_table(files / "rows", columns=["a", "b"])
    expected, found = (load(files / f"{name}.tart").predict_proba(rows) for name in ("here", "there"))
    assert (found == expected).all()


def test_predict_sends_what_can_be_sent(cluster, files, monkeypatch):
    import ray

    def predict_tables(model, source, function, **options):
        assert options == {"address": "auto", "workers": 3}
        sent = ray.cloudpickle.loads(ray.cloudpickle.dumps((model, everywhere(source), function, False)))
        worker = Predictor(*sent)
        for number in range(len(source.blocks)):
            yield from worker({"block": np.array([number])})

    monkeypatch.setattr("tartree.cluster.predicting.predict_tables", predict_tables)
    model = TartClassifier(depth=1, epochs=2, random_state=0)
    model.fit(ParquetTable(files / "rows"), y="y").save(files / "model.tart")
    predict = ["predict", files / "model.tart", files / "rows", "--out"]
    assert call(*predict, files / "here.parquet").exit_code == 0
    done = call(*predict, files / "there.parquet", "--cluster", "auto", "--workers", 3)
    assert done.exit_code == 0, done.output
    assert pq.read_table(files / "there.parquet").equals(pq.read_table(files / "here.parquet"))


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
    done = call("search", files / "rows" / "0.parquet", *options, "--cluster", "auto")
    assert done.exit_code == 0, done.output
    assert asked == ["auto"]


def test_a_table_that_is_not_parquet(cluster, files):
    (files / "rows.csv").write_text("a,y\n1,up\n2,down\n")
    done = call("fit", files / "rows.csv", "--target", "y", "--cluster", "auto")
    assert done.exit_code == 1
    assert "it is not Parquet; convert it, or leave out --stream or --cluster" in done.output


def test_without_ray_one_line_names_the_extra(files, monkeypatch):
    real = builtins.__import__

    def without(name, *others):
        if name == "ray":
            raise ImportError("No module named 'ray'")
        return real(name, *others)

    monkeypatch.setattr(builtins, "__import__", without)
    done = call("fit", files / "rows", "--target", "y", "--cluster", "auto")
    assert done.exit_code == 1
    assert done.output == "Error: a cluster needs Ray: pip install 'tartree[ray]'\n"
