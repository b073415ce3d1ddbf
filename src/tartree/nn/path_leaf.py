"""Linear leaves that share what is above them: a function for all rows at the root, and corrections along the path."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tartree.checks import check_integer
from tartree.nn.column_groups import ColumnGroups
from tartree.nn.column_mask import ColumnMask
from tartree.nn.families import Family, Parameters
from tartree.nn.leaves import MLPLeaf
from tartree.nn.products import GroupedMLP, affine
from tartree.structure import Structure

#: Norm of the weights of a term in a leaf below which it is left out after a training with a penalty on terms.
FAINT = 0.01
#: Norm below which the penalty on a term fades, so that its gradient is continuous.
SMOOTH = 1e-3


class PathLeaf(Family):
    """Computes linear leaves, each the sum of the linear functions of the nodes on its path (hierarchical shrinkage).

    The root has a function for all rows; every other node corrects it for its rows. Weight decay draws corrections to
    0, so that leaves differ where the rows say so. `plain` returns the same leaves one by one.

    Parameters
    ----------
    structure : Structure
    n_features : int
    n_numbers : int
        Raw outputs of a leaf.
    scale : float, default=0.125
        What the functions below the root are multiplied by: below 1, corrections learn slower and stay smaller.
    columns : sequence of int, optional
        The column of each feature; by default each is one. What a column adds to the function of a node is a term.
    most : int, optional
        Terms of all nodes together that are left in the end, see `ColumnMask`.
    members : int, default=1

    Examples
    --------
    >>> leaf = PathLeaf(Structure(2), n_features=3, n_numbers=1)
    >>> leaf.paths.tolist()[:3]
    [[1.0, 1.0, 1.0, 1.0], [0.125, 0.125, 0.0, 0.0], [0.0, 0.0, 0.125, 0.125]]
    >>> leaf(torch.zeros(5, 3)).shape
    torch.Size([1, 5, 4, 1])
    """

    paths: Tensor  # (nodes, leaves)
    shares: Tensor  # (nodes,): of the function of a node in a leaf, at most
    penalty_factors: Tensor  # (members, 1, 1): of the penalty on terms

    def __init__(
        self,
        structure: Structure,
        n_features: int,
        n_numbers: int,
        *,
        scale: float = 0.125,
        columns: Sequence[int] | None = None,
        most: int | None = None,
        members: int = 1,
    ) -> None:
        super().__init__()
        if not 0 < scale <= 1:
            raise ValueError(f"scale must be above 0 and at most 1, got {scale!r}")
        self.n_numbers = n_numbers
        paths = path_shares(structure)
        paths[1:] *= scale
        self.register_buffer("paths", torch.from_numpy(paths).float(), persistent=False)
        self.register_buffer("shares", torch.from_numpy(paths.max(axis=1)).float(), persistent=False)
        self.register_buffer("penalty_factors", torch.ones(members, 1, 1), persistent=False)
        self.nodes = GroupedMLP(n_features, [n_numbers] * len(paths), members=members)
        columns = range(n_features) if columns is None else columns
        node = np.repeat(np.arange(len(paths)), n_numbers).tolist()
        self.groups = ColumnGroups(node, columns)
        self.terms: ColumnMask | None = None
        if most is not None:
            check_integer("most", most, 0)
            # What a term changes: by its size, and for the share of the leaves below the node.
            importance = torch.from_numpy(np.square(paths).mean(axis=1)).float()
            weight = self.nodes.weights[0]
            self.terms = ColumnMask(weight, functions=node, columns=columns, most=most, importance=importance)

    def reset_parameters(self, generators: Sequence[torch.Generator] | None = None) -> None:
        """Draw the functions of all nodes.

        Parameters
        ----------
        generators : sequence of torch.Generator, optional
            One for each member.
        """
        self.nodes.reset_parameters(generators)
        if self.terms is not None:
            self.terms.reset()

    @torch.no_grad()
    def penalise(self, strength: float) -> None:
        """Add the gradient of a group lasso: `strength` times the sum of the norms of all terms in a leaf.

        The constant of a correction is a term too. By chance, the best of p columns seems to help by about
        ``sqrt(log p)``, so the strength grows with it.

        Parameters
        ----------
        strength : float
        """
        weight, bias = self.nodes.weights[0], self.nodes.biases[0]
        assert weight.grad is not None
        assert bias.grad is not None
        scale = strength * math.sqrt(math.log(self.groups.n_columns + 2))
        strengths = scale * self.penalty_factors * self.shares[:, None]  # (members, nodes, 1)
        weight.grad.addcmul_(weight, self.groups.spread(strengths / self._norms()))
        factors = strengths[:, 1:] / self._bias_norms()
        bias.grad.view_as(self._constants)[:, 1:].addcmul_(self._constants[:, 1:], factors)

    @torch.no_grad()
    def drop_faint_terms(self) -> None:
        shares = self.shares[:, None]
        is_strong = self._norms() * shares >= FAINT
        self.nodes.weights[0].mul_(self.groups.spread(is_strong.to(self.shares.dtype)))
        self._constants[:, 1:].mul_(self._bias_norms() * shares[1:] >= FAINT)

    @property
    def _constants(self) -> Tensor:
        """Biases by node, (members, nodes, numbers)."""
        constants: Tensor = self.nodes.biases[0].detach().unflatten(1, (-1, self.n_numbers))
        return constants

    def _norms(self) -> Tensor:
        """Return the norm of each term, (members, nodes, columns)."""
        return torch.sqrt(self.groups.squares(self.nodes.weights[0]) + SMOOTH**2)

    def _bias_norms(self) -> Tensor:
        """Return the norm of the constant of each correction, (members, nodes below the root, 1)."""
        return torch.sqrt(self._constants[:, 1:].square().sum(-1, keepdim=True) + SMOOTH**2)

    def prune(self, progress: float) -> None:
        if self.terms is not None:
            self.terms.prune(self.nodes.weights[0], progress)

    def project(self) -> None:
        if self.terms is not None:
            self.terms.project(self.nodes.weights[0])

    def is_settled(self, progress: float) -> bool:
        return self.terms is None or self.terms.is_settled(progress)

    def _sums(self) -> tuple[Tensor, Tensor]:
        """Return weights (members, leaves * numbers, features) and biases (members, leaves * numbers)."""
        weight, bias = self.nodes.weights[0], self.nodes.biases[0]
        members, _, n_features = weight.shape
        n_nodes, n_leaves = self.paths.shape
        by_leaf = self.paths.to(weight.dtype).t()
        weights = by_leaf @ weight.reshape(members, n_nodes, -1)
        biases = by_leaf @ bias.reshape(members, n_nodes, -1)
        return weights.reshape(members, n_leaves * self.n_numbers, n_features), biases.flatten(1)

    def linear_parameters(self) -> Parameters:
        """Return the weights and biases of the leaves.

        Returns
        -------
        weights : Tensor of shape (members, leaves * numbers, features)
        biases : Tensor of shape (members, leaves * numbers)
        """
        weights, biases = self._sums()
        return weights.detach(), biases.detach()

    def forward(self, x: Tensor) -> Tensor:
        numbers: Tensor = affine(x, *self._sums()).unflatten(1, (-1, self.n_numbers))
        return numbers.movedim(-1, 1)

    @torch.no_grad()
    def plain(self) -> MLPLeaf:
        """Return the same leaves, each with parameters of its own.

        Returns
        -------
        MLPLeaf
        """
        weights, biases = self._sums()
        members, n_outputs, n_features = weights.shape
        leaf = MLPLeaf.__new__(MLPLeaf)
        nn.Module.__init__(leaf)
        leaf.n_numbers = self.n_numbers
        leaf.mlp = GroupedMLP(n_features, [self.n_numbers] * (n_outputs // self.n_numbers), members=members)
        leaf.mlp.weights[0] = nn.Parameter(weights)
        leaf.mlp.biases[0] = nn.Parameter(biases)
        return leaf.train(self.training)


def path_shares(structure: Structure) -> NDArray[np.float64]:
    """Return the share of each node in the sum of each leaf, (nodes, leaves): in every layer, shares add up to 1.

    In a tree a leaf has one node of each layer above it; where neighbours share children, all nodes above count alike.

    >>> path_shares(Structure(1))
    array([[1., 1.],
           [1., 0.],
           [0., 1.]])
    """
    reached = np.eye(structure.n_leaves)  # (nodes of the layer, leaves)
    layers = [reached]
    for layer in reversed(range(structure.depth)):
        reached = np.array([reached[list(children)].any(axis=0) for children in structure.children(layer)], dtype=float)
        layers.append(reached / reached.sum(axis=0))
    return np.concatenate(layers[::-1])


def shared_parts(
    leaves: NDArray[Any], structure: Structure, count: Callable[[NDArray[Any]], NDArray[Any]] | None = None
) -> NDArray[Any]:
    """Return what each node adds to the leaves below it, (nodes, ...), so that the sum along a path is the leaf.

    Of all ways to share the values of leaves, and 0, along the paths, the one with the fewest numbers: never more than
    the leaves have themselves. Of equal ones, the root has what most leaves have, and other nodes add nothing. Every
    node must have one parent.

    Parameters
    ----------
    leaves : array of shape (leaves, ...)
    structure : Structure
    count : callable, optional
        Returns the numbers to print of each part, (parts,), from (parts, ...); by default those that are not 0.

    Returns
    -------
    ndarray of shape (nodes, ...)

    Examples
    --------
    >>> shared_parts(np.array([1.0, 1.0, 1.0, 3.0]), Structure(2)).tolist()
    [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0]
    >>> shared_parts(np.array([0.0, 0.0, 3.0, 0.0]), Structure(2)).tolist()
    [0.0, 0.0, 0.0, 0.0, 0.0, 3.0, 0.0]
    """
    with_nothing = np.concatenate([np.zeros_like(leaves[:1]), leaves])
    _, first, kinds = np.unique(
        with_nothing.reshape(len(with_nothing), -1), axis=0, return_index=True, return_inverse=True
    )
    values, (nothing, *of_leaves) = with_nothing[first], kinds.ravel().tolist()
    frequency = np.bincount(of_leaves, minlength=len(values))
    # Nodes have what several leaves have, or nothing; the root may have what the first leaf has.
    shared = np.unique([nothing, max(of_leaves, key=lambda kind: frequency[kind]), *np.flatnonzero(frequency > 1)])
    changes = values[None] - values[shared][:, None]  # (shared, kinds, ...)
    flat = changes.reshape(-1, *leaves.shape[1:])
    counts = np.count_nonzero(flat.reshape(len(flat), -1), axis=1) if count is None else count(flat)
    costs = counts.reshape(changes.shape[:2])  # (value of the parent, kind of the child)
    between = costs[:, shared]
    totals: list[NDArray[Any]] = []  # for each layer above the leaves, numbers below a node by its value
    below = costs[:, of_leaves].T  # (children, value of the parent)
    for layer in reversed(range(structure.depth)):
        totals.insert(0, np.array([below[list(children)].sum(axis=0) for children in structure.children(layer)]))
        below = (between + totals[0][:, None]).min(axis=2)
    parents = [int(np.searchsorted(shared, nothing))]  # of the nodes of a layer, the value as an index into `shared`
    parts: list[NDArray[Any]] = []
    for layer, total in enumerate(totals):
        chosen = []
        for node, parent in enumerate(parents):
            numbers = between[parent] + total[node]
            least = np.flatnonzero(numbers == numbers.min())
            keeps = layer > 0 and parent in least
            kind = parent if keeps else int(least[frequency[shared[least]].argmax()])
            chosen.append(kind)
            parts.append(changes[parent, shared[kind]])
        parents = [0] * structure.widths[layer + 1]
        for kind, children in zip(chosen, structure.children(layer), strict=True):
            for child in children:
                parents[child] = kind
    parts += [changes[parent, kind] for parent, kind in zip(parents, of_leaves, strict=True)]
    return np.array(parts)
