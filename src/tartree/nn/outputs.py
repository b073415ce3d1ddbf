"""Outputs: what the raw output of a leaf means, what an error costs, and what is averaged over the leaves.

Raw outputs are ``(members, batch, leaves, numbers)``, with a batch axis of 1 for constant leaves. Targets are
``(batch, ...)``, shared by the members, or ``(members, batch, ...)``. To add an output, write its class here: the other
rooms read from it all that they need to know.
"""

from __future__ import annotations

import math
import numbers as kinds
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from tartree.nn.activations import ACTIVATIONS
from tartree.nn.quantiles import mixture_quantiles

#: Smallest standard deviation of a leaf: one row alone in a leaf cannot make its likelihood infinite.
SPREAD_FLOOR = 1e-3
#: Raw output of a spread that is negligible beside the smallest one.
NO_SPREAD = -20.0

Limits = Sequence[tuple[float, float]] | None  # lowest and highest mean of each target


class Output(ABC):
    """Describes the output of the leaves for ``n_targets`` classes or target columns.

    Parameters
    ----------
    n_targets : int
        Classes or target columns.

    Attributes
    ----------
    kind : str
        Name of the output on pages.
    target_dim : int
        Axes of a target that the members share.
    is_classes : bool
        Whether predictions are probabilities of classes; otherwise they are means of target columns.
    has_linear_mean : bool
        Whether the mean is the first raw outputs, up to limits; otherwise another function of them.
    mean_text : str
        The mean of real targets for texts, in terms of the sum of what is on a path.
    has_spread : bool
        Whether `mean` gives means and means of squares, (..., 2 * targets), and `quantiles` quantiles.
    has_exact_gradient : bool
        Whether the gradient of the cost is that of a function; if not, an optimizer with a line search minimises the
        likelihood.
    gradient_spread : float
        Typical standard deviation, over the rows, of the gradient of the cost by a raw output: the noise that a penalty
        on terms has to keep out.
    max_change : float
        Largest possible change of a prediction.
    change_unit : str
        Unit of a change of a prediction, for texts.
    floor : float
        Smallest spread.
    limits : sequence of (float, float) or None
        Lowest and highest mean of each target.
    javascript : str
        Source for the page, an object. Its ``leaf``, a function of raw outputs and the page's record of the output,
        gives probabilities, or ``{ mean, spread }`` of each target. An output with quantiles also has ``below``, the
        probability of less than a value for such a leaf; it may use ``normalBelow``.
    """

    kind: ClassVar[str]
    target_dim: ClassVar[int] = 2
    is_classes: ClassVar[bool] = False
    has_linear_mean: ClassVar[bool] = True
    mean_text: ClassVar[str] = "the sum"
    has_spread: ClassVar[bool] = False
    has_exact_gradient: ClassVar[bool] = True
    gradient_spread: ClassVar[float] = 1.0
    max_change: ClassVar[float] = math.inf
    change_unit: ClassVar[str] = " standard deviations of the target"
    floor: ClassVar[float] = 0.0
    javascript: ClassVar[str]
    limits: Limits = None

    def __init__(self, n_targets: int) -> None:
        if not isinstance(n_targets, kinds.Integral) or n_targets < 1:
            raise ValueError(f"n_targets must be an integer of at least 1, got {n_targets!r}")
        self.n_targets: int = int(n_targets)

    @property
    def n_numbers(self) -> int:
        """Raw outputs of a leaf."""
        return self.n_targets

    @abstractmethod
    def check_target(self, target: Tensor, members: int, batch: int) -> None:
        """Raise unless the target is of the right shape and kind for so many members and rows.

        Parameters
        ----------
        target : Tensor of shape (batch, ...) or (members, batch, ...)
        members, batch : int
        """

    @abstractmethod
    def cost(self, numbers: Tensor, target: Tensor) -> Tensor:
        """Return the cost of each leaf, of which training minimises the mean of Eq. 4.

        Parameters
        ----------
        numbers : Tensor of shape (members, batch or 1, leaves, numbers)
            Raw outputs.
        target : Tensor of shape (batch, ...) or (members, batch, ...)

        Returns
        -------
        Tensor of shape (members, batch, leaves)
        """

    def negative_log_likelihood(self, numbers: Tensor, target: Tensor) -> Tensor:
        """Return the negative log likelihood of the target at each leaf; by default the cost.

        Parameters
        ----------
        numbers : Tensor of shape (members, batch or 1, leaves, numbers)
            Raw outputs.
        target : Tensor of shape (batch, ...) or (members, batch, ...)

        Returns
        -------
        Tensor of shape (members, batch, leaves)
        """
        return self.cost(numbers, target)

    @abstractmethod
    def mean(self, numbers: Tensor) -> Tensor:
        """Return what is averaged over leaves: probabilities, means or moments.

        Parameters
        ----------
        numbers : Tensor of shape (members, batch or 1, leaves, numbers)
            Raw outputs.

        Returns
        -------
        Tensor of shape (members, batch or 1, leaves, ...)
        """

    def point(self, numbers: Tensor) -> Tensor:
        """Return what a leaf predicts: probabilities or means.

        Parameters
        ----------
        numbers : Tensor of shape (members, batch or 1, leaves, numbers)
            Raw outputs.

        Returns
        -------
        Tensor of shape (members, batch or 1, leaves, targets)
        """
        return self.mean(numbers)[..., : self.n_targets]

    def quantiles(self, arrival: Tensor, numbers: Tensor, levels: Tensor) -> Tensor:
        """Return quantiles of the mixture of all members' leaves.

        Parameters
        ----------
        arrival : Tensor of shape (members, batch, leaves)
        numbers : Tensor of shape (members, batch or 1, leaves, numbers)
            Raw outputs.
        levels : Tensor of shape (quantiles,)

        Returns
        -------
        Tensor of shape (batch, quantiles, targets)
        """
        raise TypeError(f"the leaves must hold a spread, got {self}")

    @abstractmethod
    def score(self, predicted: Tensor, target: Tensor) -> Tensor:
        """Return how good the prediction of each row is, at most 1.

        Parameters
        ----------
        predicted : Tensor of shape (members, batch, ...)
        target : Tensor of shape (batch, ...) or (members, batch, ...)

        Returns
        -------
        Tensor of shape (members, batch)
        """

    def raw_zero(self, target: int) -> dict[int, float]:
        """Return the raw outputs of a leaf that predicts 0 for a target, with the smallest spread, by their index.

        Parameters
        ----------
        target : int
            Index of a target column.

        Returns
        -------
        dict of int to float
        """
        return {target: 0.0}

    @property
    def leaf_penalty(self) -> float:
        """Factor of the penalty on the weights of the leaves, for convex fits."""
        return 1.0

    def functions(self) -> NDArray[np.float64]:
        """Return the linear functions of a leaf's raw outputs that texts show.

        Returns
        -------
        ndarray of shape (functions, numbers)
        """
        return np.eye(self.n_targets, self.n_numbers)

    def function_names(self, names: Sequence[str]) -> tuple[str, ...]:
        """Name the functions that texts show.

        Parameters
        ----------
        names : sequence of str
            Of classes or target columns.

        Returns
        -------
        tuple of str
        """
        return tuple(names)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_targets})"


