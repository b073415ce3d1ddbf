"""The page and the figures that the results of `speed.py` make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

Result = dict[str, Any]
STEPS = {
    "a GPU": "gather, forward, backward and Adam, replayed from its CUDA graph",
    "a CPU": "forward, backward and Adam on a given batch",
}
COLOURS = [f"C{i}" for i in range(10)] + ["olive"]
FLOOR = "its two matrix products, one copy of the logits and Adam's step"


def write_page(results: Result, out: Path) -> None:
    """Write `out`.md, and its figures beside it, from all sections that there are."""
    figures = draw(results, out)
    sections = results["sections"]
    machine = results["machine"]
    where = "a GPU" if machine["device"] != "cpu" else "a CPU"
    lines = [f"# Speed on {where}", ""]
    lines += [
        "Made by `benchmarks/speed.py`, everything in one process, in turns, medians; its data is "
        f"[{out.name}.json]({out.name}.json). The work: single precision, 1024 rows, 784 features, 10 classes, linear "
        f"decisions. A step is the library's own: {STEPS[where]}. The floor of a step is {FLOOR}; "
        "that of a prediction is the forward product and one copy of the logits. On a GPU ours and the floors are CUDA "
        "graphs. "
        f"Before anything is timed, losses, gradients and predictions are compared with the reference: the largest "
        f"relative error is {results['error']:.0e}.",
        "",
        ", ".join(f"{name} {value}" for name, value in machine.items()) + ".",
    ]
    for name, write in SECTIONS.items():
        if name in sections:
            found = sections[name]
            lines += ["", *(write(found) if "failure" not in found else [f"## {name}", "", found["failure"]])]
            if name in figures:
                lines += ["", f"![{figures[name][1]}]({figures[name][0]})"]
    out.with_suffix(".md").write_text("\n".join(lines) + "\n")


def _table(section: Result) -> list[str]:
    columns = section["rows"]
    names = list(dict.fromkeys(n for c in columns for kind in ("step", "predict") for n in c[kind]))
    names.sort(key=lambda n: (n != "ours", not n.startswith("ours"), not n.startswith("floor"), n))
    lines = ["## Against the floor, plain torch and other soft trees", ""]
    lines += ["Milliseconds of a training step / of a batch of predictions.", ""]
    lines += _row("", *(c["label"] for c in columns)), _row(*["---"] * (len(columns) + 1))
    for name in names:
        lines.append(_row(name, *(f"{_ms(c['step'].get(name))} / {_ms(c['predict'].get(name))}" for c in columns)))
    ratios = (f"{c['step ratio']:.2f} / {c['predict ratio']:.2f}" for c in columns)
    lines.append(_row("**ours over its floor**", *ratios))
    for other in ("leesael/TART", "plain torch, eager"):
        if any(other in c["step"] for c in columns):
            times = (
                f"{c['step'][other] / c['step']['ours']:.1f} / {c['predict'][other] / c['predict']['ours']:.1f}"
                if other in c["step"]
                else "-"
                for c in columns
            )
            lines.append(_row(f"{other} over ours", *times))
    failed = {name: said for c in columns for name, said in c["failures"].items()}
    lines += [f"\n{name} failed: {said}" for name, said in failed.items()]
    return lines


def _shapes(section: Result) -> list[str]:
    lines = ["## Other shapes, each against its own floor", ""]
    lines += _row("", "step, ms", "floor", "ratio", "prediction, ms", "floor", "ratio"), _row(*["---"] * 7)
    for c in section["rows"]:
        step, predict = c["step"], c["predict"]
        cells = [_ms(step["ours"]), _ms(step["floor"]), f"{c['step ratio']:.2f}"]
        cells += [_ms(predict["ours"]), _ms(predict["floor"]), f"{c['predict ratio']:.2f}"]
        lines.append(_row(c["label"], *cells))
    return lines


def _epochs(section: Result) -> list[str]:
    lines = ["## Whole epochs, and fleets", ""]
    lines += _row("depth", "rows", "epoch, s", "its steps, s", "ratio"), _row(*["---"] * 5)
    for e in section["epochs"]:
        lines.append(_row(e["depth"], e["rows"], f"{e['epoch_s']:.4f}", f"{e['steps_s']:.4f}", f"{e['ratio']:.2f}"))
    f = section["fleet"]
    lines += ["", f"200 epochs of {f['members']} trees at once (D 6, L 1, 20 features, 750 rows, 3 classes) take"]
    lines += [f"{f['all_s']:.3f} s, of one {f['one_s']:.3f} s: {f['ratio']:.2f} times as long."]
    return lines


def _curves(section: Result) -> list[str]:
    lines = ["## Cost against depth, window, batch, features, members and rows", ""]
    lines += [
        "Milliseconds of a step of ours / of its floor; for rows, seconds of an epoch (D 4, L 1, 20 features).",
        "",
    ]
    for axis, points in section["curves"].items():
        cells = [f"{p['value']:,}: {p['epoch_s']:.3f}" for p in points if "epoch_s" in p]
        cells += [f"{p['value']:,}: {_ms(p['ours'])} / {_ms(p['floor'])}" for p in points if "ours" in p]
        lines.append(f"- {axis} " + "; ".join(cells))
    return lines


def _fits(section: Result) -> list[str]:
    kinds = ("TartClassifier", "random forest", "gradient boosting")
    lines = [
        "## Whole fits of small tables",
        "",
        "Seconds of a fit with defaults, and accuracy on a quarter held out.",
        "",
    ]
    lines += _row("data", "rows", *kinds), _row(*["---"] * 5)
    for r in section["rows"]:
        cells = (f"{r[kind]['seconds']:.2f} ({r[kind]['accuracy']:.3f})" for kind in kinds)
        lines.append(_row(r["data"], r["rows"], *cells))
    return lines


def _latency(section: Result) -> list[str]:
    lines = ["## One row, the leaf of the largest arrival", ""]
    lines += [
        f"D {section['depth']}, constant leaves, on a CPU: the search that visits only the nodes it needs, and all"
    ]
    lines += ["nodes, by the same tree in the same precision. A batch has 1024 rows.", ""]
    head = ("tree", "precision", "search, us", "all nodes, us", "ratio", "search, batch ms", "all, batch ms")
    lines += _row(*head), _row(*["---"] * 7)
    for r in section["rows"]:
        cells = [f"{r['search_us']:.0f}", f"{r['all_us']:.0f}", f"{r['ratio']:.1f}"]
        cells += [f"{r['search_batch_ms']:.1f}", f"{r['all_batch_ms']:.1f}"]
        lines.append(_row("trained" if r["trained"] else "untrained", r["precision"], *cells))
    return lines


def _mnist(section: Result) -> list[str]:
    reached = section["reached_s"]
    said = "was not reached" if reached is None else f"is reached after {reached:.1f} s of training"
    return [
        "## MNIST", "",
        f"A soft tree with D {section['depth']}, linear decisions, constant leaves. {100 * section['wanted']:.0f} % on "
        f"the test images {said}; after all {section['epochs']} epochs, {section['all_s']:.1f} s, it has "
        f"{100 * section['accuracies'][-1]:.2f} %.",
    ]  # fmt: skip


def _memory(section: Result) -> list[str]:
    lines = ["## Memory of a step", "", "Peak growth in a first step, in units of batch x nodes x 4 bytes.", ""]
    lines += _row("depth", "memory"), _row("---", "---")
    return lines + [_row(depth, f"{units:.1f}") for depth, units in section["units"].items()]


SECTIONS = {
    "table": _table, "shapes": _shapes, "epochs": _epochs, "curves": _curves, "fits": _fits, "row": _latency,
    "mnist": _mnist, "memory": _memory,
}  # fmt: skip


def _row(*cells: Any) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def draw(results: Result, out: Path) -> dict[str, tuple[str, str]]:
    """Figures, log-log: of each section that has one, the file's name and what it shows."""
    try:
        import matplotlib
    except ImportError:
        print("matplotlib is not installed: no figures")
        return {}
    matplotlib.use("Agg")
    from matplotlib import pyplot

    drawn: dict[str, tuple[str, str]] = {}
    sections = results["sections"]
    if "rows" in sections.get("table", {}):
        columns = sections["table"]["rows"]
        figure, both = pyplot.subplots(1, 2, figsize=(11, 4.2), sharey=True)
        names = list(dict.fromkeys(n for c in columns for kind in ("step", "predict") for n in c[kind]))
        colours = dict(zip((n for n in names if n not in ("ours", "floor")), COLOURS, strict=False))
        lines = {}
        for axes, kind, title in zip(both, ("step", "predict"), ("training step", "predictions"), strict=True):
            for name in names:
                points = [(c["work"]["depth"], c[kind][name]) for c in columns if name in c[kind]]
                if points:
                    style = ":" if name.startswith("floor") else "-o"
                    lines[name] = axes.plot(
                        *zip(*points, strict=True), style, color=colours.get(name, "black"), markersize=3
                    )[0]
            axes.set(yscale="log", xlabel="depth", title=title, xticks=[c["work"]["depth"] for c in columns])
            axes.grid(alpha=0.3)
        both[0].set_ylabel("milliseconds")
        both[1].legend(lines.values(), lines, fontsize=7, loc="center left", bbox_to_anchor=(1.02, 0.5))
        drawn["table"] = _save(figure, out, "table", "time of a step and of a batch of predictions against depth")
        pyplot.close(figure)
    if "curves" in sections.get("curves", {}):
        curves = sections["curves"]["curves"]
        figure, grid = pyplot.subplots(2, 3, figsize=(10, 6))
        for axes, (axis, points) in zip(grid.flat, curves.items(), strict=False):
            values = [p["value"] for p in points]
            if axis == "rows":
                axes.plot(values, [1e3 * p["epoch_s"] for p in points], "k-o", markersize=3, label="epoch")
            else:
                axes.plot(values, [p["ours"] for p in points], "k-o", markersize=3, label="ours")
                axes.plot(values, [p["floor"] for p in points], "k:", label="floor")
            axes.set(xscale="log", yscale="log", xlabel=axis)
            if axis in ("depth", "window"):
                axes.set_xscale("linear")
            axes.grid(alpha=0.3)
            axes.legend(fontsize=7)
        for axes in grid[:, 0]:
            axes.set_ylabel("milliseconds")
        drawn["curves"] = _save(figure, out, "curves", "cost against depth, window, batch, features, members and rows")
        pyplot.close(figure)
    return drawn


def _save(figure: Any, out: Path, name: str, said: str) -> tuple[str, str]:
    path = out.with_name(f"{out.name}-{name}.png")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    return path.name, said
