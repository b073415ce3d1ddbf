"""Accurate and readable trees for tables."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tartree.structure import Structure

if TYPE_CHECKING:
    from tartree import explain, nn, ops, zoo
    from tartree.estimators import TartClassifier, TartRegressor, load
    from tartree.table import TableEncoder

__all__ = ["Structure", "TableEncoder", "TartClassifier", "TartRegressor", "explain", "load", "nn", "ops", "zoo"]
__version__ = "0.1.0"

# Torch and scikit-learn take a second to import; whoever asks for less should not wait.
_HOMES = {
    "TableEncoder": "tartree.table",
    "TartClassifier": "tartree.estimators",
    "TartRegressor": "tartree.estimators",
    "load": "tartree.estimators",
}
_ROOMS = {"explain", "nn", "ops", "zoo"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _ROOMS:
        return import_module(f"tartree.{name}")
    raise AttributeError(f"module 'tartree' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
