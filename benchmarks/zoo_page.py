"""docs/zoo.md and its picture, from zoo.json and the presets; `python benchmarks/zoo.py --pictures --page` calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tartree import ops, zoo
from tartree.structure import Structure

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs/pictures/zoo.png"
PAGE = ROOT / "docs/zoo.md"

#: Section of each model: title, what it is, its paper, and an example that runs as it stands.
SECTIONS: dict[str, tuple[str, str, str, str]] = {
    "dt": (
        "DT, decision tree",
        "f is the indicator of one feature against one threshold, g is constant. `tartree.zoo.from_sklearn` takes "
        "a tree or an ensemble that scikit-learn, XGBoost or LightGBM has grown: predictions equal the source's "
        "on every row, on thresholds and with missing values (XGBoost computes in single precision: where two classes "
        "are "
        'equally likely to its last digit, the label may be the other; and with `booster="dart"` its own regressors '
        "add in another order than its boosters, so that the last digits may differ). "
        "`tartree.zoo.make` with `dt` trains one by gradient: a node "
        "picks a feature straight through, its sigmoid becomes a step when it predicts. `tartree.zoo.to_sklearn` "
        "gives either of them back to scikit-learn, which rounds columns to single precision: where values differ in "
        "the last digits of double precision alone, scale them first. An ensemble is explained tree by tree, by "
        "`model.one_tree(0)`.",
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
        "f is a sigmoid of a linear filter, with an inverse temperature that each node learns; g is constant. A "
        "penalty keeps nodes from sending all rows the same way; it counts half as much in each deeper layer.",
        "N. Frosst, G. Hinton, *Distilling a Neural Network Into a Soft Decision Tree*, 2017.",
        """model = zoo.make("sdt", depth=3, random_state=0).fit(X, y)
print(model.tree_.decision.inverse_temperature)""",
    ),
    "ndf": (
        "NDF, neural decision forest",
        "Each node is a perceptron on its own random part of the features; the trees of the forest are members.",
        "S. Rota Bulò, P. Kontschieder, *Neural Decision Forests for Semantic Image Labelling*, 2014.",
        """model = zoo.make("ndf", epochs=30, random_state=0).fit(X, y)
print(model.members, "trees;", model.tree_.decision.n_seen, "features a node")""",
    ),
    "dndf": (
        "DNDF, deep neural decision forest",
        "One network below all nodes of all trees; only the last linear map belongs to a node. `tartree.nn.Conv` is a "
        "small convolutional network for images that come as rows. Any module from (batch, features) to "
        "(batch, width) can replace it, as `decision=module`: every fit trains a copy of it; "
        "`tartree.nn.Backbone` takes a function that makes one, and the share of its numbers that a tree sees. Leaves "
        "learn by gradient together with the decisions, or in turns with them by `tartree.zoo.fit_alternating`. It is "
        "meant for many images, whose pixels stay as they are; columns of a table are better standardised, by "
        '`numeric="standard"`.',
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
        "Nodes of layer d decide by what d + 1 convolutions give: deeper nodes see more of them. Leaves are "
        "Gaussians, so a prediction has a spread and quantiles.",
        "A. Roy, S. Todorovic, *Monocular Depth Estimation Using Neural Regression Forest*, 2016.",
        """from sklearn.datasets import load_diabetes

