"""docs/zoo.md and its picture, from zoo.json and the presets; `python benchmarks/zoo.py --pictures --page` calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from toolkit.markdown import table, wrapped

from tartree import ops, zoo
from tartree.structure import Structure

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs/pictures/zoo.png"
PAGE = ROOT / "docs/zoo.md"

#: Section of each model: title, description, its paper, and an example that can be run.
SECTIONS: dict[str, tuple[str, str, str, str]] = {
    "dt": (
        "DT, decision tree",
        "f is the indicator of one feature against one threshold, g is constant. `tartree.zoo.from_sklearn` takes "
        "a tree or an ensemble of scikit-learn, XGBoost or LightGBM: predictions equal the source's on every row, also "
        "on thresholds and with missing values. (XGBoost computes in single precision: where two classes are equally "
        'likely up to its last digit, the label may differ; and with `booster="dart"` its regressors add in another '
        "order than its boosters, so that the last digits may differ.) "
        "`tartree.zoo.make` with `dt` trains a tree by gradient: a node selects a feature with a straight-through "
        "estimator, and its sigmoid becomes a step in prediction. `tartree.zoo.to_sklearn` converts either of them to "
        "scikit-learn, which rounds columns to single precision: scale values first if they differ only in the last "
        "digits of double precision. Explain an ensemble tree by tree, with `model.one_tree(0)`.",
        "L. Breiman, J. Friedman, C. Stone, R. Olshen, *Classification and Regression Trees*, 1984.",
        """from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from tartree import zoo

X, y = load_iris(return_X_y=True)
forest = RandomForestClassifier(10, random_state=0).fit(X, y)
model = zoo.from_sklearn(forest)
assert (model.predict(X) == forest.predict(X)).all()
print(model.trees_[0].structure)  # an irregular structure, one layer for each layer of the tree

trained = zoo.make("dt", epochs=100, random_state=0).fit(X, y)
exported = zoo.to_sklearn(trained)  # a DecisionTreeClassifier
assert (exported.predict(X) == trained.predict(X)).all()""",
    ),
    "sdt": (
        "SDT, soft decision tree",
        "f is a sigmoid of a linear filter, with a learned inverse temperature for each node; g is constant. A penalty "
        "keeps nodes from sending all rows to the same child; its weight is halved in each deeper layer.",
        "N. Frosst, G. Hinton, *Distilling a Neural Network Into a Soft Decision Tree*, 2017.",
        """model = zoo.make("sdt", depth=3, random_state=0).fit(X, y)
print(model.tree_.decision.inverse_temperature)""",
    ),
    "ndf": (
        "NDF, neural decision forest",
        "Each node is a perceptron on a random subset of the features; the trees of the forest are members.",
        "S. Rota Bulò, P. Kontschieder, *Neural Decision Forests for Semantic Image Labelling*, 2014.",
        """model = zoo.make("ndf", epochs=30, random_state=0).fit(X, y)
print(model.members, "trees;", model.tree_.decision.n_seen, "features a node")""",
    ),
    "dndf": (
        "DNDF, deep neural decision forest",
        "All nodes of all trees share a network; only the last linear map belongs to a node. `tartree.nn.Conv` is a "
        "small convolutional network for images given as rows. Any module from (batch, features) to (batch, width) can "
        "replace it, as `decision=module`; every fit trains a copy of it. `tartree.nn.Backbone` takes a function that "
        "makes the network, and the share of its outputs that each tree sees. Leaves are trained by gradient together "
        "with the decisions, or alternately by `tartree.zoo.fit_alternating`. The model is meant for many images, "
        'whose pixels are not scaled; for columns of a table use `numeric="standard"`.',
        "P. Kontschieder, M. Fiterau, A. Criminisi, S. Rota Bulò, *Deep Neural Decision Forests*, 2015.",
        """from tartree.nn import Conv

images = X.repeat(9, axis=1) / 8  # rows of 36 numbers: images of 6 by 6
small = Conv(shape=(1, 6, 6), channels=4, width=16)
model = zoo.make("dndf", decision=small, members=2, epochs=5, random_state=0)
zoo.fit_alternating(model, images, y, rounds=2)

from torch import nn

network = nn.Sequential(nn.Linear(4, 16), nn.ReLU())
model = zoo.make("dndf", decision=network, numeric="standard", epochs=100, random_state=0).fit(X, y)""",
    ),
    "nrf": (
        "NRF, neural regression forest",
        "Nodes of layer d decide by the output of d + 1 convolutions: deeper nodes see more convolutions. Leaves are "
        "Gaussians, so a prediction has a standard deviation and quantiles.",
        "A. Roy, S. Todorovic, *Monocular Depth Estimation Using Neural Regression Forest*, 2016.",
        """from sklearn.datasets import load_diabetes

