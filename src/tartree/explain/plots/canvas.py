"""Axes in points: cards, streams and text of fixed sizes, which shrink together on small axes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch, PathPatch, Polygon, Rectangle
from matplotlib.path import Path as Curve

from tartree.explain.plots.style import CARD, INK, LINE, PAGE, points_of, text_width


class Box(NamedTuple):
    """A rectangle on a canvas; y grows downwards."""

    left: float
    top: float
    width: float
    height: float

    @property
    def centre(self) -> float:
        return self.left + self.width / 2

    @property
    def bottom(self) -> float:
        return self.top + self.height


class Canvas:
    """A picture of `width` times `height` points, in a new figure or fitted into given axes."""

    def __init__(self, ax: Any, width: float, height: float) -> None:
        if ax is None:
            ax = plt.figure(figsize=(width / 72, height / 72), facecolor=PAGE).add_axes((0, 0, 1, 1))
        self.ax = ax
        self.width = width
        self.height = height
        self.scale = min(room / side for room, side in zip(points_of(ax), (width, height), strict=True))
        ax.set(xlim=(0, width), ylim=(height, 0), aspect="equal", facecolor=PAGE, xticks=[], yticks=[])
        ax.spines[:].set_visible(False)

    def write(self, x: float, y: float, text: str, size: float, **style: Any) -> Any:
        """Write a line of text with its middle at height y."""
        style = {"color": INK, "va": "center_baseline", **style}
        return self.ax.text(x, y, text, fontsize=size * self.scale, **style)

    def rectangle(self, box: tuple[float, float, float, float], colour: Any, **style: Any) -> Any:
        return self.ax.add_patch(Rectangle(box[:2], box[2], box[3], facecolor=colour, linewidth=0, **style))

    def card(self, box: Box, edge: str = LINE, line: float = 1.2, radius: float = 7) -> Any:
        shape = f"round,pad=0,rounding_size={radius}"
        line *= self.scale
        patch = FancyBboxPatch(box[:2], box.width, box.height, shape, facecolor=CARD, edgecolor=edge, linewidth=line)
        return self.ax.add_patch(patch)

    def arrow(self, x: float, y: float, size: float, colour: str, alpha: float = 1.0) -> None:
        """Draw a triangle that points left (negative size) or right."""
        corners = [(x, y - abs(size) * 0.6), (x + size, y), (x, y + abs(size) * 0.6)]
        self.ax.add_patch(Polygon(corners, closed=True, facecolor=colour, linewidth=0, alpha=alpha))

    def stream(self, points: Sequence[tuple[float, float]], width: float, colour: Any, alpha: float) -> Any:
        """Draw a band of a width in points through given points from top to bottom; its ends are vertical."""
        corners, codes = [points[0]], [Curve.MOVETO]
        for (x, y), (to_x, to_y) in pairwise(points):
            middle = (y + to_y) / 2
            corners += [(x, middle), (to_x, middle), (to_x, to_y)]
            codes += [Curve.CURVE4] * 3
        band = PathPatch(
            Curve(corners, codes),
            fill=False,
            edgecolor=colour,
            alpha=alpha,
            linewidth=width * self.scale,
            capstyle="butt",
            joinstyle="round",
        )
        return self.ax.add_patch(band)

    def keys(self, x: float, y: float, names: Sequence[str], colours: Sequence[str], size: float) -> None:
        """Draw a line of coloured squares with their names."""
        for name, colour in zip(names, colours, strict=True):
            self.rectangle((x, y - size * 0.45, size * 0.9, size * 0.9), colour)
            self.write(x + size * 1.35, y, name, size)
            x += key_width(name, size)


def key_width(name: str, size: float) -> float:
    """Return the width in points of a square with its name in `Canvas.keys`."""
    return size * 3.2 + text_width(name, size)
