"""Settings for all tests: seeds, threads, and structures to try things on."""

import os

import hypothesis
import pytest
import torch

from tartree import Structure

# Without a GPU, Triton's kernels run in its interpreter; this must be said before they are imported.
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"

hypothesis.settings.register_profile("default", deadline=None, max_examples=50, derandomize=True)
hypothesis.settings.load_profile("default")

# Two test processes share the cores; more threads than cores only wait for each other.
if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)

#: Trees and graphs that no three numbers describe.
IRREGULAR = {
    "pruned binary": Structure(3).without([(3, 2), (2, 0)]),
    "pruned graph": Structure(3, 3, 2).without([(3, 2), (2, 0), (1, 1)]),
    "mixed fans": Structure.from_children([[[0, 1, 2]], [[0], [0, 1], [1, 2]], [[0, 1, 2, 3], [3], [3, 4]]]),
    "one long path": Structure.from_tree([[1, 2], [], [3, 4], [], [5, 6], [], []]),
    "a chain": Structure.from_children([[[0]], [[0, 1]]]),
}


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.fixture
def interrupted_refit(monkeypatch):
    """Ctrl-C in every fit that trains: in a search, the one of the structure chosen."""
    from tartree import TartClassifier

    fit = TartClassifier.fit

    def interrupted(self, X, y, sample_weight=None):
        if not self._stop_before_training:
            raise KeyboardInterrupt
        return fit(self, X, y, sample_weight)

    monkeypatch.setattr(TartClassifier, "fit", interrupted)
