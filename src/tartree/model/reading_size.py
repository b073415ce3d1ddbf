"""How much there is to read in a fitted model: leaves, columns of a decision, numbers to print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tartree.nn import Tree
from tartree.nn.families import Parameters, is_fixed, linear_parameters, step_parameters
from tartree.table import Feature


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
        each point of a curve. Of two classes one function is printed. None if decisions or leaves are not linear.

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
    leaf_numbers = _leaf_numbers(tree, features, leaves)
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


def _leaf_numbers(tree: Tree, features: Sequence[Feature], n_leaves: int) -> int | None:
    n_outputs = tree.output.n_numbers
    printed = 1 if tree.output.is_classes and n_outputs == 2 else n_outputs
    if is_fixed(tree.leaf):
        return n_leaves * printed
    parameters = linear_parameters(tree.leaf)
    if parameters is None:
        return None
    weights, biases = parameters
    if printed < n_outputs:  # the difference of two logits
        weights, biases = weights[:, ::2] - weights[:, 1::2], biases[:, ::2] - biases[:, 1::2]
    return sum(numbers for _, numbers in _function_sizes((weights, biases), features))


def _function_sizes(parameters: Parameters, features: Sequence[Feature]) -> list[tuple[int, int]]:
    """Return columns and numbers of each linear function."""
    weights = parameters[0].flatten(0, 1).cpu().numpy()  # (functions, features)
    columns = np.array([feature.column for feature in features], dtype=np.intp)
    is_bin = np.array([feature.bin is not None for feature in features], dtype=bool)
    n_bins = np.bincount(columns[is_bin], minlength=columns.max(initial=-1) + 1)
    return [_function_size(row != 0, columns, is_bin, n_bins) for row in weights]


def _function_size(
    used: NDArray[np.bool_], columns: NDArray[np.intp], is_bin: NDArray[np.bool_], n_bins: NDArray[np.intp]
) -> tuple[int, int]:
    curved = np.unique(columns[used & is_bin])
    straight = used & ~np.isin(columns, curved)
    points = int((n_bins[curved] + 1).sum())
    return len(np.unique(columns[used])), 1 + int(straight.sum()) + 2 * points
