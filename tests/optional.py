"""Optional packages: a test that uses a missing one is skipped, the rest of its module runs.

`pytest.importorskip` at the top of a module would skip all of it.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import pytest


class Missing:
    """Placeholder of a package that is not installed: a test that uses it is skipped."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        pytest.skip(f"{self._name} is not installed", allow_module_level=True)


def optional(name: str) -> ModuleType | Missing:
    """Return a package, or a placeholder if it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return Missing(name)


class _NoStrategies:
    """Placeholder of hypothesis strategies, which are never drawn from."""

    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        return self

    def __or__(self, other: Any) -> Any:
        return self


def _skipped(*arguments: Any, **settings: Any) -> Any:
    return pytest.mark.skip(reason="hypothesis is not installed")


given: Any
settings: Any
st: Any
try:
    from hypothesis import given, settings
    from hypothesis import strategies as st
except ImportError:
    given, settings, st = _skipped, _skipped, _NoStrategies()
