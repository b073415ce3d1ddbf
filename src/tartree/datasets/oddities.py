"""Oddities of a set, found in its data, which belong beside any score."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tartree.datasets.uci_set import Split

# Files of six digits give mean 0 and deviation 1 to about 1e-5; parts of a file standardised as a whole miss by 1e-2.
TOLERANCE = 1e-3

# Differences from the original set.
DIFFERENCES = {"connect-4": "two classes here, three in the original"}


def find_oddities(
    name: str, X: NDArray[np.float64], y: NDArray[np.int64], splits: tuple[Split, ...], fixed_test: bool
) -> list[str]:
    """Return notes on scales and on classes without some rows."""
    train, test = splits[0]
    notes = [*_compare_scales(X[train], X[test])] if fixed_test else []
    different = splits[:1] if fixed_test else splits
    n_classes = int(y.max()) + 1
    for k, part in enumerate(("training", "test")):
        n_missing = [n_classes - len(np.unique(y[split[k]])) for split in different]
        if any(n_missing):
            least, most = min(n_missing), max(n_missing)
            number = f"{most}" if least == most else f"{least} to {most}"
            notes.append(f"{number} of {n_classes} classes missing from the {part} rows")
    if name in DIFFERENCES:
        notes.append(DIFFERENCES[name])
    return notes


def _compare_scales(train: NDArray[np.float64], test: NDArray[np.float64]) -> list[str]:
    standardised = _is_standardised(train), _is_standardised(test)
    if all(standardised):
        return ["train and test standardised each on its own"]
    if any(standardised):
        part = "training" if standardised[0] else "test"
        return [f"train and test on different scales (only the {part} rows are standardised)"]
    return []


def _is_standardised(part: NDArray[np.float64]) -> bool:
    """Whether all features that vary have mean 0 and standard deviation 1 within these rows."""
    if len(part) < 2:
        return False
    deviation = part.std(axis=0, ddof=1)
    varies = deviation > 1e-9
    means, deviations = part.mean(axis=0)[varies], deviation[varies]
    close = (np.abs(means) < TOLERANCE) & (np.abs(deviations - 1) < TOLERANCE)
    return bool(len(close) and close.all())