table, progression = load_diabetes(return_X_y=True)
model = zoo.make("nrf", epochs=30, random_state=0).fit(table, progression)
low, high = model.predict_quantiles(table[:3], [0.05, 0.95]).T""",
    ),
    "lr": (
        "LR, logistic regression",
        "No tree: D = 0 and one linear leaf. It is trained to the optimum, with the penalty of scikit-learn's `C`. "
        "Columns are standardised, so its probabilities are those of scikit-learn after a `StandardScaler`; with "
        '`numeric="plain"` columns are not scaled, and its probabilities are those of scikit-learn without one.',
        "D. Cox, *The Regression Analysis of Binary Sequences*, 1958.",
        """from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

model = zoo.make("lr", C=1.0).fit(X, y)
scaled = make_pipeline(StandardScaler(), LogisticRegression(C=1.0, tol=1e-6)).fit(X, y)
assert abs(model.predict_proba(X) - scaled.predict_proba(X)).max() < 1e-3

model = zoo.make("lr", C=1.0, numeric="plain").fit(X, y)
plain = LogisticRegression(C=1.0, tol=1e-6, max_iter=1000).fit(X, y)
assert abs(model.predict_proba(X) - plain.predict_proba(X)).max() < 1e-3""",
    ),
    "mlp": (
        "MLP, multilayer perceptron",
        "D = 0 and one leaf with hidden layers.",
        "D. Rumelhart, G. Hinton, R. Williams, *Learning Representations by Back-Propagating Errors*, 1986.",
        """model = zoo.make("mlp", epochs=30, random_state=0).fit(X, y)""",
    ),
    "experts": (
        "Experts",
        "H = 0: every node splits evenly among its children, and the prediction is the plain mean of the leaves.",
        "R. Jacobs, M. Jordan, S. Nowlan, G. Hinton, *Adaptive Mixtures of Local Experts*, 1991; here without gates.",
        """model = zoo.make("experts", epochs=30, random_state=0).fit(X, y)""",
    ),
    "tree-1": (
        "Trees of type 1, 2 and 3",
        "The paper's types by the number of layers: `tree-1` has linear decisions and constant leaves, `tree-2` "
        "perceptrons as decisions, `tree-3` perceptrons as leaves.",
        "J. Yoo, L. Sael, *Transition Matrix Representation of Trees with Transposed Convolutions*, 2022, Table 3.",
        """for name in ("tree-1", "tree-2", "tree-3"):
    model = zoo.make(name, epochs=20, random_state=0).fit(X, y)""",
    ),
    "tart-a": (
        "TART-A, B and C",
        "The paper's models, with its recipe: many linear leaves, few perceptrons, and three children of which "
        "neighbours share one. Their names in code are `tart-a`, `tart-b` and `tart-c`. `tart-max` is a model of this "
        "project: eight members for accuracy, four of which also see each number in piecewise-linear bins.",
        "J. Yoo, L. Sael, 2022; see [from the paper to the code](paper-to-code.md).",
        """model = zoo.make("tart-c", epochs=20, random_state=0).fit(X, y)""",
    ),
}
TOGETHER = {"tree-1": ("tree-1", "tree-2", "tree-3"), "tart-a": ("tart-a", "tart-b", "tart-c", "tart-max")}


def write(results: Path, *, draw: bool, page: bool) -> None:
    measured = json.loads(results.read_text()) if results.exists() else {}
    if draw:
        picture(PICTURE)
        print(f"written: {PICTURE.relative_to(ROOT)}")
    if page:
        PAGE.write_text(text(measured), encoding="utf-8")
        print(f"written: {PAGE.relative_to(ROOT)}")


def text(measured: dict[str, Any]) -> str:
    """Return the whole page."""
    lines = [
        "# The zoo",
        "",
        *wrapped(
            "Decision trees, soft trees, neural forests, logistic regression, perceptrons and experts are one "
            "representation with different f, g, D, H and L, as Tables 2 and 3 of [the paper](paper-to-code.md) state. "
            "`tartree.zoo.make` returns an unfitted estimator by name; `tartree zoo` prints the table below. This page "
            "is written by `benchmarks/zoo.py` from `docs/benchmarks/zoo.json`."
        ),
        "",
        *model_table(),
        "",
        "W children of a node, S stride, D depth, H layers of f, L layers of g. Every number can be changed, as in",
        '`zoo.make("sdt", depth=8)`.',
        "",
        "## Transition matrices",
        "",
        *wrapped(
            "Each model as its series of matrices T_d, for one row of iris: column i is the distribution of node i of "
            "layer d over the nodes of the next layer. Empty entries are always zero; dark entries are large. A forest "
            "is represented by its first tree; `dt` is imported."
        ),
        "",
        "![The transition matrices of every model of the zoo](pictures/zoo.png)",
        "",
    ]
    for name, (title, what, paper, example) in SECTIONS.items():
        lines += [f"## {title}", "", *wrapped(what), "", *wrapped(f"Source: {paper}"), ""]
        lines += ["```python", example, "```", ""]
        for member in TOGETHER.get(name, (name,)):
            lines += scores(measured, member)
        lines += special(measured, name)
    lines += warm(measured)
    lines += made_by(measured)
    return "\n".join(lines).rstrip() + "\n"


def model_table() -> list[str]:
    head = ["name", "f", "g", "W", "S", "D", "H", "L", "trees", "selection", "what it is for", "source"]
    keys = ["name", "f", "g", "W", "S", "D", "H", "L", "members", "selection", "purpose", "source"]
    rows = [["-" if row[key] is None else row[key] for key in keys] for row in zoo.table()]
    return table(head, rows)


def scores(measured: dict[str, Any], name: str) -> list[str]:
    """Return the measured accuracies on scikit-learn's sets as a paragraph."""
    rows = [row for row in measured.get("sets", {}).get("rows", []) if row["model"] == name]
    if not rows:
        return []
    cart = {row["data"]: row["score"] for row in measured["sets"]["rows"] if row["model"] == "CART"}
    accuracies = [f"{row['data']} {100 * row['score']:.1f} %" for row in rows]
    line = f"Accuracy of `{name}` over five folds: {', '.join(accuracies)}."
    if name == "dt":
        grown = ", ".join(f"{data} {100 * score:.1f} %" for data, score in cart.items())
        line += f" CART of scikit-learn, fully grown: {grown}."
    return [*wrapped(line), ""]


