"""Accurate and readable trees for tables."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tartree.structure import Structure

if TYPE_CHECKING:
    from tartree import (
        cli,
        cluster,
        datasets,
        estimators,
        explain,
        losses,
        model,
        nn,
        ops,
        persist,
        search,
        table,
        training,
        zoo,
    )
    from tartree.estimators import TartClassifier, TartRegressor, load
    from tartree.search import StructureSearch
    from tartree.table import TableEncoder

__all__ = [
    "Structure",
    "StructureSearch",
    "TableEncoder",
    "TartClassifier",
    "TartRegressor",
    "cli",
    "cluster",
    "datasets",
    "estimators",
    "explain",
    "load",
    "losses",
    "model",
    "nn",
    "ops",
    "persist",
    "search",
    "table",
    "training",
    "zoo",
]
__version__ = "0.1.0"

# Torch and scikit-learn take a second to import; whoever asks for less should not wait.
_HOMES = {
    "StructureSearch": "tartree.search",
    "TableEncoder": "tartree.table",
    "TartClassifier": "tartree.estimators",
    "TartRegressor": "tartree.estimators",
    "load": "tartree.estimators",
}
_ROOMS = {
    "cli",
    "cluster",
    "datasets",
    "estimators",
    "explain",
    "losses",
    "model",
    "nn",
    "ops",
    "persist",
    "search",
    "table",
    "training",
    "zoo",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _ROOMS:
        return import_module(f"tartree.{name}")
    raise AttributeError(f"module 'tartree' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
