"""Three ways to draw the nodes of a tree, by their number: full cards, short labels, or flows alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from tartree.explain.plots.bars import Bars, condition_bars, leaf_bars
from tartree.explain.plots.canvas import Box, Canvas
from tartree.explain.plots.scene import Scene
from tartree.explain.plots.style import INK, LINE, QUIET, TRACK, fit, ink_on, percent, text_width, wrapped
from tartree.explain.text.number_text import format_rounded
from tartree.explain.tree_view.layout import Outline, Spot
from tartree.explain.tree_view.views import NodeView

FADED = 0.35  # opacity of nodes that a row hardly reaches


def name_of(node: NodeView) -> str:
    """Return the name of a node in pictures."""
    return f"Node {node.number}" if node.leaf is None else f"Leaf {node.leaf}"


class Painter(ABC):
    """A way to draw nodes, with their sizes in points; `stream` is the width of a branch that all rows take."""

    stream: float
    between: float  # boxes of a row
    below: float  # rows, at least
    trunk = 0.0  # length of the stream above the root
    colour_by_branch = False  # of streams; otherwise by what is predicted below

    def __init__(self, scene: Scene, outline: Outline, max_terms: int) -> None:
        self.scene = scene
        self.outline = outline
        self.max_terms = max_terms

    @abstractmethod
    def size(self, spot: Spot) -> tuple[float, float]:
        """Return width and height of a node."""

    def width(self, spot: Spot) -> float:
        """Return the width of a node."""
        return self.size(spot)[0]

    def gap(self, row: int) -> float:
        """Return the space between a row and the next."""
        return self.below

    @abstractmethod
    def paint(self, canvas: Canvas, spot: Spot, box: Box) -> None:
        """Draw a node."""

    def strength(self, spot: Spot) -> float:
        """Return the opacity of a node; nodes that a row does not reach are faded."""
        enough = min(0.05, 0.5 / self.scene.tree.n_leaves)
        return 1.0 if self.scene.row is None or self.scene.arrival(spot.number) >= enough else FADED

    def mix_parts(self, number: int) -> list[tuple[float, str, int]]:
        """Return share, colour and class of each part of a leaf's bar."""
        mix, colours = self.scene.mix(number), self.scene.colours
        return [(float(share), colours[k], k) for k, share in enumerate(mix) if share > 0]

    def note(self) -> str:
        """Return the line below the picture."""
        return ""


