"""Recipe: every number of a training run, in one frozen record."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Literal


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
        Weight decay of the decision function and of the leaf function, shared out over the steps of an epoch: more
        rows make more steps, and pull weights no harder towards zero.
    jitter : float
        Standard deviation of noise added to each encoded number in training, anew in every step; encoded numbers have
        a standard deviation of 1, and indicators get no noise. It acts as a penalty on steep decisions and leaves.
        `noise` says how much less there is
        with few features, or with features that say the same, whose small differences noise would drown; and with many
        rows, which need no such help.
    loss : {"expected", "mixture"}
        Eq. 4 of the paper, the mean cost of the leaves; or the negative log likelihood of their mixture.
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
        Of matrix products in training, whatever torch is set to. TensorFloat-32 is faster where a GPU has it; bfloat16
        takes half the memory too.
    """

    epochs: int = 200
    batch_size: int = 1024
    learning_rate: float = 0.025
    schedule: Literal["cosine", "constant"] = "cosine"
    decision_decay: float = 1.0
    leaf_decay: float = 0.01
    jitter: float = 0.4
    loss: Literal["expected", "mixture"] = "expected"
    balance: float = 0.0
    patience: int = 30
    validation_fraction: float = 0.1
    optimizer: Literal["adam", "lbfgs"] = "adam"
    precision: Literal["single", "tf32", "bfloat16"] = "single"

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "patience"):
            value = getattr(self, name)
            if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} must be an integer of at least 1, however: {name}={value!r}")
        for name in ("decision_decay", "leaf_decay", "jitter", "balance"):
            value = getattr(self, name)
            if not isinstance(value, numbers.Real) or not 0 <= float(value) < math.inf:
                raise ValueError(f"{name} must be a number of at least 0, however: {name}={value!r}")
        if not isinstance(self.learning_rate, numbers.Real) or not 0 < self.learning_rate < math.inf:
            raise ValueError(f"learning_rate must be a positive number, however: learning_rate={self.learning_rate!r}")
        share = self.validation_fraction
        if not isinstance(share, numbers.Real) or not 0 < share < 1:
            raise ValueError(f"validation_fraction must be between 0 and 1, however: validation_fraction={share!r}")
        for name, known in (
            ("schedule", ("cosine", "constant")),
            ("loss", ("expected", "mixture")),
            ("optimizer", ("adam", "lbfgs")),
            ("precision", ("single", "tf32", "bfloat16")),
        ):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, however: {name}={getattr(self, name)!r}")

    def rate(self, progress: float) -> float:
        """Learning rate after a share of the run, from 0 to 1."""
        if self.schedule == "constant":
            return self.learning_rate
        return self.learning_rate * (1 + math.cos(math.pi * progress)) / 2

    def n_batches(self, n_rows: int) -> int:
        """Steps of an epoch over so many rows."""
        return -(-n_rows // self.batch_size)

    def noise(self, n_features: int, n_rows: int, independent: float | None = None) -> float:
        """Standard deviation of the noise for so many encoded features and rows.

        `independent` says how many of the features say something of their own; all of them by default.
        """
        own = n_features if independent is None else independent
        return self.jitter * math.sqrt(min(1.0, own / 16)) * min(1.0, 20 * n_features / max(n_rows, 1))


RECIPES = {
    "default": Recipe(),
    # Perceptrons as leaves learn faster and fit closer: smaller steps, and decay on them too.
    "deep": Recipe(learning_rate=0.005, decision_decay=0.3, leaf_decay=0.3),
    # The paper's optimiser and learning rate, with its authors' 200 epochs; the last weights are kept.
    "paper": Recipe(learning_rate=0.005, schedule="constant", decision_decay=0.0, leaf_decay=0.0, jitter=0.0),
}
