"""TartRegressor: values with their uncertainty from a table."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from tartree.estimators.base import BaseTart, FileScore, ModelAttribute
from tartree.estimators.classifier import TartClassifier


def _shared_parameters() -> str:
    """Return the section of the parameters that both estimators have, from the docstring of the classifier."""
    docstring = inspect.cleandoc(TartClassifier.__doc__ or "")
    start, end = docstring.find("Parameters\n"), docstring.find("\n\nAttributes\n")
    return re.sub(r"^class_weight : .*\n(    .*\n)*", "", docstring[start:end], flags=re.MULTILINE)


class TartRegressor(FileScore, RegressorMixin, BaseTart):  # type: ignore[misc]
    """A tree for regression, whose leaves give a mean and a spread: by default one that can be read.

    Each leaf is a Gaussian; a prediction is the mean of the mixture of leaves (or of the selected leaf), with its
    standard deviation and quantiles on demand. Several target columns are fitted together.

    `extrapolation` limits predictions too: the mean of each leaf, and so every prediction, leaves the range of the
    targets seen by at most that fraction of it on either side. None sets no limit, for trends that continue.

    {parameters}

    Attributes
    ----------
    limits_ : ndarray of shape (targets, 2) or None
        The lowest and highest prediction of each target; None without a limit.
    target_center_, target_scale_ : ndarray of shape (targets,)
        Mean and standard deviation of the training targets.

    The other attributes are those of `TartClassifier` without `classes_`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tartree import TartRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> tree = TartRegressor(depth=1, epochs=20, random_state=0).fit(X, y)
    >>> mean, std = tree.predict(X[:5], return_std=True)
    >>> tree.predict_quantiles(X[:5], [0.05, 0.95]).shape
    (5, 2)
    """

    target_kind = "regression"
    target_center_ = ModelAttribute[NDArray[np.float64]]("codec.center")
    target_scale_ = ModelAttribute[NDArray[np.float64]]("codec.scale")

    @property
    def limits_(self) -> NDArray[np.float64] | None:
        """Lowest and highest prediction of each target, (targets, 2); None without a limit."""
        limits: NDArray[np.float64] | None = self.model_.value_codec.limits
        return limits

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict values.

        Parameters
        ----------
        X : table of shape (rows, columns), or in files as in `fit`
        return_std : bool, default=False
            Return a pair of values and standard deviations.

        Returns
        -------
        ndarray of shape (rows,) or (rows, targets), or two of them
        """
        check_is_fitted(self, "tree_")
        return self.model_.predict_moments(X) if return_std else self.model_.predict(X)

    def predict_quantiles(self, X: Any, quantiles: Sequence[float] = (0.05, 0.5, 0.95)) -> NDArray[np.float64]:
        """Predict quantiles of each row's distribution.

        Parameters
        ----------
        X : table of shape (rows, columns), or in files as in `fit`
        quantiles : sequence of float
            Between 0 and 1.

        Returns
        -------
        ndarray of shape (rows, quantiles) or (rows, quantiles, targets)
        """
        check_is_fitted(self, "tree_")
        levels = np.asarray(quantiles, dtype=np.float64)
        if levels.ndim != 1 or not ((levels > 0) & (levels < 1)).all():
            raise ValueError(f"quantiles must be a list of numbers between 0 and 1, got {quantiles!r}")
        return self.model_.predict_quantiles(X, levels)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


TartRegressor.__doc__ = inspect.cleandoc(TartRegressor.__doc__ or "").replace("{parameters}", _shared_parameters())
