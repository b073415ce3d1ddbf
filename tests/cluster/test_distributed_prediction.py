"""Prediction on a cluster: that of one process, in the order of rows."""

import pickle
import secrets
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tartree import TartClassifier, TartRegressor
from tartree.cluster import predict
from tartree.cluster.distributed_prediction import PredictionTable, predict_tables
from tests.cluster.calls import return_rows

pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning:ray.data.context")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A million rows in four files, with row groups of different sizes."""
    folder, rng = tmp_path_factory.mktemp("rows"), np.random.default_rng(0)
    for number in range(4):
        columns = {name: rng.normal(size=250_000).astype(np.float32) for name in "abc"}
        pq.write_table(pa.table(columns), folder / f"{number}.parquet", row_group_size=40_000 + 7_000 * number)
    return folder


def test_a_million_rows_in_order(cluster, files):
    rows = pq.read_table(files)
    some = rows.slice(0, 2_000)
    labels = np.where(some["a"].to_numpy() > some["b"].to_numpy(), "more", "less")
    model = TartClassifier(depth=2, epochs=3, random_state=0).fit(some, labels)
    found = predict(model, files, method="predict_proba", workers=2)
    assert found.shape == (1_000_000, 2)
    np.testing.assert_allclose(found, model.predict_proba(rows), rtol=0, atol=1e-12)


def test_what_is_wrong_with_a_file_is_said_as_on_one_machine(cluster, tmp_path):
    x = np.random.default_rng(0).normal(size=400)
    model = TartRegressor(depth=1, epochs=1, random_state=0).fit(pa.table({"x": x}), x)
    pq.write_table(pa.table({"x": x, "note": ["only here"] * 400}), tmp_path / "0.parquet")  # nobody asks for it
    x[250] = np.inf
    pq.write_table(pa.table({"x": x}), tmp_path / "1.parquet", row_group_size=100)
    with pytest.raises(ValueError, match=r"1\.parquet: column 'x' must hold finite numbers") as here:
        model.predict(tmp_path)
    with pytest.raises(ValueError) as there:  # noqa: PT011 - compared as a whole
        predict(model, tmp_path, workers=1)
    assert str(there.value) == str(here.value)
    assert there.value.__cause__ is None
    import ray

    end = time.monotonic() + 20
    while ray.available_resources().get("CPU") != 4 and time.monotonic() < end:
        time.sleep(0.1)
    assert ray.available_resources().get("CPU") == 4  # nobody stays, though the error is still held here


class Harm:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_nothing_that_a_file_holds_is_run(cluster, tmp_path, monkeypatch):
    """Columns of files come back with results, and errors come as pickles: a file must not pass for an error."""
    x = np.random.default_rng(0).normal(size=20)
    model = TartRegressor(depth=1, epochs=1, random_state=0).fit(pa.table({"x": x}), x)
    names, draw = ["what went wrong in tartree"], secrets.token_hex
    monkeypatch.setattr(secrets, "token_hex", lambda size: names.append(draw(size)) or names[-1])
    for _ in range(2):  # in the second file are the names that the first call used
        harm = {name: [pickle.dumps(Harm(str(tmp_path / "harm")))] * 20 for name in names}
        pq.write_table(pa.table({"x": x, **harm}), tmp_path / "rows.parquet")
        found = list(predict_tables(model, tmp_path / "rows.parquet", return_rows, workers=1))
        assert sum(map(len, found)) == 20
    assert len(names) > 1
    assert not (tmp_path / "harm").exists()


def test_labels_and_values_travel_as_numbers(files):
    rows = pq.read_table(files / "0.parquet").slice(0, 1_000)
    signs = np.where(rows["a"].to_numpy() > 0, "positive", "negative")
    classifier = TartClassifier(depth=1, epochs=3, random_state=0).fit(rows, signs)
    codes = PredictionTable("predict")
    assert (classifier.classes_[codes.array(codes(classifier.model_, rows))] == classifier.predict(rows)).all()
    both = np.stack([rows["a"].to_numpy(), rows["b"].to_numpy()], axis=1)
    for target in (both, both[:, 0]):
        regressor = TartRegressor(depth=1, epochs=3, random_state=0).fit(rows, target)
        values = PredictionTable("predict")
        found = values.array(values(regressor.model_, rows))
        assert found.shape == target.shape
        assert (found == regressor.predict(rows)).all()


def test_files_without_rows(files, tmp_path):
    """No worker is needed; shapes and types are those of one machine."""
    rows = pq.read_table(files / "0.parquet").slice(0, 300)
    pq.write_table(rows.slice(0, 0), tmp_path / "nothing.parquet")
    both = np.stack([rows["a"].to_numpy(), rows["b"].to_numpy()], axis=1)
    labels = np.array(["less", "more", "most"])[np.digitize(both[:, 0], [-0.5, 0.5])]
    for model, method, shape in (
        (TartClassifier(depth=1, epochs=1).fit(rows, labels), "predict", (0,)),
        (TartClassifier(depth=1, epochs=1).fit(rows, labels), "predict_proba", (0, 3)),
        (TartRegressor(depth=1, epochs=1).fit(rows, both[:, 0]), "predict", (0,)),
        (TartRegressor(depth=1, epochs=1).fit(rows, both), "predict", (0, 2)),
    ):
        found, here = predict(model, tmp_path, method=method), getattr(model, method)(tmp_path)
        assert found.shape == here.shape == shape
        assert found.dtype == here.dtype


def test_what_cannot_be_predicted_is_said_at_once(files):
    rows = pq.read_table(files / "0.parquet").slice(0, 100)
    model = TartRegressor(depth=1, epochs=1).fit(rows, rows["a"].to_numpy())
    with pytest.raises(ValueError, match="one of predict for this model, got 'predict_proba'"):
        predict(model, files, method="predict_proba")
    with pytest.raises(TypeError, match=r"must be Parquet files.*got Table"):
        predict(model, rows)
    pq.write_table(rows.select(["a", "b"]), files.parent / "narrow.parquet")
    with pytest.raises(ValueError, match=r"narrow\.parquet must have the column 'c'"):
        predict(model, files.parent / "narrow.parquet")
