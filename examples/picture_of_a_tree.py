"""Fit a small tree to the breast cancer data and draw it, with the strongest features of decisions and leaves.

python examples/picture_of_a_tree.py --out docs/pictures/tree.png
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from tartree import TartClassifier
from tartree.explain.plots import plot_tree

SUBTITLE = (
    "A tree of {decisions} decisions, right for {accuracy:.1%} of {tested} held-out tumours. A decision divides a row "
    "into shares: streams average {trained} training rows. The prediction is the mean of the leaves by arrival."
)
NOTE = (
    "Bars show pushes: a value above the number, the average, pushes to the side of the bar, a value below it to the "
    "other. The 3 strongest of {features} features are shown: means over the cell nuclei of an image, their standard "
    "errors, and means of the three largest values (worst)."
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/pictures/tree.png"))
    out = parser.parse_args().out
    data = load_breast_cancer(as_frame=True)
    names = data.target_names[data.target]
    X, X_test, y, y_test = train_test_split(data.data, names, stratify=names, random_state=0)
    model = TartClassifier(depth=2, random_state=0, device="cpu").fit(X, y)
    facts = {
        "decisions": model.structure_.n_decisions,
        "accuracy": model.score(X_test, y_test),
        "tested": len(y_test),
        "trained": len(y),
        "features": X.shape[1],
    }
    texts = {"subtitle": SUBTITLE.format(**facts), "note": NOTE.format(**facts)}
    axes = plot_tree(model, X, y, title="Is this breast tumour malignant?", **texts)
    out.parent.mkdir(parents=True, exist_ok=True)
    axes.figure.savefig(out, dpi=140, metadata={"Software": None})


if __name__ == "__main__":
    main()
