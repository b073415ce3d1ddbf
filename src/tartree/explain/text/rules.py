"""Trees as text, in the format of scikit-learn's `export_text`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tartree.checks import check_integer
from tartree.explain.text.correction_text import amount_step, correction_lines, reading_notes
from tartree.explain.text.number_text import format_number, percent, probability_text
from tartree.explain.tree_view.assembly import ViewSource, as_view
from tartree.explain.tree_view.node_models import condition_texts, leaf_texts
from tartree.explain.tree_view.views import MemberView, NodeView, TreeView


def export_text(
    estimator: ViewSource,
    X: Any = None,
    y: Any = None,
    *,
    max_depth: int = 10,
    show_leaf_terms: bool = True,
    max_terms: int = 3,
) -> str:
    """Return the rules of a fitted tree, one line a branch, indented by depth.

    A branch is written as the condition under which it is the most probable one. With rows, its line also has the
    share of rows that takes it, and a leaf has its mean prediction; without rows, the prediction for a row of mean
    numbers. A node that several parents share is written once. Where training saw whole numbers only, thresholds are
    whole, and decide whole numbers as the model does.

    Leaves that share terms are written as a model for all rows at the top, and what nodes and leaves change of it: the
    prediction of a row is the sum along its path. If every row follows one path, as in a readable model, the text ends
    with how to read it, so that with all terms written out it can be followed by hand.

    Parameters
    ----------
    estimator : fitted estimator, FittedModel or TreeView
        Tree to write.
    X, y : table and target, optional
        Rows to count and their target; see `view`.
    max_depth : int, default=10
        Deeper branches are counted, not written.
    show_leaf_terms : bool, default=True
        Whether linear leaves show their strongest terms.
    max_terms : int, default=3
        Maximum number of terms of a condition or a leaf; the others are counted. A `TreeView` has at most as many as it
        was made with.

    Returns
    -------
    str
        The rules.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier, explain
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TartClassifier(depth=1, leaf_layers=0, epochs=20, random_state=0).fit(X, y)
    >>> len(explain.export_text(model, X, y).splitlines())
    4
    """
    check_integer("max_depth", max_depth, 0)
    check_integer("max_terms", max_terms, 1)
    tree = as_view(estimator, X, y, max_terms=max_terms)
    lines: list[str] = []
    for m, member in enumerate(tree.members):
        if len(tree.members) > 1:
            lines.append(f"member {m}")
        writer = _Writer(tree, member, max_depth, show_leaf_terms, max_terms, lines)
        if writer.corrections is not None:
            writer.write_correction(0, "")
        writer.write(tree.nodes[0], 0)
    if show_leaf_terms and tree.activation == "hard" and any(member.corrections for member in tree.members):
        lines += reading_notes(tree, max_terms)
    return "\n".join(lines) + "\n"


class _Writer:
    def __init__(
        self, tree: TreeView, member: MemberView, max_depth: int, leaf_terms: bool, max_terms: int, lines: list[str]
    ) -> None:
        self.tree = tree
        self.member = member
        self.max_depth = max_depth
        self.leaf_terms = leaf_terms
        self.max_terms = max_terms
        self.lines = lines
        self.written: set[int] = set()
        self.corrections = member.corrections if leaf_terms else None

    def write(self, node: NodeView, depth: int) -> None:
        chain = [node]
        while len(node.children) == 1:
            node = self.tree.nodes[node.children[0]]
            chain.append(node)
        indent = "|   " * depth
        shared = len(node.parents) > 1
        if node.number in self.written:
            self.lines.append(f"{indent}|--- node {node.number}, as above")
            return
        self.written.add(node.number)
        changed = [link.number for link in chain if link.number]
        if node.leaf is not None:
            self._leaf(node, indent, changed)
            return
        if depth >= self.max_depth:
            self.lines.append(f"{indent}|--- {self._n_leaves(node)} leaves")
            return
        condition = self.member.conditions[node.number]
        assert condition is not None
        if shared:
            self.lines.append(f"{indent}|--- node {node.number}")
        for number in changed:
            self.write_correction(number, indent)
        texts = condition_texts(condition, self.max_terms)
        if len(condition.functions) == 1 and condition.functions[0].n_effects > 1:
            texts = texts[0], "otherwise"  # a sum of curves is long
        for text, child, edge in zip(texts, node.children, node.edges, strict=True):
            share = ""
            if self.member.flows is not None and self.member.nodes is not None:
                mass = self.member.nodes[node.number].arrival
                share = f"  ({percent(self.member.flows[edge] / mass if mass > 0 else 0.0)})"
            self.lines.append(f"{indent}|--- {text}{share}")
            self.write(self.tree.nodes[child], depth + 1)

    def write_correction(self, number: int, indent: str) -> None:
        """Write the model for all rows, if the node is the root, or what the node changes."""
        if self.corrections is not None:
            for k, correction in enumerate(self.corrections[number]):
                step = amount_step(self.tree, k)
                self.lines += correction_lines(correction, step, self.max_terms, indent, is_root=number == 0)

    def _leaf(self, node: NodeView, indent: str, changed: list[int]) -> None:
        assert node.leaf is not None
        model = self.member.leaf_models[node.leaf]
        line = f"leaf {node.leaf}"
        if self.member.nodes is not None:
            data = self.member.nodes[node.number]
            line += (
                ": no rows arrive"
                if data.arrival == 0
                else f": {self._prediction(data.predicted)}  ({percent(data.arrival, 1)} arrive)"
            )
        self.lines.append(f"{indent}|--- {line}")
        if self.corrections is not None:
            for number in changed:
                self.write_correction(number, f"{indent}|       ")
            return
        if model.kind == "constant" and self.member.nodes is not None:
            return
        if self.leaf_terms or model.kind == "constant":
            self.lines += [f"{indent}|       {text}" for text in leaf_texts(model, self.max_terms)]

    def _prediction(self, predicted: Any) -> str:
        if self.tree.output.is_classes:
            best = int(np.argmax(predicted))
            return f"class: {self.tree.outputs[best]} ({probability_text(float(predicted[best]))})"
        return "value: " + ", ".join(format_number(float(value)) for value in predicted)

    def _n_leaves(self, node: NodeView) -> int:
        reach = {node.number}
        while self.tree.nodes[min(reach)].leaf is None:
            reach = {child for i in reach for child in self.tree.nodes[i].children}
        return len(reach)
