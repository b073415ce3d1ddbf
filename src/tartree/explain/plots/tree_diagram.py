"""Diagram of a tree or graph: nodes in rows, connected by streams as wide as the share of rows in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from tartree.checks import check_integer
from tartree.explain.plots.canvas import Box, Canvas, key_width
from tartree.explain.plots.painters import Cards, Flows, Labels, Painter
from tartree.explain.plots.scene import Scene, make_scene, row_view, view_with_rows
from tartree.explain.plots.style import OTHER, QUIET, branch_colours, fit, percent, plain, styled, text_width
from tartree.explain.text.number_text import format_rounded
from tartree.explain.tree_view.assembly import ViewSource
from tartree.explain.tree_view.layout import Layout, Outline, arrange, outline
from tartree.structure import Structure

Detail = Literal["auto", "cards", "labels", "flows"]
PAINTERS: dict[str, type[Painter]] = {"cards": Cards, "labels": Labels, "flows": Flows}
WIDEST = 1750.0  # points; a wider picture gets less detail
MARGIN = 22.0


@styled
def plot_tree(
    source: ViewSource,
    X: Any = None,
    y: Any = None,
    *,
    row: Any = None,
    member: int = 0,
    output: int = 0,
    detail: Detail = "auto",
    max_terms: int = 3,
    title: str | None = None,
    subtitle: str | None = None,
    note: str | None = None,
    ax: Any = None,
) -> Any:
    """Draw a fitted tree or graph, for all rows or for one.

    Streams are as wide as the share of rows that takes them. Up to about 8 leaves, decisions and leaves are cards with
    their strongest terms in original units; up to about 32, decisions are named by their strongest feature; beyond,
    flows and colours of classes remain.

    Parameters
    ----------
    source : TreeView, fitted estimator or FittedModel
        A view with rows, or a model with X, and y for the mix of true classes.
    X, y : table and targets, optional
        With a model only.
    row : int or TreeView, optional
        One row instead of all: its index in X, or a view of that row alone. Its most probable path is highlighted.
    member : int, default=0
        Index of the tree, if the model has several.
    output : int, default=0
        Index of the target, in regression.
    detail : {"auto", "cards", "labels", "flows"}
    max_terms : int, default=3
        Maximum number of terms of a card.
    title, subtitle, note : str, optional
        Texts above and below the picture, instead of the default ones; an empty note is left out.
    ax : matplotlib Axes, optional
        Axes to fit the picture into; a new figure of the right size by default.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier
    >>> from tartree.explain import plots
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TartClassifier(depth=1, epochs=2, random_state=0).fit(X, y)
    >>> plots.plot_tree(model, X, y).texts[0].get_text()
    '1 decision, 2 leaves'
    """
    check_integer("max_terms", max_terms, 1)
    tree = view_with_rows(source, X, y)
    scene = make_scene(tree, member, output, row_view(source, X, row))
    drawn = outline(Structure.from_dict(tree.structure))
    painter, layout = _painter(scene, drawn, detail, max_terms)
    sizes = [painter.size(spot) for spot in drawn.spots]
    legend = _legend(scene)
    inner = max(float(x + w / 2) for x, (w, _) in zip(layout.x, sizes, strict=True))
    heading = _heading(scene) if title is None else plain(title)
    least = max(420.0, min(900.0, text_width(heading, 15, "bold")))
    width = max(inner, least) + 2 * MARGIN
    lines = _legend_lines(legend, width - 2 * MARGIN)
    notes = _note_lines(painter.note() if note is None else plain(note), width - 2 * MARGIN)
    below = _note_lines(_subtitle(scene) if subtitle is None else plain(subtitle), width - 2 * MARGIN, 10)
    if not tree.output.is_classes:  # the legend of values stands beside it
        below = [fit(" ".join(below), width - 2 * MARGIN - 240, 10)]
    keys = 50.0 + 16 * len(below)
    top = keys - 6 + 20 * len(lines) + (0 if lines else 6) + painter.trunk
    heights = [
        max(size[1] for size, spot in zip(sizes, drawn.spots, strict=True) if spot.row == r)
        for r in range(drawn.n_rows)
    ]
    tops = [top + sum(heights[:r]) + sum(map(painter.gap, range(r))) for r in range(drawn.n_rows)]
    height = tops[-1] + heights[-1] + 14 + 15 * len(notes) + (12 if notes else 4)
    canvas = Canvas(ax, width, height)
    canvas.write(MARGIN, 24, fit(heading, width - 2 * MARGIN, 15, "bold"), 15, weight="bold")
    for k, text in enumerate(below):
        canvas.write(MARGIN, 46 + 16 * k, text, 10, color=QUIET)
    for k, line in enumerate(lines):
        canvas.keys(MARGIN, keys + 20 * k, [name for name, _ in line], [colour for _, colour in line], 10)
    if not scene.tree.output.is_classes:
        _value_legend(canvas, scene)
    shift = (width - inner) / 2
    boxes = [
        Box(float(x) + shift - w / 2, tops[spot.row], w, h)
        for x, (w, h), spot in zip(layout.x, sizes, drawn.spots, strict=True)
    ]
    _draw_streams(canvas, scene, painter, drawn, layout, boxes, tops, shift)
    for spot, box in zip(drawn.spots, boxes, strict=True):
        painter.paint(canvas, spot, box)
    for k, note in enumerate(notes):
        canvas.write(MARGIN, height - 15 - 15 * (len(notes) - 1 - k), note, 9.5, color=QUIET)
    return canvas.ax


def _painter(scene: Scene, drawn: Outline, detail: Detail, max_terms: int) -> tuple[Painter, Layout]:
    """Return the most detailed painter whose picture is not too wide, and the layout of its nodes."""
    if detail != "auto" and detail not in PAINTERS:
        raise ValueError(f"detail must be 'auto', 'cards', 'labels' or 'flows', got {detail!r}")
    for name, make in PAINTERS.items():
        if detail not in ("auto", name):
            continue
        painter = make(scene, drawn, max_terms)
        widths = [painter.width(spot) for spot in drawn.spots]
        layout = arrange(drawn, widths, painter.between, painter.stream / 2)
        if detail == name or name == "flows":
            break
        if max(x + w / 2 for x, w in zip(layout.x, widths, strict=True)) <= WIDEST:
            break
    return painter, layout


def _heading(scene: Scene) -> str:
    structure = Structure.from_dict(scene.tree.structure)
    if scene.row is None:
        decisions, leaves = structure.n_decisions, structure.n_leaves
        return f"{decisions} decision{'s' * (decisions != 1)}, {leaves} {'leaf' if leaves == 1 else 'leaves'}"
    start = next(n.number for n in scene.tree.leaves if scene.on_path(n.number)) if _single(scene) else 0
    if not scene.tree.output.is_classes:
        return f"One row: {plain(scene.tree.outputs[scene.output])} {format_rounded(scene.value(start), 4)}"
    shares = scene.mix(start)
    return f"One row: {plain(scene.tree.outputs[int(shares.argmax())])}, {percent(float(shares.max()))}"


def _single(scene: Scene) -> bool:
    return scene.tree.selection == "single"


def _subtitle(scene: Scene) -> str:
    if scene.row is not None:
        text = "Streams are shares of this row; its most probable path is the dark one"
    else:
        text = f"Streams are shares of {scene.tree.n_rows:,} rows"
        if scene.tree.output.is_classes:
            has_truth = scene.nodes[0].classes is not None
            text += "; colours of leaves are " + (
                "the classes of the rows that arrive" if has_truth else "the predictions"
            )
    several = len(scene.tree.members) > 1
    return f"{text} (member={scene.member} of {len(scene.tree.members)})" if several else text


def _legend(scene: Scene) -> list[tuple[str, str]]:
    """Return names and colours of classes; those in the colour of others share one entry."""
    if not scene.tree.output.is_classes:
        return []
    named = [
        (fit(name, 220, 10), colour)
        for name, colour in zip(scene.tree.outputs, scene.colours, strict=True)
        if colour != OTHER
    ]
    others = len(scene.colours) - len(named)
    return named + ([(f"{others} other classes", OTHER)] if others else [])


def _legend_lines(entries: list[tuple[str, str]], width: float) -> list[list[tuple[str, str]]]:
    lines: list[list[tuple[str, str]]] = []
    used = width + 1
    for entry in entries:
        need = key_width(entry[0], 10)
        if used + need > width:
            lines.append([])
            used = 0.0
        lines[-1].append(entry)
        used += need
    return lines


def _note_lines(note: str, width: float, size: float = 9.5) -> list[str]:
    lines: list[str] = []
    for word in note.split():
        if lines and text_width(f"{lines[-1]} {word}", size) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _value_legend(canvas: Canvas, scene: Scene) -> None:
    """Draw a strip of the colours of values, from the lowest to the highest."""
    low, high = (format_rounded(value) for value in (scene.low, scene.high))
    right = canvas.width - MARGIN
    canvas.write(right, 46, high, 9, ha="right", color=QUIET)
    left = right - text_width(high, 9) - 6 - 80
    for k in range(40):
        colour = scene.value_colour(scene.low + (scene.high - scene.low) * k / 39)
        canvas.rectangle((left + 2 * k, 40, 2.2, 10), colour)
    canvas.write(left - 6, 46, low, 9, ha="right", color=QUIET)


def _draw_streams(
    canvas: Canvas,
    scene: Scene,
    painter: Painter,
    drawn: Outline,
    layout: Layout,
    boxes: Sequence[Box],
    tops: Sequence[float],
    shift: float,
) -> None:
    """Draw streams, which leave a node side by side in the order of their ends, and arrive side by side likewise."""
    width = {link.edge: float(scene.flows[link.edge]) * painter.stream for link in drawn.links}
    if painter.trunk:
        x, top = boxes[0].centre, boxes[0].top
        canvas.stream(
            [(x, top - painter.trunk), (x, top)], painter.stream, scene.colour(0), 0.6 if scene.row is None else 1.0
        )
    starts = _side_by_side(drawn, boxes, width, leaving=True)
    ends = _side_by_side(drawn, boxes, width, leaving=False)
    by_arrival = sorted(zip(drawn.links, layout.bends, strict=True), key=lambda pair: -width[pair[0].edge])
    for link, bends in by_arrival:
        edge = scene.tree.edges[link.edge]
        parent, child = drawn.spots[link.parent], drawn.spots[link.child]
        points = [(starts[link.edge], boxes[link.parent].bottom)]
        for k, x in enumerate(bends, start=parent.row + 1):  # straight past the boxes of a row
            points += [(x + shift, tops[k]), (x + shift, tops[k + 1] - painter.gap(k))]
        points.append((ends[link.edge], boxes[link.child].top))
        lit = scene.on_path(parent.number) and scene.on_path(child.number)
        alpha = 0.45 if scene.row is None else 0.85 if lit else 0.3
        if painter.colour_by_branch:
            colour = branch_colours(len(scene.tree.nodes[edge.parent].children))[edge.position]
        else:
            colour, alpha = scene.colour(child.number), alpha + 0.15
        band = canvas.stream(points, width[link.edge], colour, alpha)
        band.set_gid(f"edge {link.edge}")
        band.set_zorder(0.9 if scene.row is None or not lit else 0.95)


def _side_by_side(drawn: Outline, boxes: Sequence[Box], width: dict[int, float], *, leaving: bool) -> dict[int, float]:
    """Return the middle of each stream where it leaves its parent, or arrives at its child."""
    centres = {}
    for spot, box in enumerate(boxes):
        links = [link for link in drawn.links if (link.parent if leaving else link.child) == spot]
        links.sort(key=lambda link: boxes[link.child if leaving else link.parent].centre)
        x = box.centre - sum(width[link.edge] for link in links) / 2
        for link in links:
            centres[link.edge] = x + width[link.edge] / 2
            x += width[link.edge]
    return centres
