"""Recipe: every setting of a training run, in one frozen record."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Literal

from tartree.checks import check_integer

#: Share of the epochs in which decisions stay as soft as they are.
SOFT_SHARE = 0.3


@dataclass(frozen=True)
class Recipe:
    """How trees are trained.

    Parameters
    ----------
    epochs : int
        Passes over the rows.
    batch_size : int
        Rows of a step. A table with fewer is one batch, without shuffling.
    learning_rate : float
        Of Adam with decoupled weight decay, at the start.
    schedule : {"cosine", "constant"}
        Whether the learning rate falls to zero along half a cosine.
    decision_decay, leaf_decay : float
        Weight decay of the decision function and of the leaf function in an epoch, divided by its steps.
    jitter : float
        Standard deviation of noise added to each encoded number in every step; encoded numbers have a standard
        deviation of 1, and indicators get no noise. It penalises steep decisions and leaves. `noise` reduces it for few
        or correlated features, whose small differences it would hide, and for many rows.
    sharpness : float
        Factor by which logits of decisions grow from 30 % of the epochs on, so that a row follows one path in the end.
    sparsity : float
        Penalty on the terms of leaves that share what is above them (`tartree.nn.Path`): what a column adds to a leaf
        is drawn to 0 unless it helps (group lasso). It falls with the root of the number of rows.
    loss : {"expected", "mixture"}
        Mean cost of the leaves, eq. 4 of the paper, or negative log likelihood of their mixture.
    balance : float
        Weight of the penalty on nodes that send all rows the same way.
    patience : int
        With early stopping, epochs without a better validation loss before a member stops.
    validation_fraction : float
        With early stopping, share of the rows held out.
    optimizer : {"adam", "lbfgs"}
        Adam in steps of batches; or L-BFGS on the whole table in double precision, for models with a convex loss such
        as logistic regression: `epochs` are then iterations, and the decays penalties as in scikit-learn.
    precision : {"single", "tf32", "bfloat16"}
        Of matrix products in training, whatever torch is set to. TensorFloat-32 is faster on some GPUs; bfloat16
        also halves the memory.

    Raises
    ------
    ValueError
        If a setting is outside its range.

    Examples
    --------
    >>> recipe = Recipe(epochs=10, batch_size=100, learning_rate=0.02)
    >>> recipe.n_batches(250), recipe.rate(0.5)
    (3, 0.01)
    """

    epochs: int = 200
    batch_size: int = 1024
    learning_rate: float = 0.025
    schedule: Literal["cosine", "constant"] = "cosine"
    decision_decay: float = 1.0
    leaf_decay: float = 0.01
    jitter: float = 0.4
    sharpness: float = 1.0
    sparsity: float = 0.0
    loss: Literal["expected", "mixture"] = "expected"
    balance: float = 0.0
    patience: int = 30
    validation_fraction: float = 0.1
    optimizer: Literal["adam", "lbfgs"] = "adam"
    precision: Literal["single", "tf32", "bfloat16"] = "single"

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "patience"):
            check_integer(name, getattr(self, name), 1)
        for name in ("decision_decay", "leaf_decay", "jitter", "sparsity", "balance"):
            value = getattr(self, name)
            if not isinstance(value, numbers.Real) or not 0 <= float(value) < math.inf:
                raise ValueError(f"{name} must be a number of at least 0, got {value!r}")
        if not isinstance(self.learning_rate, numbers.Real) or not 0 < self.learning_rate < math.inf:
            raise ValueError(f"learning_rate must be a positive number, got {self.learning_rate!r}")
        if not isinstance(self.sharpness, numbers.Real) or not 1 <= float(self.sharpness) < math.inf:
            raise ValueError(f"sharpness must be a number of at least 1, got {self.sharpness!r}")
        share = self.validation_fraction
        if not isinstance(share, numbers.Real) or not 0 < share < 1:
            raise ValueError(f"validation_fraction must be between 0 and 1, got {share!r}")
        for name, choices in (
            ("schedule", ("cosine", "constant")),
            ("loss", ("expected", "mixture")),
            ("optimizer", ("adam", "lbfgs")),
            ("precision", ("single", "tf32", "bfloat16")),
        ):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, got {getattr(self, name)!r}")

    def rate(self, progress: float) -> float:
        """Return the learning rate after a share of the run.

        Parameters
        ----------
        progress : float
            From 0 to 1.

        Returns
        -------
        float
        """
        if self.schedule == "constant":
            return self.learning_rate
        return self.learning_rate * (1 + math.cos(math.pi * progress)) / 2

    def growth(self, epoch: int) -> float:
        """Return the factor by which the logits of decisions grow before an epoch.

        Parameters
        ----------
        epoch : int
            From 0.

        Returns
        -------
        float
        """
        first = SOFT_SHARE * self.epochs
        if self.sharpness == 1 or epoch < first + 1:
            return 1.0
        return math.exp(math.log(self.sharpness) / max(1.0, self.epochs - first - 1))

    def n_batches(self, n_rows: int) -> int:
        """Count the steps of an epoch.

        Parameters
        ----------
        n_rows : int

        Returns
        -------
        int
        """
        return -(-n_rows // self.batch_size)

    def noise(self, n_features: int, n_rows: int, independent: float | None = None) -> float:
        """Return the standard deviation of the noise.

        Parameters
        ----------
        n_features, n_rows : int
        independent : float, optional
            Effective number of independent features; by default all.

        Returns
        -------
        float
        """
        n_independent = n_features if independent is None else independent
        return self.jitter * math.sqrt(min(1.0, n_independent / 16)) * min(1.0, 20 * n_features / max(n_rows, 1))


RECIPES = {
    "default": Recipe(),
    # Perceptrons as leaves learn faster and fit closer: smaller steps, and decay on them too.
    "deep": Recipe(learning_rate=0.005, decision_decay=0.3, leaf_decay=0.3),
    # Few columns a decision, curves and shared leaves, for models to be read: few terms, and sharp decisions.
    "readable": Recipe(leaf_decay=0.5, jitter=0.25, sharpness=8.0, sparsity=0.25),
    # Values often have little noise, where more decay would draw strong effects to 0.
    "readable-values": Recipe(leaf_decay=0.1, jitter=0.25, sharpness=8.0, sparsity=0.25),
    # The paper's optimiser and learning rate, with its authors' 200 epochs; the last weights are kept.
    "paper": Recipe(learning_rate=0.005, schedule="constant", decision_decay=0.0, leaf_decay=0.0, jitter=0.0),
}
