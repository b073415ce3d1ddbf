"""Loss curves of training and validation by epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from tartree.explain.plots.style import BRANCHES, QUIET, axes_for, styled
from tartree.model import FittedModel, HasModel, fitted_model
from tartree.training import History

TRAINING, VALIDATION = BRANCHES[3], BRANCHES[4]


@styled
def plot_history(source: FittedModel | HasModel | History, *, ax: Any = None) -> Any:
    """Draw the loss of each epoch: thin lines for the members, a thick one for their mean, dashed for validation.

    Parameters
    ----------
    source : fitted estimator, FittedModel or History
        A model or its ``history_``.
    ax : matplotlib Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes drawn on.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tartree import TartClassifier
    >>> from tartree.explain import plots
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TartClassifier(depth=1, epochs=2, random_state=0).fit(X, y)
    >>> plots.plot_history(model).get_xlabel()
    'epoch'
    """
    history = source if isinstance(source, History) else fitted_model(source).provenance.history
    if history is None:
        raise ValueError(
            f"source must be a model with a history, got {type(source).__name__} without one; a loaded model has none"
        )
    if not len(history):
        raise ValueError("a history must have at least one epoch to draw, got none")
    ax = axes_for(ax, 6.4, 3.6)
    epochs = history["number"]
    curves = [("training", history["loss"], TRAINING, "-"), ("validation", _held_out(history), VALIDATION, "--")]
    for name, losses, colour, dash in curves:
        if losses is None:
            continue
        n_members = losses.shape[1]
        if n_members > 1:
            ax.plot(epochs, losses, color=colour, linestyle=dash, linewidth=0.7, alpha=0.4)
        is_finite = np.isfinite(losses)
        mean = np.where(is_finite, losses, 0).sum(axis=1) / np.maximum(is_finite.sum(axis=1), 1)
        mean[~is_finite.any(axis=1)] = np.nan
        label = f"{name}, mean of {n_members} members" if n_members > 1 else name
        ax.plot(epochs, mean, color=colour, linestyle=dash, linewidth=2, label=label)
        if name == "validation" and history.best_epoch is not None:
            best = np.asarray(history.best_epoch)
            points = losses[np.searchsorted(epochs, best), np.arange(n_members)]
            ax.plot(best, points, "o", color=colour, markersize=5, label="best epoch, kept", linestyle="none")
    ax.set_xlabel("epoch")
    ax.set_ylabel("loss")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_title("Loss by epoch" + (", interrupted" if history.interrupted else ""))
    ax.legend()
    ax.tick_params(color=QUIET)
    return ax


def _held_out(history: History) -> Any:
    """Return validation losses, (epochs, members), or None."""
    losses = history["validation_loss"]
    return losses if losses.ndim == 2 and np.isfinite(losses).any() else None
