"""Tolerances by device: a CPU predicts in double precision, other devices in single precision."""

import os

import numpy as np
import torch

#: Whether ``device="auto"`` is a CPU in this run.
ON_CPU = not torch.cuda.is_available() and os.environ.get("TARTREE_TEST_DEVICE", "") != "pretend"


def within(exact: float, single: float = 1e-5) -> float:
    """Return `exact` where predictions are in double precision, `single` elsewhere."""
    return exact if ON_CPU else single


def assert_same(actual, expected, single: float = 1e-5) -> None:
    """Compare bits on a CPU; elsewhere within a tolerance, because rounding depends on the batch."""
    if ON_CPU:
        np.testing.assert_array_equal(actual, expected)
    elif np.asarray(expected).dtype.kind == "f":
        np.testing.assert_allclose(actual, expected, rtol=single, atol=single)
    else:  # classes and leaves: a row between two of them may change
        assert (np.asarray(actual) == np.asarray(expected)).mean() > 0.97


def on_cpu(model):
    """Return the fitted model on a CPU, in double precision, as explanations use it."""
    return model.with_model(model.model_.on_cpu())
