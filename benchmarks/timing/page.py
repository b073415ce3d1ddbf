"""The page that the results of `speed.py` make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from timing.figures import draw
from timing.peers import CLONES, PEERS

Result = dict[str, Any]
STEPS = {
    "a GPU": "gather, forward, backward and Adam, replayed from its CUDA graph",
    "a CPU": "forward, backward and Adam on a given batch",
}
FLOOR = "its two matrix products, one copy of the logits and Adam's step"
#: Only on a GPU: on a CPU both take torch's.
OWN_ADAM = (
    "The floors are CUDA graphs too. The floor's Adam is torch's fused one, ours is a kernel of its own, which is "
    "faster for few numbers: so a step can take less than its floor. "
)
#: How the loss of plain torch is written; results before had the latter.
PLAIN = {
    "product": "The loss of plain torch is one product of arrival and the leaves' log-probabilities.",
    "gather": "Plain torch gathers the cost of each leaf for each row, which is not its fastest way.",
}
ORDER = ("ours", "ours,", "floor", "products", "plain")


def write_page(results: Result, out: Path) -> None:
    """Write `out`.md, and its figures beside it, from all sections that there are."""
    sections = {name: found for name, found in results["sections"].items() if "failure" not in found}
    figures = draw(sections, out)
    machine = results["machine"]
    where = "a GPU" if machine["device"] != "cpu" else "a CPU"
    lines = [f"# Speed on {where}", ""]
    lines += [
        "Made by `benchmarks/speed.py`: what is in one section is measured in one process, in turns, and medians are "
        f"shown; sections may come from several runs. Its data is [{out.name}.json]({out.name}.json). The work, unless "
        "said otherwise: single precision, 1024 rows, 784 features, 10 classes, linear decisions. A step is the "
        f"library's own: {STEPS[where]}. The floor of a step is {FLOOR}; that of a prediction is the forward product "
        f"and one copy of the logits. {OWN_ADAM if where == 'a GPU' else ''}{_said_of_errors(results)}",
        "",
        ", ".join(f"{name} {value}" for name, value in machine.items()) + ".",
    ]
    for name, write in SECTIONS.items():
        if name in sections:
            found = sections[name]
            lines += ["", *write(found)]
            if name in figures:
                lines += ["", figures[name]]
            if "date" in found:
                lines += ["", f"Measured on {found['date']} with tartree {found['tartree']}."]
    beside(out, ".md").write_text("\n".join(lines) + "\n")


def beside(out: Path, ending: str) -> Path:
    """A file of results; a name may have a dot of its own.

    >>> beside(Path("speed.v2"), ".json").name
    'speed.v2.json'
    """
    return out.with_name(out.name + ending)


def _said_of_errors(results: Result) -> str:
    """What was compared with the reference, and how near it is."""
    said = (
        "Before anything is timed, losses, gradients and predictions are compared with the reference: the largest "
        f"relative error is {results['error']:.0e}"
    )
    if "compared" not in results:
        return f"{said}."
    errors = ", ".join(f"in {name} {error:.0e}" for name, error in results["errors"].items())
    shapes = "; ".join(results["compared"])
    return f"{said}, and of losses and gradients {errors}. Shapes compared in the last run: {shapes}."


def _table(section: Result) -> list[str]:
    columns = section["rows"]
    names = list(dict.fromkeys(n for c in columns for kind in ("step", "predict") for n in c[kind]))
    names.sort(key=lambda n: (n != "ours", min([i for i, o in enumerate(ORDER) if n.startswith(o)], default=9), n))
    lines = ["## Against the floor, plain torch and other soft trees", ""]
    lines += [
        "Milliseconds of a training step / of a batch of predictions. The products are the floor without Adam. "
        f"{PLAIN[section.get('plain', 'gather')]} {_said_of_predictions(names, 'predictor' in columns[0])}",
        "",
    ]
    lines += _row("", *(c["label"] for c in columns)), _row(*["---"] * (len(columns) + 1))
    for name in names:
        lines.append(_row(name, *(f"{_ms(c['step'].get(name))} / {_ms(c['predict'].get(name))}" for c in columns)))
    ratios = (f"{c['step ratio']:.2f} / {c['predict ratio']:.2f}" for c in columns)
    lines.append(_row("**ours over its floor**", *ratios))
    for other in ("leesael/TART", "plain torch, eager", "plain torch, compiled, in a graph"):
        if any(other in c["step"] for c in columns):
            times = (
                f"{c['step'][other] / c['step']['ours']:.1f} / {c['predict'][other] / c['predict']['ours']:.1f}"
                if other in c["step"]
                else "-"
                for c in columns
            )
            lines.append(_row(f"{other} over ours", *times))
    absent = _absent(columns)
    return [*lines, "", "Not measured:", "", *(f"- {said}" for said in absent)] if absent else lines


def _said_of_predictions(names: list[str], is_predictor: bool) -> str:
    """What `ours` is in a prediction, and what a user of an estimator gets."""
    graph = ""
    if "ours, eager" in names:
        whose = "that `tartree.nn.Predictor` keeps" if is_predictor else "that the benchmark captures"
        graph = f", replayed from a graph {whose}; eager, it is the call as it is"
    said = f"A prediction of ours is `Tree.predict` of tensors on the device, in single precision{graph}. "
    user = (
        "an array of rows to an array of probabilities, with the encoding of the table; the tree runs where it was "
        "trained, on a CPU in double precision, on a GPU in single."
    )
    if "ours, predict_proba" in names:
        return f"{said}A user of `TartClassifier` gets `predict_proba`: {user}"
    return f"{said}`predict_proba` of `TartClassifier` does more: {user}"


def _absent(columns: list[Result]) -> list[str]:
    """Who is missing at which depths, and why."""
    reasons: dict[str, dict[str, list[int]]] = {name: {} for name in PEERS}
    for c in columns:
        unsaid = {name: _why_absent(name, columns) for name in PEERS if name not in c["step"]}
        for name, why in (unsaid | c["failures"]).items():
            reasons.setdefault(name, {}).setdefault(why, []).append(c["work"]["depth"])
    return [
        f"{name}, D {', '.join(map(str, depths))}: {why}."
        for name, own in reasons.items()
        for why, depths in own.items()
    ]


def _why_absent(name: str, columns: list[Result]) -> str:
    if any(name in c["step"] for c in columns):
        return "it was not tried"
    return "its clone was not there" if name in CLONES else "it was not installed"


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
    if "epoch ratio" in f:
        lines[-1] += (
            f" Without what comes before the first epoch (by the difference of {f['many']} and {f['few']} epochs), an "
            f"epoch takes {_ms(1e3 * f['all_epoch_s'])} ms, of one {_ms(1e3 * f['one_epoch_s'])} ms: "
            f"{f['epoch ratio']:.2f} times as long."
        )
    return lines


def _choice(section: Result) -> list[str]:
    rows = section["rows"]
    batches = list(dict.fromkeys(r["work"]["batch"] for r in rows))
    lines = ["## Small shapes: the kernels and the native backend", ""]
    lines += [
        "Milliseconds of a step with the fused kernels, which a GPU chooses by itself, and by the native backend; both "
        "are captured graphs. Ten features, two classes, linear decisions. In parentheses: native over fused.",
        "",
    ]
    lines += _row("", *(f"{batch} rows" for batch in batches)), _row(*["---"] * (len(batches) + 1))
    shapes: dict[str, list[str]] = {}
    for r in rows:
        ratio = (
            "failed" if "failure" in r else f"{_ms(r['fused'])}, {_ms(r['native'])} ({r['native'] / r['fused']:.2f})"
        )
        shapes.setdefault(_label(r["work"]), []).append(ratio)
    lines += [_row(shape, *cells) for shape, cells in shapes.items()]
    measured = [r for r in rows if "failure" not in r]
    ratios = [r["native"] / r["fused"] for r in measured]
    if ratios:
        lines += ["", f"The ratio is at least {min(ratios):.2f} and at most {max(ratios):.2f}."]
        wins = [f"{_label(r['work'])}, {r['work']['batch']} rows" for r in measured if r["native"] < r["fused"]]
        lines[-1] += f" Native wins at {'; '.join(wins)}." if wins else " Native wins nowhere here."
    reasons = dict.fromkeys(f"{_label(r['work'])}: {r['failure']}" for r in rows if "failure" in r)
    return [*lines, "", *(f"- {reason}" for reason in reasons)] if reasons else lines


def _label(work: Result) -> str:
    return f"D {work['depth']}, W {work['window']}, S {work['stride'] or work['window']}, L {work['leaf_layers']}"


def _curves(section: Result) -> list[str]:
    lines = ["## Cost against depth, window, batch, features, members and rows", ""]
    lines += [
        "Milliseconds of a step of ours / of its floor; for rows, of an epoch (D 4, L 1, 20 features, 2 classes). In "
        "the figure both axes are logarithmic, but those of depth, in which the number of nodes is a power already, "
        "and of window.",
        "",
    ]
    for axis, points in section["curves"].items():
        cells = [f"{p['value']:,}: {_ms(1e3 * p['epoch_s'])}" for p in points if "epoch_s" in p]
        cells += [f"{p['value']:,}: {_ms(p['ours'])} / {_ms(p['floor'])}" for p in points if "ours" in p]
        cut = ", ".join(f"{value:,}" for value in section.get("cut", {}).get(axis, []))
        lines.append(f"- {axis} " + "; ".join(cells) + (f" (the time was over before {cut})" if cut else ""))
    return lines


def _fits(section: Result) -> list[str]:
    kinds = ("TartClassifier", "random forest", "gradient boosting")
    lines = [
        "## Whole fits of small tables",
        "",
        "Seconds of a fit, at depth 4, and accuracy on a quarter held out.",
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
        f"D {section['depth']}, constant leaves, on a CPU: the search that visits only the nodes it needs, and all "
        "nodes, by the same tree in the same precision. A batch has 1024 rows.",
        "",
    ]
    head = ["tree", "precision", "search, us", "all nodes, us", "ratio", "search, batch ms", "all, batch ms"]
    is_fresh = "right" in section
    if is_fresh:
        lines[-2] += (
            " Double precision, with which `TartClassifier` predicts on a CPU, stands first. Each class is noise "
            f"around a centre; the tree is trained on {section['training rows']:,} rows and asked about 1024 others, "
            f"of which it gets {100 * section['right']:.1f} % right. Of each of these, both ways find the same leaf. "
            "The first 200 are asked alone, in turns of 20 by search and 20 by all nodes; in parentheses, where half "
            "of them lie. *Cold* is a search right after all nodes, whose weights have driven its own out of caches."
        )
        head[3:5] = ["search, cold, us", "all nodes, us", "ratio", "ratio, cold"]
    lines += _row(*head), _row(*["---"] * len(head))
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
        lines.append(_row("trained" if r["trained"] else "untrained", r["precision"], *cells))
    return lines


def _mnist(section: Result) -> list[str]:
    said = _reached(section)
    if "warm" in section:
        warm = section["warm"]
        said += (
            f" in a fresh process that has no compiled kernels (its first epoch {section['first_s']:.1f} s), and "
            f"{_reached(warm).removeprefix('is reached ')} when the same process trains once more (its first epoch "
            f"{warm['first_s']:.1f} s). What is loaded before, the libraries and the images, is not counted"
        )
    elif "first_s" in section:
        said += (
            f" (the first epoch, with all that this process had not loaded or compiled yet, {section['first_s']:.1f} s)"
        )
    return [
        "## MNIST", "",
        f"A soft tree with D {section['depth']}, linear decisions, constant leaves. {100 * section['wanted']:.0f} % on "
        f"the test images {said}; after all {section['epochs']} epochs, {section['all_s']:.1f} s, it has "
        f"{100 * section['accuracies'][-1]:.2f} %. The test images are looked at after each epoch to find the one that "
        "reaches it; the time of looking is not counted.",
    ]  # fmt: skip


def _reached(section: Result) -> str:
    reached = section["reached_s"]
    return "was not reached" if reached is None else f"is reached after {reached:.1f} s of training"


def _precision(section: Result) -> list[str]:
    lines = ["## Precision", ""]
    said = f"The training on MNIST of a soft tree with D {section['depth']}, once in each precision, in this order."
    first = (
        "Before each, one epoch is trained and not counted, so that all is loaded and compiled."
        if "warm" in section
        else "The first epoch has all that the process had not loaded or compiled yet."
    )
    lines += [f"{said} {first}", ""]
    lines += _row("precision", "test accuracy", "all epochs, s", "the first of them, s"), _row(*["---"] * 4)
    for r in section["rows"]:
        if "failure" in r:
            lines.append(_row(r["precision"], r["failure"], "-", "-"))
        else:
            cells = (f"{100 * r['accuracies'][-1]:.2f} %", f"{r['all_s']:.1f}", f"{r['first_s']:.1f}")
            lines.append(_row(r["precision"], *cells))
    return lines


def _memory(section: Result) -> list[str]:
    lines = ["## Memory of a step", "", "Peak growth in a first step, in units of batch x nodes x 4 bytes.", ""]
    lines += _row("depth", "memory"), _row("---", "---")
    return lines + [_row(depth, f"{units:.1f}") for depth, units in section["units"].items()]


SECTIONS = {
    "table": _table, "shapes": _shapes, "choice": _choice, "epochs": _epochs, "curves": _curves, "fits": _fits,
    "row": _latency, "mnist": _mnist, "precision": _precision, "memory": _memory,
}  # fmt: skip


def _row(*cells: Any) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"
