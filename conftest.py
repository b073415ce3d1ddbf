"""Settings for all tests, those in docstrings too."""

import sys

import pytest


@pytest.fixture(autouse=True)
def _close_figures():
    """Close the figures of a test: matplotlib warns when many are open, and warnings are errors."""
    yield
    if (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
        pyplot.close("all")
