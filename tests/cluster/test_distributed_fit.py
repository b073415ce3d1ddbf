"""One fit by several workers: that of one process, whatever happens to the workers."""

import os
import pickle
import signal
import time
from threading import Thread

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tartree import TartClassifier, load
from tartree import cluster as clusters
from tartree.cluster.distributed_fit import worker_spec
from tartree.table import ParquetTable
from tests.cluster.calls import EndOnce, Mark

pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning:ray.data.context")

SETTINGS = {
    "depth": 3,
    "epochs": 6,
    "batch_size": 1024,
    "class_weight": "balanced",
    "early_stopping": True,
    "numeric": "quantile",
    "random_state": np.int64(0),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Numbers with missing values and too many levels to count, a category of which one file has a level of its own,
    unequal classes, and weights.
    """
    folder, rng = tmp_path_factory.mktemp("rows"), np.random.default_rng(0)
    for number in range(5):
        n_rows = 1800 + 100 * number
        a, b = rng.normal(size=(2, n_rows))
        colours = rng.choice(["red", "blue", "green"] + ["rare"] * (number == 3), size=n_rows)
        target = np.where(a + (colours == "red") + 0.3 * rng.normal(size=n_rows) > 1, "yes", "no")
        a[rng.random(n_rows) < 0.05] = np.nan
        columns = {"a": a, "b": b, "colour": colours, "weight": rng.uniform(0.5, 2, n_rows), "y": target}
        pq.write_table(pa.table(columns), folder / f"{number}.parquet", row_group_size=700)
    return folder


def test_two_workers_fit_what_one_process_fits_though_one_is_killed(cluster, files, tmp_path, capsys):
    alone = TartClassifier(**SETTINGS).fit(ParquetTable(files, in_memory=False), y="y", sample_weight="weight")
    model = TartClassifier(**SETTINGS, verbose=1, callbacks=[EndOnce(tmp_path, epoch=4)])
    on_interrupt = signal.getsignal(signal.SIGINT)
    fitted = clusters.fit(model, files, y="y", sample_weight="weight", workers=2, checkpoint_seconds=0)
    assert fitted is model
    assert model.encoder_.columns_ == alone.encoder_.columns_  # to the last bit
    assert f"fit: {len(model.history_)} epochs, loss" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is on_interrupt
    rows = pq.read_table(files, columns=["a", "b", "colour"])
    np.testing.assert_allclose(model.predict_proba(rows), alone.predict_proba(rows), rtol=0, atol=1e-5)
    for name in ("loss", "validation_loss"):
        np.testing.assert_allclose(model.history_[name], alone.history_[name], rtol=1e-5)
    assert model.get_params()["device"] == "auto"

    assert (tmp_path / "ended").exists()
    starts = {mark.name.split("-of-")[1] for mark in tmp_path.glob("epoch-*")}
    assert len(starts) == 4  # two processes before, two after
    assert len(list(tmp_path.glob("epoch-1-*"))) == 2  # nobody began anew

    model.set_params(callbacks=()).save(tmp_path / "model.tart")
    assert (load(tmp_path / "model.tart").predict_proba(rows) == model.predict_proba(rows)).all()


def test_an_interrupt_leaves_nothing_behind(cluster, files, tmp_path):
    """As by Ctrl-C in the middle of training, when there are checkpoints."""
    storage = tmp_path / "storage"
    storage.mkdir()
    model = TartClassifier(depth=1, epochs=10_000, early_stopping=False, callbacks=[Mark(tmp_path)])
    kept = []

    def interrupt():
        while not (tmp_path / "epoch-3").exists():
            time.sleep(0.05)
        kept.extend(storage.glob("tartree-*/checkpoint_*"))
        os.kill(os.getpid(), signal.SIGINT)

    thread = Thread(target=interrupt, daemon=True)
    thread.start()
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        clusters.fit(model, files, y="y", workers=2, checkpoint_seconds=0, storage=str(storage))
    thread.join(timeout=10)
    assert kept
    assert vars(model) == before
    assert not list(storage.iterdir())


def test_workers_draw_what_one_process_would_draw():
    """Whatever the seed is, and each time that they start; a generator goes on here as after a fit in one process."""
    for make in (lambda: 5, lambda: np.int32(5), lambda: np.random.RandomState(5), lambda: None):
        here, sender = (TartClassifier(random_state=make()).spec() for _ in range(2))
        for _ in range(2):
            np.random.seed(5)  # noqa: NPY002 - what None draws from
            expected = here.draw_seeds()
            after = np.random.get_state()[2]  # noqa: NPY002
            np.random.seed(5)  # noqa: NPY002
            sent = pickle.dumps(worker_spec(sender, on_gpu=False))
            for worker in (pickle.loads(sent), pickle.loads(sent)):
                assert (worker.draw_seeds() == expected).all()
            assert np.random.get_state()[2] == after  # noqa: NPY002


def test_errors_in_files_are_raised_before_workers_start(files, tmp_path):
    pq.write_table(pa.table({"a": ["text"]}), tmp_path / "other.parquet")
    with pytest.raises(ValueError, match=r"other\.parquet"):
        clusters.fit(TartClassifier(), [files, tmp_path / "other.parquet"], y="y")
    with pytest.raises(ValueError, match=r"must have the column 'z'"):
        clusters.fit(TartClassifier(), files, y="z")
    with pytest.raises(TypeError, match="must be Parquet files"):
        clusters.fit(TartClassifier(), np.zeros((3, 2)), y="y")


def test_too_many_workers_and_other_addresses(cluster, files):
    with pytest.raises(ValueError, match=r"room for 4 of 1 cores and 0 GPUs, got 5; add nodes"):
        clusters.fit(TartClassifier(), files, y="y", workers=5)
    with pytest.raises(ValueError, match="workers must be an integer of at least 1, got 0"):
        clusters.fit(TartClassifier(), files, y="y", workers=0)
    with pytest.raises(ValueError, match=r"address must be that of the cluster.*got '10.0.0.1:6379'"):
        clusters.fit(TartClassifier(), files, y="y", address="10.0.0.1:6379")
