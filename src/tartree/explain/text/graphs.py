"""Trees as text for other drawing programs: Graphviz DOT and Mermaid.

Names of columns and classes are data: they are escaped, so that no name can end a label or add to the graph.
"""

from __future__ import annotations

import re
from typing import Any

from tartree.checks import check_integer
from tartree.explain.arguments import check_index
from tartree.explain.text.number_text import format_number, percent
from tartree.explain.tree_view.assembly import ViewSource, as_view
from tartree.explain.tree_view.layout import Outline, Spot, outline
from tartree.explain.tree_view.node_models import leaf_texts
from tartree.explain.tree_view.views import TreeView
from tartree.structure import Structure

WIDEST_PEN = 12.0  # of an edge that all rows take
LETTERS = 60  # of a line of a label
DECISION, LEAF = "#eef2f6", "#e3f0e8"


def export_dot(source: ViewSource, X: Any = None, y: Any = None, *, member: int = 0, max_terms: int = 3) -> str:
    """Return a tree or graph in the DOT language of Graphviz; `dot -Tsvg` draws it.

    Parameters
    ----------
    source : TreeView, fitted estimator or FittedModel
        With rows, edges are as wide as the share of rows that takes them.
    X, y : table and targets, optional
        Rows to count and their target, with a model only.
    member : int, default=0
        Index of the tree, if the model has several.
    max_terms : int, default=3
        Maximum number of terms of a condition; a `TreeView` has at most as many as it was made with.

    Returns
    -------
    str
        The graph as text.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier, explain
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TartClassifier(depth=1, epochs=2, random_state=0).fit(X, y)
    >>> print(export_dot(model, X, y).splitlines()[0])
    digraph tartree {
    """
    check_integer("max_terms", max_terms, 1)
    tree, drawn = _prepared(source, X, y, member, max_terms)
    lines = [
        "digraph tartree {",
        '  graph [rankdir=TB, bgcolor="white"];',
        '  node [shape=box, style="rounded,filled", color="#9aa5b1", fontname="sans-serif", fontsize=11];',
        '  edge [color="#7b8794", fontname="sans-serif", fontsize=10, arrowhead=none];',
    ]
    for spot in drawn.spots:
        if spot.kind == "joint":
            lines.append(f'  n{spot.number} [shape=point, label=""];')
            continue
        text = "\\n".join(_dot(line) for line in label_lines(tree, spot, member, max_terms))
        lines.append(f'  n{spot.number} [label="{text}", fillcolor="{DECISION if spot.kind == "decision" else LEAF}"];')
    for parent, child, text, share in _edges(tree, drawn, member):
        pen = "" if share is None else f", penwidth={max(0.3, WIDEST_PEN * share):.2f}"
        lines.append(f'  n{parent} -> n{child} [label="  {_dot(text)}"{pen}];')
    return "\n".join([*lines, "}", ""])


def export_mermaid(source: ViewSource, X: Any = None, y: Any = None, *, member: int = 0, max_terms: int = 3) -> str:
    """Return a tree or graph in the language of Mermaid, which many Markdown pages draw.

    Parameters
    ----------
    source : TreeView, fitted estimator or FittedModel
        With rows, edges are as wide as the share of rows that takes them.
    X, y : table and targets, optional
        Rows to count and their target, with a model only.
    member : int, default=0
        Index of the tree, if the model has several.
    max_terms : int, default=3
        Maximum number of terms of a condition; a `TreeView` has at most as many as it was made with.

    Returns
    -------
    str
        The graph as text.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier, explain
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TartClassifier(depth=1, epochs=2, random_state=0).fit(X, y)
    >>> print(export_mermaid(model, X, y).splitlines()[0])
    flowchart TD
    """
    check_integer("max_terms", max_terms, 1)
    tree, drawn = _prepared(source, X, y, member, max_terms)
    lines = ["flowchart TD"]
    for spot in drawn.spots:
        if spot.kind == "joint":
            lines.append(f'  n{spot.number}((" "))')
            continue
        text = "<br>".join(_mermaid(line) for line in label_lines(tree, spot, member, max_terms))
        lines.append(f'  n{spot.number}["{text}"]' if spot.kind == "decision" else f'  n{spot.number}(["{text}"])')
    styles = []
    for k, (parent, child, text, share) in enumerate(_edges(tree, drawn, member)):
        lines.append(f'  n{parent} -->|"{_mermaid(text)}"| n{child}' if text else f"  n{parent} --> n{child}")
        if share is not None:
            styles.append(f"  linkStyle {k} stroke-width:{max(0.5, WIDEST_PEN * share):.2f}px")
    return "\n".join([*lines, *styles, ""])


