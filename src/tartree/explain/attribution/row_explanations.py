"""Explanations of rows: their paths, the conditions on them, and what each column contributes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tartree.checks import check_integer
from tartree.explain import tree_evaluation as ev
from tartree.explain.arguments import missing_mask
from tartree.explain.attribution.contributions import contributions
from tartree.explain.attribution.gradients import jacobians
from tartree.explain.attribution.likely_paths import likely_paths
from tartree.explain.text.number_text import format_number, mark_missing
from tartree.explain.text.terms import term_of
from tartree.explain.tree_view.assembly import make_view, usual_spread
from tartree.explain.tree_view.views import ConditionView, TreeView
from tartree.model import FittedModel, HasModel, fitted_model
from tartree.nn import Tree
from tartree.nn.paths import edge_shares
from tartree.structure import Structure
from tartree.table import Feature

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class StepTerm:
    """A term of a condition for one row."""

    label: str
    weight: float  # in original units
    value: str  # of the row, in original units
    effect: float  # on the logit, compared with the reference row


@dataclass(frozen=True)
class Step:
    """A node on a path, with the child taken and the reason."""

    node: int  # number over all layers
    child: int
    condition: str  # under which the child taken is the most probable
    probability: float  # of the branch taken
    branches: tuple[float, ...]  # of all branches
    terms: tuple[StepTerm, ...]  # strongest effect first; by gradient at the row where the decision is not linear


@dataclass(frozen=True)
class Path:
    """A path from the root to a leaf in one member."""

    member: int
    probability: float
    leaf: int
    steps: tuple[Step, ...]  # nodes that pass all arrival on are left out


@dataclass(frozen=True)
class RowExplanation:
    """Explanation of one row: prediction, paths, and contributions of each column.

    Parameters
    ----------
    prediction : ndarray of shape (outputs,)
        Probabilities, or values in units of the target.
    label : object
        Predicted class; None for regression.
    values : dict
        Row as the model reads it, in original units.
    base : ndarray of shape (outputs,)
        Prediction for the reference row.
    contributions : ndarray of shape (columns, outputs)
        Contributions of the columns: ``base`` plus their sum is ``prediction``.
    path_part, leaf_part : ndarray of shape (columns, outputs)
        Parts of the contributions: by other paths, and by other predictions of the leaves.
    arrival : ndarray of shape (members, leaves)
        Arrival of the row at the leaves.
    paths : tuple of Path
        Most probable paths of each member.
    columns, outputs : tuple of str
        Names of the columns, and of classes or targets.
    gaps : frozenset of str
        Columns with missing values; ``values`` has what is read in their place.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier, explain
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TartClassifier(depth=1, epochs=5, random_state=0).fit(X, y)
    >>> row = model.explain(X[:1])[0]
    >>> bool(abs(row.base + row.contributions.sum(axis=0) - row.prediction).max() < 1e-9)
    True
    """

    prediction: FloatArray
    label: Any
    values: dict[str, Any]
    base: FloatArray
    contributions: FloatArray
    path_part: FloatArray
    leaf_part: FloatArray
    arrival: FloatArray
    paths: tuple[Path, ...]
    columns: tuple[str, ...]
    outputs: tuple[str, ...]
    gaps: frozenset[str] = frozenset()

    def strongest(self, output: int | None = None, most: int = 5) -> list[tuple[str, float]]:
        """Return the columns with the largest contributions to an output.

        Parameters
        ----------
        output : int, optional
            Index of the class or target; the most probable class, or the first target, by default.
        most : int, default=5
            Maximum number of columns.

        Returns
        -------
        list of (str, float)
            Columns and their contributions, the largest first.
        """
        if output is None:
            output = int(self.prediction.argmax()) if self.label is not None else 0
        values = self.contributions[:, output]
        order = np.argsort(-np.abs(values), kind="stable")[:most]
        return [(self.columns[k], float(values[k])) for k in order]

    def value_text(self, column: str) -> str:
        """Return the value of a column as text; of a missing value, what is read in its place.

        Parameters
        ----------
        column : str
            Name of the column.

        Returns
        -------
        str
            The value.
        """
        return mark_missing(_value_text(self.values[column]), column in self.gaps)

    def text(self, most: int = 5) -> str:
        """Return the explanation as a few lines of text.

        Parameters
        ----------
        most : int, default=5
            Maximum number of columns.

        Returns
        -------
        str
            Lines with the prediction, its paths, and the strongest contributions.
        """
        output = int(self.prediction.argmax()) if self.label is not None else 0
        lines = [f"{self.outputs[output]}: {format_number(float(self.prediction[output]))}"]
        for path in self.paths:
            lines.append(f"path to leaf {path.leaf} with probability {format_number(path.probability)}")
            lines += [f"  {format_number(step.probability)}  {step.condition}" for step in path.steps]
        lines.append(f"contributions, from {format_number(float(self.base[output]))} of the reference row")
        parts = self.strongest(output, most)
        lines += [f"  {value:+.4f}  {name} = {self.value_text(name)}" for name, value in parts]
        return "\n".join(lines)


@dataclass(frozen=True)
class Explanation:
    """Explanations of many rows as arrays; indexing returns the `RowExplanation` of one row.

    Nodes are numbered layer by layer from the root, edges layer by layer by parent, as in `TreeView`.

    Parameters
    ----------
    tree : TreeView
        View of the model.
    columns, outputs : tuple of str
        Names of the columns, and of classes or targets.
    reference : ndarray of shape (features,)
        Encoded reference row.
    base : ndarray of shape (outputs,)
        Prediction for the reference row.
    predictions : ndarray of shape (rows, outputs)
        Predictions for the rows.
    path_part, leaf_part : ndarray of shape (rows, columns, outputs)
        Parts of the contributions: by other paths, and by other predictions of the leaves.
    arrivals : ndarray of shape (members, rows, nodes)
        Arrival of each row at each node.
    edge_shares : ndarray of shape (members, rows, edges)
        Shares of the parent's arrival.
    encoded : ndarray of shape (rows, features)
        Encoded rows.
    values : dict of str to ndarray of shape (rows,)
        Columns in original units.
    effects : ndarray of shape (members, rows, logits, features) or None
        Gradients of the logits, if decisions are not linear.
    gaps : ndarray of bool of shape (rows, columns)
        Missing values.
    features : tuple of Feature
        Encoded features.
    share : float
        Share of the arrival that the paths of a row have.
    max_paths, max_terms : int
        Maximum number of paths of a row and member, and of terms of a step.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier, explain
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TartClassifier(depth=1, epochs=5, random_state=0).fit(X, y)
    >>> explanation = model.explain(X[:10])
    >>> explanation, explanation.contributions.shape
    (Explanation(10 rows, 4 columns, 3 outputs), (10, 4, 3))
    """

    tree: TreeView
    columns: tuple[str, ...]
    outputs: tuple[str, ...]
    reference: FloatArray
    base: FloatArray
    predictions: FloatArray
    path_part: FloatArray
    leaf_part: FloatArray
    arrivals: FloatArray
    edge_shares: FloatArray
    encoded: FloatArray
    values: dict[str, NDArray[Any]]
    effects: FloatArray | None
    gaps: NDArray[np.bool_]
    features: tuple[Feature, ...]
    share: float
    max_paths: int
    max_terms: int

    def __repr__(self) -> str:
        return f"Explanation({len(self)} rows, {len(self.columns)} columns, {len(self.outputs)} outputs)"

    @property
    def contributions(self) -> FloatArray:
        """Contributions, (rows, columns, outputs): with the base they add up to the predictions."""
        total: FloatArray = self.path_part + self.leaf_part
        return total

    def __len__(self) -> int:
        return len(self.predictions)

    def __iter__(self) -> Iterator[RowExplanation]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, row: int) -> RowExplanation:
        if not -len(self) <= row < len(self):
            raise IndexError(f"row must be from {-len(self)} to {len(self) - 1}, got {row}")
        row %= len(self)
        labels = self.tree.labels
        n_leaves = self.tree.n_leaves
        paths = [path for m in range(len(self.arrivals)) for path in self._paths(m, row)]
        return RowExplanation(
            self.predictions[row],
            labels[int(self.predictions[row].argmax())] if labels else None,
            {name: values[row] for name, values in self.values.items()},
            self.base,
            self.path_part[row] + self.leaf_part[row],
            self.path_part[row],
            self.leaf_part[row],
            self.arrivals[:, row, -n_leaves:],
            tuple(paths),
            self.columns,
            self.outputs,
            frozenset(name for name, missing in zip(self.columns, self.gaps[row], strict=True) if missing),
        )

    def _paths(self, member: int, row: int) -> Iterator[Path]:
        structure = Structure.from_dict(self.tree.structure)
        ends = np.cumsum([len(structure.edges(d)[0]) for d in range(structure.depth)])
        shares = np.split(self.edge_shares[member, row], ends[:-1]) if structure.depth else []
        first = np.concatenate([[0], np.cumsum(structure.widths)])
        for path in likely_paths(structure, shares, self.share, self.max_paths):
            steps = []
            for d in range(structure.depth):
                node = self.tree.nodes[int(first[d]) + path.nodes[d]]
                if len(node.children) < 2:
                    continue
                position = node.children.index(int(first[d + 1]) + path.nodes[d + 1])
                condition = self.tree.members[member].conditions[node.number]
                assert condition is not None
                branches = tuple(float(self.edge_shares[member, row, e]) for e in node.edges)
                terms = self._terms(member, row, condition, node.logits, position)
                steps.append(
                    Step(
                        node.number,
                        node.children[position],
                        condition.texts[position],
                        branches[position],
                        branches,
                        terms,
                    )
                )
            yield Path(member, path.probability, path.nodes[-1], tuple(steps))

    def _terms(
        self, member: int, row: int, condition: ConditionView, logits: tuple[int, ...], position: int
    ) -> tuple[StepTerm, ...]:
        """Return the terms of the logit of the child taken, strongest effect first."""
        if not logits or not condition.functions:
            return ()
        function = condition.functions[0 if len(logits) == 1 else position]
        logit = logits[0 if len(logits) == 1 else position]
        sign = -1.0 if len(logits) == 1 and position == 1 else 1.0
        decision = self.tree.members[member].decision
        if self.effects is not None:
            slopes = self.effects[member, row, logit]
        elif decision.kind == "linear":
            slopes = decision.weights[0][logit]
        else:  # a comparison of single columns
            slopes = np.zeros(len(self.features))
            slopes[[term.feature for term in function.terms]] = [term.encoded_weight for term in function.terms]
        effects = sign * slopes * (self.encoded[row] - self.reference)  # (features,)
        strength = np.abs(slopes) * [feature.spread for feature in self.tree.features]
        order = np.lexsort((-strength, -np.abs(effects)))  # of all features, also those not in the condition's text
        terms = []
        for k in order[slopes[order] != 0][: self.max_terms]:
            term = term_of(self.features[k], int(k), float(slopes[k]), float(strength[k]))
            value_text = mark_missing(_value_text(self.values[term.name][row]), bool(self.gaps[row, term.column]))
            terms.append(StepTerm(term.label, sign * term.weight, value_text, float(effects[k])))
        return tuple(terms)


def explain_rows(
    estimator: FittedModel | HasModel,
    X: Any,
    *,
    background: Any = None,
    share: float = 0.9,
    max_paths: int = 5,
    max_terms: int = 12,
) -> Explanation:
    """Explain the predictions of rows.

    Contributions compare a row with a reference row and add up: ``base + contributions.sum(columns) = prediction``.
    README.md in the folder `explain` has the derivation.

    Parameters
    ----------
    estimator : fitted estimator or FittedModel
        Model that predicts.
    X : table of shape (rows, columns)
        Rows to explain.
    background : table, optional
        Rows whose mean, once encoded, is the reference, such as those of training. By default the reference is a row of
        mean numbers and most frequent levels.
    share : float, default=0.9
        Paths of a row are listed until they have this share of its arrival.
    max_paths : int, default=5
        Maximum number of paths of a row and member.
    max_terms : int, default=12
        Maximum number of terms of a step, those with the strongest effect on the row. The text of a condition has at
        most three, the strongest in training: it does not depend on the rows that are explained.

    Returns
    -------
    Explanation
        Explanations of the rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier, explain
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TartClassifier(depth=1, epochs=5, random_state=0).fit(X, y)
    >>> explained = explain.explain_rows(model, X[:10], background=X)
    >>> total = explained.base + explained.contributions.sum(axis=1)
    >>> bool(abs(total - model.predict_proba(X[:10])).max() < 1e-5)
    True
    """
    model = fitted_model(estimator)
    tree = model.double_tree()
    if not 0 < share <= 1:
        raise ValueError(f"share must be above 0 and at most 1, got {share}")
    check_integer("max_paths", max_paths, 1)
    check_integer("max_terms", max_terms, 1)
    x = model.encode(X)
    reference = reference_row(model, background)
    parts = contributions(tree, x, reference, model.selection)
    center, scale = model.target_scaling
    encoder = model.encoder
    owner = torch.tensor([feature.column for feature in encoder.features_], dtype=torch.long)

    def by_column(part: Tensor) -> FloatArray:
        total = part.new_zeros(len(part), encoder.n_features_in_, part.shape[-1]).index_add_(1, owner, part)
        scaled: FloatArray = total.numpy() * scale
        return scaled

    evaluations = list(ev.in_chunks(tree, x))
    structure = tree.structure
    shares = [
        torch.cat(
            [part.branching[..., :0]]
            + [edge_shares(part.branching, torch.from_numpy(structure.edges(d)[2])) for d in range(structure.depth)],
            dim=-1,
        )
        for part in evaluations
    ]
    around = None if background is not None else _gradient_rows(model, reference)
    tree_view = make_view(model, background, None, None, max_terms=max_terms, typical=3, around=around)
    nonlinear = any(c is not None and c.kind == "gradient" for member in tree_view.members for c in member.conditions)
    return Explanation(
        tree_view,
        tuple(column.name for column in tree_view.columns),
        tree_view.outputs,
        reference.numpy(),
        center + scale * parts.base.numpy(),
        center + scale * parts.prediction.numpy(),
        by_column(parts.path),
        by_column(parts.leaf),
        torch.cat([torch.cat(part.arrivals, dim=-1) for part in evaluations], dim=1).numpy(),
        torch.cat(shares, dim=1).numpy(),
        x.numpy(),
        encoder.inverse_transform(x.numpy()),
        _slopes(tree, x) if nonlinear else None,
        missing_mask(X),
        tuple(encoder.features_),
        share,
        max_paths,
        max_terms,
    )


def _value_text(value: Any) -> str:
    return format_number(float(value)) if isinstance(value, float | np.floating) else str(value)


def reference_row(model: FittedModel, background: Any = None) -> Tensor:
    """Return the row that others are compared with, encoded, (features,).

    It is the mean of the encoded background or, without one, mean numbers and most frequent levels.
    """
    if background is not None:
        x = model.encode(background)
        if not len(x):
            raise ValueError("background must have at least one row, got none")
        return x.mean(0)
    encoder = model.encoder
    row = torch.zeros(len(encoder.features_), dtype=torch.float64)
    visited: set[int] = set()
    for k, feature in enumerate(encoder.features_):
        row[k] = encoder.columns_[feature.column].reference(feature, is_first=feature.column not in visited)
        visited.add(feature.column)
    return row


def _gradient_rows(model: FittedModel, reference: Tensor) -> Tensor:
    """Return encoded rows for mean gradients without a background: those of training, or random ones if none were kept.

    They are never the rows that are explained, so that the conditions are the same for all of them.
    """
    kept = model.training_rows
    if kept is not None and len(kept[0]):
        return kept[0]
    values = torch.tensor([float(feature.kind == "value") for feature in model.encoder.features_])
    drawn = torch.randn(256, len(values), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return reference + drawn * values * torch.from_numpy(usual_spread(model))


def _slopes(tree: Tree, x: Tensor) -> FloatArray:
    """Return gradients of the logits by the features at each row, (members, rows, logits, features)."""
    slopes = [torch.cat(list(jacobians(tree.decision, m, x))) for m in range(ev.n_members(tree))]
    return torch.stack(slopes).detach().numpy()
