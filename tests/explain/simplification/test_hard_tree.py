"""The single-path model follows the more probable branch at every node, and no row changes by more than its bound."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tartree import load
from tartree.explain.text.number_text import at_most
from tests.explain.models import KINDS, fit, predictions
from tests.tolerances import on_cpu

HARDENABLE = [kind for kind in KINDS if kind != "spherical"]


@pytest.mark.parametrize("kind", HARDENABLE)
def test_bounds_hold(kind, tmp_path):
    model, X = fit(kind)
    before = predictions(model, X)
    hard = model.harden(X)
    assert hard.selection == "single"
    assert model.selection == KINDS[kind].get("selection", "multi")
    record = hard.hardening_
    changes = np.abs(predictions(hard, X) - before).max(axis=1)
    assert_allclose(record.changes, changes, atol=1e-9)
    assert (changes <= record.bounds + 1e-9).all()
    assert_allclose(record.agreement, (on_cpu(hard).predict(X) == on_cpu(model).predict(X)).mean())
    assert "agree" in str(record)
    hard.save(tmp_path / "hard.tart")
    assert_allclose(predictions(load(tmp_path / "hard.tart"), X), predictions(hard, X))


def test_the_path_is_local():
    """Each row goes where the larger branching probability sends it, node by node."""
    model, X = fit("default", depth=3)
    hard = model.harden(X)
    import torch

    from tests.explain.models import double_tree, encode

    logits = double_tree(model).decision(encode(model, X))[0]
    here = torch.zeros(len(X), dtype=torch.long)
    for layer in range(3):
        z = logits[torch.arange(len(X)), 2**layer - 1 + here]
        here = 2 * here + (z < 0).long()
    assert (on_cpu(hard).apply(X) - 7 == here.numpy()).all()
    arrival = model.explain(X).arrivals[0, :, -8:]
    assert_allclose(hard.hardening_.bounds, 1 - arrival[np.arange(len(X)), here.numpy()], atol=1e-9)


def test_regression():
    model, X = fit("default", "values")
    hard = model.harden(X)
    changes = np.abs(on_cpu(hard).predict(X) - on_cpu(model).predict(X)) / model.target_scale_[0]
    assert_allclose(hard.hardening_.changes, changes, atol=1e-9)
    assert_allclose(hard.hardening_.agreement, (changes <= 0.1).mean())


@pytest.mark.parametrize("kind", HARDENABLE)
@pytest.mark.parametrize("task", ["values", "two values"])
def test_bounds_of_values_hold(kind, task):
    """Leaves differ by many standard deviations, so that a bound on shares would not hold."""
    model, X = fit(kind, task, noise=3.0)
    hard = model.harden(X)
    changes = (np.abs(predictions(hard, X) - predictions(model, X)) / model.target_scale_).max(axis=1)
    assert_allclose(hard.hardening_.changes, changes, atol=1e-9)
    assert (changes <= hard.hardening_.bounds + 1e-9).all()
    largest = at_most(hard.hardening_.changes.max(), 3)
    assert f"at most {largest} standard deviations of the target" in str(hard.hardening_)
    if kind == "default":
        assert changes.max() > 1  # more than any share
        assert f"bounds: at most {at_most(hard.hardening_.bounds.max(), 3)}" in str(hard.hardening_)


def test_spherical_has_no_hard_form():
    model, X = fit("spherical")
    with pytest.raises(ValueError, match="monotone in its logits"):
        model.harden(X)
