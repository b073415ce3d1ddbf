"""The drawn tree: each row follows the hard path of a fitted model, computed from its plain parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tartree.model import FittedModel
from tartree.nn.families import is_fixed, linear_parameters, step_parameters


def drawn_labels(model: FittedModel, X: Any) -> NDArray[Any]:
    """Return the class with the largest logit in the leaf at the end of each row's path, (rows,).

    Nothing of `predict` is used: a row goes to the child that the sign of the decision's logit points to.

    Parameters
    ----------
    model : FittedModel
        With one tree, at most two children a node, and linear or constant leaves.
    X : table of shape (rows, columns)

    Returns
    -------
    ndarray of shape (rows,)
    """
    x = model.encode(X).numpy()
    leaf = drawn_leaves(model, x)
    tree = model.tree
    if is_fixed(tree.leaf):
        with torch.no_grad():
            constants = tree.leaf(torch.zeros(1, x.shape[1]))[0, 0].double().cpu().numpy()  # (leaves, classes)
        logits = constants[leaf]
    else:
        weights, biases = _plain(linear_parameters(tree.leaf), "leaves")
        n_outputs = len(biases) // model.structure.n_leaves
        every = (x @ weights.T + biases).reshape(len(x), -1, n_outputs)
        logits = every[np.arange(len(x)), leaf]
    return model.classes[logits.argmax(axis=1)]


def drawn_leaves(model: FittedModel, x: NDArray[Any]) -> NDArray[np.intp]:
    """Return the leaf at the end of the path of each encoded row, (rows,)."""
    structure = model.structure
    if model.n_members > 1 or structure.window > 2:
        raise ValueError(
            f"the model must be one tree with at most two children a node, got {model.n_members} of {structure}"
        )
    goes_first = _first_branches(model, x)
    node, n_before = np.zeros(len(x), dtype=np.intp), 0
    for layer in range(structure.depth):
        children = structure.children(layer)
        ends = np.array([(below[0], below[-1]) for below in children])
        decides = np.array([len(below) > 1 for below in children])
        decision = np.cumsum(decides) - decides + n_before  # index of the decision of each node
        n_before += int(decides.sum())
        first = np.ones(len(x), dtype=bool)
        asked = decides[node]
        first[asked] = goes_first[np.flatnonzero(asked), decision[node[asked]]]
        node = np.where(first, ends[node, 0], ends[node, 1])
    return node


def _first_branches(model: FittedModel, x: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether each row goes to the first child of each decision, (rows, decisions)."""
    decision = model.tree.decision
    if not model.structure.n_decisions:
        return np.zeros((len(x), 0), dtype=bool)
    if (steps := step_parameters(decision)) is not None:
        feature, threshold = (part[0].cpu().numpy() for part in steps)
        return x[:, feature.astype(np.intp)] <= threshold
    weights, biases = _plain(linear_parameters(decision), "decisions")
    return x @ weights.T + biases >= 0


def _plain(parameters: Any, what: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return weights (outputs, features) and biases (outputs,) of the one member."""
    if parameters is None:
        raise ValueError(f"the model must have linear {what} to be drawn")
    weights, biases = (part[0].double().cpu().numpy() for part in parameters)
    return weights, biases
