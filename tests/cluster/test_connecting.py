"""The way to a cluster, where there is none."""

import socket
import subprocess
import sys

import pytest

from tartree.cluster import connected


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


def test_no_address_at_all(unconnected):
    with pytest.raises(ValueError, match="address must be 'auto', 'local' or HOST:PORT, however: address='here'"):
        connected("here").__enter__()
