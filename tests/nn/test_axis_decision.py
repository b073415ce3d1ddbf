import numpy as np
import pytest
import torch

from tartree import Structure, ops
from tartree.nn import Axis, AxisDecision, Branching, Classes, SplitDecision, Tree
from tartree.nn.axis_decision import SURE

from ..conftest import IRREGULAR


def test_a_sure_logit_leaves_nothing_to_the_other_child():
    for dtype in (torch.float32, torch.float64):
        for structure in (Structure(1), IRREGULAR["one long path"]):
            logits = torch.full((2, structure.n_logits), SURE, dtype=dtype)
            logits[1] = -SURE
            arrival = ops.arrival(logits, structure)
            assert set(arrival.flatten().tolist()) == {0.0, 1.0}


def test_predictions_compare_one_feature():
    decision = AxisDecision(Structure(2), 3, members=2).eval()
    x = torch.randn(50, 3)
    expected = torch.stack(
        [torch.where(x[:, f] <= t, SURE, -SURE) for f, t in zip(decision.feature, decision.threshold, strict=True)]
    )
    assert torch.equal(decision(x), expected)
    own = torch.stack([x, -x])
    assert torch.equal(decision(own)[0], decision(x)[0])
    assert torch.equal(decision(own)[1], decision(-x)[1])


def test_training_sees_the_same_feature_and_learns_all():
    decision = AxisDecision(Structure(2), 3, slope=2.0)
    x = torch.randn(50, 3)
    logits = decision(x)
    expected = 2 * (decision.threshold[0] - x[:, decision.feature[0]])
    torch.testing.assert_close(logits[0], expected)
    assert torch.equal(logits.detach() >= 0, decision.eval()(x) > 0)
    logits.square().sum().backward()
    assert (decision.choice.grad != 0).all()
    assert (decision.thresholds.grad.abs() > 0).sum() >= 3


def test_a_hard_tree_sends_every_row_to_one_leaf_in_training_too():
    structure = Structure(3)
    tree = Tree.build(structure, 4, Classes(2), branching="hard", leaf_layers=0, decision=Axis())
    arrival = tree(torch.randn(20, 4)).arrival
    assert torch.equal(arrival.detach().sort(-1).values[..., -1], torch.ones(1, 20))
    assert isinstance(tree.branching, Branching)


def test_errors():
    with pytest.raises(ValueError, match="need nodes with two children"):
        AxisDecision(Structure(1, 3), 2)
    with pytest.raises(ValueError, match="needs a feature to look at"):
        AxisDecision(Structure(1), 0)
    with pytest.raises(ValueError, match="slope must be a positive number"):
        AxisDecision(Structure(1), 2, slope=0)
    with pytest.raises(ValueError, match=r"threshold must have the shape \(3,\)"):
        SplitDecision(Structure(2), 2, [0, 1, 0], [0.0])
    with pytest.raises(ValueError, match="feature must be from 0 to 1"):
        SplitDecision(Structure(1), 2, [2], [0.0])
    with pytest.raises(ValueError, match=r"input must be \(batch, 2\)"):
        SplitDecision(Structure(1), 2, [1], [0.0])(torch.zeros(1, 3))


def test_splits_of_levels_zeros_and_gaps():
    structure = Structure.from_tree([[1, 2], [], [3, 4], [], []])
    decision = SplitDecision(
        structure,
        2,
        feature=[0, 1],
        threshold=[0.0, 9.0],
        gap_first=[False, True],
        zero_is_gap=[True, False],
        levels={1: np.array([1, 3])},
    )
    rows = torch.tensor(
        [
            [-1.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 0.0],  # zero is a gap, and goes to the second child
            [5.0, 1.0, 1.0, 0.0],
            [0.0, 3.9, 0.0, 0.0],  # levels are cut off to whole numbers
            [0.0, -2.0, 0.0, 0.0],
            [0.0, 7.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 1.0],
        ],
        dtype=torch.float64,
    )
    assert (decision(rows)[0] > 0).tolist() == [
        [True, False],
        [False, False],
        [False, True],
        [False, True],
        [False, False],
        [False, False],
        [False, True],
    ]
