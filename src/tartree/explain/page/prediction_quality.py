"""Quality of the predictions on the rows of a report: confusion matrix or errors, and calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

N_BINS = 10
COVERAGE_LEVELS = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
#: Levels of the quantiles at the ends of those intervals, side by side.
QUANTILE_LEVELS = np.array([side for level in COVERAGE_LEVELS for side in ((1 - level) / 2, (1 + level) / 2)])


def classification_quality(probabilities: FloatArray, truth: NDArray[np.int64]) -> dict[str, Any]:
    """Measure predicted probabilities, (rows, classes), against class indices, (rows,)."""
    n_rows, n_classes = probabilities.shape
    predicted = probabilities.argmax(axis=1)
    matrix = np.zeros((n_classes, n_classes), dtype=np.int64)  # (true, predicted)
    np.add.at(matrix, (truth, predicted), 1)
    recall = np.diag(matrix) / np.maximum(matrix.sum(axis=1), 1)
    present = matrix.sum(axis=1) > 0
    true_probability = np.maximum(probabilities[np.arange(n_rows), truth], 1e-15)
    if n_classes == 2:
        predicted_share, is_true = probabilities[:, 1], truth == 1
    else:
        predicted_share, is_true = probabilities.max(axis=1), predicted == truth
    return {
        "accuracy": float(np.trace(matrix) / n_rows),
        "balancedAccuracy": float(recall[present].mean()),
        "majority": float(matrix.sum(axis=1).max() / n_rows),
        "logLoss": float(-np.log(true_probability).mean()),
        "matrix": matrix.tolist(),
        "calibration": calibration_curve(predicted_share, is_true),
    }


def calibration_curve(probability: FloatArray, is_true: NDArray[np.bool_]) -> list[dict[str, float]]:
    """Compare mean predicted probability and observed share in bins of equal width.

    Examples
    --------
    >>> calibration_curve(np.array([0.1, 0.1, 0.9]), np.array([False, True, True]))
    [{'predicted': 0.1, 'observed': 0.5, 'rows': 2}, {'predicted': 0.9, 'observed': 1.0, 'rows': 1}]
    """
    bin_index = np.minimum((probability * N_BINS).astype(np.int64), N_BINS - 1)
    curve = []
    for k in range(N_BINS):
        in_bin = bin_index == k
        if in_bin.any():
            predicted, observed = float(probability[in_bin].mean()), float(is_true[in_bin].mean())
            curve.append({"predicted": predicted, "observed": observed, "rows": int(in_bin.sum())})
    return curve


def regression_quality(predicted: FloatArray, truth: FloatArray, quantiles: FloatArray | None) -> list[dict[str, Any]]:
    """Measure predicted against true values, both (rows, targets), for each target.

    `quantiles` are predicted at `QUANTILE_LEVELS`, (rows, quantiles, targets), or None.
    """
    measured = []
    for target in range(truth.shape[1]):
        error = predicted[:, target] - truth[:, target]
        spread = truth[:, target] - truth[:, target].mean()
        total = float(np.square(spread).sum())
        measured.append(
            {
                "r2": float(1 - np.square(error).sum() / total) if total > 0 else None,
                "meanError": float(np.abs(error).mean()),
                "rootMeanSquare": float(np.sqrt(np.square(error).mean())),
                "coverage": [] if quantiles is None else _coverage(quantiles[..., target], truth[:, target]),
            }
        )
    return measured


def _coverage(quantiles: FloatArray, truth: FloatArray) -> list[dict[str, float]]:
    """Return the share of true values within the predicted intervals of each level; `quantiles` is (rows, 2 levels)."""
    return [
        {
            "predicted": level,
            "observed": float(((quantiles[:, 2 * k] <= truth) & (truth <= quantiles[:, 2 * k + 1])).mean()),
            "rows": len(truth),
        }
        for k, level in enumerate(COVERAGE_LEVELS)
    ]
