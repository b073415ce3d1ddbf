"""The page made from the results of `speed.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from toolkit.markdown import table
from toolkit.record import beside

from timing.figures import draw
from timing.peers import CLONES, PEERS

Result = dict[str, Any]
STEPS = {
    "a GPU": "gather, forward, backward and Adam, replayed from its CUDA graph",
    "a CPU": "forward, backward and Adam on one batch",
}
FLOOR = "its two matrix products, one copy of the logits and Adam's step"
#: Only on a GPU: on a CPU both use torch's Adam.
ADAM_KERNEL = (
    "The floors are CUDA graphs too. Adam is torch's fused kernel in the floor and a kernel of this library in ours. "
    "The latter is faster for few parameters, so a step can take less time than its floor. "
)
#: How the loss of plain torch is written, by the name in the results; older results lack it and used "gather".
PLAIN = {
    "product": "The loss of plain torch is one product of arrival and the leaves' log-probabilities.",
    "gather": "Plain torch gathers the cost of each leaf for each row, which is not its fastest form.",
}
ORDER = ("ours", "ours,", "floor", "products", "plain")


def write_page(results: Result, out: Path) -> None:
    """Write `out`.md and its figures from all sections with results."""
    sections = {name: section for name, section in results["sections"].items() if "failure" not in section}
    figures = draw(sections, out)
    machine = results["machine"]
    where = "a GPU" if machine["device"] != "cpu" else "a CPU"
    lines = [f"# Speed on {where}", ""]
    lines += [
        "Made by `benchmarks/speed.py`. A section is measured in one process, in turns; the figures are medians. "
        f"Sections may come from several runs. The data is in [{out.name}.json]({out.name}.json). Unless stated "
        "otherwise: single precision, 1024 rows, 784 features, 10 classes, linear decisions. A step is that of the "
        f"library: {STEPS[where]}. The floor of a step is {FLOOR}; that of a prediction is the forward product "
        f"and one copy of the logits. {ADAM_KERNEL if where == 'a GPU' else ''}{_accuracy(results)}",
        "",
        ", ".join(f"{name} {value}" for name, value in machine.items()) + ".",
    ]
    for name, write in SECTIONS.items():
        if name in sections:
            section = sections[name]
            lines += ["", *write(section)]
            if name in figures:
                lines += ["", figures[name]]
            if "date" in section:
                lines += ["", f"Measured on {section['date']} with tartree {section['tartree']}."]
    beside(out, ".md").write_text("\n".join(lines) + "\n")


def _accuracy(results: Result) -> str:
    """Return how results were compared with the reference, and the errors."""
    text = (
        "Before timing, losses, gradients and predictions are compared with the reference: the largest relative error "
        f"is {results['error']:.0e}"
    )
    if "compared" not in results:
        return f"{text}."
    errors = ", ".join(f"in {name} {error:.0e}" for name, error in results["errors"].items())
    shapes = "; ".join(results["compared"])
    return f"{text}, and that of losses and gradients {errors}. Shapes compared in the last run: {shapes}."


def _table(section: Result) -> list[str]:
    columns = section["rows"]
    names = list(dict.fromkeys(n for c in columns for kind in ("step", "predict") for n in c[kind]))
    names.sort(key=lambda n: (n != "ours", min([i for i, o in enumerate(ORDER) if n.startswith(o)], default=9), n))
    rows = [[name, *(f"{_ms(c['step'].get(name))} / {_ms(c['predict'].get(name))}" for c in columns)] for name in names]
    ratios = (f"{c['step ratio']:.2f} / {c['predict ratio']:.2f}" for c in columns)
    rows.append(["**ours over its floor**", *ratios])
    for other in ("leesael/TART", "plain torch, eager", "plain torch, compiled, in a graph"):
        if any(other in c["step"] for c in columns):
            rows.append([f"{other} over ours", *(_times(c, other) for c in columns)])
    lines = [
        "## Against the floor, plain torch and other soft trees",
        "",
        "Milliseconds of a training step / of a batch of predictions. The products are the floor without Adam. "
        f"{PLAIN[section.get('plain', 'gather')]} {_predictions(names, 'predictor' in columns[0])}",
        "",
        *table(["", *(c["label"] for c in columns)], rows),
    ]
    absent = _absent(columns)
    return [*lines, "", "Not measured:", "", *(f"- {reason}" for reason in absent)] if absent else lines


def _times(column: Result, other: str) -> str:
    """Return how many times longer another model takes."""
    if other not in column["step"]:
        return "-"
    return " / ".join(f"{column[kind][other] / column[kind]['ours']:.1f}" for kind in ("step", "predict"))


def _predictions(names: list[str], is_predictor: bool) -> str:
    """Return what a prediction of ours includes, and one of an estimator."""
    graph = ""
    if "ours, eager" in names:
        owner = "`tartree.nn.Predictor`" if is_predictor else "the benchmark"
        graph = f", replayed from a graph captured by {owner}; *eager* is the same call without the graph"
    text = f"A prediction of ours is `Tree.predict` of tensors on the device, in single precision{graph}. "
    user = (
        "an array of rows to an array of probabilities, with the encoding of the table; the tree runs on the device "
        "of its training, on a CPU in double precision, on a GPU in single precision."
    )
    if "ours, predict_proba" in names:
        return f"{text}*predict_proba* is that of `TartClassifier`: {user}"
    return f"{text}`predict_proba` of `TartClassifier` does more: {user}"


def _absent(columns: list[Result]) -> list[str]:
    """Return the models that are missing, at which depths, and why."""
    reasons: dict[str, dict[str, list[int]]] = {name: {} for name in PEERS}
    for c in columns:
        unexplained = {name: _why_absent(name, columns) for name in PEERS if name not in c["step"]}
        for name, reason in (unexplained | c["failures"]).items():
            reasons.setdefault(name, {}).setdefault(reason, []).append(c["work"]["depth"])
    return [
        f"{name}, D {', '.join(map(str, depths))}: {reason}."
        for name, depths_by_reason in reasons.items()
        for reason, depths in depths_by_reason.items()
    ]


def _why_absent(name: str, columns: list[Result]) -> str:
    if any(name in c["step"] for c in columns):
        return "not tried"
    return "no clone" if name in CLONES else "not installed"


def _shapes(section: Result) -> list[str]:
    rows = []
    for c in section["rows"]:
        step, predict = c["step"], c["predict"]
        cells = [_ms(step["ours"]), _ms(step["floor"]), f"{c['step ratio']:.2f}"]
        cells += [_ms(predict["ours"]), _ms(predict["floor"]), f"{c['predict ratio']:.2f}"]
        rows.append([c["label"], *cells])
    head = ["", "step, ms", "floor", "ratio", "prediction, ms", "floor", "ratio"]
    return ["## Other shapes, each against its floor", "", *table(head, rows)]


def _epochs(section: Result) -> list[str]:
    rows = [
        [e["depth"], e["rows"], f"{e['epoch_s']:.4f}", f"{e['steps_s']:.4f}", f"{e['ratio']:.2f}"]
        for e in section["epochs"]
    ]
    f = section["fleet"]
    fleet = (
        f"200 epochs of {f['members']} trees at once (D 6, L 1, 20 features, 750 rows, 3 classes) take "
        f"{f['all_s']:.3f} s, of a single tree {f['one_s']:.3f} s: {f['ratio']:.2f} times as long."
    )
    if "epoch ratio" in f:
        fleet += (
            f" Without the time before the first epoch (by the difference of {f['many']} and {f['few']} epochs), an "
            f"epoch takes {_ms(1e3 * f['all_epoch_s'])} ms, of a single tree {_ms(1e3 * f['one_epoch_s'])} ms: "
            f"{f['epoch ratio']:.2f} times as long."
        )
    head = ["depth", "rows", "epoch, s", "its steps, s", "ratio"]
    return ["## Whole epochs, and fleets", "", *table(head, rows), "", fleet]


def _choice(section: Result) -> list[str]:
    rows = section["rows"]
    batches = list(dict.fromkeys(r["work"]["batch"] for r in rows))
    lines = ["## Small shapes: the kernels and the native backend", ""]
    lines += [
        "Milliseconds of a step with the fused kernels, the default on a GPU, and with the native backend; both are "
        "captured graphs. Ten features, two classes, linear decisions. In parentheses: native over fused.",
        "",
    ]
    shapes: dict[str, list[str]] = {}
    for r in rows:
        ratio = (
            "failed" if "failure" in r else f"{_ms(r['fused'])}, {_ms(r['native'])} ({r['native'] / r['fused']:.2f})"
        )
        shapes.setdefault(_label(r["work"]), []).append(ratio)
    lines += table(["", *(f"{batch} rows" for batch in batches)], [[shape, *cells] for shape, cells in shapes.items()])
    measured = [r for r in rows if "failure" not in r]
    ratios = [r["native"] / r["fused"] for r in measured]
    if ratios:
        lines += ["", f"The ratio is at least {min(ratios):.2f} and at most {max(ratios):.2f}."]
        wins = [f"{_label(r['work'])}, {r['work']['batch']} rows" for r in measured if r["native"] < r["fused"]]
        lines[-1] += f" Native is faster at {'; '.join(wins)}." if wins else " Native is faster at none of them."
    reasons = dict.fromkeys(f"{_label(r['work'])}: {r['failure']}" for r in rows if "failure" in r)
    return [*lines, "", *(f"- {reason}" for reason in reasons)] if reasons else lines


def _label(work: Result) -> str:
    return f"D {work['depth']}, W {work['window']}, S {work['stride'] or work['window']}, L {work['leaf_layers']}"


def _curves(section: Result) -> list[str]:
    lines = ["## Cost against depth, window, batch, features, members and rows", ""]
    lines += [
        "Milliseconds of a step of ours / of its floor; for rows, of an epoch (D 4, L 1, 20 features, 2 classes). In "
        "the figure all axes are logarithmic except depth and window.",
        "",
    ]
    for axis, points in section["curves"].items():
        cells = [f"{p['value']:,}: {_ms(1e3 * p['epoch_s'])}" for p in points if "epoch_s" in p]
        cells += [f"{p['value']:,}: {_ms(p['ours'])} / {_ms(p['floor'])}" for p in points if "ours" in p]
        cut = ", ".join(f"{value:,}" for value in section.get("cut", {}).get(axis, []))
        lines.append(f"- {axis} " + "; ".join(cells) + (f" (time ran out before {cut})" if cut else ""))
    return lines


def _fits(section: Result) -> list[str]:
    kinds = ("TartClassifier", "random forest", "gradient boosting")
    rows = [
        [r["data"], r["rows"], *(f"{r[kind]['seconds']:.2f} ({r[kind]['accuracy']:.3f})" for kind in kinds)]
        for r in section["rows"]
    ]
    return [
        "## Whole fits of small tables",
        "",
        "Seconds of a fit at depth 4 and, in brackets, accuracy on a held-out quarter.",
        "",
        *table(["data", "rows", *kinds], rows),
    ]


def _latency(section: Result) -> list[str]:
    text = (
        f"D {section['depth']}, constant leaves, on a CPU: the search, which visits only the nodes it needs, and all "
        "nodes, by the same tree in the same precision. A batch has 1024 rows."
    )
    head = ["tree", "precision", "search, us", "all nodes, us", "ratio", "search, batch ms", "all, batch ms"]
    is_fresh = "right" in section
    if is_fresh:
        text += (
            " Double precision, which `TartClassifier` uses on a CPU, comes first. Each class is noise around a "
            f"centre; the tree is trained on {section['training rows']:,} rows and predicts 1024 others, with an "
            f"accuracy of {100 * section['right']:.1f} %. Search and all nodes find the same leaf for each of them. "
            "The first 200 rows are predicted one by one, in turns of 20 by search and 20 by all nodes; in "
            "parentheses, the first and third quartile of their times. *Cold* is a search right after all nodes, "
            "whose weights have evicted those of the search from the caches."
        )
        head[3:5] = ["search, cold, us", "all nodes, us", "ratio", "ratio, cold"]
    rows = []
    for r in section["rows"]:
        search, full = (
            f"{r[f'{name}_us']:.0f}"
            + "".join(" ({:.0f} to {:.0f})".format(*q) for q in [r.get(f"{name}_quarters_us")] if q)
            for name in ("search", "all")
        )
        cells = [search, full, f"{r['ratio']:.1f}"]
        if is_fresh:
            cells = [search, f"{r['cold_us']:.0f}", full, f"{r['ratio']:.1f}", f"{r['all_us'] / r['cold_us']:.1f}"]
        cells += [f"{r['search_batch_ms']:.1f}", f"{r['all_batch_ms']:.1f}"]
        rows.append(["trained" if r["trained"] else "untrained", r["precision"], *cells])
    return ["## One row, the leaf of the largest arrival", "", text, "", *table(head, rows)]


def _mnist(section: Result) -> list[str]:
    text = _reached(section)
    if "warm" in section:
        warm = section["warm"]
        text += (
            f" in a new process without compiled kernels (first epoch {section['first_s']:.1f} s), and "
            f"{_reached(warm).removeprefix('is reached ')} when the same process trains again (first epoch "
            f"{warm['first_s']:.1f} s). Loading the libraries and the images is not counted"
        )
    elif "first_s" in section:
        text += f" (first epoch, with imports and compilation, {section['first_s']:.1f} s)"
    return [
        "## MNIST",
        "",
        f"A soft tree with D {section['depth']}, linear decisions, constant leaves. A test accuracy of "
        f"{100 * section['wanted']:.0f} % {text}; after all {section['epochs']} epochs, {section['all_s']:.1f} s, it "
        f"is {100 * section['accuracies'][-1]:.2f} %. Test images are predicted after each epoch to find the first one "
        "that reaches it; this time is not counted.",
    ]


def _reached(section: Result) -> str:
    reached = section["reached_s"]
    return "was not reached" if reached is None else f"is reached after {reached:.1f} s of training"


def _precision(section: Result) -> list[str]:
    text = f"The training on MNIST of a soft tree with D {section['depth']}, once in each precision, in this order."
    if "warm" in section:
        text += " Before each, one epoch is trained and not counted, so that imports and compilation are done."
    else:
        text += " The first epoch includes imports and compilation of the process."
    rows = []
    for r in section["rows"]:
        cells = [r.get("failure"), "-", "-"]
        if "failure" not in r:
            cells = [f"{100 * r['accuracies'][-1]:.2f} %", f"{r['all_s']:.1f}", f"{r['first_s']:.1f}"]
        rows.append([r["precision"], *cells])
    head = ["precision", "test accuracy", "all epochs, s", "first epoch, s"]
    return ["## Precision", "", text, "", *table(head, rows)]


def _memory(section: Result) -> list[str]:
    rows = [[depth, f"{units:.1f}"] for depth, units in section["units"].items()]
    text = "Peak growth in a first step, in units of batch x nodes x 4 bytes."
    return ["## Memory of a step", "", text, "", *table(["depth", "memory"], rows)]


SECTIONS = {
    "table": _table, "shapes": _shapes, "choice": _choice, "epochs": _epochs, "curves": _curves, "fits": _fits,
    "row": _latency, "mnist": _mnist, "precision": _precision, "memory": _memory,
}  # fmt: skip


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"
