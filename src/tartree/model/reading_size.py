"""How much there is to read in a fitted model: leaves, columns of a decision, numbers to print."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tartree.nn import Tree
from tartree.nn.families import Parameters, is_fixed, linear_parameters, step_parameters
from tartree.nn.path_leaf import path_shares, shared_parts
from tartree.structure import Structure
from tartree.table import Feature

#: Leaves up to which numbers that they share are counted once; nobody reads more.
MOST_SHARED = 256


@dataclass(frozen=True)
class ReadingSize:
    """What a person has to read of a model.

    Parameters
    ----------
    leaves : int
        Leaves of all trees.
    columns : int or None
        The most columns of the table that a decision uses; None if decisions are not linear.
    numbers : int or None
        Numbers to print: a bias of each function, a weight of each straight line and each indicator, two numbers of
        each point of a curve. Of two classes one function is printed; what leaves share is printed once. None if
        decisions or leaves are not linear.

    Examples
    --------
    >>> ReadingSize(leaves=2, columns=1, numbers=3).leaves
    2
    """

    leaves: int
    columns: int | None
    numbers: int | None


def measure(tree: Tree, features: Sequence[Feature], n_members: int) -> ReadingSize:
    """Measure a tree of encoded rows.

    Parameters
    ----------
    tree : Tree
    features : sequence of Feature
    n_members : int

    Returns
    -------
    ReadingSize

    Examples
    --------
    >>> from tartree.nn import Classes
    >>> from tartree.structure import Structure
    >>> tree = Tree.build(Structure(1), 1, Classes(2), leaf_layers=0)
    >>> measure(tree, [Feature(0, "age", "value")], 1)
    ReadingSize(leaves=2, columns=1, numbers=4)
    """
    leaves = n_members * tree.structure.n_leaves
    columns, decision_numbers = _decision_size(tree, features, n_members)
    leaf_numbers = _leaf_numbers(tree, features, n_members)
    if decision_numbers is None or leaf_numbers is None:
        return ReadingSize(leaves, columns, None)
    return ReadingSize(leaves, columns, decision_numbers + leaf_numbers)


def _decision_size(tree: Tree, features: Sequence[Feature], n_members: int) -> tuple[int | None, int | None]:
    """Return the most columns of a decision and the numbers of all."""
    n_nodes = n_members * tree.structure.n_decisions
    if is_fixed(tree.decision) or not n_nodes:
        return 0, 0
    if step_parameters(tree.decision) is not None:
        return 1, n_nodes  # a threshold each
    parameters = linear_parameters(tree.decision)
    if parameters is None:
        return None, None
    sizes = _function_sizes(parameters, features)
    return max(n for n, _ in sizes), sum(numbers for _, numbers in sizes)


def _leaf_numbers(tree: Tree, features: Sequence[Feature], n_members: int) -> int | None:
    """Return the numbers of all leaves, where what leaves below a node share is printed once."""
    n_outputs = tree.output.n_numbers
    printed = 1 if tree.output.is_classes and n_outputs == 2 else n_outputs
    if is_fixed(tree.leaf):
        return n_members * tree.structure.n_leaves * printed
    parameters = linear_parameters(tree.leaf)
    if parameters is None:
        return None
    shape = (n_members, tree.structure.n_leaves, n_outputs, -1)
    weights, biases = (part.double().cpu().numpy().reshape(shape) for part in parameters)
    if printed < n_outputs:  # the difference of two logits
        weights, biases = weights[:, :, :1] - weights[:, :, 1:], biases[:, :, :1] - biases[:, :, 1:]
    columns = np.array([feature.column for feature in features], dtype=np.intp)
    total = 0
    for of_leaves, constants in zip(weights, biases, strict=True):
        total += int(np.count_nonzero(_shared(constants, tree.structure)))
        for column in np.unique(columns):
            own = np.flatnonzero(columns == column)
            of_column = [features[k] for k in own.tolist()]

            def count(parts: NDArray[np.float64], of_column: Sequence[Feature] = of_column) -> NDArray[np.int64]:
                return np.asarray(count_numbers(parts != 0, of_column).sum(axis=-1))  # over outputs

            total += int(count(_shared(of_leaves[:, :, own], tree.structure, count)).sum())
    return total


def _shared(
    leaves: NDArray[np.float64],
    structure: Structure,
    count: Callable[[NDArray[np.float64]], NDArray[np.int64]] | None = None,
) -> NDArray[np.float64]:
    """Return what nodes add to leaves; of large trees, and where children have several parents, the leaves."""
    if structure.n_leaves > MOST_SHARED or not np.isin(path_shares(structure), (0.0, 1.0)).all():
        return leaves
    return shared_parts(leaves, structure, count)


def count_numbers(used: NDArray[np.bool_], features: Sequence[Feature]) -> NDArray[np.int64]:
    """Return the numbers to print of functions of one column.

    Parameters
    ----------
    used : ndarray of bool of shape (..., features)
        Which features of the column each function uses.
    features : sequence of Feature
        Of the column.

    Returns
    -------
    ndarray of int of shape (...)

    Examples
    --------
    >>> count_numbers(np.array([[True, False], [True, True]]), [Feature(0, "a", "level", k) for k in "xy"]).tolist()
    [1, 2]
    """
    is_bin = np.array([feature.bin is not None for feature in features], dtype=bool)
    is_curve = used[..., is_bin].any(axis=-1)
    others = used[..., ~is_bin].sum(axis=-1)  # straight lines, levels, missing values
    has_value = used[..., [feature.kind == "value" for feature in features]].any(axis=-1)
    return np.asarray(np.where(is_curve, 2 * (is_bin.sum() + 1) + others - has_value, others))


def _function_sizes(parameters: Parameters, features: Sequence[Feature]) -> list[tuple[int, int]]:
    """Return columns and numbers of each linear function."""
    weights = parameters[0].flatten(0, 1).cpu().numpy() != 0  # (functions, features)
    columns = np.array([feature.column for feature in features], dtype=np.intp)
    n_columns, numbers = np.zeros(len(weights), dtype=int), np.ones(len(weights), dtype=int)
    for column in np.unique(columns):
        own = np.flatnonzero(columns == column)
        of_column = [features[k] for k in own.tolist()]
        n_columns += weights[:, own].any(axis=1)
        numbers += count_numbers(weights[:, own], of_column)
    return list(zip(n_columns.tolist(), numbers.tolist(), strict=True))
