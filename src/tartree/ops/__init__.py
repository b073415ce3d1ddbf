"""The operation of the library: from the decisions of all nodes to the probability of arriving at each leaf.

Tensors are ``(..., nodes)``, with any leading axes: usually ``(members, batch, nodes)``. Logits and branching
probabilities of all layers stand in one axis, in the order that `Structure` says.
"""

from __future__ import annotations

from types import ModuleType
from typing import Literal, overload

import torch
from torch import Tensor

from tartree.ops import fused, native, reference
from tartree.ops.backend import Backend, choose_backend
from tartree.ops.native import ActivationFunction
from tartree.ops.reference import transition_matrices
from tartree.structure import Structure

__all__ = ["ActivationFunction", "arrival", "branch", "spread", "tconv", "transition_matrices"]

_MODULES = {"fused": fused, "native": native, "reference": reference}


def tconv(arrival: Tensor, branching: Tensor, stride: int) -> Tensor:
    """Arrival at the next layer: the transposed convolution of the paper's Algorithm 2.

    Parameters
    ----------
    arrival : Tensor of shape (..., nodes)
    branching : Tensor of shape (..., nodes, window)
        Probabilities of the children of each node.
    stride : int
        How far the window slides from one node to the next, from 1 to the window.

    Returns
    -------
    Tensor of shape (..., (nodes - 1) * stride + window)

    Examples
    --------
    >>> tconv(torch.tensor([0.5, 0.5]), torch.tensor([[0.2, 0.4, 0.4], [0.0, 1.0, 0.0]]), stride=2)
    tensor([0.1000, 0.2000, 0.2000, 0.5000, 0.0000])
    """
    if branching.dim() < 2 or arrival.dim() < 1 or arrival.shape[-1] != branching.shape[-2] or arrival.shape[-1] < 1:
        raise ValueError(
            "arrival must be (..., nodes) and branching (..., nodes, window), "
            f"got shapes {tuple(arrival.shape)} and {tuple(branching.shape)}"
        )
    nodes, window = branching.shape[-2:]
    stride = Structure(1, window, stride).stride or window
    flow = arrival.unsqueeze(-1) * branching  # (..., nodes, window)
    if stride == window:
        return flow.flatten(-2)
    span = (nodes - 1) * stride + 1
    below = flow.new_zeros((*flow.shape[:-2], span - 1 + window))
    for j in range(window):
        below[..., j : j + span : stride] += flow[..., j]
    return below


@overload
def arrival(
    logits: Tensor, structure: Structure, *, layers: Literal[False] = False, backend: Backend = "auto"
) -> Tensor: ...
@overload
def arrival(
    logits: Tensor, structure: Structure, *, layers: Literal[True], backend: Backend = "auto"
) -> list[Tensor]: ...
def arrival(
    logits: Tensor, structure: Structure, *, layers: bool = False, backend: Backend = "auto"
) -> Tensor | list[Tensor]:
    """Arrival at the leaves, from the logits of all nodes.

    A node with two children has one logit ``z`` and the branching ``(sigmoid(z), sigmoid(-z))``; one with more children
    has a logit for each and their softmax; one with a single child has none.

    Parameters
    ----------
    logits : Tensor of shape (..., structure.n_logits)
    structure : Structure
    layers : bool, default=False
        Return the arrival at every layer, root first, as a list.
    backend : {"auto", "fused", "native", "reference"}, default="auto"
        By itself, `fused` on a GPU that has it, else `native`.

    Returns
    -------
    Tensor of shape (..., structure.n_leaves), or a list of tensors of shape (..., structure.widths[d])

    Examples
    --------
    >>> arrival(torch.zeros(3), Structure(2))
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    structure.check_last_axis("logits", logits.shape, structure.n_logits)
    check_finite("logits", logits)
    module = _module(choose_backend(backend, logits, structure, layers=layers))
    arrivals: list[Tensor] = module.arrival(logits, structure, layers)
    return arrivals if layers else arrivals[-1]


@overload
def spread(
    branching: Tensor, structure: Structure, *, layers: Literal[False] = False, backend: Backend = "auto"
) -> Tensor: ...
@overload
def spread(
    branching: Tensor, structure: Structure, *, layers: Literal[True], backend: Backend = "auto"
) -> list[Tensor]: ...
def spread(
    branching: Tensor, structure: Structure, *, layers: bool = False, backend: Backend = "auto"
) -> Tensor | list[Tensor]:
    """Arrival at the leaves, from the branching probabilities of all nodes; for decisions other than softmax.

    Parameters
    ----------
    branching : Tensor of shape (..., structure.n_branches)
        For each node that decides, the probabilities of its children.
    structure, layers, backend
        As for `arrival`.

    Examples
    --------
    >>> spread(torch.tensor([0.0, 1.0, 0.5, 0.5, 0.2, 0.8]), Structure(2))
    tensor([0.0000, 0.0000, 0.2000, 0.8000])
    """
    structure.check_last_axis("branching", branching.shape, structure.n_branches)
    check_finite("branching", branching)
    if backend == "fused":
        raise ValueError("spread must use another backend than 'fused', which starts from logits; use 'auto'")
    arrivals: list[Tensor] = _module(backend).spread(branching, structure, layers)
    return arrivals if layers else arrivals[-1]


def branch(logits: Tensor, structure: Structure, activation: ActivationFunction = torch.softmax) -> Tensor:
    """Branching probabilities, (..., structure.n_branches), from logits, (..., structure.n_logits).

    ``activation(logits, axis)`` turns the logits of nodes with equally many children into distributions along an axis.
    The one logit ``z`` of a node with two children reaches it as the pair ``(z / 2, -z / 2)``.
    """
    structure.check_last_axis("logits", logits.shape, structure.n_logits)
    check_finite("logits", logits)
    return native.branch(logits, structure, activation)


def _module(backend: str) -> ModuleType:
    """Return the module of a backend; all have the same `arrival`, and all but `fused` the same `spread`."""
    if backend not in ("auto", *_MODULES):
        raise ValueError(f"backend must be one of auto, {', '.join(_MODULES)}, got {backend!r}")
    return _MODULES.get(backend, native)


def check_finite(what: str, x: Tensor) -> None:
    """Raise if there are NaN or infinities, where that can be told without waiting for a device."""
    # On a GPU, and in a compiled graph, looking would stop everything to wait for the answer.
    if x.device.type != "cpu" or torch.compiler.is_compiling():
        return
    with torch.no_grad():
        # One cheap pass: a sum of finite numbers can overflow, but a sum with NaN or infinity is never finite.
        if torch.isfinite(x.sum()) or torch.isfinite(x).all():
            return
        n_bad = int((~torch.isfinite(x)).sum())
    raise ValueError(
        f"{what} must be finite, got {n_bad} of {x.numel()} NaN or infinite; "
        "look for such values in the input, or lower the learning rate"
    )
