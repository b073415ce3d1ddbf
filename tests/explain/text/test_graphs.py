"""DOT and Mermaid: well formed whatever the names, every node and edge once, widths by arrival."""

import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from tartree import Structure, TartClassifier, TartRegressor, explain
from tartree.explain import view
from tartree.explain.text.graphs import export_dot, export_mermaid
from tartree.explain.tree_view.layout import outline
from tests.explain.models import patients

NASTY = ['a"b<c>|{}', "x\\", "];\n evil -> n0", "end", "`code`", "_u_ #35;", "<script>alert(1)</script>", "\\N -->|x|"]
CLASSES = ['cl"ass', "<b>", "} n0 -> n1"]


@pytest.fixture(scope="module")
def nasty():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, len(NASTY))), columns=NASTY)
    return X, np.array(CLASSES)[rng.integers(0, 3, 60)]


@pytest.fixture(scope="module", params=[{"depth": 2}, {"depth": 2, "window": 3, "stride": 2}, {"depth": 0}], ids=str)
def tree(request, nasty):
    model = TartClassifier(epochs=1, random_state=0, device="cpu", members=2, **request.param).fit(*nasty)
    return view(model, *nasty)


def read_dot(text):
    """Nodes with their labels and edges with their labels and pens, by a reader of the part of DOT used here.

    Raises where the text is anything but statements of that kind.
    """
    string = r'"((?:[^"\\]|\\.)*)"'
    value = rf"(?:{string}|[\w.]+)"
    pairs = rf"\w+={value}(?:, \w+={value})*"
    lines = text.splitlines()
    assert lines[0] == "digraph tartree {"
    assert lines[-1] == "}"
    nodes, edges = {}, {}
    for line in lines[1:-1]:
        assert re.fullmatch(rf"  (?:graph|node|edge|n\d+(?: -> n\d+)?) \[{pairs}\];", line), line
        label = re.search(rf"label={string}", line)
        if match := re.match(r"  n(\d+) -> n(\d+) ", line):
            pen = re.search(r"penwidth=([\d.]+)", line)
            edges[int(match[1]), int(match[2])] = (label[1], float(pen[1]) if pen else None)
        elif match := re.match(r"  n(\d+) ", line):
            nodes[int(match[1])] = label[1]
    return nodes, edges


def unescaped(label):
    """What Graphviz writes for a label: a backslash escapes the next sign, n is a new line."""
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], label)


def test_dot_holds_every_node_and_edge_with_its_share(tree):
    nodes, edges = read_dot(export_dot(tree, member=1))
    drawn = outline(Structure.from_dict(tree.structure))
    assert set(nodes) == {spot.number for spot in drawn.spots}
    assert set(edges) == {(edge.parent, edge.child) for edge in tree.edges}
    own = tree.members[1]
    for edge in tree.edges:
        label, pen = edges[edge.parent, edge.child]
        assert f"{own.flows[edge.number]:.1%}" in label
        assert pen == pytest.approx(max(0.3, 12 * own.flows[edge.number]), abs=0.006)
    for leaf in tree.leaves:
        best = int(own.nodes[leaf.number].predicted.argmax())
        share = own.nodes[leaf.number].predicted[best]
        assert f"{tree.outputs[best]}: {share:.1%}" in unescaped(nodes[leaf.number])


def test_names_of_columns_are_text_in_dot(tree):
    nodes, _ = read_dot(export_dot(tree, max_terms=20))
    said = "\n".join(map(unescaped, nodes.values()))
    if tree.depth:
        for name in NASTY:
            assert " ".join(name.split()) in said


def test_without_rows_nothing_is_said_about_shares(nasty):
    model = TartClassifier(depth=2, epochs=1, random_state=0, device="cpu").fit(*nasty)
    nodes, edges = read_dot(export_dot(model))
    assert not any("%" in label for label in nodes.values())
    assert set(edges.values()) == {("  left", None), ("  right", None)}
    assert "linkStyle" not in export_mermaid(model)


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_reads_it(tree):
    done = subprocess.run(["dot", "-Tplain"], input=export_dot(tree), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert sum(line.startswith("node ") for line in lines) == len(outline(Structure.from_dict(tree.structure)).spots)
    assert sum(line.startswith("edge ") for line in lines) == len(tree.edges)


def test_mermaid_is_made_of_known_statements(tree):
    text = export_mermaid(tree, max_terms=20)
    label = r"(?:[\w\s.,:;%+/=…-]|#\d+;|<br>)*"
    patterns = [
        rf'  n\d+\["{label}"\]',
        rf'  n\d+\(\["{label}"\]\)',
        rf'  n\d+ -->\|"{label}"\| n\d+',
        r"  linkStyle \d+ stroke-width:[\d.]+px",
    ]
    lines = text.splitlines()
    assert lines[0] == "flowchart TD"
    for line in lines[1:]:
        assert any(re.fullmatch(pattern, line) for pattern in patterns), line
    assert sum(" -->" in line for line in lines) == len(tree.edges)
    decoded = re.sub(r"#(\d+);", lambda match: chr(int(match[1])), text)
    if tree.depth:
        for name in NASTY:
            assert " ".join(name.split()) in decoded


def test_mermaid_widths_are_shares(tree):
    lines = export_mermaid(tree).splitlines()
    edges = [tuple(map(int, re.findall(r"n(\d+)", line))) for line in lines if " -->" in line]
    widths = [float(re.search(r":([\d.]+)px", line)[1]) for line in lines if "linkStyle" in line]
    flows = {(edge.parent, edge.child): tree.members[0].flows[edge.number] for edge in tree.edges}
    assert widths == pytest.approx([max(0.5, 12 * flows[edge]) for edge in edges], abs=0.006)


def test_a_graph_with_joints_and_a_regression_can_be_written():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    tree = view(TartRegressor(depth=2, epochs=1, random_state=0, device="cpu").fit(X, X[:, 0]), X, X[:, 0])
    nodes, _ = read_dot(export_dot(tree))
    for leaf in tree.leaves:
        assert "target: " in nodes[leaf.number]
    assert export_mermaid(tree).count('(["leaf') == 4


def test_an_estimator_needs_no_view_and_wrong_members_are_refused(nasty):
    model = TartClassifier(depth=1, epochs=1, random_state=0, device="cpu").fit(*nasty)
    assert export_dot(model, *nasty) == export_dot(view(model, *nasty))
    for export in (export_dot, export_mermaid):
        with pytest.raises(ValueError, match="member must be from 0 to 0, got 1"):
            export(model, member=1)


def test_conditions_of_readable_models():
    frame, labels, _ = patients(300)
    model = TartClassifier(readable=True, max_features=2, epochs=40, random_state=0).fit(frame, labels == "high")
    assert "effect of " in explain.export_mermaid(model, frame)
    assert "curve of" not in explain.export_dot(model, frame)
    model = TartClassifier(readable=True, epochs=40, random_state=0).fit(frame, labels == "high")
    text = explain.export_dot(model, frame)
    assert all(c.texts[0] in text for c in explain.view(model).members[0].conditions if c and len(c.texts[0]) < 50)