class Classes(Output):
    """Predicts probabilities of classes.

    Raw outputs are logits, targets class indices, (batch,); the cost is the cross entropy.

    Parameters
    ----------
    n_targets : int
        Number of classes.
    """

    kind = "classes"
    target_dim = 1
    is_classes = True
    has_linear_mean = False
    gradient_spread = 0.4  # of an indicator that is predicted moderately well
    max_change = 1.0
    change_unit = ""
    javascript = f"{{ leaf: {ACTIVATIONS['softmax'].javascript} }}"

    def check_target(self, target: Tensor, members: int, batch: int) -> None:
        if target.dtype != torch.int64 or target.shape not in ((batch,), (members, batch)):
            raise ValueError(
                f"target must be class numbers (int64) of shape ({batch},) or ({members}, {batch}), "
                f"got {target.dtype} of shape {tuple(target.shape)}"
            )
        if target.device.type == "cpu" and batch and not 0 <= int(target.min()) <= int(target.max()) < self.n_targets:
            raise ValueError(
                f"target must be class numbers from 0 to {self.n_targets - 1}, "
                f"got {int(target.min())} to {int(target.max())}"
            )

    def cost(self, numbers: Tensor, target: Tensor) -> Tensor:
        if numbers.shape[1] == 1:  # a product with indicators, so that no (batch, leaves, classes) exists
            costs = self.costs(numbers)[:, 0]
            return (costs @ self.indicators(target, costs.dtype)).transpose(-1, -2)
        # Picked with the batch last, as memory is laid out: the gradient needs no transposed copy.
        logs = F.log_softmax(numbers.movedim(1, -1), dim=-2)  # (members, leaves, classes, batch)
        index = (target if target.dim() == 2 else target.unsqueeze(0))[:, None, None, :]  # (members or 1, 1, 1, batch)
        return -torch.take_along_dim(logs, index, dim=-2).squeeze(-2).movedim(-1, 1)

    def costs(self, numbers: Tensor) -> Tensor:
        """Return the cross entropy of each class, were it the target.

        Parameters
        ----------
        numbers : Tensor of shape (members, batch or 1, leaves, numbers)
            Raw outputs.

        Returns
        -------
        Tensor of the same shape
        """
        return -_on_dense_axes(F.log_softmax, numbers)

    def gradient(self, costs: Tensor, mass: Tensor) -> Tensor:
        """Return the gradient of ``(mass * costs).sum()`` by the logits that have these costs.

        Parameters
        ----------
        costs : Tensor of shape (members, 1, leaves, classes)
        mass : Tensor of shape (members, 1, leaves, classes)

        Returns
        -------
        Tensor of the same shape
        """
        return torch.exp(-costs) * mass.sum(-1, keepdim=True) - mass

    def indicators(self, target: Tensor, dtype: torch.dtype) -> Tensor:
        """Return 1 where a row of the target has a class, else 0, in the axis order of fast products.

        Parameters
        ----------
        target : Tensor of shape (batch,) or (members, batch)
        dtype : torch.dtype

        Returns
        -------
        Tensor of shape (..., classes, batch)
        """
        shape = (*target.shape[:-1], self.n_targets, target.shape[-1])
        return torch.zeros(shape, dtype=dtype, device=target.device).scatter_(-2, target.unsqueeze(-2), 1.0)

    def mean(self, numbers: Tensor) -> Tensor:
        return _on_dense_axes(F.softmax, numbers)

    def score(self, predicted: Tensor, target: Tensor) -> Tensor:
        # 1 where the most probable class is right: the mean is the accuracy.
        return (predicted.argmax(-1) == target).to(predicted.dtype)

    @property
    def leaf_penalty(self) -> float:
        # Two classes have one logit in logistic regression, and the difference of two here: the same penalty on it is
        # half as much in terms of the two.
        return 2.0 if self.n_targets == 2 else 1.0

    def functions(self) -> NDArray[np.float64]:
        # The log odds of the second of two classes, or each logit less their mean.
        if self.n_targets == 2:
            return np.array([[-1.0, 1.0]])
        return np.asarray(np.eye(self.n_targets) - 1 / self.n_targets, dtype=np.float64)

    def function_names(self, names: Sequence[str]) -> tuple[str, ...]:
        return (f"log odds of {names[1]}",) if len(names) == 2 else tuple(f"logit of {name}" for name in names)


