"""A real Ray of two nodes on this machine, one a process of tests, and used by one test at a time."""

import logging
import os
import secrets
import shutil
import tempfile
import warnings

import pytest

from tartree.cluster.connection import quoted_python

# Before Ray is imported anywhere: no word to anybody, nobody else may come in, and its controllers look often.
os.environ |= {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.2",
    "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0",
    "RAY_worker_niceness": "0",  # beside other tests they would hardly be served
}

NODE = {"num_cpus": 2, "object_store_memory": 100 * 2**20}


def make_ray_folder():
    """Make a default folder for Ray that no other process uses: `Cluster` writes its address there, even with temp_dir.

    It is not pytest's own folder, nor in a long TMPDIR: names of sockets have at most 107 letters.
    """
    return tempfile.mkdtemp(prefix="ray", dir="/tmp" if os.access("/tmp", os.W_OK) else None)


@pytest.fixture(scope="session")
def nodes():
    """The cluster, to which a test may add nodes; this process is connected to it."""
    try:
        import ray
    except ImportError:
        (pytest.fail if os.environ.get("TARTREE_REQUIRE_RAY") else pytest.skip)("Ray is missing: 'tartree[ray]'")
    with warnings.catch_warnings():  # Ray leaves files of its processes open
        warnings.simplefilter("ignore")
        from ray.cluster_utils import Cluster

        folder = os.environ["RAY_TMPDIR"] = make_ray_folder()
        head = NODE | {"include_dashboard": False}
        head["_system_config"] = {"health_check_period_ms": 1000}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        cluster.add_node(**NODE)
        quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
        ray.init(address=cluster.address, runtime_env=quoted_python(cluster.address), **quiet)
    yield cluster
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.shutdown()
        cluster.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def cluster(nodes, tmp_path_factory):
    """The cluster for one test alone: two processes of tests have two cores between them."""
    from filelock import FileLock

    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    with FileLock(shared / "cluster.lock"):
        yield nodes
