"""Connections: to no cluster, to a local one, and to the cluster of these tests."""

import os
import shutil
import socket
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tartree.cluster import connected
from tartree.cluster.connection import _is_same_address, quoted_python
from tests.cluster.conftest import make_ray_folder


def test_nothing_heavy_is_loaded_before_it_is_used():
    code = "import sys, tartree.cluster, tartree.cli; assert not {'ray', 'torch', 'sklearn'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_cluster_of_a_test_process_is_no_other_process_s_default(nodes):
    """Ray's default folder is missing on a fresh machine, and shared where tests run twice at the same time."""
    assert Path(os.environ["RAY_TMPDIR"], "ray", "ray_current_cluster").read_text() == nodes.address


ANSWER = """
from tartree.cluster import connected
with connected("local") as ray:
    task = ray.remote(lambda: 42).options(runtime_env={"env_vars": {"ANY": "1"}})  # as Ray Train has it
    print(ray.get(task.remote(), timeout=90))
"""


def test_workers_start_where_the_path_of_python_has_a_space(tmp_path, request):
    pytest.importorskip("ray", reason="Ray is missing: 'tartree[ray]'")
    venv.create(tmp_path / "an environment", symlinks=True)
    (packages,) = tmp_path.glob("an environment/lib/python*/site-packages")
    (packages / "all.pth").write_text("".join(f"import site; site.addsitedir({path!r})\n" for path in sys.path if path))
    folder = make_ray_folder()
    request.addfinalizer(lambda: shutil.rmtree(folder, ignore_errors=True))
    command = [tmp_path / "an environment" / "bin" / "python", "-W", "ignore", "-c", ANSWER]
    done = subprocess.run(command, env=os.environ | {"RAY_TMPDIR": folder}, capture_output=True, text=True)
    assert done.stdout == "42\n", done.stderr


def test_the_path_of_python_is_sent_if_it_needs_quotes_on_this_machine(monkeypatch):
    pytest.importorskip("ray", reason="Ray is missing: 'tartree[ray]'")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(sys, "executable", "/a place/python")
    for here in ("local", "auto", "127.0.0.1:6379", "ray://localhost:10001"):
        assert quoted_python(here) == {"py_executable": "'/a place/python'"}
    monkeypatch.setenv("RAY_ADDRESS", "192.0.2.1:6379")
    for elsewhere in ("auto", "192.0.2.1:6379", "no.such.host.invalid:6379"):
        assert quoted_python(elsewhere) == {}
    monkeypatch.setattr(sys, "executable", "/place/python")
    assert quoted_python("local") == {}


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
    ("error", "message"),
    [
        (
            ConnectionError("Could not find any running Ray instance. Start one."),
            r"^no cluster runs on this machine; start",
        ),
        # So it is with a wrong token: Ray says more on standard error alone.
        (
            ConnectionError("Failed to connect to Ray cluster at 192.0.2.1:6379"),
            r"does not accept .*6379; .*RAY_AUTH_TOKEN",
        ),
        ("AuthenticationError", r"^the cluster does not accept this process: .*no token"),
    ],
)
def test_a_cluster_that_refuses_is_not_reported_as_missing(unconnected, monkeypatch, error, message):
    import ray

    def init(**options):
        raise ray.exceptions.AuthenticationError("no token") if isinstance(error, str) else error

    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(ConnectionError, match=message):
        connected("auto").__enter__()


def test_no_address_at_all(unconnected):
    with pytest.raises(ValueError, match="address must be 'auto', 'local' or HOST:PORT, got 'here'"):
        connected("here").__enter__()


def test_a_name_of_this_machine_is_its_address():
    util = pytest.importorskip("ray.util", reason="Ray is missing: 'tartree[ray]'")
    here = f"{util.get_node_ip_address()}:6379"
    assert _is_same_address("localhost:6379", here)
    assert not _is_same_address("localhost:6380", here)
    assert not _is_same_address("localhost:6379", "192.0.2.1:6379")
