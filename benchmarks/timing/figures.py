"""Figures of the results of `speed.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Result = dict[str, Any]
COLOURS = [f"C{i}" for i in range(10)] + ["olive", "navy", "teal"]


def draw(sections: Result, out: Path) -> dict[str, str]:
    """Draw figures beside `out`, and return the line of the page that shows each, by section."""
    try:
        import matplotlib
    except ImportError:
        print("matplotlib is not installed: no figures")
        return {}
    matplotlib.use("Agg")
    from matplotlib import pyplot

    drawn = {}
    for name, (plot, caption) in FIGURES.items():
        if name in sections:
            figure = plot(sections[name], pyplot)
            path = out.with_name(f"{out.name}-{name}.png")
            figure.tight_layout()
            figure.savefig(path, dpi=110)
            pyplot.close(figure)
            drawn[name] = f"![{caption}]({path.name})"
    return drawn


def _table(section: Result, pyplot: Any) -> Any:
    columns = section["rows"]
    figure, both = pyplot.subplots(1, 2, figsize=(11, 4.2), sharey=True)
    names = list(dict.fromkeys(n for c in columns for kind in ("step", "predict") for n in c[kind]))
    colours = dict(zip((n for n in names if n not in ("ours", "floor")), COLOURS, strict=False))
    lines = {}
    for axes, kind, title in zip(both, ("step", "predict"), ("training step", "batch of predictions"), strict=True):
        for name in names:
            points = [(c["work"]["depth"], c[kind][name]) for c in columns if name in c[kind]]
            if points:
                style, colour = ":" if name.startswith("floor") else "-o", colours.get(name, "black")
                lines[name] = axes.plot(*zip(*points, strict=True), style, color=colour, markersize=3)[0]
        axes.set(yscale="log", xlabel="depth", title=title)
        _ticks(axes.xaxis, [c["work"]["depth"] for c in columns])
    _plain_numbers(both[0])  # the other shares its axis
    for axes in both:
        axes.grid(alpha=0.3)
    both[0].set_ylabel("milliseconds")
    both[1].legend(lines.values(), lines, fontsize=7, loc="center left", bbox_to_anchor=(1.02, 0.5))
    return figure


def _curves(section: Result, pyplot: Any) -> Any:
    figure, grid = pyplot.subplots(2, 3, figsize=(10, 6))
    for axes, (axis, points) in zip(grid.flat, section["curves"].items(), strict=False):
        values = [p["value"] for p in points]
        if axis == "rows":
            axes.plot(values, [1e3 * p["epoch_s"] for p in points], "k-o", markersize=3, label="epoch")
        else:
            axes.plot(values, [p["ours"] for p in points], "k-o", markersize=3, label="step, ours")
            axes.plot(values, [p["floor"] for p in points], "k:", label="step, floor")
        axes.set(xscale="linear" if axis in ("depth", "window") else "log", yscale="log", xlabel=axis)
        _ticks(axes.xaxis, values)
        _plain_numbers(axes)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    for axes in grid[:, 0]:
        axes.set_ylabel("milliseconds")
    return figure


def _ticks(axis: Any, values: list[int]) -> None:
    """Set one tick for each measured value."""
    axis.set_ticks(values, [f"{v:,}" for v in values])
    axis.set_ticks([], minor=True)


def _plain_numbers(axes: Any) -> None:
    """Label 0.02, 0.05, 0.1 instead of powers of ten; only powers of ten on a long axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 200 * low else (1,)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.yaxis.set_minor_locator(NullLocator())


FIGURES: dict[str, tuple[Callable[[Result, Any], Any], str]] = {
    "table": (_table, "time of a step and of a batch of predictions against depth"),
    "curves": (_curves, "cost against depth, window, batch, features, members and rows"),
}
