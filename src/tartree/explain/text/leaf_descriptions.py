"""Descriptions of leaves: their region, how their rows differ from all rows, and typical rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tartree.explain import tree_evaluation as ev
from tartree.explain.text.number_text import format_number, percent
from tartree.explain.text.terms import label_of
from tartree.explain.tree_view.assembly import view
from tartree.explain.tree_view.views import TreeView
from tartree.model import FittedModel, HasModel, fitted_model

FloatArray = NDArray[np.float64]

#: Differences from all rows below this many standard deviations are left out.
NOTABLE = 0.25


@dataclass(frozen=True)
class LeafDescription:
    """Description of a leaf of a member by the rows that arrive at it.

    Parameters
    ----------
    member, leaf : int
        Indices of the member and the leaf.
    arrival : float
        Share of all rows.
    rows : int
        Number of rows whose most probable path ends in the leaf.
    prediction : str
        Prediction as text.
    predicted : ndarray of shape (outputs,)
        Mean prediction, weighted by arrival.
    region : tuple of str
        Conditions on the most frequent path to the leaf, from the root.
    special : tuple of str
        Largest differences from all rows, such as "age is higher: 61.2, 48.9 overall".
    typical_rows : tuple of int
        Indices of the rows with the largest arrival.
    typical_values : tuple of dict
        These rows in original units.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier, explain
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TartClassifier(depth=1, epochs=5, random_state=0).fit(X, y)
    >>> description = explain.describe_leaves(model, X)[0]
    >>> len(description.typical_rows), len(description.region)
    (3, 1)
    """

    member: int
    leaf: int
    arrival: float
    rows: int
    prediction: str
    predicted: FloatArray
    region: tuple[str, ...]
    special: tuple[str, ...]
    typical_rows: tuple[int, ...]
    typical_values: tuple[dict[str, Any], ...]

    def __str__(self) -> str:
        where = " and ".join(self.region) or "everywhere"
        special = f"; {'; '.join(self.special)}" if self.special else ""
        return f"leaf {self.leaf}: {self.prediction}, {percent(self.arrival, 1)} arrive, where {where}{special}"


def describe_leaves(
    estimator: FittedModel | HasModel, X: Any, y: Any = None, *, typical: int = 3, max_special: int = 4
) -> list[LeafDescription]:
    """Describe each leaf of each member by the rows that arrive at it, the largest first.

    Parameters
    ----------
    estimator : fitted estimator or FittedModel
        Model to describe.
    X : table of shape (rows, columns)
        Rows to describe the leaves by.
    y : array of shape (rows,) or (rows, targets), optional
        True labels or values.
    typical : int, default=3
        Maximum number of typical rows of a leaf.
    max_special : int, default=4
        Maximum number of differences from all rows.

    Returns
    -------
    list of LeafDescription
        Leaves by member and decreasing arrival.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier, explain
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TartClassifier(depth=1, epochs=5, random_state=0).fit(X, y)
    >>> sorted(leaf.leaf for leaf in explain.describe_leaves(model, X, y))
    [0, 1]
    """
    model = fitted_model(estimator)
    tree = view(model, X, y, typical=typical, max_terms=3)
    if not tree.n_rows:
        raise ValueError("X must have at least one row, got none")
    encoded = model.encode(X)
    double = model.double_tree()
    arrival = torch.cat([part.arrivals[-1] for part in ev.in_chunks(double, encoded)], dim=1)  # (members, rows, leaves)
    sums = torch.einsum("mru,rf->muf", arrival, encoded)
    means = (sums / arrival.sum(1).clamp_min(1e-300).unsqueeze(-1)).numpy()  # (members, leaves, features)
    values = model.encoder.inverse_transform(encoded.numpy())
    descriptions = []
    for m, member in enumerate(tree.members):
        assert member.nodes is not None
        for node in tree.leaves:
            assert node.leaf is not None
            data = member.nodes[node.number]
            descriptions.append(
                LeafDescription(
                    m,
                    node.leaf,
                    data.arrival,
                    data.rows,
                    _prediction(tree, data.predicted),
                    data.predicted,
                    _region(tree, m, node.number),
                    _special(model, tree, means[m, node.leaf], max_special),
                    data.typical_rows,
                    tuple({name: column[row] for name, column in values.items()} for row in data.typical_rows),
                )
            )
    return sorted(descriptions, key=lambda leaf: (leaf.member, -leaf.arrival))


def _prediction(tree: TreeView, predicted: FloatArray) -> str:
    if tree.output.is_classes:
        best = int(predicted.argmax())
        return f"{tree.outputs[best]} ({percent(float(predicted[best]))})"
    pairs = zip(tree.outputs, predicted, strict=True)
    return ", ".join(f"{name} {format_number(float(value))}" for name, value in pairs)


def _region(tree: TreeView, member: int, leaf: int) -> tuple[str, ...]:
    """Return the conditions on the most frequent path to a leaf, from the root."""
    flows, conditions = tree.members[member].flows, tree.members[member].conditions
    assert flows is not None
    texts: list[str] = []
    node = tree.nodes[leaf]
    while node.parents:
        edges = [tree.edges[e] for parent in node.parents for e in tree.nodes[parent].edges]
        shares = {edge: float(flows[edge.number]) for edge in edges if edge.child == node.number}
        edge = max(shares, key=lambda edge: shares[edge])
        condition = conditions[edge.parent]
        if condition is not None and condition.kind != "pass":
            texts.append(condition.texts[edge.position])
        node = tree.nodes[edge.parent]
    return tuple(texts[::-1])


def _special(model: FittedModel, tree: TreeView, mean: FloatArray, most: int) -> tuple[str, ...]:
    """Describe the features whose mean, weighted by arrival, differs most from that over all rows."""
    overall = np.array([feature.mean for feature in tree.features])
    spread = np.array([feature.spread for feature in tree.features])
    apart = (mean - overall) / np.where(spread > 0, spread, 1.0)
    apart[[feature.bin is not None for feature in model.encoder.features_]] = 0.0  # their values are described
    texts = []
    for k in np.argsort(-np.abs(apart), kind="stable")[:most]:
        if abs(apart[k]) < NOTABLE:
            break
        feature = model.encoder.features_[k]
        if feature.kind == "value":
            values = [feature.original(float(value)) for value in (mean[k], overall[k])]
            in_leaf, in_all = (v if isinstance(v, str) else format_number(float(v)) for v in values)
            texts.append(f"{feature.name} is {'higher' if apart[k] > 0 else 'lower'}: {in_leaf}, {in_all} overall")
        else:
            word = "more" if apart[k] > 0 else "less"
            in_leaf, in_all = (percent(float(share)) for share in (mean[k], overall[k]))
            texts.append(f"{label_of(feature)} is {word} frequent: {in_leaf}, {in_all} overall")
    return tuple(texts)