class Cards(Painter):
    """Cards of decisions with their strongest terms as bars, and of leaves with class mix and model."""

    stream, between, below = 46.0, 14.0, 84.0
    colour_by_branch = True
    decision_width, leaf_width, margin = 348.0, 184.0, 12.0

    @cached_property
    def bars(self) -> dict[int, Bars]:
        """Bars of each decision and leaf, by node number."""
        scene = self.scene
        how: Any = {"member": scene.member, "max_terms": self.max_terms, "row": scene.row}
        bars = {}
        for spot in self.outline.spots:
            if spot.kind == "decision":
                bars[spot.number] = condition_bars(scene.tree, spot.number, **how)
            elif spot.kind == "leaf":
                bars[spot.number] = leaf_bars(scene.tree, spot.number, output=scene.output, **how)
        return bars

    @cached_property
    def full(self) -> dict[str, float]:
        """Length of the longest bar of decisions and of leaves, so that bars compare between cards."""
        kinds = [(spot.kind, self.bars[spot.number].reach) for spot in self.outline.spots if spot.kind != "joint"]
        return {
            kind: max((reach for bar_kind, reach in kinds if bar_kind == kind), default=0.0) or 1.0 for kind, _ in kinds
        }

    def width(self, spot: Spot) -> float:
        return {"decision": self.decision_width, "leaf": self.leaf_width, "joint": 10.0}[spot.kind]

    def size(self, spot: Spot) -> tuple[float, float]:
        if spot.kind == "joint":
            return self.width(spot), 0.0
        same = [self.bars[other.number] for other in self.outline.spots if other.kind == spot.kind]
        rows = max(len(bars.bars) for bars in same)
        parts = max((len(bar.parts) for bars in same for bar in bars.bars), default=1)
        if spot.kind == "decision":
            return self.width(spot), 34 + rows * self._row_height(parts) + (6 if rows else 0)
        sides = 20 if any(bars.left for bars in same) and rows else 0
        return self.width(spot), 64 + sides + rows * (17 + self._thick(parts) + 4) + (4 if rows else 0)

    @staticmethod
    def _thick(parts: int) -> float:
        return 9.0 if parts == 1 else 5.0 * parts

    def _row_height(self, parts: int) -> float:
        return max(21.0, self._thick(parts) + 7)

    def paint(self, canvas: Canvas, spot: Spot, box: Box) -> None:
        if spot.kind == "joint":
            canvas.ax.plot([box.centre], [box.top], "o", color=QUIET, markersize=5 * canvas.scale)
            return
        lit = self.scene.row is not None and self.scene.on_path(spot.number)
        canvas.card(box, edge=INK if lit else LINE, line=1.8 if lit else 1.0)
        if spot.kind == "decision":
            self._decision(canvas, spot, box)
        else:
            self._leaf(canvas, spot, box)

    def _decision(self, canvas: Canvas, spot: Spot, box: Box) -> None:
        bars, strong = self.bars[spot.number], self.strength(spot)
        reach = 66.0
        axis = box.left + box.width - self.margin - reach
        title = name_of(self.scene.tree.nodes[spot.number])
        canvas.write(box.left + self.margin, box.top + 18, title, 11.5, weight="bold", alpha=strong)
        beside = box.left + self.margin + text_width(title, 11.5, "bold") + 7
        canvas.write(beside, box.top + 18, percent(self.scene.arrival(spot.number)), 10, color=QUIET, alpha=strong)
        self._sides(canvas, bars, axis, box.top + 18, reach, strong)
        if not bars.bars:
            condition = self.scene.tree.members[self.scene.member].conditions[spot.number]
            text = "shares evenly" if condition is not None and condition.kind == "even" else "a constant decision"
            canvas.write(axis, box.top + 18, text, 9.5, color=QUIET, ha="center", alpha=strong)
        parts = max((len(bar.parts) for bar in bars.bars), default=1)
        room = axis - reach - 10 - box.left - self.margin
        for k, bar in enumerate(bars.bars):
            y = box.top + 34 + self._row_height(parts) * (k + 0.5)
            canvas.write(box.left + self.margin, y, fit(bar.label, room, 9.5, keep=bar.turn), 9.5, alpha=strong)
            self._bar(canvas, axis, y, reach, bar.parts, self.full["decision"], strong)

    def _leaf(self, canvas: Canvas, spot: Spot, box: Box) -> None:
        bars, strong, scene = self.bars[spot.number], self.strength(spot), self.scene
        left, width = box.left + self.margin, box.width - 2 * self.margin
        canvas.write(left, box.top + 17, name_of(scene.tree.nodes[spot.number]), 11.5, weight="bold", alpha=strong)
        share = percent(scene.arrival(spot.number)) + (" of rows" if scene.row is None else " arrives")
        canvas.write(left + width, box.top + 17, share, 9.5, color=QUIET, ha="right", alpha=strong)
        if scene.tree.output.is_classes:
            self._mix(canvas, spot.number, Box(left, box.top + 32, width, 22), strong)
        else:
            self._value(canvas, spot.number, Box(left, box.top + 32, width, 22), strong)
        y = box.top + 64
        if bars.left and bars.bars:
            self._sides(canvas, bars, box.centre, y + 9, width / 2, strong)
            y += 20
        parts = max((len(bar.parts) for bar in bars.bars), default=1)
        thick = self._thick(parts)
        for k, bar in enumerate(bars.bars):
            top = y + k * (17 + thick + 4)
            canvas.write(left, top + 8, fit(bar.label, width, 9, keep=bar.turn), 9, alpha=strong)
            self._bar(canvas, box.centre, top + 17 + thick / 2, width / 2, bar.parts, self.full["leaf"], strong)

    def _mix(self, canvas: Canvas, number: int, box: Box, strong: float) -> None:
        x = box.left
        for share, colour, k in self.mix_parts(number):
            part = canvas.rectangle((x, box.top, box.width * share, box.height), colour, alpha=strong)
            part.set_gid(f"mix {number} {k}")
            text = percent(share)
            if text_width(text, 9, "bold") + 1 < box.width * share:
                style = {"color": ink_on(colour) if strong == 1 else INK, "weight": "bold", "ha": "center"}
                canvas.write(x + box.width * share / 2, box.top + box.height / 2, text, 9, **style)
            x += box.width * share

    def _value(self, canvas: Canvas, number: int, box: Box, strong: float) -> None:
        scene = self.scene
        value = scene.value(number)
        part = (value - scene.low) / (scene.high - scene.low) if scene.high > scene.low else 0.5
        data = scene.nodes[number]
        text = format_rounded(value, 4)
        canvas.write(box.left, box.top + 5, text, 11, weight="bold", alpha=strong)
        if data.target_spread is not None and scene.row is None:
            beside = box.left + text_width(text, 11, "bold") + 6
            spread = f"rows: {format_rounded(data.target_mean[scene.output])}"  # type: ignore[index]
            spread += f" ± {format_rounded(data.target_spread[scene.output], 2)}"
            room = box.left + box.width - beside
            canvas.write(beside, box.top + 5, fit(spread, room, 8.5), 8.5, color=QUIET, alpha=strong)
        canvas.rectangle((box.left, box.top + 16, box.width, 6), TRACK)
        middle = box.left + 5 + (box.width - 10) * min(max(part, 0.0), 1.0)
        colour = scene.value_colour(value)
        canvas.ax.plot([middle], [box.top + 19], "o", color=colour, markersize=9 * canvas.scale, alpha=strong)

    def _sides(self, canvas: Canvas, bars: Bars, axis: float, y: float, reach: float, strong: float) -> None:
        for side, sign, align in ((bars.left, -1, "right"), (bars.right, 1, "left")):
            if side is not None and bars.bars:
                name = fit(side[0], reach - 18, 9.5, "bold")
                style = {"color": side[1], "weight": "bold", "ha": align, "alpha": strong}
                canvas.write(axis + sign * 6, y, name, 9.5, **style)
                canvas.arrow(axis + sign * (10 + text_width(name, 9.5, "bold")), y, sign * 6, side[1], strong)

    @staticmethod
    def _bar(
        canvas: Canvas,
        axis: float,
        y: float,
        reach: float,
        parts: Sequence[tuple[float, str]],
        full: float,
        strong: float,
    ) -> None:
        thick = 9.0 if len(parts) == 1 else 5.0 * len(parts)
        canvas.rectangle((axis - reach, y - thick / 2, 2 * reach, thick), TRACK)
        each = thick / len(parts)
        for k, (length, colour) in enumerate(parts):
            box = (axis, y - thick / 2 + k * each, reach * length / full, each)
            canvas.rectangle(box, colour, alpha=strong)
        canvas.rectangle((axis - 0.5, y - thick / 2 - 2, 1, thick + 4), INK)

    def note(self) -> str:
        decisions = [self.bars[spot.number] for spot in self.outline.spots if spot.kind == "decision"]
        features = max((bars.n_features for bars in self.bars.values()), default=0)
        if not features:
            return ""
        shown = min(self.max_terms, features)
        same = all(bars.n_features in (0, features) for bars in self.bars.values())
        which = f"The {shown} strongest of {'' if same else 'up to '}{features} features are shown."
        if shown == features:
            which = ""
        several = any(len(bar.parts) > 1 for bars in self.bars.values() for bar in bars.bars)
        colours = " Colours are those of the branches and classes." if several and decisions else ""
        if self.scene.row is not None:
            return f"A bar is the change by the row's value, compared with the mean.{colours} {which}".strip()
        if several:
            how = "towards the colours of bars on the right, a value below it towards those on the left."
        else:
            how = "to the side of its bar, a value below it to the other side."
        return f"A value above the number, the mean, pushes {how}{colours} {which}".strip()


