"""Members that learn from tables of their own, side by side, learn what they would learn alone."""

import pytest
import torch

from tartree import Structure
from tartree.nn import Classes, Tree
from tartree.training import MemberRows, Recipe, TensorRows, train

from ..conftest import DEVICE

LENGTHS = (40, 37, 40)
RECIPE = Recipe(epochs=5, jitter=0.0)


def draw_tables():
    generator = torch.Generator().manual_seed(0)
    return [
        (torch.randn(n, 4, generator=generator), torch.randint(3, (n,), generator=generator)) for n in LENGTHS
    ]  # fmt: skip


def build(members, first=0):
    tree = Tree.build(Structure(3), 4, Classes(3), leaf_layers=2, hidden=5, members=members)
    tree.reset_parameters([torch.Generator().manual_seed(first + member) for member in range(members)])
    return tree.to(DEVICE)


def side_by_side(tables, share):
    longest = max(LENGTHS)
    x, y = torch.zeros(longest, len(tables), 4), torch.zeros(longest, len(tables), dtype=torch.int64)
    weight = torch.zeros(longest, len(tables))
    for table, (own_x, own_y) in enumerate(tables):
        x[: len(own_x), table], y[: len(own_x), table], weight[: len(own_x), table] = own_x, own_y, 1.0
    return MemberRows(x.to(DEVICE), y.to(DEVICE), weight.to(DEVICE), share)


@pytest.mark.parametrize("share", [1, 2])
def test_each_table_is_learnt_as_alone(share):
    tables = draw_tables()
    together = build(len(tables) * share)
    train(together, side_by_side(tables, share), RECIPE, generator=torch.Generator().manual_seed(0))
    for table, (x, y) in enumerate(tables):
        alone = build(share, first=table * share)
        rows = TensorRows(x.to(DEVICE), y.to(DEVICE))
        train(alone, rows, RECIPE, generator=torch.Generator().manual_seed(0))
        for own, wanted in zip(together.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(own[table * share : (table + 1) * share], wanted, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("share", [1, 2])
def test_small_batches_are_learnt_from_the_same_places_of_all_tables(share):
    """With equal tables and equal starts, all tables learn the same."""
    x, y = draw_tables()[0]
    rows = MemberRows(*(values.unsqueeze(1).repeat_interleave(3, 1).to(DEVICE) for values in (x, y)), None, share)
    tree = build(3 * share)
    tree.reset_parameters([torch.Generator().manual_seed(0) for _ in range(3 * share)])
    small = Recipe(epochs=6, jitter=0.0, batch_size=16)
    history = train(tree, rows, small, generator=torch.Generator().manual_seed(0))
    assert history.epochs[-1].loss.max() < history.epochs[0].loss.min()
    for own in tree.parameters():
        torch.testing.assert_close(own, own[:1].expand_as(own), atol=1e-4, rtol=1e-3)


def test_batches_of_a_table_hold_its_own_rows():
    tables = draw_tables()
    rows = side_by_side(tables, 2)
    batch = rows.take(torch.tensor([3, 39]))
    assert batch.x.shape == (3, 2, 4)
    assert batch.target.shape == (6, 2)
    for table, (x, y) in enumerate(tables):
        assert torch.equal(batch.x[table, 0].cpu(), x[3])
        assert batch.target[2 * table : 2 * table + 2, 0].tolist() == [y[3]] * 2
    assert batch.weight[:, 1].tolist() == [1, 1, 0, 0, 1, 1]


def test_early_stopping_looks_at_the_rows_of_each_table():
    tables = draw_tables()
    tree = build(2 * len(tables))
    generator = torch.Generator().manual_seed(0)
    history = train(tree, side_by_side(tables, 2), RECIPE, generator=generator, validation=side_by_side(tables, 2))
    assert history.epochs[-1].validation_loss.shape == (6,)


def test_tables_must_divide_the_members():
    with pytest.raises(ValueError, match="a batch for each member"):
        build(4)(torch.zeros(3, 2, 4, device=DEVICE))
