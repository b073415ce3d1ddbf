"""Decisions on few columns: which are removed, when, and what fast paths see."""

import pytest
import torch

from tartree import Structure
from tartree.nn import MLPDecision, SparseDecision
from tartree.nn.families import linear_parameters, plain


def used_columns(decision, columns):
    """Count the columns that each logit uses, (members, logits)."""
    weights, _ = linear_parameters(decision)
    used = torch.stack([weights[..., torch.tensor(columns) == c].ne(0).any(-1) for c in sorted(set(columns))], dim=-1)
    return used.sum(-1)


@pytest.mark.parametrize("structure", [Structure(3), Structure(2, 3), Structure(3, 3, 2)])
@pytest.mark.parametrize("most", [1, 2])
def test_columns_are_removed_step_by_step(structure, most):
    columns = [0, 0, 0, 2, 3, 3, 5, 7]  # columns 1, 4 and 6 have no features
    decision = SparseDecision(structure, 8, columns=columns, most=most, members=2)
    assert decision.terms.groups.n_columns == 5
    counts = []
    for progress in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 1.0):
        decision.prune(progress)
        counts.append(int(used_columns(decision, columns).max()))
        assert (used_columns(decision, columns) == counts[-1]).all()
    assert counts[0] == counts[1] == 5
    assert counts == sorted(counts, reverse=True)
    assert counts[-2] == counts[-1] == most


def test_the_strongest_columns_are_kept():
    decision = SparseDecision(Structure(1, 3), 4, columns=[0, 0, 1, 2], most=2)
    weights = torch.tensor([[0.1, 0.1, 1.0, 0.0], [0.0, 0.0, 0.0, 2.0], [0.1, 0.0, 0.0, 0.0]])
    decision.mlp.weights[0].data.copy_(weights)
    decision.prune(1.0)
    # The three logits of a node share the columns.
    assert decision.mlp.weights[0][0].tolist() == (weights * torch.tensor([0, 0, 1, 1])).tolist()


def test_removed_columns_stay_removed():
    decision = SparseDecision(Structure(2), 3, columns=[0, 1, 2], most=1)
    decision.prune(1.0)
    kept = decision.mlp.weights[0].detach().clone()
    decision.mlp.weights[0].data.add_(1.0)
    decision.project()
    assert torch.equal(decision.mlp.weights[0] != 0, kept != 0)
    decision.prune(1.0)
    assert torch.equal(decision.mlp.weights[0] != 0, kept != 0)
    decision.reset_parameters([torch.Generator().manual_seed(0)])
    assert (decision.mlp.weights[0] != 0).all()


def test_the_mask_is_found_again_from_the_weights():
    """A run that is resumed has the weights alone."""
    decision = SparseDecision(Structure(2), 6, columns=[0, 0, 1, 1, 2, 2], most=1)
    decision.prune(1.0)
    resumed = SparseDecision(Structure(2), 6, columns=[0, 0, 1, 1, 2, 2], most=1)
    resumed.load_state_dict(decision.state_dict())
    resumed.prune(1.0)
    assert torch.equal(resumed.terms.mask, decision.terms.mask)


def test_few_columns_are_left_alone():
    decision = SparseDecision(Structure(2), 2, columns=[0, 1], most=2)
    decision.prune(1.0)
    assert (decision.mlp.weights[0] != 0).all()


def test_plain():
    decision = SparseDecision(Structure(2), 3, columns=[0, 1, 2], most=2)
    x = torch.randn(5, 3)
    simple = plain(decision)
    assert type(simple) is MLPDecision
    assert torch.equal(simple(x), decision(x))
    assert set(simple.state_dict()) == set(MLPDecision(Structure(2), 3).state_dict())


def test_errors():
    with pytest.raises(ValueError, match="most must be an integer of at least 1, got 0"):
        SparseDecision(Structure(1), 2, columns=[0, 1], most=0)
    with pytest.raises(ValueError, match="one entry for each of 2 features, got 3"):
        SparseDecision(Structure(1), 2, columns=[0, 1, 2], most=1)
