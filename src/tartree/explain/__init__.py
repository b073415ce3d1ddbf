"""Explanations of fitted trees: as plain data, for rows, as text, and smaller with a certificate.

Functions take a fitted estimator or a `FittedModel`. README.md in this folder has the derivations.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tartree.explain.attribution.importances import importances
from tartree.explain.attribution.row_explanations import Explanation, RowExplanation, explain_rows
from tartree.explain.counterfactuals.counterfactual_search import Counterfactual, counterfactual
from tartree.explain.simplification.hard_tree import Hardening, harden
from tartree.explain.simplification.simplifier import simplification_path, simplify
from tartree.explain.text.graphs import export_dot, export_mermaid
from tartree.explain.text.leaf_descriptions import LeafDescription, describe_leaves
from tartree.explain.text.rules import export_text
from tartree.explain.tree_view.assembly import view
from tartree.explain.tree_view.views import TreeView
from tartree.explain.verification.certificates import Certificate

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
    # Pictures need matplotlib, which is optional: they are imported on first use.
    if name in ("page", "plots"):
        return import_module(f"tartree.explain.{name}")
    raise AttributeError(f"module 'tartree.explain' has no attribute {name!r}")