table, progression = load_diabetes(return_X_y=True)
model = zoo.make("nrf", epochs=30, random_state=0).fit(table, progression)
low, high = model.predict_quantiles(table[:3], [0.05, 0.95]).T""",
    ),
    "lr": (
        "LR, logistic regression",
        "No tree at all: D = 0 and one linear leaf. It is trained to the optimum, with the penalty of "
        "scikit-learn's `C`. Columns are standardised first, so it gives the probabilities that scikit-learn gives "
        'behind a `StandardScaler`; with `numeric="plain"` columns stay as they are, and so they do there.',
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
        "H = 0: every node sends the same share to each child, and the prediction is the plain mean of the leaves.",
        "R. Jacobs, M. Jordan, S. Nowlan, G. Hinton, *Adaptive Mixtures of Local Experts*, 1991; here without gates.",
        """model = zoo.make("experts", epochs=30, random_state=0).fit(X, y)""",
    ),
    "tree-1": (
        "Trees of type 1, 2 and 3",
        "The paper's kinds by where the layers are: `tree-1` decides linearly and has constant leaves, `tree-2` "
        "decides by perceptrons, `tree-3` has perceptrons as leaves.",
        "J. Yoo, L. Sael, *Transition Matrix Representation of Trees with Transposed Convolutions*, 2022, Table 3.",
        """for name in ("tree-1", "tree-2", "tree-3"):
    model = zoo.make(name, epochs=20, random_state=0).fit(X, y)""",
    ),
    "tart-a": (
        "TART-A, B and C",
        "The paper's proposals, with its recipe: many linear leaves, few perceptrons, and three children of which "
        "neighbours share one. `tart-max` is ours: eight members for accuracy, four of which see numbers in pieces.",
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
    """The whole page."""
    lines = [
        "# The zoo",
        "",
        *wrapped(
            "Decision trees, soft trees, neural forests, logistic regression, perceptrons and experts are one "
            "representation with different f, g, D, H and L: that is what Tables 2 and 3 of "
            "[the paper](paper-to-code.md) say, and what runs here. `tartree.zoo.make` gives an unfitted estimator of "
            "a name; `tartree zoo` prints the table below. The page is written by `benchmarks/zoo.py` from "
            "`docs/benchmarks/zoo.json`."
        ),
        "",
        *model_table(),
        "",
        "W children of a node, S stride, D depth, H layers of f, L layers of g; every number can be changed, as in",
        '`zoo.make("sdt", depth=8)`.',
        "",
        "## Transition matrices",
        "",
        *wrapped(
            "Each model as its series of matrices T_d, for one row of iris: column i says where node i of layer d "
            "sends the row. Empty places cannot be reached; dark ones get most. Of a forest, the first tree; `dt` is "
            "imported."
        ),
        "",
        "![The transition matrices of every model of the zoo](pictures/zoo.png)",
        "",
    ]
    for name, (title, what, paper, example) in SECTIONS.items():
        lines += [f"## {title}", "", *wrapped(what), "", *wrapped(f"Source: {paper}"), ""]
        lines += ["```python", example, "```", ""]
        for model in TOGETHER.get(name, (name,)):
            lines += scores(measured, model)
        lines += special(measured, name)
    lines += warm(measured)
    lines += made_by(measured)
    return "\n".join(lines).rstrip() + "\n"


def wrapped(paragraph: str) -> list[str]:
    import textwrap

    return textwrap.wrap(paragraph, 118, break_long_words=False, break_on_hyphens=False)


def model_table() -> list[str]:
    head = ["name", "f", "g", "W", "S", "D", "H", "L", "trees", "selection", "what it is for", "source"]
    keys = ["name", "f", "g", "W", "S", "D", "H", "L", "members", "selection", "purpose", "source"]
    rows = [" | ".join("-" if row[key] is None else str(row[key]) for key in keys) for row in zoo.table()]
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {row} |" for row in rows)]


def scores(measured: dict[str, Any], name: str) -> list[str]:
    """One line of accuracies on scikit-learn's sets, of what has been measured."""
    rows = [row for row in measured.get("sets", {}).get("rows", []) if row["model"] == name]
    if not rows:
        return []
    cart = {row["data"]: row["score"] for row in measured["sets"]["rows"] if row["model"] == "CART"}
    text = [f"{row['data']} {100 * row['score']:.1f} %" for row in rows]
    line = f"Accuracy of `{name}` over five folds: {', '.join(text)}."
    if name == "dt":
        grown = ", ".join(f"{data} {100 * score:.1f} %" for data, score in cart.items())
        line += f" CART of scikit-learn, grown in full: {grown}."
    return [*wrapped(line), ""]


def special(measured: dict[str, Any], name: str) -> list[str]:
    """What was measured of this model alone."""
    if name not in measured:
        return []
    entry = measured[name]
    if name == "nrf":
        text = [
            f"on {row['data']} R2 {row['r2']:.3f}, and {100 * row['covered']:.1f} % of the held-out targets lie in the "
            "90 % interval"
            for row in entry["rows"]
        ]
        wide = [row["data"] for row in entry["rows"] if row["covered"] > 0.92]
        narrow = [row["data"] for row in entry["rows"] if row["covered"] < 0.88]
        line = "Over five folds and three seeds: " + "; ".join(text) + "."
        for names, word in ((wide, "wide"), (narrow, "narrow")):
            line += f" Intervals are too {word} on {' and '.join(names)}." if names else ""
        return [*wrapped(line), ""]
    what = f"depth {entry['depth']}" if "depth" in entry else f"{zoo.make(name).members} trees"
    if "batch_size" in entry:
        what += f", {entry['epochs']} epochs in batches of {entry['batch_size']}"
    line = (
        f"{entry['data']} ({what}, {entry['rows']:,} rows to learn from, {entry['fit_s']:.0f} s): "
        f"{100 * entry['multi']:.2f} % of the test images with all leaves, "
        f"{100 * entry['single']:.2f} % with the likeliest leaf."
    )
    return [*wrapped(line), ""]


