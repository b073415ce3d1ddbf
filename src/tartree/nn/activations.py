"""Activations of the branching: from the logits of a node to the probabilities of its children.

To add one, write its record into `ACTIVATIONS`: the other rooms read from it all that they need to know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from tartree.ops import ActivationFunction


@dataclass(frozen=True)
class Activation:
    """Describes a function of logits and an axis that gives distributions along the axis.

    Parameters
    ----------
    name : str
        The key in `ACTIVATIONS`; "custom" for a function of the user.
    function : callable
        ``function(logits, axis)``. The one logit ``z`` of a node with two children reaches it as the pair
        ``(z / 2, -z / 2)``.
    is_monotone : bool, default=False
        Whether the probability of a child is continuous, rises with the child's logit and falls with the others.
    is_even : bool, default=False
        Whether equal logits give equal probabilities.
    turning_point : float, optional
        For a function that is not monotone: the logit of a node with two children beyond which the probability of the
        first child falls again. It is 1 there, and 0 at minus the turning point.
    is_capturable : bool, default=False
        Whether the function can be part of a CUDA graph: it never waits for the device.
    javascript : str, optional
        Source of the same function for the page: an expression, a function of an array of logits.

    Examples
    --------
    >>> activation = ACTIVATIONS["softmax"]
    >>> activation(torch.zeros(1, 2), -1)
    tensor([[0.5000, 0.5000]])
    >>> activation.is_monotone
    True
    """

    name: str
    function: ActivationFunction
    is_monotone: bool = False
    is_even: bool = False
    turning_point: float | None = None
    is_capturable: bool = False
    javascript: str | None = None

    def __call__(self, logits: Tensor, axis: int) -> Tensor:
        """Return the distributions of logits along an axis."""
        return self.function(logits, axis)


def as_activation(branching: str | Activation | ActivationFunction) -> Activation:
    """Return the record of a name in `ACTIVATIONS`, of a user's function, or the record itself."""
    if isinstance(branching, Activation):
        return branching
    if isinstance(branching, str):
        if branching not in ACTIVATIONS:
            raise ValueError(f"branching must be one of {', '.join(ACTIVATIONS)}, got {branching!r}")
        return ACTIVATIONS[branching]
    if not callable(branching):
        raise ValueError(f"branching must be a name or a function of logits and an axis, got {branching!r}")
    return Activation("custom", branching)


def sigsoftmax(logits: Tensor, axis: int) -> Tensor:
    """Return the softmax of ``z + log sigmoid(z)``, that is, ``exp(z) sigmoid(z)`` over its sum."""
    return torch.softmax(logits + F.logsigmoid(logits), axis)


def spherical(logits: Tensor, axis: int) -> Tensor:
    """Return squares of ``1 + z`` over their sum: zero logits split evenly, where squares of ``z`` would be 0 / 0.

    Not monotone: a node with two children is most certain at ``z = 2`` and returns to an even split beyond, so a lower
    temperature does not sharpen it.
    """
    shifted = 1 + logits
    # The largest is scaled to 1, so that neither squares nor their sum overflow.
    shifted = shifted / shifted.abs().amax(axis, keepdim=True).clamp_min(torch.finfo(logits.dtype).tiny)
    squares = shifted.square() + torch.finfo(logits.dtype).eps
    return squares / squares.sum(axis, keepdim=True)


def sparsemax(logits: Tensor, axis: int) -> Tensor:
    """Return the nearest distribution, often with exact zeros (package entmax)."""
    result: Tensor = _import_entmax().sparsemax(logits, dim=axis)
    return result


def entmax15(logits: Tensor, axis: int) -> Tensor:
    """Return the 1.5-entmax, between softmax and sparsemax (package entmax)."""
    result: Tensor = _import_entmax().entmax15(logits, dim=axis)
    return result


def hard(logits: Tensor, axis: int) -> Tensor:
    """Send all to the child of the largest logit; the gradient is that of softmax (straight through)."""
    soft = torch.softmax(logits, axis)
    one_hot = torch.zeros_like(soft).scatter_(axis, logits.argmax(axis, keepdim=True), 1.0)
    return one_hot + (soft - soft.detach())


def _import_entmax() -> Any:
    try:
        import entmax
    except ImportError as error:
        raise ImportError("sparsemax and entmax15 need the package entmax: pip install 'tartree[sparse]'") from error
    return entmax


_NORMALIZE_JS = """((weights) => {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
})"""

_SOFTMAX_JS = f"""(logits) => {{
  const largest = Math.max(...logits);
  return {_NORMALIZE_JS}(logits.map((z) => Math.exp(z - largest)));
}}"""

_SIGSOFTMAX_JS = f"""(logits) =>
  ({_SOFTMAX_JS})(logits.map((z) => z + Math.min(z, 0) - Math.log1p(Math.exp(-Math.abs(z)))))"""

_SPHERICAL_JS = f"""(logits) => {{
  const shifted = logits.map((z) => 1 + z);
  const largest = Math.max(Number.MIN_VALUE, ...shifted.map(Math.abs));
  return {_NORMALIZE_JS}(shifted.map((z) => (z / largest) ** 2 + Number.EPSILON));
}}"""

_SPARSEMAX_JS = """(logits) => {
  const sorted = [...logits].sort((a, b) => b - a);
  let sum = 0;
  let threshold = 0;
  sorted.forEach((z, index) => {
    sum += z;
    if (1 + (index + 1) * z > sum) threshold = (sum - 1) / (index + 1);
  });
  return logits.map((z) => Math.max(z - threshold, 0));
}"""

# Probabilities are squares of z / 2 - t above 0; t solves a quadratic over the logits that stay above it.
_ENTMAX15_JS = f"""(logits) => {{
  const largest = Math.max(...logits);
  const halves = logits.map((z) => (z - largest) / 2);
  const sorted = [...halves].sort((a, b) => b - a);
  let sum = 0;
  let squares = 0;
  let threshold = 0;
  for (let n = 1; n <= sorted.length; n += 1) {{
    sum += sorted[n - 1];
    squares += sorted[n - 1] ** 2;
    const mean = sum / n;
    const rest = (1 - (squares - n * mean * mean)) / n;
    const candidate = mean - Math.sqrt(Math.max(rest, 0));
    if (candidate > sorted[n - 1]) break;
    threshold = candidate;
  }}
  return {_NORMALIZE_JS}(halves.map((z) => Math.max(z - threshold, 0) ** 2));
}}"""

_HARD_JS = """(logits) => {
  const chosen = logits.indexOf(Math.max(...logits)); // the first of equal logits
  return logits.map((_, child) => (child === chosen ? 1 : 0));
}"""


#: The activations that `branching=` takes by name.
ACTIVATIONS: dict[str, Activation] = {
    activation.name: activation
    for activation in (
        Activation(
            "softmax", torch.softmax, is_monotone=True, is_even=True, is_capturable=True, javascript=_SOFTMAX_JS
        ),
        Activation(
            "sigsoftmax", sigsoftmax, is_monotone=True, is_even=True, is_capturable=True, javascript=_SIGSOFTMAX_JS
        ),
        Activation(
            "spherical", spherical, is_even=True, turning_point=2.0, is_capturable=True, javascript=_SPHERICAL_JS
        ),
        Activation("sparsemax", sparsemax, is_monotone=True, is_even=True, javascript=_SPARSEMAX_JS),
        Activation("entmax15", entmax15, is_monotone=True, is_even=True, javascript=_ENTMAX15_JS),
        Activation("hard", hard, javascript=_HARD_JS),
    )
}
