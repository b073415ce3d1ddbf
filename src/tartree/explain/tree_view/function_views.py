"""Parameters of decisions and leaves as plain arrays, which are enough to compute them outside torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tartree.nn import ConstantLeaf, Tree
from tartree.nn.decisions import logits_per_node
from tartree.nn.families import is_fixed, linear_parameters, perceptrons
from tartree.nn.products import GroupedMLP

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class FunctionView:
    """A decision or leaf module of one member as arrays.

    Attributes
    ----------
    kind : str
        "uniform": all logits are 0. "constant": outputs are `biases[0]`, whatever the row. "linear": outputs are
        ``weights[0] @ x + biases[0]``. "perceptron": each group of outputs has its own hidden units; the first weights
        are (groups * hidden, features), those between (groups, hidden, hidden), the last (outputs, hidden), with
        ``ELU(z) = z if z > 0 else exp(z) - 1`` between them. "opaque": user code; no parameters.
    sizes : tuple of int
        Number of outputs of each group: logits of each node (or layer), raw outputs of each leaf.
    hidden : int
        Number of hidden units of each group.
    weights, biases : tuple of ndarray
    """

    kind: Literal["uniform", "constant", "linear", "perceptron", "opaque"]
    sizes: tuple[int, ...] = ()
    hidden: int = 0
    weights: tuple[FloatArray, ...] = ()
    biases: tuple[FloatArray, ...] = ()


def decision_view(tree: Tree, member: int) -> FunctionView:
    """Return the decision of one member; its outputs are the logits of the structure, before the temperature."""
    if is_fixed(tree.decision):
        return FunctionView("uniform")
    mlp = perceptrons(tree.decision)
    if mlp is not None:
        return _view(mlp, member)
    parameters = linear_parameters(tree.decision)
    if parameters is None:
        return FunctionView("opaque")
    weights, biases = ((_array(part[member]),) for part in parameters)
    return FunctionView("linear", tuple(logits_per_node(tree.structure)), 0, weights, biases)


def leaf_view(tree: Tree, member: int) -> FunctionView:
    """Return the leaf module of one member; its outputs are the raw outputs of leaf 0, leaf 1, ..."""
    if type(tree.leaf) is ConstantLeaf:
        values = _array(tree.leaf.values[member].flatten())
        return FunctionView("constant", (tree.output.n_numbers,) * tree.structure.n_leaves, biases=(values,))
    mlp = perceptrons(tree.leaf)
    return FunctionView("opaque") if mlp is None else _view(mlp, member)


def _view(mlp: GroupedMLP, member: int) -> FunctionView:
    return FunctionView(
        "linear" if len(mlp.weights) == 1 else "perceptron",
        tuple(mlp.sizes),
        mlp.hidden if len(mlp.weights) > 1 else 0,
        tuple(_array(weight[member]) for weight in mlp.weights),
        tuple(_array(bias[member]) for bias in mlp.biases),
    )


def scaled_logits(tree: Tree) -> tuple[Tensor, Tensor]:
    """Return weights (members, logits, features) and biases of linear decisions over the temperature."""
    parameters = linear_parameters(tree.decision)
    assert parameters is not None
    weight = tree.branching.scale(parameters[0].transpose(1, 2)).transpose(1, 2)
    return weight, tree.branching.scale(parameters[1].unsqueeze(1))[:, 0]


def activation_name(tree: Tree) -> str:
    """Return the name of the branching activation, "custom" for a user's function."""
    return tree.branching.activation.name


def logit_scales(tree: Tree, member: int) -> FloatArray:
    """Return the factor of each logit by the temperature, (logits,)."""
    ones = torch.ones(1, 1, tree.structure.n_logits, dtype=torch.float64)
    if tree.branching.log_scale is not None:
        ones = ones.expand(len(tree.branching.log_scale), -1, -1)
        return _array(tree.branching.scale(ones)[member, 0])
    return _array(tree.branching.scale(ones)[0, 0])


def _array(values: Tensor) -> FloatArray:
    return values.detach().cpu().double().numpy().copy()
