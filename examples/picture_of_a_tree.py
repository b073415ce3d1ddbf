"""Fit a small tree to the breast cancer data and draw it: what each decision and each leaf looks at, and who arrives.

    python examples/picture_of_a_tree.py --out docs/pictures/tree.png

Three steps: `tell` turns the fitted model into plain records, `lay_out` gives each a place, `draw` paints them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, PathPatch, Rectangle
from matplotlib.path import Path as Curve
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from tartree import TartClassifier

N_TERMS = 3  # shown of each decision and leaf
INK, QUIET, LINE, TRACK, CARD = "#1f2933", "#52606d", "#cbd2d9", "#e4e8ed", "#f8fafc"
SIDES = ("#00806a", "#8a5fa8")  # left and right; these two and the next two are safe for colour-blind readers
CLASSES = ("#2b7bba", "#d55e00")
WIDTH, HEIGHT, MARGIN, GAP = 1600, 1250, 24, 16  # in pixels, as all that follows
TOPS, DECISION, LEAF = (136, 472, 808), (716, 222), (376, 380)  # of layers; width and height of cards
STREAM = 72  # width of an edge that all rows take

TITLE = "Is this breast tumour malignant?"
SUBTITLE = "A tree of {decisions} decisions, right for {accuracy:.1%} of {tested} tumours it had not seen"
ON_BARS = """A bar is a push: a value above the
number, the average, pushes to the
side of the bar, a value below it to
the other. All {features} features count;
the {terms} strongest are shown."""
ON_STREAMS = """A tumour goes both ways, in shares;
streams average the {trained} it learnt from.
Each leaf gives its own verdict, and
the answer is their average, weighted
by the shares that arrive."""
ON_NAMES = (
    "“mean”, “error” and “worst”: the mean over the cell nuclei of an image, its standard error, "
    "and the mean of the three largest values"
)


class Term(NamedTuple):
    """One feature of a linear function: a negative strength pushes to the first side, a positive to the second."""

    label: str
    typical: str
    strength: float


class Node(NamedTuple):
    """A decision or a leaf: the share of rows that arrive, the share of each class among them, the strongest terms."""

    share: float
    mix: list[float]
    terms: list[Term]


class Box(NamedTuple):
    left: float
    top: float
    width: float
    height: float

    @property
    def centre(self) -> float:
        return self.left + self.width / 2


def tell(model: TartClassifier, X: Any, y: Any) -> list[list[Node]]:
    """A fitted tree of two classes with linear decisions and leaves as plain records, layer by layer."""
    x = torch.from_numpy(model.encoder_.transform(X))  # (rows, features)
    is_class = np.asarray(y)[:, None] == model.classes_  # (rows, classes)
    with torch.no_grad():
        arrivals = [arrival[0].double().numpy() for arrival in model.tree_.arrivals(x)]  # each (rows, nodes)
        to_right = -model.tree_.decision.mlp.weights[0][0].numpy()  # (decisions, features); a positive logit is left
        first, second = model.tree_.leaf.mlp.weights[0][0].unflatten(0, (-1, 2)).unbind(1)  # (leaves, features)
        effects = np.concatenate([to_right, (second - first).numpy()]) * x.numpy().std(axis=0)  # (nodes, features)
    layers = []
    for arrival, own in zip(arrivals, np.split(effects, np.cumsum(model.structure_.widths[:-1])), strict=True):
        mixes = arrival.T @ is_class / arrival.sum(axis=0)[:, None]  # (nodes, classes)
        terms = [strongest(effect, model.encoder_.features_) for effect in own]
        layers.append([Node(*node) for node in zip(arrival.mean(axis=0), mixes, terms, strict=True)])
    return layers


def strongest(effects: np.ndarray, features: Sequence[Any]) -> list[Term]:
    """The terms that move a linear function most; a term is 0 where its feature is at the mean, encoded as 0."""
    order = np.argsort(-np.abs(effects), kind="stable")[:N_TERMS]
    return [Term(features[i].label, f"{features[i].original(0.0):.3g}", float(effects[i])) for i in order]


def lay_out(layers: list[list[Node]]) -> list[list[Box]]:
    """A card for each node; the nodes of a layer share the width of the page."""
    boxes = []
    for nodes, top in zip(layers, TOPS, strict=True):
        width, height = LEAF if nodes is layers[-1] else DECISION
        room = (WIDTH - 2 * MARGIN + GAP) / len(nodes)
        lefts = [MARGIN - GAP / 2 + room * (i + 0.5) - width / 2 for i in range(len(nodes))]
        boxes.append([Box(left, top, width, height) for left in lefts])
    return boxes


def draw(layers: list[list[Node]], children: list[Any], classes: Sequence[str], facts: dict[str, Any]) -> Figure:
    """The whole picture; `children[layer][node]` are the nodes of the next layer that a decision leads to."""
    boxes = lay_out(layers)
    figure = Figure(figsize=(WIDTH / 72, HEIGHT / 72), dpi=72, facecolor="white")  # so that a point is a pixel
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(HEIGHT, 0))
    axes.axis("off")
    write(axes, WIDTH / 2, 46, TITLE, 36, weight="bold", ha="center")
    write(axes, WIDTH / 2, 96, SUBTITLE.format(**facts), 23, color=QUIET, ha="center")
    root = boxes[0][0]
    for x, name, note in [(MARGIN, "The bars", ON_BARS), (root.left + root.width + 40, "The streams", ON_STREAMS)]:
        write(axes, x, root.top + 36, name, 20, weight="bold")
        for row, line in enumerate(note.format(**facts).splitlines()):
            write(axes, x, root.top + 72 + 29 * row, line, 19, color=QUIET)
    write(axes, WIDTH / 2, HEIGHT - 30, ON_NAMES, 19, color=QUIET, ha="center")
    for layer, lists in enumerate(children):
        for box, own in zip(boxes[layer], lists, strict=True):
            draw_edges(axes, box, [(layers[layer + 1][child].share, boxes[layer + 1][child]) for child in own])
    decisions = [pair for pairs in zip(layers[:-1], boxes[:-1], strict=True) for pair in zip(*pairs, strict=True)]
    leaves = list(zip(layers[-1], boxes[-1], strict=True))
    for paint, cards in ((draw_decision, decisions), (draw_leaf, leaves)):
        full = max(abs(term.strength) for node, _ in cards for term in node.terms)  # bars compare from card to card
        for number, (node, box) in enumerate(cards, start=1):
            draw_card(axes, box)
            paint(axes, node, box, number, full, classes)
    return figure


def draw_edges(axes: Axes, start: Box, ends: list[tuple[float, Box]]) -> None:
    """Streams that leave a card side by side, as wide as the share of rows in them."""
    x, top = start.centre - sum(share for share, _ in ends) * STREAM / 2, start.top + start.height
    for (share, end), colour, sign in zip(ends, SIDES, (-1, 1), strict=True):
        width, middle = share * STREAM, (top + end.top) / 2
        corners = [(x + width / 2, top), (x + width / 2, middle), (end.centre, middle), (end.centre, end.top)]
        curve = Curve(corners, [Curve.MOVETO, *[Curve.CURVE4] * 3])
        axes.add_patch(PathPatch(curve, fill=False, edgecolor=colour, alpha=0.4, linewidth=width, capstyle="butt"))
        beside, side = end.centre + sign * (width / 2 + 14), "right" if sign < 0 else "left"
        write(axes, beside, end.top - 24, f"{share:.0%}", 24, color=colour, weight="bold", ha=side)
        x += width


def draw_decision(axes: Axes, node: Node, box: Box, number: int, full: float, classes: Sequence[str]) -> None:
    axis = box.left + box.width - 176
    write(axes, box.left + 24, box.top + 36, f"Decision {number}", 24, weight="bold")
    draw_directions(axes, axis, box.top + 36, ("left", "right"), SIDES)
    for row, term in enumerate(node.terms):
        y = box.top + 90 + 46 * row
        write(axes, box.left + 24, y, f"{term.label} > {term.typical}", 21)
        draw_bar(axes, axis, y, 152, term.strength / full, SIDES)


def draw_leaf(axes: Axes, node: Node, box: Box, number: int, full: float, classes: Sequence[str]) -> None:
    x, width = box.left + 22, box.width - 44
    write(axes, x, box.top + 34, f"Leaf {number}", 24, weight="bold")
    write(axes, x + width, box.top + 34, f"{node.share:.0%} of tumours", 20, color=QUIET, ha="right")
    for share, colour in zip(node.mix, CLASSES, strict=True):
        axes.add_patch(Rectangle((x, box.top + 62), width * share, 44, facecolor=colour))
        if share > 0.15:
            said = f"{share:.0%}"
            write(axes, x + width * share / 2, box.top + 84, said, 19, color="white", weight="bold", ha="center")
        x += width * share
    draw_directions(axes, box.centre, box.top + 138, classes, CLASSES)
    for row, term in enumerate(node.terms):
        y = box.top + 185 + 67 * row
        write(axes, box.left + 22, y, f"{term.label} > {term.typical}", 19)
        draw_bar(axes, box.centre, y + 28, width / 2, term.strength / full, CLASSES)


def draw_directions(axes: Axes, x: float, y: float, names: Sequence[str], colours: tuple[str, str]) -> None:
    write(axes, x - 12, y, f"◀ {names[0]}", 20, color=colours[0], weight="bold", ha="right")
    write(axes, x + 12, y, f"{names[1]} ▶", 20, color=colours[1], weight="bold", ha="left")


def draw_bar(axes: Axes, x: float, y: float, reach: float, part: float, colours: tuple[str, str]) -> None:
    axes.add_patch(Rectangle((x - reach, y - 9), 2 * reach, 18, facecolor=TRACK))
    axes.add_patch(Rectangle((x, y - 9), reach * part, 18, facecolor=colours[part > 0]))
    axes.add_patch(Rectangle((x - 1, y - 12), 2, 24, facecolor=INK))


def draw_card(axes: Axes, box: Box) -> None:
    style = "round,pad=0,rounding_size=14"
    axes.add_patch(FancyBboxPatch(box[:2], *box[2:], style, facecolor=CARD, edgecolor=LINE, linewidth=2))


def write(axes: Axes, x: float, y: float, text: str, size: float, **style: Any) -> None:
    axes.text(x, y, text, fontsize=size, **{"color": INK, "va": "center_baseline", **style})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/pictures/tree.png"))
    out = parser.parse_args().out
    data = load_breast_cancer(as_frame=True)
    names = data.target_names[data.target]
    X, X_test, y, y_test = train_test_split(data.data, names, stratify=names, random_state=0)
    model = TartClassifier(depth=2, random_state=0, device="cpu").fit(X, y)
    facts = {
        "decisions": model.structure_.n_decisions,
        "accuracy": model.score(X_test, y_test),
        "tested": len(y_test),
        "trained": len(y),
        "features": len(model.encoder_.features_),
        "terms": N_TERMS,
    }
    children = [model.structure_.children(layer) for layer in range(model.structure_.depth)]
    figure = draw(tell(model, X, y), children, model.classes_, facts)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=72, metadata={"Software": None})


if __name__ == "__main__":
    main()
