"""What a fitted tree computes for rows, layer by layer, in double precision: the ground of every explanation.

An estimator is taken for what it has (`tree_`, `encoder_`, `structure_`, `selection`), not for its class.
"""

from __future__ import annotations

import copy
import numbers
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from torch import Tensor

from tartree.nn import Classes, Tree
from tartree.nn.paths import edge_shares
from tartree.structure import Structure
from tartree.table.input_table import read_table

#: Numbers held at once while rows are walked through, at most about 64 MB.
CHUNK_NUMBERS = 2**23


@dataclass(frozen=True)
class Evaluation:
    """A tree on some rows; tensors are float64 on the CPU."""

    x: Tensor  # (rows, features)
    logits: Tensor  # (members, rows, logits), before the temperature
    branching: Tensor  # (members, rows, branches)
    arrivals: list[Tensor]  # for each layer, root first, (members, rows, nodes)
    values: Tensor  # (members, rows, leaves, outputs): what each leaf predicts


def check_fitted(estimator: Any) -> None:
    """Raise unless the estimator is a fitted one of this library, or looks like one."""
    if hasattr(estimator, "_check_explainable"):  # an imported model, which may be a sum of trees
        estimator._check_explainable()
    missing = [name for name in ("tree_", "structure_", "encoder_") if not hasattr(estimator, name)]
    if not missing:
        return
    required = "a fitted TartClassifier or TartRegressor is required, however: "
    if not any(cls.__module__.split(".")[0] == "tartree" for cls in type(estimator).__mro__):
        raise TypeError(f"{required}{type(estimator).__name__} is not a tartree model")
    raise NotFittedError(f"{required}{type(estimator).__name__} has no {missing[0]}; call fit first")


def check_count(name: str, value: Any, least: int = 1) -> None:
    """Raise unless a value is a whole number of at least so much."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, however: {name}={value!r}")


def is_classifier(estimator: Any) -> bool:
    return isinstance(estimator.tree_.output, Classes)


def double_tree(estimator: Any) -> Tree:
    """A copy of the fitted tree in double precision on the CPU, as predictions are computed."""
    check_fitted(estimator)
    tree: Tree = copy.deepcopy(estimator.tree_).cpu().double().eval()
    return tree.requires_grad_(False)


def on_cpu(estimator: Any) -> Any:
    """The estimator with its tree on the CPU, where its own predictions are in double precision, as explanations are.

    On another device they are in single precision: of a row at a boundary, page and prediction would not agree.
    """
    check_fitted(estimator)
    if all(parameter.device.type == "cpu" for parameter in estimator.tree_.parameters()):
        return estimator
    return estimator.with_model(estimator.model_.on_cpu())


def column_names(estimator: Any) -> list[str]:
    """Names of the table's columns, "x0", "x1", ... where it had none."""
    encoder = estimator.encoder_
    unnamed = [f"x{k}" for k in range(encoder.n_features_in_)]
    return [str(name) for name in getattr(encoder, "feature_names_in_", unnamed)]


def encode(estimator: Any, X: Any) -> Tensor:
    """Rows as the tree reads them, (rows, features), float64."""
    check_fitted(estimator)
    return torch.from_numpy(estimator.encoder_.transform(X)).double()


def gaps(X: Any) -> NDArray[np.bool_]:
    """Where a table has no value, (rows, columns): what the model reads there was never given."""
    table = read_table(X)
    found = np.zeros((table.n_rows, table.n_columns), dtype=np.bool_)
    for k in range(table.n_columns if table.n_rows else 0):
        column = table.read(k)
        if column.codes is not None:
            found[:, k] = column.codes < 0
        elif isinstance(column.values, list):
            found[:, k] = [value is None for value in column.values]
        else:
            found[:, k] = np.isnan(column.values)
    return found


def training_rows(estimator: Any) -> tuple[Tensor, NDArray[np.float64] | None] | None:
    """Encoded rows of training, (rows, features), and their weights; None where none were kept, as after a file."""
    model = getattr(estimator, "model_", None)
    return None if model is None else model.training_rows


def n_outputs(tree: Tree) -> int:
    """Classes or target columns; the second moments of a Gaussian are no outputs of their own."""
    return tree.output.n_targets


def n_members(tree: Tree) -> int:
    return next((len(p) for p in tree.parameters()), int(getattr(tree.decision, "members", 1)))


@torch.no_grad()
def evaluate(tree: Tree, x: Tensor) -> Evaluation:
    """Walk encoded rows, (rows, features), through the tree; leaf values have the standardised units of training."""
    logits = tree.decision(x)
    branching = tree.branching.probabilities(logits)
    values = tree.output.mean(tree.leaf(x))[..., : n_outputs(tree)]
    values = values.expand(len(logits), len(x), -1, -1)  # constant leaves are the same for all rows
    return Evaluation(x, logits, branching, tree.branching.arrivals(logits), values)


def in_chunks(tree: Tree, x: Tensor) -> Iterator[Evaluation]:
    """`evaluate` in pieces of rows that keep memory small; at least one piece, so that shapes are known."""
    per_row = n_members(tree) * (sum(tree.structure.widths) * n_outputs(tree) + tree.structure.n_branches)
    for part in x.split(max(16, CHUNK_NUMBERS // max(1, per_row))):
        yield evaluate(tree, part)


def expected_values(structure: Structure, branching: Tensor, values: Tensor) -> list[Tensor]:
    """For each layer, root first, what is predicted from each node down: (..., nodes, outputs).

    `branching` is (..., branches), `values` are of the leaves, (..., leaves, outputs); leading axes broadcast.
    """
    layers = [values]
    for d in reversed(range(structure.depth)):
        parents, children, branches = (torch.from_numpy(part) for part in structure.edges(d))
        share = edge_shares(branching, branches)  # (..., edges)
        flow = share.unsqueeze(-1) * layers[-1].index_select(-2, children)  # (..., edges, outputs)
        above = flow.new_zeros((*flow.shape[:-2], structure.widths[d], flow.shape[-1]))
        layers.append(above.index_add_(-2, parents, flow))
    return layers[::-1]


def predicted(tree: Tree, evaluation: Evaluation, selection: str) -> Tensor:
    """What each member predicts, (members, rows, outputs), in units of the tree."""
    arrival, values = evaluation.arrivals[-1], evaluation.values
    if selection == "single":
        arrival = torch.nn.functional.one_hot(arrival.argmax(-1), arrival.shape[-1]).to(arrival)
    return torch.einsum("mru,mruo->mro", arrival, values)


def target_scaling(estimator: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Center and scale of the outputs, (outputs,): probabilities as they are, target values in their own units."""
    n = n_outputs(estimator.tree_)
    center, scale = getattr(estimator, "target_center_", None), getattr(estimator, "target_scale_", None)
    if is_classifier(estimator) or center is None or scale is None:
        return np.zeros(n), np.ones(n)
    return np.asarray(center, dtype=np.float64), np.asarray(scale, dtype=np.float64)
