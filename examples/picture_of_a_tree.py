"""Fit a small readable tree to the breast cancer data and draw it, with the strongest changes that leaves make.

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
    "Each tumour follows one path. Its prediction is a sum of curves of the columns, the same for all "
    "tumours (not drawn), and of the changes that its leaf makes (small curves)."
)
NOTE = (
    "Streams are shares of {trained} tumours. Small curves run from the lowest value of a column to the highest; up is "
    "towards malignant. Columns are means over the cell nuclei of an image (avg.), their standard errors, and means of "
    "the three largest values (max)."
)
#: Shorter names, which fit beside the small curves.
SHORT = {"mean ": "avg. ", "worst ": "max ", "dimension": "dim."}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/pictures/tree.png"))
    out = parser.parse_args().out
    data = load_breast_cancer(as_frame=True)
    table, names = data.data, data.target_names[data.target]
    for long, short in SHORT.items():
        table.columns = table.columns.str.replace(long, short)
    X, _, y, _ = train_test_split(table, names, stratify=names, random_state=0)
    # Depth and seed are chosen for a small tree that shows well, not for its accuracy.
    model = TartClassifier(readable=True, depth=2, random_state=4, device="cpu").fit(X, y)
    note = NOTE.format(trained=len(y))
    axes = plot_tree(model, X, y, title="Is this breast tumour malignant?", subtitle=SUBTITLE, note=note)
    out.parent.mkdir(parents=True, exist_ok=True)
    axes.figure.savefig(out, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
