"""History of a training, epoch by epoch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Epoch:
    """Losses and scores of one pass over the rows.

    Parameters
    ----------
    number : int
        From 1.
    epochs : int
        Of the whole run.
    learning_rate : float
        In the first step.
    loss : ndarray of shape (members,)
    validation_loss : ndarray of shape (members,) or None
    validation_score : ndarray of shape (members,) or None
        Accuracy, or R2 of a standardised target.
    seconds : float
        Since the start.

    Examples
    --------
    >>> Epoch(1, 10, 0.02, np.array([0.5]), None, None, 0.1).loss
    array([0.5])
    """

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
    """Losses and scores of a training by epoch, and how it ended.

    Parameters
    ----------
    epochs : list of Epoch
    interrupted : bool
        Whether the run was interrupted.
    best_epoch : ndarray of shape (members,) or None
        Epoch of the best weights of each member, with early stopping.

    Examples
    --------
    >>> history = History([Epoch(1, 1, 0.02, np.array([0.5, 0.4]), None, None, 0.1)])
    >>> history["loss"]
    array([[0.5, 0.4]])
    """

    epochs: list[Epoch] = field(default_factory=list)
    interrupted: bool = False
    best_epoch: NDArray[np.int64] | None = None  # of each member, with early stopping

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        """Return a field of `Epoch` over the epochs: losses and scores are (epochs, members), others (epochs,)."""
        return np.array([getattr(epoch, name) for epoch in self.epochs], dtype=np.float64)

    def __len__(self) -> int:
        return len(self.epochs)