def warm(measured: dict[str, Any]) -> list[str]:
    lines = [
        "## Warm starts from CART",
        "",
        *wrapped(
            "`tartree.zoo.warm_start` continues from a tree of scikit-learn. Thresholds become sigmoids, whose "
            "temperature is that of the best likelihood in a cross-validation of trees grown the same way; leaves "
            "become linear; then all of it is trained, and decisions may look at more than one feature: for 100 "
            "epochs, or 1,000 steps where those would be more. The result is a `TartClassifier` or `TartRegressor` "
            "with the structure of the tree. `tartree.zoo.soften` "
            "stops before the training. Weights of rows (`sample_weight`) and the tree's `class_weight` count in the "
            "leaves and in training. The result cannot be fitted again, and its clone is an ordinary tree; with "
            "`warm_start=True` its training goes on. A tree that `from_sklearn` imported cannot be grown again: its "
            "leaves alone are cross-validated, which favours lower temperatures."
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
    lines += ["| UCI sets | splits | CART, grown in full | soft | trained on |", "|---|---|---|---|---|"]
    for group, row in measured["warm"]["groups"].items():
        cells = [f"{100 * row[label]:.2f} %" for label in ("cart", "soft", "warm")]
        n_sets = str(row["sets"]) if row["sets"] == row["of"] else f"{row['sets']} of {row['of']}"
        lines.append(f"| {n_sets} {group} | {row['splits']} | {' | '.join(cells)} |")
    sets = measured["warm"]["sets"]
    better = sum(row["warm"] > row["cart"] for row in sets)
    equal = sum(row["warm"] == row["cart"] for row in sets)
    worst = min(sets, key=lambda row: row["warm"] - row["cart"])
    text = (
        f"Mean accuracy on the official splits. Of {len(sets)} sets, {better} are better than the tree they came from, "
        f"{equal} equal, {len(sets) - better - equal} worse; the worst is {worst['data']}, "
        f"{100 * worst['cart']:.1f} % to {100 * worst['warm']:.1f} %"
        + (f" ({'; '.join(worst['notes'])})." if worst.get("notes") else ".")
    )
    return [*lines, "", *wrapped(text), ""]


def made_by(measured: dict[str, Any]) -> list[str]:
    if not measured:
        return []
    lines = ["## Measured with", "", "| part | with |", "|---|---|"]
    text = (
        "Settings of `dt`, `sdt`, `dndf` and `nrf` were chosen with these same sets in view, those of `tart-max` on "
        "held-out quarters of the training rows of the UCI sets, and the recipe of the "
        "soft tree on MNIST among six by its test images, so their figures are slightly optimistic. Those of the warm "
        "start were fixed before the UCI sets were looked at, but for the bound on the steps of large tables, which "
        "was set for its time alone."
    )
    parts: list[tuple[str, dict[str, Any]]] = []
    for part, entry in measured.items():
        by_group = [(f"{part}, {group}", means) for group, means in entry["groups"].items()] if part == "warm" else []
        by_model = {row["versions"]: (part, row) for row in entry["rows"]} if part == "sets" else {}
        parts += by_group or list(by_model.values()) or [(part, entry)]
    table = (f"| {part} | {entry['versions']} |" for part, entry in parts)
    return [*lines, *table, "", *wrapped(text), ""]


def picture(path: Path) -> None:
    """Small multiples: a row a model, a column a layer."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    shown = {name: matrices(name) for name in zoo.PRESETS}
    deepest = max(len(entry) for entry in shown.values())
    heights = [1.0 if entry else 0.3 for entry in shown.values()]
    figure, grid = plt.subplots(
        len(shown), deepest, figsize=(1.25 * deepest + 1.2, 1.1 * sum(heights)), height_ratios=heights
    )
    for row, (name, entry) in enumerate(shown.items()):
        for d in range(deepest):
            axes = grid[row, d]
            if d >= len(entry):
                axes.axis("off")
                if d == 0:
                    axes.text(0.0, 0.5, "D = 0: one leaf", va="center", fontsize=7, color="0.35")
                continue
            matrix = entry[d]
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
    """Transition matrices of a fitted model for one row of iris; reachable nodes are above zero."""
    from sklearn.datasets import load_iris
    from sklearn.tree import DecisionTreeClassifier

    X, y = load_iris(return_X_y=True)
    if name == "dt":
        model: Any = zoo.from_sklearn(DecisionTreeClassifier(max_depth=5, random_state=0).fit(X, y))
    else:
        epochs = None if name == "lr" else 60  # which goes to its optimum
        model = zoo.make(name, task="classification", epochs=epochs, random_state=0, device="cpu").fit(X, y)
    x = torch.from_numpy(model.encoder_.transform(X[70:71]))
    tree = model.tree_
    structure: Structure = tree.structure
    if not structure.depth:
        return []
    branching = tree.branching.probabilities(tree.decision(x))[0, 0].detach()
    filled = ops.transition_matrices(branching, structure)
    possible = ops.transition_matrices(torch.ones_like(branching), structure)
    return [
        np.where(reachable > 0, np.maximum(matrix, 1e-3), 0) for matrix, reachable in zip(filled, possible, strict=True)
    ]
