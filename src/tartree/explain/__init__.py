"""Explanations of fitted trees: as plain data, for rows, as text, and smaller with a certificate.

Functions take a fitted `TartClassifier` or `TartRegressor`. README.md in this folder derives what is claimed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tartree.explain.certificates import Certificate
from tartree.explain.counterfactuals import Counterfactual, counterfactual
from tartree.explain.graphs import export_dot, export_mermaid
from tartree.explain.hardening import Hardening, harden
from tartree.explain.importances import importances
from tartree.explain.leaves import LeafDescription, describe_leaves
from tartree.explain.rows import Explanation, RowExplanation, explain_rows
from tartree.explain.simplifying import simplification_path, simplify
from tartree.explain.text import export_text
from tartree.explain.view import TreeView, view

if TYPE_CHECKING:
    from tartree.explain import page as page
    from tartree.explain import plots as plots

__all__ = [
    "Certificate",
    "Counterfactual",
    "Explanation",
    "Hardening",
    "LeafDescription",
    "RowExplanation",
    "TreeView",
    "counterfactual",
    "describe_leaves",
    "explain_rows",
    "export_dot",
    "export_mermaid",
    "export_text",
    "harden",
    "importances",
    "simplification_path",
    "simplify",
    "view",
]


def __getattr__(name: str) -> Any:
    # Pictures need matplotlib, which is optional: they are imported when they are asked for.
    if name in ("page", "plots"):
        return import_module(f"tartree.explain.{name}")
    raise AttributeError(f"module 'tartree.explain' has no attribute {name!r}")
