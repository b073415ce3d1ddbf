"""What happened in training, epoch by epoch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Epoch:
    """What one pass over the rows gave; arrays have one entry a member."""

    number: int  # from 1
    epochs: int
    learning_rate: float  # in its first step
    loss: NDArray[np.float64]
    validation_loss: NDArray[np.float64] | None
    validation_score: NDArray[np.float64] | None  # accuracy, or R2 of a standardised target
    seconds: float  # since the start


Callback = Callable[[Epoch], Any]


@dataclass
class History:
    """What happened in training: a list entry an epoch, and how it ended."""

    epochs: list[Epoch] = field(default_factory=list)
    interrupted: bool = False
    best_epoch: NDArray[np.int64] | None = None  # of each member, with early stopping

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        """One quantity over the epochs: losses and scores are (epochs, members), the others (epochs,)."""
        return np.array([getattr(epoch, name) for epoch in self.epochs], dtype=np.float64)

    def __len__(self) -> int:
        return len(self.epochs)
