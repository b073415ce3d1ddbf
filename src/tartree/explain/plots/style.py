"""Style of all pictures: colours, text that fits its space, and the figure to draw on.

Pictures keep their own light background, so that they can be read on a dark page too. Colours come from sets that
colour-blind readers can tell apart, and no two meanings share one: classes, branches, and numbers.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.font_manager import FontProperties

from tartree.explain.text.number_text import percent as percent

PAGE, CARD, TRACK, LINE, QUIET, INK = "#ffffff", "#f8fafc", "#e4e8ed", "#cbd2d9", "#52606d", "#1f2933"
BRANCHES = ("#00806a", "#8a5fa8", "#966a10", "#4d6a8a", "#b0305c", "#5f7a1f")
CLASSES = ("#2b7bba", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5230")
OTHER = "#9aa5b1"  # classes beyond those
LESS, MORE = "#b35806", "#2166ac"  # what pulls a number down, and what pushes it up
MASS = LinearSegmentedColormap.from_list("tartree-mass", ["#f3f8fd", "#c6dbef", "#4292c6", "#08306b"])
MOST_NAME = 190.0  # points of a feature's name beside a bar
STYLE = {
    "figure.facecolor": PAGE,
    "savefig.facecolor": "auto",
    "axes.facecolor": PAGE,
    "axes.edgecolor": LINE,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.grid": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.titlesize": 12,
    "axes.labelsize": 10,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "legend.labelcolor": INK,
    "text.color": INK,
    "text.usetex": False,
    "text.parse_math": False,  # a column may be called "$"
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "lines.linewidth": 1.5,
    "patch.linewidth": 0,
    "hatch.linewidth": 0.6,
}

P = ParamSpec("P")
R = TypeVar("R")


def styled(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function to draw in the style of this module, whatever style is set outside; fonts stay the user's."""

    @functools.wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        with mpl.rc_context(STYLE):
            return function(*args, **kwargs)

    return inside


def axes_for(ax: Any, width: float, height: float) -> Any:
    """Return the given axes on a light background, or those of a new figure with a size in inches."""
    if ax is None:
        figure, ax = plt.subplots(figsize=(width, height), layout="constrained")
        figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
        return ax
    ax.figure.set_facecolor(PAGE)
    ax.set_facecolor(PAGE)
    ax.tick_params(color=QUIET, labelcolor=INK)
    ax.xaxis.label.set_color(INK)
    ax.yaxis.label.set_color(INK)
    ax.spines[:].set_color(LINE)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def points_of(ax: Any) -> tuple[float, float]:
    """Return width and height of axes in points."""
    extent = ax.get_window_extent()
    return 72 * extent.width / ax.figure.dpi, 72 * extent.height / ax.figure.dpi


def class_colours(n_classes: int) -> list[str]:
    """Return a colour for each class, the same in every picture of a model; classes after the first seven are grey."""
    return [*CLASSES[:n_classes], *[OTHER] * (n_classes - len(CLASSES))]


def branch_colours(n_children: int) -> list[str]:
    """Return a colour for each branch of a node."""
    return [BRANCHES[k % len(BRANCHES)] for k in range(n_children)]


def ink_on(colour: Any) -> str:
    """Return white as text colour if it has the contrast that bold text needs, 3 to 1, dark otherwise."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return PAGE if 1.05 / (luminance + 0.05) >= 3 else INK


def plain(text: Any) -> str:
    """Return one line of text without control characters."""
    return re.sub(r"[\s\x00-\x1f\x7f]+", " ", str(text)).strip()


@functools.cache
def _measure() -> RendererAgg:
    return RendererAgg(8, 8, 72.0)  # so that a pixel is a point


@functools.lru_cache(maxsize=10_000)
def _width(text: str, weight: str, family: tuple[str, ...]) -> float:
    font = FontProperties(family=list(family), size=40, weight=weight)  # large, so that hinting does not matter
    return float(_measure().get_text_width_height_descent(text, font, False)[0]) / 40


def text_width(text: str, size: float, weight: str = "normal") -> float:
    """Return the width of a line of text in points, with a little spare for hinting."""
    return _width(text, weight, tuple(mpl.rcParams["font.family"])) * size * 1.04


def fit(text: Any, width: float, size: float, weight: str = "normal", keep: str = "") -> str:
    """Return the text, cut in its middle to a width in points if needed; `keep` is an ending that stays whole."""
    whole = plain(text)
    if text_width(whole + keep, size, weight) <= width:
        return whole + keep
    low, high = 0, len(whole)
    while low < high:  # the most letters that still fit
        letters = (low + high + 1) // 2
        if text_width(_cut(whole, letters) + keep, size, weight) <= width:
            low = letters
        else:
            high = letters - 1
    cut = _cut(whole, low) + keep
    return cut if text_width(cut, size, weight) <= width else ""


def _cut(text: str, letters: int) -> str:
    head = (letters + 1) // 2 if letters < 8 else letters - letters // 3
    return f"{text[:head].rstrip()}…{text[len(text) - (letters - head) :].lstrip() if letters > head else ''}"


def wrapped(text: Any, width: float, size: float, lines: int = 2) -> str:
    """Return the text in at most `lines` lines of a width in points, the last line cut if needed."""
    remaining = plain(text).split(" ")
    lines_made: list[str] = []
    while remaining and len(lines_made) < lines:
        count = 1
        while count < len(remaining) and text_width(" ".join(remaining[: count + 1]), size) <= width:
            count += 1
        if len(lines_made) == lines - 1:
            count = len(remaining)
        lines_made.append(fit(" ".join(remaining[:count]), width, size))
        remaining = remaining[count:]
    return "\n".join(lines_made)


def legend_of(ax: Any, labels: Sequence[str], colours: Sequence[str], **where: Any) -> Any:
    """Add a legend of coloured squares."""
    from matplotlib.patches import Rectangle

    handles = [Rectangle((0, 0), 1, 1, facecolor=colour) for colour in colours]
    return ax.legend(handles, labels, handlelength=1.0, handleheight=1.0, **where)