class Labels(Painter):
    """Decisions with the name of their strongest term, leaves with class mix and share."""

    stream, between, below = 44.0, 6.0, 58.0
    label_width = 78.0

    @property
    def leaf_width(self) -> float:
        return min(max(1300 / self.scene.tree.n_leaves, 36.0), 72.0)

    def size(self, spot: Spot) -> tuple[float, float]:
        if spot.kind == "joint":
            return 8.0, 0.0
        return (self.label_width, 32.0) if spot.kind == "decision" else (self.leaf_width, 84.0)

    def paint(self, canvas: Canvas, spot: Spot, box: Box) -> None:
        scene, strong = self.scene, self.strength(spot)
        if spot.kind == "joint":
            canvas.ax.plot([box.centre], [box.top], "o", color=QUIET, markersize=4 * canvas.scale)
            return
        lit = scene.row is not None and scene.on_path(spot.number)
        if spot.kind == "decision":
            bars = condition_bars(scene.tree, spot.number, member=scene.member, max_terms=1, row=scene.row)
            canvas.card(box, edge=INK if lit else LINE, line=1.6 if lit else 0.8, radius=5)
            name = bars.bars[0].label if bars.bars else name_of(scene.tree.nodes[spot.number])
            text = wrapped(name, box.width - 10, 8)
            style = {"ha": "center", "va": "center", "alpha": strong, "linespacing": 1.15}
            canvas.write(box.centre, box.top + box.height / 2, text, 8, **style)
            return
        bar = Box(box.left + box.width * 0.2, box.top, box.width * 0.6, 50)
        if lit:
            canvas.rectangle((bar.left - 3, bar.top - 2, bar.width + 6, bar.height + 5), INK)
        if scene.tree.output.is_classes:
            y = bar.bottom
            for share, colour, k in self.mix_parts(spot.number):
                y -= bar.height * share
                part = canvas.rectangle((bar.left, y, bar.width, bar.height * share), colour, alpha=strong)
                part.set_gid(f"mix {spot.number} {k}")
        else:
            canvas.rectangle(bar, scene.value_colour(scene.value(spot.number)), alpha=strong)
            value = fit(format_rounded(scene.value(spot.number)), bar.width - 2, 7.5)
            ink = ink_on(scene.value_colour(scene.value(spot.number)))
            canvas.write(bar.centre, bar.top + bar.height / 2, value, 7.5, ha="center", color=ink)
        arrives = percent(scene.arrival(spot.number))
        canvas.write(box.centre, bar.bottom + 11, arrives, 9, ha="center", weight="bold", alpha=strong)
        leaf = str(scene.tree.nodes[spot.number].leaf)
        canvas.write(box.centre, bar.bottom + 25, leaf, 8, ha="center", color=QUIET, alpha=strong)

    def note(self) -> str:
        term = "the feature that pushes the row most" if self.scene.row is not None else "its strongest feature"
        return f"A decision is named by {term}. Below each leaf, the share that arrives and its number."


