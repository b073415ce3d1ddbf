"""The training of a prepared tree, and what an interrupt leaves of it."""

import numpy as np
import pytest
import torch

from tartree.model import pipeline
from tartree.model.spec import ModelSpec
from tartree.training import SINGLE_WORKER, Recipe


@pytest.mark.parametrize("members", [1, 2])
def test_an_interrupt_while_penalties_are_compared_keeps_weights_and_removed_terms(monkeypatch, members):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 6))
    spec = ModelSpec(
        "regression", depth=2, members=members, is_readable=True, max_terms=3, recipe=Recipe(epochs=20, sparsity=0.1)
    )
    train = pipeline.train

    def interrupt(epoch):
        if epoch.number == 12:
            raise KeyboardInterrupt

    trained = []

    def interrupted(tree, *arguments, **options):
        trained.append(tree)
        return train(tree, *arguments, **{**options, "callbacks": [interrupt]})

    monkeypatch.setattr(pipeline, "train", interrupted)
    prepared = pipeline.prepare(spec, pipeline.data_source(spec, X, X[:, 0]))
    with pytest.warns(UserWarning, match="after 12 of 20 epochs; the last weights"):
        history = pipeline._Fit(prepared, SINGLE_WORKER, None, spec.recipe)._choose_penalty()
    assert history.interrupted
    (copies,) = trained
    tree, every = prepared.tree, len(pipeline.PENALTY_FACTORS)
    for part, of_copies in ((tree.decision, copies.decision), (tree.leaf, copies.leaf)):
        assert (part.terms.mask == 0).any()
        torch.testing.assert_close(part.terms.mask, of_copies.terms.mask[::every], rtol=0, atol=0)
    torch.testing.assert_close(tree.leaf.nodes.weights[0], copies.leaf.nodes.weights[0][::every], rtol=0, atol=0)
    factors = tree.leaf.penalty_factors
    torch.testing.assert_close(factors, torch.ones_like(factors), rtol=0, atol=0)
