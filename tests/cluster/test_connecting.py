"""The way to a cluster, where there is none."""

import socket
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.dataset import dataset
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from tartree.cluster import connected
from tartree.cluster.connecting import _is_same_place
from tartree.cluster.tables import everywhere


def test_nothing_heavy_is_loaded_before_it_is_used():
    code = "import sys, tartree.cluster, tartree.cli; assert not {'ray', 'torch', 'sklearn'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture
def unconnected(monkeypatch):
    ray = pytest.importorskip("ray", reason="Ray is missing: 'tartree[ray]'")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)


def test_an_address_where_nobody_listens_is_known_at_once(unconnected):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(ConnectionError, match=rf"no cluster answers at {address} .*; start one with"):
        connected(address).__enter__()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConnectionError("Could not find any running Ray instance. Start one."), r"^no cluster was found here; start"),
        # So it is with a wrong token: Ray says more on standard error alone.
        (
            ConnectionError("Failed to connect to Ray cluster at 192.0.2.1:6379"),
            r"does not let .*6379; .*RAY_AUTH_TOKEN",
        ),
        ("AuthenticationError", r"^the cluster does not let this process in: .*no token"),
    ],
)
def test_a_cluster_that_refuses_is_not_said_to_be_missing(unconnected, monkeypatch, error, said):
    import ray

    def init(**options):
        raise ray.exceptions.AuthenticationError("no token") if isinstance(error, str) else error

    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(ConnectionError, match=said):
        connected("auto").__enter__()


def test_no_address_at_all(unconnected):
    with pytest.raises(ValueError, match="address must be 'auto', 'local' or HOST:PORT, however: address='here'"):
        connected("here").__enter__()


def test_a_name_of_this_machine_is_its_address():
    util = pytest.importorskip("ray.util", reason="Ray is missing: 'tartree[ray]'")
    here = f"{util.get_node_ip_address()}:6379"
    assert _is_same_place("localhost:6379", here)
    assert not _is_same_place("localhost:6380", here)
    assert not _is_same_place("localhost:6379", "192.0.2.1:6379")


def test_files_of_a_store_keep_their_names(tmp_path):
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "0.parquet")
    store = SubTreeFileSystem(str(tmp_path), LocalFileSystem())
    assert everywhere(dataset("0.parquet", filesystem=store)).files == ["0.parquet"]
    assert everywhere(str(tmp_path)).files == [str(tmp_path / "0.parquet")]