def special(measured: dict[str, Any], name: str) -> list[str]:
    """Return results that only this model has, as a paragraph."""
    if name not in measured:
        return []
    result = measured[name]
    if name == "nrf":
        parts = [
            f"R2 {row['r2']:.3f} on {row['data']}, where {100 * row['covered']:.1f} % of the held-out targets lie in "
            "the 90 % interval"
            for row in result["rows"]
        ]
        wide = [row["data"] for row in result["rows"] if row["covered"] > 0.92]
        narrow = [row["data"] for row in result["rows"] if row["covered"] < 0.88]
        line = "Over five folds and three seeds: " + "; ".join(parts) + "."
        for names, width in ((wide, "wide"), (narrow, "narrow")):
            line += f" Intervals are too {width} on {' and '.join(names)}." if names else ""
        return [*wrapped(line), ""]
    settings = f"depth {result['depth']}" if "depth" in result else f"{zoo.make(name).members} trees"
    if "batch_size" in result:
        settings += f", {result['epochs']} epochs in batches of {result['batch_size']}"
    line = (
        f"{result['data']} ({settings}, {result['rows']:,} training rows, {result['fit_s']:.0f} s): test accuracy "
        f"{100 * result['multi']:.2f} % with all leaves, {100 * result['single']:.2f} % with the most probable leaf."
    )
    return [*wrapped(line), ""]


def warm(measured: dict[str, Any]) -> list[str]:
    lines = [
        "## Warm starts from CART",
        "",
        *wrapped(
            "`tartree.zoo.warm_start` starts from a tree of scikit-learn. Thresholds become sigmoids, whose "
            "temperature has the best likelihood in a cross-validation of trees grown the same way; leaves become "
            "linear; then all parameters are trained for 100 epochs, or for 1,000 steps if that is less, and "
            "decisions can use more than one feature. The result is a `TartClassifier` or `TartRegressor` with the "
            "structure of the tree. `tartree.zoo.soften` stops before the training. Weights of rows "
            "(`sample_weight`) and the tree's `class_weight` apply to the leaves and to training. The result cannot be "
            "fitted again, and its clone is an ordinary tree; with `warm_start=True` training continues. A tree "
            "imported by `from_sklearn` cannot be grown again: only its leaves are cross-validated, which favours "
            "lower temperatures."
        ),
        "",
        "```python",
        "from sklearn.tree import DecisionTreeClassifier",
        "",
        "cart = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)",
        "model = zoo.warm_start(cart, X, y, random_state=0)",
        "print(model.temperature_, model.structure_)",
        "```",
        "",
    ]
    if "warm" not in measured:
        return lines
    rows = []
    for group, row in measured["warm"]["groups"].items():
        n_sets = str(row["sets"]) if row["sets"] == row["of"] else f"{row['sets']} of {row['of']}"
        means = [f"{100 * row[label]:.2f} %" for label in ("cart", "soft", "warm")]
        rows.append([f"{n_sets} {group}", row["splits"], *means])
    lines += table(["UCI sets", "splits", "CART, fully grown", "soft", "warm start"], rows)
    sets = measured["warm"]["sets"]
    better = sum(row["warm"] > row["cart"] for row in sets)
    equal = sum(row["warm"] == row["cart"] for row in sets)
    worst = min(sets, key=lambda row: row["warm"] - row["cart"])
    notes = f" ({'; '.join(worst['notes'])})" if worst.get("notes") else ""
    text = (
        f"Mean accuracy on the official splits. Of {len(sets)} sets, {better} are better than their source tree, "
        f"{equal} equal, {len(sets) - better - equal} worse; the worst is {worst['data']}, "
        f"{100 * worst['cart']:.1f} % to {100 * worst['warm']:.1f} %{notes}."
    )
    return [*lines, "", *wrapped(text), ""]


