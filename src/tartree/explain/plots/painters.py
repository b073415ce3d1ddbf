"""Three ways to draw the nodes of a tree, by their number: full cards, short labels, or flows alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from tartree.explain.plots.bars import Bars, condition_bars, feature_value, leaf_bars
from tartree.explain.plots.canvas import Box, Canvas
from tartree.explain.plots.scene import Scene
from tartree.explain.plots.sparklines import draw_sparkline, usual_size
from tartree.explain.plots.style import (
    INK,
    LESS,
    LINE,
    MORE,
    QUIET,
    TRACK,
    branch_colours,
    fit,
    ink_on,
    percent,
    text_width,
    wrapped,
)
from tartree.explain.text.column_effects import ColumnEffect
from tartree.explain.text.number_text import format_number, format_rounded
from tartree.explain.tree_view.layout import Outline, Spot
from tartree.explain.tree_view.node_models import condition_texts
from tartree.explain.tree_view.path_sums import path_sum, path_to
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
    """Cards of decisions with their condition or strongest terms, and of leaves with class mix and model.

    A decision on one column is written out. Leaves that share terms show what they change of the model for all rows,
    and decisions on curves of several columns what each adds, as sparklines; other functions are bars.
    """

    stream, between, below = 46.0, 14.0, 84.0
    colour_by_branch = True
    leaf_width, margin = 184.0, 12.0
    text_line, spark_height = 15.0, 20.0

    @property
    def decision_width(self) -> float:
        decisions = [spot.number for spot in self.outline.spots if spot.kind == "decision"]
        return 264.0 if all(number in self.conditions or number in self.sums for number in decisions) else 348.0

    @cached_property
    def conditions(self) -> dict[int, tuple[str, str]]:
        """Conditions of the decisions on one column, for the first and the second child."""
        member = self.scene.tree.members[self.scene.member]
        texts = {}
        for spot in self.outline.spots:
            condition = member.conditions[spot.number]
            function = condition.functions[0] if condition is not None and len(condition.functions) == 1 else None
            if condition is not None and function is not None and function.terms and function.is_one_column:
                first, second = condition_texts(condition, self.max_terms)
                texts[spot.number] = (first, second)
        return texts

    @cached_property
    def sums(self) -> dict[int, list[ColumnEffect]]:
        """Effects of the decisions on curves of several columns."""
        member = self.scene.tree.members[self.scene.member]
        functions = {k: c.functions[0] for k, c in enumerate(member.conditions) if c and len(c.functions) == 1}
        return {k: list(function.effects) for k, function in functions.items() if function.n_effects > 1}

    @cached_property
    def changes(self) -> dict[int, list[list[ColumnEffect]]]:
        """What leaves change of the model for all rows, by node: columns, the strongest first, and their functions."""
        corrections = self.scene.tree.members[self.scene.member].corrections
        if corrections is None:
            return {}
        chosen = range(len(corrections[0])) if self.scene.tree.output.is_classes else [self.scene.output]
        result = {}
        for spot in self.outline.spots:
            if spot.kind == "leaf":
                path = path_to(self.scene.tree, spot.number)[1:]
                by_function = [path_sum(corrections, path, k)[0] if path else {} for k in chosen]
                columns: dict[int, list[ColumnEffect]] = {}
                for effects in by_function:
                    for column, effect in effects.items():
                        columns.setdefault(column, []).append(effect)
                result[spot.number] = sorted(
                    columns.values(), key=lambda effects: -max(effect.strength for effect in effects)
                )
        return result

    @cached_property
    def bars(self) -> dict[int, Bars]:
        """Bars of the other decisions and leaves, by node number."""
        scene = self.scene
        how: Any = {"member": scene.member, "max_terms": self.max_terms, "row": scene.row}
        bars = {}
        for spot in self.outline.spots:
            if spot.number in self.conditions or spot.number in self.changes or spot.number in self.sums:
                bars[spot.number] = Bars((), None, None, 0)
            elif spot.kind == "decision":
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
        if spot.kind == "leaf" and self.changes:
            lines = max(self._change_lines(number) for number in self.changes)
            return self.width(spot), 64 + 18 + lines
        same = [self.bars[other.number] for other in self.outline.spots if other.kind == spot.kind]
        rows = max(len(bars.bars) for bars in same)
        parts = max((len(bar.parts) for bars in same for bar in bars.bars), default=1)
        if spot.kind == "decision":
            text = [self.text_line * len(self._condition_lines(number)) for number in self.conditions]
            spark = [
                self.text_line + (self.spark_height + 4) * min(self.max_terms, len(effects))
                for effects in self.sums.values()
            ]
            if text or spark:
                return self.width(spot), max([*text, *spark, rows * self._row_height(parts)]) + 43
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
        if spot.number in self.conditions:
            self._condition(canvas, spot.number, box, strong)
            return
        if spot.number in self.sums:
            self._sum(canvas, spot.number, box, strong)
            return
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
        if scene.arrival(spot.number) == 0:  # of a hard tree
            text = "no rows arrive" if scene.row is None else "the row does not arrive"
            canvas.write(box.centre, box.top + 43, text, 9, color=QUIET, ha="center", alpha=strong)
        elif scene.tree.output.is_classes:
            self._mix(canvas, spot.number, Box(left, box.top + 32, width, 22), strong)
        else:
            self._value(canvas, spot.number, Box(left, box.top + 32, width, 22), strong)
        if spot.number in self.changes:
            self._changes(canvas, spot.number, Box(left, box.top + 62, width, 0), strong)
            return
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

    def _condition_lines(self, number: int) -> list[tuple[str, int | None]]:
        """Return the lines of a decision on one column, with the child that each is about."""
        room = self.decision_width - 2 * self.margin - 18
        first, second = self.conditions[number]
        lines: list[tuple[str, int | None]] = []
        for k, text in enumerate((first, second)):
            if k and text_width(text, 9.5) > room:
                text = "otherwise"
            lines += [(line, k if j == 0 else None) for j, line in enumerate(wrapped(text, room, 9.5, 3).split("\n"))]
        if self.scene.row is not None:
            lines.append((f"here {self._row_value(number)}", None))
        return lines

    def _row_value(self, number: int) -> str:
        """Return what the row has in the column of a decision."""
        condition = self.scene.tree.members[self.scene.member].conditions[number]
        assert condition is not None
        assert self.scene.row is not None
        tree, row = self.scene.tree, self.scene.row
        column = condition.functions[0].terms[0].column
        name = tree.columns[column].name
        features = [(k, tree.features[k]) for k in tree.columns[column].features]
        if any(feature.kind == "missing" and row.features[k].mean > 0.5 for k, feature in features):
            return f"{name} is missing"
        for k, feature in features:
            if feature.kind == "value":
                return f"{name} = {feature_value(tree, feature, row.features[k].mean)}"
            if feature.kind == "level" and row.features[k].mean > 0.5:
                return f"{name} = {feature.level}"
        return f"{name} = False" if tree.columns[column].kind == "boolean" else f"{name} is another"

    def _condition(self, canvas: Canvas, number: int, box: Box, strong: float) -> None:
        left, y = box.left + self.margin, box.top + 42
        for line, child in self._condition_lines(number):
            if child is not None:
                tip = left + (2 if child == 0 else 8)
                x = tip + 6 if child == 0 else tip - 6
                canvas.arrow(x, y, -6 if child == 0 else 6, branch_colours(2)[child], strong)
            colour = QUIET if child is None and line.startswith("here ") else INK
            canvas.write(
                left + 18, y, fit(line, box.width - 2 * self.margin - 18, 9.5), 9.5, alpha=strong, color=colour
            )
            y += self.text_line

    def _sum(self, canvas: Canvas, number: int, box: Box, strong: float) -> None:
        condition = self.scene.tree.members[self.scene.member].conditions[number]
        assert condition is not None
        (function,) = condition.functions
        left, width = box.left + self.margin, box.width - 2 * self.margin
        colours = branch_colours(2)
        effects = self.sums[number][: self.max_terms]
        limit = -(function.encoded_bias or 0.0)
        canvas.arrow(left + 8, box.top + 42, -6, colours[0], strong)
        text = f"where the sum is above {format_number(limit)}"
        canvas.write(left + 18, box.top + 42, fit(text, width - 18, 9.5), 9.5, alpha=strong)
        full = 1.1 * max(map(usual_size, effects)) or 1.0
        for k, effect in enumerate(effects):
            row = Box(left, box.top + 54 + k * (self.spark_height + 4), width, self.spark_height)
            self._effect(canvas, row, [effect], [(colours[1], colours[0])], full, strong)

    def _change_lines(self, number: int) -> float:
        """Return the height of what a leaf changes."""
        changed = len(self.changes[number])
        return min(self.max_terms, changed) * (self.spark_height + 4) + (14 if changed > self.max_terms else 0)

    def _changes(self, canvas: Canvas, number: int, box: Box, strong: float) -> None:
        scene = self.scene
        changes = self.changes[number]
        head = "changes, compared with all rows" if changes else "as for all rows"
        canvas.write(box.left, box.top + 8, fit(head, box.width, 8.5), 8.5, color=QUIET, alpha=strong)
        sizes = [usual_size(e) for leaf in self.changes.values() for effects in leaf for e in effects]
        full = 1.1 * max(sizes, default=0.0) or 1.0
        if not scene.tree.output.is_classes:
            colours = [(LESS, MORE)]
        elif len(scene.colours) == 2:
            colours = [(scene.colours[0], scene.colours[1])]
        else:
            colours = [(colour, colour) for colour in scene.colours]
        top = box.top + 18
        for k, effects in enumerate(changes[: self.max_terms]):
            row = Box(box.left, top + k * (self.spark_height + 4), box.width, self.spark_height)
            pairs = colours if len(effects) == len(colours) else colours[: len(effects)]
            self._effect(canvas, row, effects, pairs, full, strong)
        rest = len(changes) - self.max_terms
        if rest > 0:
            y = top + self.max_terms * (self.spark_height + 4) + 6
            text = f"and {rest} smaller change{'s' * (rest > 1)}"
            canvas.write(box.left, y, text, 8.5, color=QUIET, alpha=strong)

    def _effect(
        self,
        canvas: Canvas,
        box: Box,
        effects: Sequence[ColumnEffect],
        colours: Sequence[tuple[str, str]],
        full: float,
        strong: float,
    ) -> None:
        """Draw the name of a column and a sparkline of what it adds."""
        width = min(78.0, box.width * 0.45)
        name = fit(effects[0].name, box.width - width - 6, 9)
        canvas.write(box.left, box.top + box.height / 2, name, 9, alpha=strong)
        spark = Box(box.left + box.width - width, box.top, width, box.height)
        draw_sparkline(canvas, spark, effects, colours, full, strong)

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
        if self.changes:
            return self._change_note()
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

    def _change_note(self) -> str:
        """Return what the sparklines of leaves are."""
        if not any(self.changes.values()):
            return ""
        scene = self.scene
        if not scene.tree.output.is_classes:
            up = "a higher prediction"
        else:
            up = "its class" if len(scene.colours) > 2 else fit(scene.tree.outputs[1], 160, 9.5)
        return (
            "Small curves are what a leaf changes of the model for all rows, from the lowest value of a column to the "
            f"highest: up is towards {up}. plot_curves draws the whole model."
        )


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