class RealOutput(Output):
    """Describes outputs whose targets are real, (batch, targets)."""

    def check_target(self, target: Tensor, members: int, batch: int) -> None:
        rows = (batch, self.n_targets)
        if not target.is_floating_point() or target.shape not in (rows, (members, *rows)):
            raise ValueError(
                f"target must be real numbers of shape {rows} or {(members, *rows)}, "
                f"got {target.dtype} of shape {tuple(target.shape)}"
            )

    def score(self, predicted: Tensor, target: Tensor) -> Tensor:
        """Return 1 less the squared error: the mean is R2 of a standardised target."""
        return 1 - (predicted[..., : self.n_targets] - target).square().mean(-1)


class Values(RealOutput):
    """Predicts real values, (batch, targets); the cost is half the squared error, summed over the targets.

    Parameters
    ----------
    n_targets : int
        Target columns.
    """

    kind = "values"
    javascript = "{ leaf: (numbers) => numbers.map((mean) => ({ mean, spread: 0 })) }"

    def cost(self, numbers: Tensor, target: Tensor) -> Tensor:
        total = numbers.new_zeros(())
        for t in range(self.n_targets):  # one at a time, so that nothing larger than (batch, leaves) exists
            total = total + (numbers[..., t] - target[..., t].unsqueeze(-1)).square() / 2
        return total

    def mean(self, numbers: Tensor) -> Tensor:
        return numbers