def made_by(measured: dict[str, Any]) -> list[str]:
    if not measured:
        return []
    text = (
        "Settings of `dt`, `sdt`, `dndf` and `nrf` were chosen with these same sets in view, those of `tart-max` on "
        "held-out quarters of the training rows of the UCI sets, and the recipe of the soft tree on MNIST among six by "
        "its test images, so their figures are slightly optimistic. Those of the warm start were fixed before the UCI "
        "sets were used, except the bound on the steps of large tables, which was set for its time alone."
    )
    parts: list[tuple[str, dict[str, Any]]] = []
    for part, result in measured.items():
        by_group = [(f"{part}, {group}", row) for group, row in result["groups"].items()] if part == "warm" else []
        by_model = {row["versions"]: (part, row) for row in result["rows"]} if part == "sets" else {}
        parts += by_group or list(by_model.values()) or [(part, result)]
    rows = [[part, result["versions"]] for part, result in parts]
    return ["## Measured with", "", *table(["part", "with"], rows), "", *wrapped(text), ""]


def picture(path: Path) -> None:
    """Draw small multiples: a row for each model, a column for each layer."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    shown = {name: matrices(name) for name in zoo.PRESETS}
    deepest = max(len(series) for series in shown.values())
    heights = [1.0 if series else 0.3 for series in shown.values()]
    figure, grid = plt.subplots(
        len(shown), deepest, figsize=(1.25 * deepest + 1.2, 1.1 * sum(heights)), height_ratios=heights
    )
    for row, (name, series) in enumerate(shown.items()):
        for d in range(deepest):
            axes = grid[row, d]
            if d >= len(series):
                axes.axis("off")
                if d == 0:
                    axes.text(0.0, 0.5, "D = 0: one leaf", va="center", fontsize=7, color="0.35")
                continue
            matrix = series[d]
            axes.imshow(
                np.where(matrix == 0, np.nan, matrix),
                cmap="Blues",
                vmin=-0.25,
                vmax=1,
                aspect="auto",
                interpolation="nearest",
            )
            axes.set_xticks([])
            axes.set_yticks([])
            for side in axes.spines.values():
                side.set_color("0.75")
            axes.set_title(f"T{d}  {matrix.shape[0]} x {matrix.shape[1]}", fontsize=6, color="0.35", pad=2)
        grid[row, 0].text(
            -0.25, 0.5, name, transform=grid[row, 0].transAxes, ha="right", va="center", fontsize=9, fontweight="bold"
        )
    figure.subplots_adjust(left=0.11, right=0.99, top=0.985, bottom=0.005, hspace=0.55, wspace=0.18)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def matrices(name: str) -> list[np.ndarray]:
    """Return transition matrices of a fitted model for one row of iris; reachable entries are above zero."""
    from sklearn.datasets import load_iris
    from sklearn.tree import DecisionTreeClassifier

    X, y = load_iris(return_X_y=True)
    if name == "dt":
        model: Any = zoo.from_sklearn(DecisionTreeClassifier(max_depth=5, random_state=0).fit(X, y))
    else:
        epochs = None if name == "lr" else 60  # trained to its optimum
        model = zoo.make(name, task="classification", epochs=epochs, random_state=0, device="cpu").fit(X, y)
    x = torch.from_numpy(model.encoder_.transform(X[70:71]))
    tree = model.tree_
    structure: Structure = tree.structure
    if not structure.depth:
        return []
    branching = tree.branching.probabilities(tree.decision(x))[0, 0].detach()
    filled = ops.transition_matrices(branching, structure)
    possible = ops.transition_matrices(torch.ones_like(branching), structure)
    return [np.where(mask > 0, np.maximum(matrix, 1e-3), 0) for matrix, mask in zip(filled, possible, strict=True)]
