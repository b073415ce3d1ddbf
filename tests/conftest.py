"""Settings for all tests: seeds, threads, and structures to try things on."""

import importlib.util
import os
import signal

import pytest
import torch

from tartree import Structure

from .parallel import SHARD, share_of
from .pretend_device import DEVICE as PRETEND
from .pretend_device import auto_is, pretend_device

# Without a GPU, Triton's kernels run in its interpreter; set this before they are imported.
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"

# Shells start background jobs with SIGINT ignored; tests that press Ctrl-C need it, and so do the processes they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

if importlib.util.find_spec("hypothesis"):
    import hypothesis

    hypothesis.settings.register_profile("default", deadline=None, max_examples=50, derandomize=True)
    hypothesis.settings.load_profile("default")

# Tables of tests are small, and other processes use the cores too: threads would only wait for each other.
torch.set_num_threads(1)

#: Trees and graphs without a window and stride.
IRREGULAR = {
    "pruned binary": Structure(3).without([(3, 2), (2, 0)]),
    "pruned graph": Structure(3, 3, 2).without([(3, 2), (2, 0), (1, 1)]),
    "mixed fans": Structure.from_children([[[0, 1, 2]], [[0], [0, 1], [1, 2]], [[0, 1, 2, 3], [3], [3, 4]]]),
    "one long path": Structure.from_tree([[1, 2], [], [3, 4], [], [5, 6], [], []]),
    "a chain": Structure.from_children([[[0]], [[0, 1]]]),
}


def pytest_collection_modifyitems(config, items):
    """Keep the share of the modules of one process of `parallel`."""
    if SHARD not in os.environ:
        return
    modules = share_of([item.nodeid.split("::")[0] for item in items], os.environ[SHARD])
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid.split("::")[0] not in modules])
    items[:] = [item for item in items if item.nodeid.split("::")[0] in modules]


@pytest.fixture(autouse=True, scope="session")
def _device():
    """With TARTREE_TEST_DEVICE=pretend, ``device="auto"`` is the pretend device in all tests."""
    if os.environ.get("TARTREE_TEST_DEVICE", "") != "pretend":
        yield
        return
    with pretend_device(), auto_is(PRETEND):
        yield


def pytest_make_parametrize_id(val, argname):
    """Name binary parameters by position: archives hold time stamps, and workers must collect the same ids."""
    return argname if isinstance(val, bytes) else None


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.fixture
def interrupted_refit(monkeypatch):
    """Ctrl-C in every fit: in a search, the refit."""
    from tartree import TartClassifier

    def interrupted(self, X, y, sample_weight=None):
        raise KeyboardInterrupt

    monkeypatch.setattr(TartClassifier, "fit", interrupted)


@pytest.fixture
def triton(monkeypatch):
    """Triton as if it were here; set to False, as if it were not."""
    from tartree.ops import backend

    found = {"triton": True}
    monkeypatch.setattr(backend, "has_triton", lambda: found["triton"])
    return found