class Gaussian(RealOutput):
    """Predicts a mean and a spread for each target; targets are (batch, targets).

    `mean` gives the first two moments, ``(..., 2 * targets)``: means, then means of squares. Averaged over leaves they
    are the moments of the mixture.

    The cost is half the squared error of the mean, plus the negative log likelihood of the spread at that error. The
    likelihood of both together would let a leaf explain rows away by a large spread instead of learning their mean.

    Parameters
    ----------
    n_targets : int
    limits : sequence of (float, float), optional
        Lowest and highest mean of each target. Predictions stay within; training ignores them.
    """

    kind = "gaussian"
    has_spread = True
    has_exact_gradient = False
    floor = SPREAD_FLOOR
    javascript = """{
  leaf: (numbers, { nTargets, limits, floor }) =>
    numbers.slice(0, nTargets).map((mean, target) => {
      const raw = numbers[nTargets + target];
      return {
        mean: limits ? Math.min(Math.max(mean, limits[target][0]), limits[target][1]) : mean,
        spread: Math.max(raw, 0) + Math.log1p(Math.exp(-Math.abs(raw))) + floor,
      };
    }),
  below: (value, { mean, spread }) => normalBelow((value - mean) / spread),
}"""

    def __init__(self, n_targets: int, limits: Limits = None) -> None:
        super().__init__(n_targets)
        if limits is not None and (len(limits) != n_targets or any(not low <= high for low, high in limits)):
            raise ValueError(f"limits must be {n_targets} pairs of a low and a high number, got {limits}")
        self.limits = limits

    @property
    def n_numbers(self) -> int:
        return 2 * self.n_targets

    def parameters(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean, within the limits, and the standard deviation of each leaf and target.

        Parameters
        ----------
        numbers : Tensor of shape (members, batch or 1, leaves, numbers)
            Raw outputs.

        Returns
        -------
        pair of Tensor of shape (members, batch or 1, leaves, targets)
        """
        mean, spread = self._raw_parameters(numbers)
        return self._limited(mean), spread

    def raw_zero(self, target: int) -> dict[int, float]:
        return {target: 0.0, self.n_targets + target: NO_SPREAD}

    def point(self, numbers: Tensor) -> Tensor:
        return self._limited(numbers[..., : self.n_targets])

    def quantiles(self, arrival: Tensor, numbers: Tensor, levels: Tensor) -> Tensor:
        return mixture_quantiles(arrival, *self.parameters(numbers), levels)

    def _raw_parameters(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        mean, raw = numbers.split(self.n_targets, dim=-1)
        return mean, F.softplus(raw) + SPREAD_FLOOR

    def _limited(self, mean: Tensor) -> Tensor:
        """Return means of leaves, (..., targets), within the limits."""
        if self.limits is None:
            return mean
        # By floats: a tensor of limits would be copied to the device in every call.
        each = [mean[..., t : t + 1].clamp(low, high) for t, (low, high) in enumerate(self.limits)]
        return each[0] if len(each) == 1 else torch.cat(each, dim=-1)

    def cost(self, numbers: Tensor, target: Tensor) -> Tensor:
        mean, spread = self._raw_parameters(numbers)
        total = numbers.new_zeros(())
        for t in range(self.n_targets):
            error = (target[..., t].unsqueeze(-1) - mean[..., t]).square()
            total = total + error / 2 + error.detach() / (2 * spread[..., t].square()) + spread[..., t].log()
        return total

    def negative_log_likelihood(self, numbers: Tensor, target: Tensor) -> Tensor:
        mean, spread = self._raw_parameters(numbers)
        # Filled on the device: a copy from the host could not be part of a captured step.
        total = numbers.new_full((), self.n_targets * math.log(2 * math.pi) / 2)
        for t in range(self.n_targets):
            error = (target[..., t].unsqueeze(-1) - mean[..., t]) / spread[..., t]
            total = total + error.square() / 2 + spread[..., t].log()
        return total

    def mean(self, numbers: Tensor) -> Tensor:
        # In double precision: a spread that is small beside the mean is a difference of nearly equal squares.
        mean, spread = (part.double() for part in self.parameters(numbers))
        return torch.cat([mean, mean.square() + spread.square()], dim=-1)


def _on_dense_axes(function: object, numbers: Tensor) -> Tensor:
    """Return a softmax over the last axis, computed with the batch last if that is how the memory lies."""
    if numbers.shape[1] == 1:
        return function(numbers, dim=-1)  # type: ignore[operator, no-any-return]
    rows = numbers.movedim(1, -1)  # (members, leaves, numbers, batch)
    return function(rows, dim=-2).movedim(-1, 1)  # type: ignore[operator, no-any-return]


#: The outputs by their names on pages.
OUTPUTS: dict[str, type[Output]] = {output.kind: output for output in (Classes, Values, Gaussian)}
