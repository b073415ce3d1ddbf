"""Terms of linear functions: norms by function and column, and back to the weights."""

import pytest
import torch

from tartree.nn.column_groups import ColumnGroups


def test_norms_equal_a_loop_over_functions_and_columns():
    functions, columns = [0, 0, 1, 2, 2], [4, 4, 1, 9, 9, 9]
    weight = torch.randn(3, 5, 6, dtype=torch.float64)
    squares = ColumnGroups(functions, columns).squares(weight)
    assert squares.shape == (3, 3, 3)
    for function in range(3):
        outputs = [k for k, f in enumerate(functions) if f == function]
        for position, column in enumerate((1, 4, 9)):
            features = [k for k, c in enumerate(columns) if c == column]
            direct = weight[:, outputs][:, :, features].square().sum((1, 2))
            torch.testing.assert_close(squares[:, function, position], direct)


def test_each_weight_gets_the_value_of_its_term():
    groups = ColumnGroups([0, 1, 1], [0, 1, 1, 2])
    terms = torch.arange(6.0).view(1, 2, 3)
    assert groups.spread(terms).tolist() == [[[0, 1, 1, 2], [3, 4, 4, 5], [3, 4, 4, 5]]]


@pytest.mark.parametrize(("functions", "columns"), [([], []), ([0], []), ([], [0])])
def test_without_weights_there_are_no_terms(functions, columns):
    groups = ColumnGroups(functions, columns)
    assert groups.squares(torch.zeros(1, len(functions), len(columns))).numel() == 0