class Flows(Painter):
    """Decisions as points, leaves as thin bars of their class mix above a bar of their share."""

    stream, between, below, trunk = 48.0, 0.0, 56.0, 16.0

    def gap(self, row: int) -> float:
        return self.below + 64 * 0.6**row  # wide streams need room to turn

    @property
    def leaf_width(self) -> float:
        return min(max(1400 / self.scene.tree.n_leaves, 1.2), 20.0)

    def size(self, spot: Spot) -> tuple[float, float]:
        return (self.leaf_width, 124.0) if spot.kind == "leaf" else (self.leaf_width, 0.0)

    def paint(self, canvas: Canvas, spot: Spot, box: Box) -> None:
        scene = self.scene
        if spot.kind != "leaf":
            lit = scene.row is not None and scene.on_path(spot.number)
            size = (7.0 if lit else 3.5 if spot.kind == "decision" else 2.0) * canvas.scale
            canvas.ax.plot([box.centre], [box.top], "o", color=INK if lit else QUIET, markersize=size)
            return
        bar = Box(box.left + box.width * 0.06, box.top, box.width * 0.88, 60)
        if scene.tree.output.is_classes:
            y = bar.bottom
            for share, colour, k in self.mix_parts(spot.number):
                y -= bar.height * share
                part = canvas.rectangle((bar.left, y, bar.width, bar.height * share), colour, alpha=self.strength(spot))
                part.set_gid(f"mix {spot.number} {k}")
        else:
            canvas.rectangle(bar, scene.value_colour(scene.value(spot.number)), alpha=self.strength(spot))
        most = max(scene.arrival(node.number) for node in scene.tree.leaves)
        height = 56 * scene.arrival(spot.number) / most if most else 0.0
        lit = scene.row is not None and scene.on_path(spot.number)
        part = canvas.rectangle((bar.left, bar.bottom + 4, bar.width, height), INK if lit else QUIET)
        part.set_gid(f"share {spot.number}")

    def note(self) -> str:
        leaves = [(self.scene.arrival(node.number), node) for node in self.scene.tree.leaves]
        most, node = max(leaves, key=lambda pair: pair[0])
        return f"Hanging grey bars are the shares that arrive; the longest is {percent(most)}, at leaf {node.leaf}."
