"""How near results must be, by device: a CPU predicts in double precision, other devices in single precision."""

import os

import numpy as np
import torch

#: Whether ``device="auto"`` is a CPU in this run.
ON_CPU = not torch.cuda.is_available() and os.environ.get("TARTREE_TEST_DEVICE", "") != "pretend"


def within(exact: float, single: float = 1e-5) -> float:
    """A tolerance: `exact` where predictions are in double precision, `single` elsewhere."""
    return exact if ON_CPU else single


def assert_same(found, wanted, single: float = 1e-5) -> None:
    """Equal to the last bit on a CPU; elsewhere rows are rounded differently in another batch."""
    if ON_CPU:
        np.testing.assert_array_equal(found, wanted)
    elif np.asarray(wanted).dtype.kind == "f":
        np.testing.assert_allclose(found, wanted, rtol=single, atol=single)
    else:  # classes and leaves, which a row between two of them may change
        assert (np.asarray(found) == np.asarray(wanted)).mean() > 0.97


def on_cpu(model):
    """The same fitted model on a CPU, in double precision: what explanations are computed from."""
    return model.with_model(model.model_.on_cpu())
