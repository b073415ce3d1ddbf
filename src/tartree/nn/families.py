"""Decision and leaf families: whether they are linear, fixed, steps or perceptrons.

The functions take any module: a decision or leaf of the user's own, which is no `Family`, has none of these properties.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor, nn

from tartree.nn.products import GroupedMLP

Parameters = tuple[Tensor, Tensor]


class Family(nn.Module):
    """Base of the decisions and leaves of this library."""

    is_fixed: ClassVar[bool] = False  # whether the output is the same for all rows

    @property
    def perceptrons(self) -> GroupedMLP | None:
        """The perceptrons that compute the outputs, or None."""
        return None

    def linear_parameters(self) -> Parameters | None:
        """Return weights (members, outputs, features) and biases (members, outputs) if linear, or None."""
        mlp = self.perceptrons
        if mlp is None or len(mlp.weights) > 1:
            return None
        return mlp.weights[0].detach(), mlp.biases[0].detach()

    @property
    def last_layer(self) -> Sequence[Tensor] | None:
        """The parameters that the outputs are proportional to, or None."""
        mlp = self.perceptrons
        return None if mlp is None else (mlp.weights[-1], mlp.biases[-1])

    def prune(self, progress: float) -> None:
        """Remove what is due after a share of the training; nothing by default."""

    def penalise(self, strength: float) -> None:
        """Add the gradient of a penalty on terms, which draws the weak ones to 0; nothing by default."""

    def drop_faint_terms(self) -> None:
        """Set terms that a penalty has made negligible to 0; nothing by default."""

    def project(self) -> None:
        """Take back, after a training step, what it did to removed parts; nothing by default."""

    def is_settled(self, progress: float) -> bool:
        """Whether nothing more will be removed after a share of the training."""
        return True

    def plain(self) -> Family:
        """Return what computes the same once it is trained, with the fewest parameters; itself by default."""
        return self

    def step_parameters(self) -> Parameters | None:
        """Return feature and threshold of each node, (members, nodes), if decisions compare one feature, or None."""
        return None


def is_fixed(module: nn.Module) -> bool:
    """Whether the output of a decision or leaf is the same for all rows."""
    return (family := _family(module)) is not None and family.is_fixed


def perceptrons(module: nn.Module) -> GroupedMLP | None:
    """Return the perceptrons that compute the outputs of a decision or leaf, one map each if linear, or None."""
    return None if (family := _family(module)) is None else family.perceptrons


def linear_parameters(module: nn.Module) -> Parameters | None:
    """Return weights (members, outputs, features) and biases (members, outputs) of a linear module, or None."""
    return None if (family := _family(module)) is None else family.linear_parameters()


def step_parameters(module: nn.Module) -> Parameters | None:
    """Return feature and threshold of each node, (members, nodes), if decisions compare one feature, or None.

    A row goes to the first child if the feature is at most the threshold. A module of the user's own says so by tensors
    `feature` and `threshold`.
    """
    if (family := _family(module)) is not None:
        return family.step_parameters()
    feature, threshold = getattr(module, "feature", None), getattr(module, "threshold", None)
    if not isinstance(feature, Tensor) or not isinstance(threshold, Tensor):
        return None
    return feature.detach(), threshold.detach().double()


def last_layer(module: nn.Module) -> Sequence[Tensor] | None:
    """Return the parameters that the outputs of a decision or leaf are proportional to, or None."""
    return None if (family := _family(module)) is None else family.last_layer


def plain(module: nn.Module) -> nn.Module:
    """Return a decision or leaf that computes the same as a trained one, with the fewest parameters."""
    return module if (family := _family(module)) is None else family.plain()


def _family(module: nn.Module) -> Family | None:
    """Return a module that describes itself; not a subclass with another `forward`."""
    if not isinstance(module, Family):
        return None
    described = next(base for base in type(module).__mro__ if "forward" in vars(base))
    return module if described.__module__.startswith("tartree.nn.") else None