def label_lines(tree: TreeView, spot: Spot, member: int, max_terms: int = 3) -> list[str]:
    """Return the lines of a node: its name, its condition or prediction, and the share of rows that arrives."""
    node, trained = tree.nodes[spot.number], tree.members[member]
    data = None if trained.nodes is None else trained.nodes[spot.number]
    lines = [f"node {node.number}" if node.leaf is None else f"leaf {node.leaf}"]
    if data is not None:
        lines[0] += f": {percent(data.arrival, 1)} of rows"
    if spot.kind == "decision":
        condition = trained.conditions[spot.number]
        assert condition is not None
        if len(condition.functions) == 1:
            lines += _terms(condition.functions[0], max_terms, "left where")
        else:
            lines += [_score(k, function, max_terms) for k, function in enumerate(condition.functions)] or [
                "shares evenly"
            ]
        return lines
    if data is not None and data.arrival == 0:
        lines.append("no rows arrive")
    elif data is None:
        lines += [_short(text) for text in leaf_texts(trained.leaf_models[node.leaf or 0], max_terms)]
    elif tree.output.is_classes:
        best = sorted(range(len(tree.outputs)), key=lambda k: -data.predicted[k])[:3]
        lines += [f"{_short(tree.outputs[k])}: {percent(float(data.predicted[k]), 1)}" for k in best]
    else:
        lines += [
            f"{_short(name)}: {format_number(float(v))}" for name, v in zip(tree.outputs, data.predicted, strict=True)
        ]
    return lines


def _terms(function: Any, max_terms: int, lead: str) -> list[str]:
    """Return a condition as several lines, one for each term."""
    if function.method == "gradient" and function.terms:
        return [f"{lead} a function, mostly of", *(_short(term.name) for term in function.terms[:max_terms])]
    if function.is_one_column:
        return [_short(f"{lead} {function.condition_of(max_terms)}")]
    lines = [lead]
    if function.n_effects > 1:
        shown = function.effects[:max_terms]
        lines += [_short(f"{'+ ' if k else ''}effect of {effect.name}") for k, effect in enumerate(shown)]
        rest = function.n_effects - len(shown)
        lines += [f"and {rest} smaller term{'s' * (rest > 1)}"] if rest else []
        return [*lines, f"is above {format_number(-(function.encoded_bias or 0.0))}"]
    for k, term in enumerate(function.terms[:max_terms]):
        sign = "-" if term.weight < 0 else "+" if k else ""
        lines.append(f"{sign}{format_number(abs(term.weight))} * {_short(term.label)}")
    rest = function.n_terms - min(max_terms, len(function.terms))
    if rest:
        lines.append(f"and {rest} smaller term{'s' * (rest > 1)}")
    if function.bias is not None:
        lines.append(f"is above {format_number(-function.bias)}")
    return lines


def _score(position: int, function: Any, max_terms: int) -> str:
    """Return the strongest terms of the score of one of several children."""
    terms = [f"{format_number(term.weight)} * {_short(term.label)}" for term in function.terms[:max_terms]]
    return f"score {position}: {'; '.join(terms) or 'constant'}{'; …' * (function.n_terms > len(terms))}"


def _prepared(source: ViewSource, X: Any, y: Any, member: int, max_terms: int) -> tuple[TreeView, Outline]:
    tree = as_view(source, X, y, max_terms=max_terms)
    check_index("member", member, len(tree.members))
    return tree, outline(Structure.from_dict(tree.structure))


def _edges(tree: TreeView, drawn: Outline, member: int) -> list[tuple[int, int, str, float | None]]:
    """Return ends of each edge by node number, its text, and its share of rows, None without rows."""
    flows = tree.members[member].flows
    edges = []
    for link in drawn.links:
        edge = tree.edges[link.edge]
        children = tree.nodes[edge.parent].children
        side = "" if len(children) == 1 else str(edge.position)
        if len(children) == 2:
            side = ("left", "right")[edge.position]
        share = None if flows is None else float(flows[link.edge])
        text = side if share is None else f"{side} {percent(share, 1)}".strip()
        edges.append((drawn.spots[link.parent].number, drawn.spots[link.child].number, text, share))
    return edges


def _short(text: str) -> str:
    """Return one line without control characters, cut in its middle if it is long."""
    line = re.sub(r"[\s\x00-\x1f\x7f]+", " ", str(text)).strip()
    return line if len(line) <= LETTERS else f"{line[: LETTERS * 2 // 3]}…{line[-LETTERS // 3 :]}"


def _dot(text: str) -> str:
    """Escape text inside the quotes of a DOT string, where only quotes and backslashes are special."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _mermaid(text: str) -> str:
    """Escape text inside the quotes of a Mermaid label: characters that may be special become their codes."""
    return re.sub(r"[^\w\s.,:;%+/=…-]|\b_|_\b", lambda match: f"#{ord(match[0])};", text)
